"""`make bench`: a KCL table of 10,000 leases is taken over, beside the same rows put by a plain loop; printed, never asserted.

DynamoDB Local is real, the stream is a stub that serves ListShards. Of 5,000 shards half were split in two. Every program is a process of its own,
measured by the kernel from its start to its end: wall clock, CPU, and the most memory it ever had. The loops write unconditionally and verify
nothing; they read the rows to write from the migrated table.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rich.console import Console
from rich.table import Table

from sluice_checkpoints.stream.model import Shard
from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.fakes.stream import MemoryStream

SHARDS = 10_000
PAGE = 1000  # ListShards' default
SOURCE, TARGET = "bench-kcl", "bench-sluice"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_DEFAULT_REGION": "us-east-1"}


def stream(shards: int) -> MemoryStream:
    """So many shards: a quarter of them closed, and each of these followed by two."""
    memory = MemoryStream("bench", shards=shards // 2)
    for shard in list(memory.shards)[: shards // 4]:
        memory.split(shard)
    return memory


# -- the stream over HTTP --------------------------------------------------------------------------------------------------------------


def listed(shard: Shard) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": shard.starting_sequence}
    numbers |= {"EndingSequenceNumber": shard.ending_sequence} if shard.ending_sequence else {}
    hashes = {"StartingHashKey": str(shard.starting_hash), "EndingHashKey": str(shard.ending_hash)}
    parents = dict(zip(("ParentShardId", "AdjacentParentShardId"), shard.parents, strict=False))
    return {"ShardId": shard.id, "HashKeyRange": hashes, "SequenceNumberRange": numbers} | parents


def replies(memory: MemoryStream) -> Callable[[str, dict[str, Any]], dict[str, Any]]:
    told, shards = memory.describe(), [listed(shard.shard) for shard in memory.shards.values()]
    summary = {"StreamName": told.name, "StreamARN": told.arn, "StreamStatus": "ACTIVE", "RetentionPeriodHours": 24, "EnhancedMonitoring": []}
    summary |= {"StreamCreationTimestamp": told.created_millis / 1000, "OpenShardCount": len(shards)}

    def reply(action: str, ask: dict[str, Any]) -> dict[str, Any]:
        if action == "DescribeStreamSummary":
            return {"StreamDescriptionSummary": summary}
        if action == "GetShardIterator":
            return {"ShardIterator": "accepted"}
        start = int(ask.get("NextToken", 0))
        more = {"NextToken": str(start + PAGE)} if start + PAGE < len(shards) else {}
        return {"Shards": shards[start : start + PAGE]} | more

    return reply


@contextmanager
def kinesis(memory: MemoryStream) -> Iterator[str]:
    answer = replies(memory)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(answer(self.headers["X-Amz-Target"].rpartition(".")[2], ask)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


# -- programs of their own: `python migration_speed.py <what> <endpoint>` --------------------------------------------------------------


def lease(shard: Shard) -> dict[str, Any]:
    """A row as KCL 2 writes it: closed shards finished, the others in the middle of an aggregate."""
    place, sub = ("SHARD_END", "0") if shard.closed else (str(int(shard.starting_sequence) + 7), "3")
    row = {
        "leaseKey": {"S": shard.id},
        "leaseOwner": {"S": f"worker-{int(shard.id[-3:]) % 20}"},
        "leaseCounter": {"N": "4711"},
        "ownerSwitchesSinceCheckpoint": {"N": "0"},
        "checkpoint": {"S": place},
        "checkpointSubSequenceNumber": {"N": sub},
        "startingHashKey": {"S": str(shard.starting_hash)},
        "endingHashKey": {"S": str(shard.ending_hash)},
    }
    return row | ({"parentShardId": {"SS": list(shard.parents)}} if shard.parents else {})


def create(api: Any, name: str, key: str) -> None:
    api.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )


def put_each(api: Any, table: str, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        api.put_item(TableName=table, Item=row)


def put_batches(api: Any, table: str, rows: list[dict[str, Any]]) -> None:
    """25 rows a batch_write_item, which knows no conditions; what was not processed is sent again."""
    for start in range(0, len(rows), 25):
        left: Any = {table: [{"PutRequest": {"Item": row}} for row in rows[start : start + 25]]}
        while left:
            left = api.batch_write_item(RequestItems=left)["UnprocessedItems"]


LOOPS = {"put_item": put_each, "batch_write_item": put_batches}


def program(what: str, endpoint: str) -> None:
    """`seed` writes the source; the loops put the rows of the target into a table of their own."""
    import boto3  # noqa: PLC0415 - the parent stays small, for a child's memory begins with its parent's

    api = boto3.client("dynamodb", endpoint_url=endpoint)
    if what == "seed":
        memory = stream(SHARDS)
        create(api, SOURCE, "leaseKey")
        put_batches(api, SOURCE, [lease(shard.shard) for shard in memory.shards.values()])
        return
    pages = api.get_paginator("scan").paginate(TableName=TARGET, ConsistentRead=True)
    rows = [row for page in pages for row in page["Items"]]
    create(api, f"bench-{what}", "id")
    LOOPS[what](api, f"bench-{what}", rows)


@dataclass(frozen=True)
class Cost:
    """What a process took: seconds, CPU seconds, and MB at its largest."""

    seconds: float
    cpu: float
    memory: float


def measured(*command: str) -> Cost:
    start = time.monotonic()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(sys.executable, [sys.executable, *command], os.environ, file_actions=quiet)
    _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    os.environ.update(CREDENTIALS)
    with emulators.dynamodb_local(places.work()) as dynamodb, kinesis(stream(SHARDS)) as endpoint:
        measured(__file__, "seed", dynamodb)
        ends = ("--region", "us-east-1", "--dynamodb-endpoint", dynamodb, "--kinesis-endpoint", endpoint)
        migrate = (
            "-m",
            "sluice_checkpoints",
            "migrate",
            "--source",
            SOURCE,
            "--stream",
            "bench",
            "--target",
            TARGET,
            "--quiet-seconds",
            "0",
            "--json",
        )
        costs = {"migrate": measured(*migrate, *ends)} | {name: measured(__file__, name, dynamodb) for name in LOOPS}
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table = Table(title=f"Taking over {SHARDS} shards (--quiet-seconds 0); rows alone below, unconditionally and unverified")
    for head in ("program", "seconds", "CPU seconds", "peak MB", "of put_item's time"):
        table.add_column(head, justify="left" if head == "program" else "right")
    for name, cost in costs.items():
        ratio = cost.seconds / costs["put_item"].seconds
        table.add_row(name, f"{cost.seconds:.1f}", f"{cost.cpu:.1f}", f"{cost.memory:.0f}", f"{ratio:.2f}")
    Console().print(table)
    Console().print(f"(peak of the measuring program, with which every child begins: {own:.0f} MB)")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        program(*sys.argv[1:])
    else:
        main()

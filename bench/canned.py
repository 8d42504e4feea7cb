"""A Kinesis that costs little: replies cut from slabs, in a process of its own (`python canned.py '<options as JSON>'`, prints its port).

It serves what a consumer asks: DescribeStreamSummary, ListShards, GetShardIterator and GetRecords, in JSON and, unless it is told otherwise, in
CBOR. With `limits` it keeps to the service's own: 5 calls and 2 MiB a second and shard. `GET /` says what was asked so far.
"""

from __future__ import annotations

import email.utils
import json
import socketserver
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import cbor2
from slab import CBOR, FIRST_SEQUENCE, JSON, SEQUENCE_STEP, Shape, Slab, build, reply

CALLS, BYTES = 5.0, 2.0 * 1024 * 1024
SMALL = 65_536  # bytes up to which a reply is copied together, to be one packet
PAGE_BYTES, PAGE_RECORDS = 10 * 1024 * 1024, 10_000
THROTTLED = ("ProvisionedThroughputExceededException", "Rate exceeded for shard")
Body = list[bytes | memoryview]


@dataclass(frozen=True)
class Options:
    """What is served: so many shards of this shape; `limits` as in the module's text.

    Attributes:
        codecs: content types that GetRecords is answered in; every other call is answered in JSON too.
    """

    shards: int
    shape: Shape
    codecs: tuple[str, ...] = (JSON, CBOR)
    limits: bool = False

    @staticmethod
    def from_json(text: str) -> Options:
        values: dict[str, Any] = json.loads(text)
        return Options(**values | {"shape": Shape(**values["shape"])})


@dataclass
class Bucket:
    """Tokens of one shard; a second's worth can be saved up."""

    rate: float
    tokens: float
    at: float

    def has(self, now: float) -> bool:
        self.tokens, self.at = min(self.rate, self.tokens + (now - self.at) * self.rate), now
        return self.tokens >= 0


@dataclass
class Canned:
    options: Options
    slabs: dict[tuple[str, Shape], Slab] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    buckets: dict[tuple[str, str], Bucket] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        for shape in {self.options.shape.of(shard) for shard in range(self.options.shards)}:
            self.slabs |= {(codec, shape): build(shape, codec) for codec in self.options.codecs}

    def answer(self, action: str, codec: str, ask: dict[str, Any]) -> tuple[int, Body]:
        self.counts[action] += 1
        if codec not in {*self.options.codecs, *([] if action == "GetRecords" else [JSON])}:
            self.counts["refused codec"] += 1
            return 400, [json.dumps({"__type": "SerializationException", "message": "unknown content type"}).encode()]
        if action == "GetRecords":
            return self.get_records(codec, ask)
        told = {"DescribeStreamSummary": self.describe, "ListShards": self.list_shards, "GetShardIterator": self.iterator}[action](ask)
        return 200, [json.dumps(told).encode() if codec == JSON else cbor2.dumps(told)]

    def describe(self, _ask: dict[str, Any]) -> dict[str, Any]:
        arn = "arn:aws:kinesis:us-east-1:000000000000:stream/bench"
        summary = {
            "StreamName": "bench", "StreamARN": arn, "StreamStatus": "ACTIVE", "RetentionPeriodHours": 24, "StreamCreationTimestamp": 1.6e9,
            "EnhancedMonitoring": [], "OpenShardCount": self.options.shards,
        }  # fmt: skip
        return {"StreamDescriptionSummary": summary}

    def list_shards(self, _ask: dict[str, Any]) -> dict[str, Any]:
        edges = [2**128 // self.options.shards * i for i in range(self.options.shards)] + [2**128]
        return {
            "Shards": [
                {
                    "ShardId": f"shardId-{i:012d}",
                    "HashKeyRange": {"StartingHashKey": str(edges[i]), "EndingHashKey": str(edges[i + 1] - 1)},
                    "SequenceNumberRange": {"StartingSequenceNumber": str(FIRST_SEQUENCE - 1)},
                }
                for i in range(self.options.shards)
            ]
        }

    def iterator(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Where to read on. Times are not searched: they are those of a stream that is read from its beginning or its tip."""
        sequence = ask.get("StartingSequenceNumber")
        number = (int(sequence) - FIRST_SEQUENCE) // SEQUENCE_STEP if sequence else -1
        at = number if ask["ShardIteratorType"] == "AT_SEQUENCE_NUMBER" else number + 1
        return {"ShardIterator": _token(ask["ShardId"], at)}

    def get_records(self, codec: str, ask: dict[str, Any]) -> tuple[int, Body]:
        _, shard, at = ask["ShardIterator"].split("|")
        start, shape = int(at), self.options.shape.of(int(shard.removeprefix("shardId-")))
        slab, there = self.slabs[codec, shape], shape.arrived(round(time.time() * 1000))
        stop = max(start, min(there, start + min(ask.get("Limit", PAGE_RECORDS), PAGE_RECORDS)))
        while stop - start > 1 and slab.payload[stop] - slab.payload[start] > PAGE_BYTES:
            stop = start + (stop - start) * 9 // 10
        if self.options.limits and not self._may(shard, slab.payload[stop] - slab.payload[start]):
            self.counts["throttled"] += 1
            said = dict(zip(("__type", "message"), THROTTLED, strict=True))
            return 400, [cbor2.dumps(said) if codec == CBOR else json.dumps(said).encode()]
        behind = round(time.time() * 1000) - shape.arrival_millis(stop) if stop < there else 0
        self.counts["records"] += stop - start
        return 200, reply(slab, codec, (start, stop), (_token(shard, stop), max(behind, 1) if stop < there else 0))

    def _may(self, shard: str, size: int) -> bool:
        with self.lock:
            now = time.monotonic()
            calls = self.buckets.setdefault((shard, "calls"), Bucket(CALLS, CALLS, now))
            read = self.buckets.setdefault((shard, "bytes"), Bucket(BYTES, BYTES, now))
            if not (calls.has(now) and calls.tokens >= 1 and read.has(now)):
                return False
            calls.tokens, read.tokens = calls.tokens - 1, read.tokens - size
            return True


def _token(shard: str, at: int) -> str:
    """As long as a real iterator is."""
    return f"{'A' * 170}|{shard}|{at}"


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self) -> None:
        while line := self.rfile.readline():
            headers = {}
            while (header := self.rfile.readline().decode("latin-1").strip()) != "":
                name, _, value = header.partition(":")
                headers[name.lower()] = value.strip()
            body = self.rfile.read(int(headers.get("content-length", 0)))
            self._reply(line, headers, body)

    def _reply(self, line: bytes, headers: dict[str, str], body: bytes) -> None:
        canned: Canned = self.server.canned  # type: ignore[attr-defined]
        codec = headers.get("content-type", JSON)
        if line.startswith(b"GET"):
            parts: list[bytes | memoryview] = [json.dumps(canned.counts).encode()]
            status, shown = 200, JSON
        else:
            ask = json.loads(body) if codec != CBOR else cbor2.loads(body)
            status, parts = canned.answer(headers["x-amz-target"].split(".")[1], codec, ask)
            shown = codec
        size, date = sum(map(len, parts)), email.utils.formatdate(usegmt=True)
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: {shown}\r\nDate: {date}\r\nContent-Length: {size}\r\n\r\n".encode()
        if size < SMALL:
            self.request.sendall(b"".join([head, *parts]))
            return
        for part in (head, *parts):
            self.request.sendall(part)


class Server(socketserver.ThreadingTCPServer):
    """A thread a connection: waiting in sendall needs no interpreter."""

    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    options = Options.from_json(sys.argv[1])
    server = Server(("127.0.0.1", 0), Handler)
    server.canned = Canned(options)  # type: ignore[attr-defined]
    print(server.server_address[1], flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main()

"""A Kinesis endpoint that serves a recorded stream as it stood: the reading calls, as JSON over HTTP.

Its clock goes on where the recording ends, by a second with every GetRecords: nobody waits for it, and no dump grows too old. What a dump holds of
a payload is its hash, so the hash is the payload here. `Replay` answers calls and knows no HTTP; `serve` puts it on a port.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from reading.kpl import aggregate

Json = dict[str, Any]
JSON = "application/x-amz-json-1.1"
LISTED = 3  # shards in a page of ListShards
PAGE = 25  # records in a page of GetRecords, whatever was asked for: the service may give fewer too
AFTER_THE_LAST = 60  # seconds from the last arrival to "now"


class Refusal(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.body = {"__type": code, "message": message}


def payload(record: Mapping[str, Any]) -> bytes:
    """The Data of a Kinesis record: a hash, or a KPL aggregate of its user records' hashes."""
    users = record.get("user")
    if not users or users[0].get("sub") is None:
        return str(record["sha256"]).encode()
    return aggregate([(user["pk"], user["sha256"].encode()) for user in users])


@dataclass(frozen=True)
class Recorded:
    summary: Json
    shards: Sequence[Json]
    records: Mapping[str, Sequence[Json]]

    @property
    def now(self) -> float:
        arrivals = (record["arrival"] for rows in self.records.values() for record in rows)
        return float(max(arrivals, default=self.summary["StreamCreationTimestamp"])) + AFTER_THE_LAST

    def shard(self, shard_id: str) -> Json:
        for shard in self.shards:
            if shard["ShardId"] == shard_id:
                return shard
        raise Refusal("ResourceNotFoundException", f"Shard {shard_id} in stream {self.summary['StreamName']} does not exist")

    def children(self, shard_id: str) -> list[Json]:
        parents = {s["ShardId"]: [s[k] for k in ("ParentShardId", "AdjacentParentShardId") if k in s] for s in self.shards}
        return [
            {"ShardId": s["ShardId"], "ParentShards": parents[s["ShardId"]], "HashKeyRange": s["HashKeyRange"]}
            for s in self.shards
            if shard_id in parents[s["ShardId"]]
        ]

    def index(self, ask: Json) -> int:
        shard, kind, rows = self.shard(ask["ShardId"]), ask["ShardIteratorType"], self.records.get(ask["ShardId"], ())
        if kind in {"TRIM_HORIZON", "LATEST"}:
            return 0 if kind == "TRIM_HORIZON" else len(rows)
        if kind == "AT_TIMESTAMP":
            if ask["Timestamp"] > self.now:
                raise Refusal("InvalidArgumentException", "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis.")
            return sum(r["arrival"] < ask["Timestamp"] for r in rows)
        if kind not in {"AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"}:
            raise Refusal("ValidationException", f"Value {kind!r} at 'shardIteratorType' failed to satisfy constraint")
        number = int(ask["StartingSequenceNumber"])
        if number < int(shard["SequenceNumberRange"]["StartingSequenceNumber"]):
            raise Refusal("InvalidArgumentException", f"StartingSequenceNumber {number} is invalid because it did not come from this stream.")
        return sum(int(r["seq"]) < number + (kind == "AFTER_SEQUENCE_NUMBER") for r in rows)


class Replay:
    """Answers calls over the recorded streams.

    Attributes:
        clock: epoch seconds, for the Date header.
    """

    def __init__(self, streams: Mapping[str, Recorded]) -> None:
        self.streams = streams
        self.clock = max(stream.now for stream in streams.values())
        self._calls = {
            "DescribeStreamSummary": self._describe,
            "ListShards": self._list,
            "GetShardIterator": self._iterator,
            "GetRecords": self._records,
        }

    def answer(self, action: str, ask: Json) -> Json:
        """The reply of one call.

        Raises:
            Refusal: what the service answers to a call like this.
        """
        if action not in self._calls:
            raise Refusal("UnknownOperationException", action)
        try:
            return self._calls[action](ask)
        except KeyError as missing:
            raise Refusal("ValidationException", f"{missing} failed to satisfy constraint: Member must not be null") from missing

    def _stream(self, name: str) -> Recorded:
        if name not in self.streams:
            raise Refusal("ResourceNotFoundException", f"Stream {name} not found")
        return self.streams[name]

    def _describe(self, ask: Json) -> Json:
        return {"StreamDescriptionSummary": self._stream(ask["StreamName"]).summary}

    def _list(self, ask: Json) -> Json:
        if "NextToken" in ask and "StreamName" in ask:
            raise Refusal("InvalidArgumentException", "NextToken and StreamName cannot be provided together.")
        name, start = _untoken(ask["NextToken"], 2) if "NextToken" in ask else (ask["StreamName"], 0)
        shards, end = self._stream(name).shards, start + LISTED
        more = {"NextToken": _token(name, end)} if end < len(shards) else {}
        return {"Shards": list(shards[start:end])} | more

    def _iterator(self, ask: Json) -> Json:
        stream = self._stream(ask["StreamName"])
        return {"ShardIterator": _token(ask["StreamName"], ask["ShardId"], stream.index(ask))}

    def _records(self, ask: Json) -> Json:
        name, shard_id, start = _untoken(ask["ShardIterator"], 3)
        self.clock += 1  # two threads at once may count as one
        stream, limit = self._stream(name), ask.get("Limit", 10_000)
        if not 1 <= limit <= 10_000:
            raise Refusal("ValidationException", f"Value {limit} at 'limit' failed to satisfy constraint")
        rows = stream.records.get(shard_id, ())
        end = min(len(rows), start + min(limit, PAGE))
        behind = 0 if end == len(rows) else max(1, round(1000 * (self.clock - rows[end]["arrival"])))
        ended = end == len(rows) and "EndingSequenceNumber" in stream.shard(shard_id)["SequenceNumberRange"]
        then = {"ChildShards": stream.children(shard_id)} if ended else {"NextShardIterator": _token(name, shard_id, end)}
        return {"Records": [_wire(r) for r in rows[start:end]], "MillisBehindLatest": behind} | then


def _wire(record: Json) -> Json:
    return {
        "SequenceNumber": record["seq"],
        "PartitionKey": record["pk"],
        "ApproximateArrivalTimestamp": record["arrival"],
        "Data": base64.b64encode(payload(record)).decode(),
    }


def _token(*parts: str | int) -> str:
    return base64.b64encode(json.dumps(parts).encode()).decode()


def _untoken(token: str, size: int) -> list[Any]:
    try:
        parts: list[Any] = json.loads(base64.b64decode(token, validate=True))
    except ValueError:
        parts = []
    if len(parts) != size:
        raise Refusal("InvalidArgumentException", "Invalid ShardIterator." if size == 3 else "Invalid NextToken.")
    return parts


@contextmanager
def serve(replay: Replay) -> Iterator[str]:
    class Handler(_Handler):
        served = replay

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    """One connection. Replies leave in one piece: a header that waits for its acknowledgement costs 40 ms."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    served: Replay

    def do_POST(self) -> None:
        action = self.headers["X-Amz-Target"].rpartition(".")[2]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Type"] != JSON:
            self._reply(415, {"__type": "UnsupportedMediaType", "message": f"only {JSON} is spoken here"})
            return
        try:
            self._reply(200, self.served.answer(action, json.loads(body or b"{}")))
        except Refusal as refusal:
            self._reply(400, refusal.body)

    def _reply(self, status: int, body: Json) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(self.served.clock if timestamp is None else timestamp, usegmt=True)

    def log_message(self, *_: object) -> None:
        """Says nothing."""

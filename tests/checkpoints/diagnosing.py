"""A stream of two shards, a table over it, and the command line that looks at them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from click.testing import Result

from sluice_checkpoints.cli import diagnose
from sluice_checkpoints.formats import kcl
from sluice_checkpoints.formats.snapshot import TableKey
from sluice_lab.fakes.migration import MemorySources
from sluice_lab.fakes.stream import MemoryStream

TABLE = "orders-app"
DIAGNOSE = ["diagnose", "--table", TABLE, "--stream", "orders", "--region", "us-east-1"]


class FakeRecords:
    def __init__(self, stream: MemoryStream) -> None:
        self.stream, self.asked = stream, list[str]()

    def oldest(self, shard_ids: Iterable[str]) -> Mapping[str, str]:
        self.asked = list(shard_ids)
        return {i: self.stream.shards[i].records[0].sequence for i in self.asked if self.stream.shards[i].records}


def lease(shard: str, checkpoint: str, **more: dict[str, Any]) -> dict[str, Any]:
    return {"leaseKey": {"S": shard}, "checkpoint": {"S": checkpoint}, "checkpointSubSequenceNumber": {"N": "0"}, "leaseCounter": {"N": "1"}} | more


class Scene:
    """A stream of two shards, three records each, and a KCL table that stands at the second ones."""

    def __init__(self) -> None:
        self.stream = MemoryStream("orders", shards=2)
        self.a, self.b = self.stream.shards
        self.places = [[self.stream.put_in(shard, b"x") for _ in range(3)][1] for shard in (self.a, self.b)]
        rows: list[Any] = [lease(shard, place, leaseOwner={"S": "w1"}) for shard, place in zip((self.a, self.b), self.places, strict=True)]
        self.sources = MemorySources({TABLE: (kcl.KEY, rows)})
        self.records = FakeRecords(self.stream)

    @property
    def rows(self) -> list[Any]:
        return self.sources.tables[TABLE][1]

    def holds(self, keys: tuple[TableKey, ...], *rows: Any, table: str = TABLE) -> None:
        self.sources.tables[table] = (keys, list(rows))

    def sight(self, options: diagnose.DiagnoseOptions) -> diagnose.DiagnosePorts:
        return diagnose.DiagnosePorts(self.sources, self.stream, self.records if options.records else None)


def kinds(result: Result) -> dict[str, str]:
    return {finding["kind"]: finding["severity"] for finding in json.loads(result.stdout)["findings"]}

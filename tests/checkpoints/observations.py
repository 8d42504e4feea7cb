"""Readings of a table made by hand, and what the rules find in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sluice_checkpoints.diagnose.model import Finding, Observation, Severity
from sluice_checkpoints.diagnose.rules import diagnose
from sluice_checkpoints.formats.reader import Reading, SourceShard, StoredPosition
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import Shard, ShardList

A, B, C, D = (f"shardId-{i:012d}" for i in range(4))
LOST, WILL_BE_LOST, SUSPECTED, WARNING, INFO = Severity
SYSTEMS = ("kcl", "nifi", "vmware-go-kcl", "kinsumer", "sluice")
FINISHED, CREATED, LATEST = StoredPosition("SHARD_END", END), StoredPosition("TRIM_HORIZON", TRIM_HORIZON), StoredPosition("LATEST")
NONE, AT_TIME = StoredPosition("no Checkpoint"), StoredPosition("AT_TIMESTAMP", at_timestamp=True)


def at(number: int) -> StoredPosition:
    return StoredPosition(str(number), Position.after(str(number)))


def listed(shard: str, *parents: str, closed: bool = False) -> Shard:
    """A shard of numbers from 100 on, to 200 if closed; a quarter of the keys."""
    quarter = 2**126
    index = int(shard[-1])
    return Shard(shard, parents, quarter * index, quarter * (index + 1) - 1, "100", "200" if closed else None)


def table(system: str = "kcl", /, **more: Any) -> Reading:
    return Reading(system, (), finished_rows_vanish=system == "kcl", **more)


def seen(stream: tuple[Shard, ...], rows: dict[str, StoredPosition], system: str = "kcl", /, **more: Any) -> Observation:
    reading = replace(table(system), shards=tuple(SourceShard(i, stored) for i, stored in rows.items()))
    return Observation(reading, ShardList(stream, 0), **more)


def said(observed: Observation) -> list[tuple[str, Severity, str | None]]:
    return [(finding.kind, finding.severity, finding.shard) for finding in diagnose(observed)]


def only(observed: Observation) -> Finding:
    (finding,) = diagnose(observed)
    return finding


SPLIT = (listed(A, closed=True), listed(B, A), listed(C, A))

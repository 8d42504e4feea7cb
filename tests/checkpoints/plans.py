"""Rows and shards made by hand, and the plan that is made of them."""

from __future__ import annotations

from typing import Any

from sluice_checkpoints.formats.reader import Reading, SourceShard, StoredPosition
from sluice_checkpoints.migrate.placement import Choices
from sluice_checkpoints.migrate.plan import MigrationPlan, PlanInput, plan
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import Shard, ShardList

T0 = 1_700_000_000_000
A, B, C, D, E = (f"shardId-{i:012d}" for i in range(5))
UNSTARTED, AT_TIMESTAMP = StoredPosition("LATEST"), StoredPosition("AT_TIMESTAMP", at_timestamp=True)
STARTED, FINISHED, CREATED = (
    StoredPosition("150", Position.after("150", 0)),
    StoredPosition("SHARD_END", END),
    StoredPosition("TRIM_HORIZON", TRIM_HORIZON),
)


def listed(shard_id: str, *parents: str, closed: bool = False) -> Shard:
    return Shard(shard_id, parents, 0, 1, "100", "200" if closed else None)


def made(rows: dict[str, StoredPosition], shards: tuple[Shard, ...], *, vanish: bool = True, **choices: Any) -> MigrationPlan:
    reading = Reading("kcl", tuple(SourceShard(i, stored) for i, stored in rows.items()), finished_rows_vanish=vanish)
    return plan(PlanInput(reading, ShardList(shards, T0), "app"), Choices(T0, **choices))


def start(result: MigrationPlan, shard_id: str = A) -> Position:
    return next(p.row.start for p in result.shards if p.id == shard_id)

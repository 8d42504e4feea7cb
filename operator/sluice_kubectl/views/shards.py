"""The shards of a consumer: how far each is behind, its position, who holds it. Pure.

Lag comes from the driver's metrics (docs/metrics.md), positions from the checkpoint table (docs/interfaces.md); either may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from sluice_kubectl.views.documents import shown

Json = dict[str, Any]
POSITION = ("at", "millis", "sequence", "sub")
LAG, USED = "sluice_shard_millis_behind_latest", "sluice_shard_retention_used_ratio"


@dataclass(frozen=True, slots=True)
class ShardFigures:
    """What the driver's metrics say of one shard: milliseconds behind, and the used part of the retention."""

    lag_millis: int | None = None
    retention_used: float | None = None


@dataclass(frozen=True, slots=True)
class ShardView:
    """One shard. `position` is None without the table."""

    id: str
    lag_millis: int | None
    retention_used: float | None
    position: Json | None
    holder: str | None
    parents: tuple[str, ...]


def figures(samples: Iterable[tuple[str, Mapping[str, str], float]], consumer: str = "") -> dict[str, ShardFigures]:
    """By shard, of all samples (name, labels, value) of a scrape. A sample without a shard, or without a finite value, says nothing.

    In a pool, samples of all its consumers carry the label `consumer`; those of another one are passed over.
    """
    lag: dict[str, int] = {}
    used: dict[str, float] = {}
    for name, labels, value in samples:
        if "shard" not in labels or not isfinite(value) or labels.get("consumer", consumer) != consumer:
            continue
        if name == LAG:
            lag[labels["shard"]] = round(value)
        elif name == USED:
            used[labels["shard"]] = value
    return {shard: ShardFigures(lag.get(shard), used.get(shard)) for shard in lag.keys() | used.keys()}


def shards(scraped: Mapping[str, ShardFigures], table: Json | None, driver: str | None) -> tuple[ShardView, ...]:
    """Those that metrics or table name, those farthest behind first. The table's holder is believed before the status' driver."""
    rows: Mapping[str, Json] = table["shards"] if table else {}
    holder = (None if table["released"] else table["holder"]) if table else driver
    views = (_shard(name, scraped.get(name, ShardFigures()), rows.get(name), holder) for name in scraped.keys() | rows.keys())
    return tuple(sorted(views, key=lambda shard: (-(shard.lag_millis or 0), shard.id)))


def _shard(name: str, scraped: ShardFigures, row: Json | None, holder: str | None) -> ShardView:
    position = {key: row[key] for key in POSITION if key in row} if row else None
    parents = tuple(row["lineage"]["parents"]) if row else ()
    return shown(ShardView(name, scraped.lag_millis, scraped.retention_used, position, holder, parents))

"""What holds for every export: how the lease is asked for, and what a refused one leaves."""

from __future__ import annotations

from typing import Any

from exporting.bench import Bench

from sluice_checkpoints.protocol.lease import LeaseRequest

RUNS = LeaseRequest(20_000, "driver", "now")


def untouched(bench: Bench, before: Any) -> None:
    assert bench.rows == before
    assert bench.consumer["state"] == "ACTIVE"
    assert bench.consumer["released"]


def split(bench: Bench, times: int) -> None:
    for _ in range(times):
        bench.stream.split(next(shard.id for shard in bench.stream.list_shards().shards if not shard.closed))

"""What a table of ended shards becomes when they are folded, by numbers that are the same on every machine (docs/performance.md)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "bench"))

from ended_shards import OPEN, Lineage

from sluice_consumer.batches.folding import FOLD_LIMITS

ENDED = 3000


@pytest.fixture(scope="module")
def before() -> Lineage:
    return Lineage(ENDED)


@pytest.fixture(scope="module")
def folded() -> Lineage:
    world = Lineage(ENDED)
    world.folds(world.epoch())
    return world


def test_a_thousand_ended_shards_at_most_keep_their_rows(folded: Lineage) -> None:
    kept = sum(key.startswith("shard/") for key in folded.table.rows) - OPEN
    ids = [len(row["shards"]) for key, row in folded.table.rows.items() if key.startswith("ended/")]
    assert kept < FOLD_LIMITS.least
    assert (kept + sum(ids), max(ids)) == (ENDED, FOLD_LIMITS.group)


def test_a_folded_shard_takes_less_than_a_tenth_of_its_row(before: Lineage, folded: Lineage) -> None:
    """So 100,000 take less than 10 MB."""
    gone = ENDED + OPEN - sum(key.startswith("shard/") for key in folded.table.rows)
    ids = sum(len(row["shards"]) for key, row in folded.table.rows.items() if key.startswith("ended/"))
    assert gone == ids
    row = before.bytes / (ENDED + OPEN)
    assert (folded.bytes - before.bytes * (1 - gone / (ENDED + OPEN))) / gone < min(row / 10, 100)


def test_a_transaction_folds_or_deletes_90_at_most_and_asks_for_the_lease(folded: Lineage) -> None:
    """As many as DynamoDB takes, with room. A fold has one row; deletes wait for those of their parents, here a hundred shards before."""
    folds, deletes = (tuple(size for size in folded.transactions if (size == 2) is one) for one in (True, False))
    assert len(folds) == -(-(ENDED - FOLD_LIMITS.least + 1) // FOLD_LIMITS.most) * FOLD_LIMITS.writes
    assert sum(deletes) - len(deletes) == len(folds) * FOLD_LIMITS.group
    assert max(deletes) == FOLD_LIMITS.group + 1


def test_a_plan_does_not_look_at_ended_shards_folded_or_not(before: Lineage, folded: Lineage) -> None:
    for world in (before, folded):
        consumer = world.epoch()
        assert len(consumer.view.live) == OPEN
        plan = consumer.plan()
        assert plan is not None
        assert len(plan.rows) == OPEN
        assert consumer.view.known == ENDED + OPEN


def test_migration_and_export_plan_the_same(before: Lineage, folded: Lineage) -> None:
    assert folded.migrated() == before.migrated()
    assert folded.exported() == before.exported()

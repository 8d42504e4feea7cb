"""Mutants of folding: which shards are folded, what is written before what, and what an id says (docs/protocol.md, "Folded shards")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from simulation.mutant import Patch, mutant, write_without

from sluice_checkpoints.protocol import folding as writes
from sluice_checkpoints.protocol.folding import EndedShards
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import NEW_ROW, Delete, Put
from sluice_consumer.batches import folding, planner
from sluice_consumer.batches.planner import TableView

FOLDING: dict[str, Any] = {"folds": 1}
RULES = "fade split merge overtake audit succeed fault start_epoch"


@mutant(
    "a shard that is listed again gets a row, though it was folded",
    "Folded shards: an id accounts for its shard",
    stories="a_listing_that_still_names_a_folded_shard",
    rules=RULES,
    **FOLDING,
)
def accounts_for_nothing(patch: Patch) -> None:
    """The audit begins it at its oldest record."""
    patch.setattr(TableView, "accounts", lambda self, shard: shard in self.rows)


@mutant(
    "a shard that the stream still has is folded",
    "Folded shards: the last listing does not name it",
    stories="a_shard_that_is_idle_for_longer_than_the_retention_and_then_closed",
    rules=RULES,
    **FOLDING,
)
def folds_what_is_listed(patch: Patch) -> None:
    """A reset could not go back to its records."""
    real = folding._has_left
    patch.setattr(folding, "_has_left", lambda view, row: real(replace(view, listed=frozenset()), row))


@mutant(
    "a shard is folded before its children begin",
    "Folded shards: all its children have begun",
    stories="children_that_have_not_begun",
    rules=RULES,
    **FOLDING,
)
def folds_before_children(patch: Patch) -> None:
    """Nobody knows any more how old their first records may be."""
    patch.setattr(folding, "_has_begun", lambda _view, _row: True)


@mutant(
    "a number that passes without shards counts as a batch with some",
    "Folded shards: the consumer row names the last batch that contained shards",
    stories="a_number_that_passes_without_shards",
    rules=RULES,
)
def counts_numbers_without_shards(patch: Patch) -> None:
    """A query of Structured Streaming is refused though it missed nothing."""
    real = CheckpointStore.commit

    def commit(self: CheckpointStore, epoch: Epoch, batch: int, letters: Sequence[str] = (), *_told: object) -> None:
        real(self, epoch, batch, letters, batch)

    patch.setattr(CheckpointStore, "commit", commit)


@mutant(
    "rows are deleted before their ids are written",
    "Folded shards: first the ids, later the rows",
    stories="rows_of_ended_shards_go",
    rules=RULES,
    hunted=True,
    **FOLDING,
)
def deletes_first(patch: Patch) -> None:
    """A crash between the two loses them."""
    real = folding.folding.fold

    def fold(store: CheckpointStore, epoch: Epoch, rows: Sequence[ShardRow], at: int) -> EndedShards:
        writes.delete(store, epoch, rows)
        return real(store, epoch, rows, at)

    patch.setattr(folding.folding, "fold", fold)


@mutant(
    "ids are written and rows deleted in one transaction",
    "Folded shards: first the ids, later the rows",
    stories="a_take_over_that_sees_a_part_of_a_fold",
    rules=RULES,
    **FOLDING,
)
def folds_at_once(patch: Patch) -> None:
    """A scan sees a part of it: neither the row nor the id."""

    def fold(store: CheckpointStore, epoch: Epoch, rows: Sequence[ShardRow], at: int) -> EndedShards:
        ended = EndedShards.of(rows, at)
        gone = [Delete(row.key, writes._as_read(row)) for row in rows]
        store.table.transact([writes._mine(epoch), *gone, Put(ended.to_item(), (NEW_ROW,))])
        return ended

    patch.setattr(folding.folding, "fold", fold)


@mutant(
    "a former epoch folds and deletes",
    "Folded shards: the lease is mine",
    stories="a_former_driver_that_folds_while_the_next_one_reads_the_rows",
    rules=RULES,
    **FOLDING,
)
def former_epochs_fold(patch: Patch) -> None:
    """The next one finds neither row nor id."""
    for write in ("fold", "delete"):
        write_without(patch, folding.folding, write, {"generation", "token"})


@mutant(
    "a row that is put late is believed",
    "Folded shards: an id outranks a row of which no range was bound",
    stories="a_row_of_the_first_plan_that_is_put_too_late",
    rules=RULES,
    **FOLDING,
)
def believes_late_rows(patch: Patch) -> None:
    """Its shard begins again."""
    patch.setattr(writes, "is_late", lambda _row, _folded: False)


@mutant(
    "ids are written over those of another fold",
    "Folded shards: there is no row of this key yet",
    stories="a_fold_whose_reply_is_lost",
    rules=RULES,
    **FOLDING,
)
def folds_over(patch: Patch) -> None:
    """What a former fold wrote is gone."""

    def fold(store: CheckpointStore, epoch: Epoch, rows: Sequence[ShardRow], at: int) -> EndedShards:
        ended = EndedShards.of(rows, at)
        store.table.transact([writes._mine(epoch), Put(ended.to_item(), ())])
        return ended

    patch.setattr(folding.folding, "fold", fold)


@mutant(
    "a row is deleted as it may be",
    "Folded shards: the row is as it was read",
    harmless="nobody writes a row at END, and no other epoch writes at all; it is there for a row that somebody changed by hand",
    rules=RULES,
    **FOLDING,
)
def deletes_blindly(patch: Patch) -> None:
    """Whatever it says."""
    patch.setattr(writes, "_as_read", lambda _row: ())


@mutant(
    "a parent that was folded is looked for in the listing",
    "Folded shards: a folded parent was read to its end",
    harmless="a fresh listing does not have it, so it counts as expired; where a listing still names it, the next plan lists again",
    rules=RULES,
    **FOLDING,
)
def folded_parents_are_listed(patch: Patch) -> None:
    """As a parent whose row was never there."""
    real = planner.is_read_to_end

    def is_read_to_end(view: TableView, child: ShardRow, parent: str) -> bool:
        return real(view, child, parent) if parent in view.rows else planner._expired(view, child, parent)

    patch.setattr(planner, "is_read_to_end", is_read_to_end)

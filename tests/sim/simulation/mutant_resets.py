"""Mutants of resets: how a plan is made, named and carried out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulation.mutant import Patch, ignoring, mutant, write_without

from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.positions import plan
from sluice_checkpoints.positions.placement import Placed, ResetPlacement
from sluice_checkpoints.positions.resetter import Resetter
from sluice_checkpoints.positions.scope import ShardGraph
from sluice_checkpoints.protocol import reset_writes
from sluice_checkpoints.protocol.table import Absent, AtMost, Equals


@mutant(
    "a driver does not complete a reset",
    "Positions are moved: whoever takes the lease while a reset is named completes it before it plans",
    stories="a_reset_that_dies_between_two_moves a_reset_that_dies_before_it_is_done",
)
def left_half_way(patch: Patch) -> None:
    """Some shards are moved, and a batch is planned from them."""
    real = reset_writes.finish
    patch.setattr(reset_writes, "finish", lambda store, consumer, epoch, *alive: real(store, consumer, epoch, *alive) if alive else consumer)


@mutant(
    "a reset plans while another one is not complete",
    "Positions are moved: whoever takes the lease while a reset is named completes it before it plans",
    stories="a_reset_after_one_that_died",
)
def planned_half_way(patch: Patch) -> None:
    """The other plan's name is written over, and the rest of its moves is never made."""
    real = reset_writes.name

    def name(store: Any, epoch: Any, seen: Any, *args: Any) -> Any:
        return real(ignoring(store, lambda condition: isinstance(condition, Absent) or is_state(condition)), epoch, seen, *args)

    def is_state(condition: Any) -> bool:
        return isinstance(condition, Equals) and condition.path == ("state",)

    patch.setattr(reset_writes, "name", name)
    patch.setattr(Resetter, "_complete_former", lambda _self, _held, row: row)


@mutant(
    "a reset is done when it is named",
    "Positions are moved: the mark comes after the last move",
    stories="a_reset_to_the_oldest_record",
)
def done_too_soon(patch: Patch) -> None:
    """A crash after the mark leaves shards that nobody moves."""
    patch.setattr(reset_writes, "moved", lambda *_: None)


@mutant(
    "a reset does not fence",
    "Positions are moved: rows are fenced before they are read for the plan",
    stories="a_task_that_binds_after_the_plan",
)
def unfenced(patch: Patch) -> None:
    """A task of a dead driver binds a range that is in no plan."""
    patch.setattr(Resetter, "_fence", lambda *_: None)


@mutant(
    "a plan is named blindly",
    "Positions are moved: the lease is mine, and nothing was committed since",
    stories="a_reset_that_stands_still_before_it_is_named",
)
def named_blindly(patch: Patch) -> None:
    """A driver has worked since; rows are no longer where the plan found them."""
    write_without(patch, reset_writes, "name", {"generation", "token", "committed"})


@mutant(
    "a shard is moved blindly",
    "Positions are moved: generation, batch and end are as planned",
    stories="a_reset_that_stands_still_while_a_driver_completes_it",
)
def moved_blindly(patch: Patch) -> None:
    """A batch that a later epoch has bound loses its range."""
    real = reset_writes.move

    def drops(condition: Any) -> bool:
        return isinstance(condition, AtMost) or (isinstance(condition, Equals) and condition.path[0] in {"batch", "end"})

    patch.setattr(reset_writes, "move", lambda store, *args: real(ignoring(store, drops), *args))


@mutant(
    "a move does not ask for its generation",
    "Positions are moved: generation is mine or earlier",
    harmless="`batch` and `end` are as planned only until a later epoch has moved the shard, and never again: batch numbers grow",
)
def of_any_generation(patch: Patch) -> None:
    """Whoever was here moved the shard already, or has not come to it."""
    real = reset_writes.move
    patch.setattr(reset_writes, "move", lambda store, *args: real(ignoring(store, lambda condition: isinstance(condition, AtMost)), *args))


@mutant(
    "a batch that is open is moved over",
    "Positions are moved: refused, unless that batch is given up by its number",
    stories="a_reset_with_an_open_batch",
)
def open_batch(patch: Patch) -> None:
    """What the sink may hold under this number becomes something else."""
    patch.setattr(plan, "_given_up", lambda *_: ())


@mutant(
    "letters of a batch that is given up are forgotten",
    "Positions are moved: dead letters of records that were excluded in it become final",
    stories="a_reset_of_a_batch_without_its_record",
)
def letters_forgotten(patch: Patch) -> None:
    """The record was passed over, and nobody hears of it."""
    real = reset_writes.name
    patch.setattr(reset_writes, "name", lambda store, epoch, seen, reset, _letters: real(store, epoch, seen, reset, seen.letters))


@mutant(
    "a child keeps its position when its parent is read again",
    "Positions are moved: all generations",
    stories="a_reset_to_the_oldest_record a_reset_over_a_merge a_reset_to_a_time_between_two_splits",
)
def children_stay(patch: Patch) -> None:
    """It continues there after its parent has ended again."""
    real = ResetPlacement._from_beginning

    def placed(self: ResetPlacement, shard: str) -> Placed | None:
        return None if self.shards.parents[shard] & self.shards.shards.keys() else real(self, shard)

    patch.setattr(plan, "_check_order", lambda *_: None)  # it would refuse the plan
    patch.setattr(ResetPlacement, "_from_beginning", placed)


@mutant(
    "a part of the shards may be moved without those that follow",
    "Positions are moved: --shard is refused unless all that follow are in it",
    stories="a_reset_of_a_parent_alone",
)
def partial(patch: Patch) -> None:
    """Children were read before their parent comes again."""
    patch.setattr(plan, "_check_order", lambda *_: None)  # it would refuse the plan
    patch.setattr(ShardGraph, "descendants", lambda *_: frozenset())


@mutant(
    "a shard may be passed over while one that it follows is read",
    "Positions are moved: parents come before their children, in all generations",
    stories="a_reset_of_shards_whose_parent_is_still_read",
)
def passed_over_too_soon(patch: Patch) -> None:
    """What follows it is read before the rest of the other."""
    patch.setattr(plan, "_check_order", lambda *_: None)


@mutant(
    "children are those that a row names",
    "Positions are moved: a row that was moved back names no children any more",
    harmless="until a parent that was moved back is at END again, and names its children, none of them is read",
)
def named_children(patch: Patch) -> None:
    """A second reset does not know what follows."""

    def descendants(self: ShardGraph, shards: Any) -> frozenset[str]:
        left, found = list(shards), set[str]()
        while left:
            row = self.table.rows.get(left.pop())
            new = {child.id for child in (row.children if row else None) or ()} - found
            found |= new
            left += new
        return frozenset(found)

    patch.setattr(ShardGraph, "descendants", descendants)


@mutant(
    "a listing that is older than the table is believed",
    "Positions are moved: it is not believed if it lacks a shard whose parent it has",
    stories="a_reset_by_a_listing_that_is_late",
)
def old_listing(patch: Patch) -> None:
    """A shard that was read counts as expired, and stays while its parent comes again."""
    patch.setattr(plan, "_check_order", lambda *_: None)  # it would refuse the plan
    patch.setattr(plan, "check_listing", lambda *_: None)


@mutant(
    "a child is as old as it was read before the reset",
    "Where shards begin: a child at TRIM_HORIZON has the latest time at which its parents were open",
    stories="records_that_expire_after_a_reset",
)
def newer_child(patch: Patch) -> None:
    """Its first records expire, and nothing says so."""
    real = ResetPlacement._from_beginning

    def placed(self: ResetPlacement, shard: str) -> Placed | None:
        found = real(self, shard)
        return replace(found, read_to=self.shards.listed.date_millis) if found and found.to == TRIM_HORIZON else found

    patch.setattr(ResetPlacement, "_from_beginning", placed)


@mutant(
    "a shard is as old as it was read before the reset",
    "Where shards begin: readTo moves with the position",
    stories="records_that_expire_after_a_reset_to_a_time",
)
def newer_shard(patch: Patch) -> None:
    """What expires between its new position and its next range is not reported."""
    real = ResetPlacement._placed

    def placed(self: ResetPlacement, shard: str) -> Placed | None:
        found = real(self, shard)
        return replace(found, read_to=self.shards.listed.date_millis) if found and found.to.millis else found

    patch.setattr(ResetPlacement, "_placed", placed)

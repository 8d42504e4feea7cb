"""Mutants of shards: where they begin, and when they join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from simulation import habits, ports
from simulation.mutant import Patch, clock_of, mutant

from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Put
from sluice_consumer.batches import planner
from sluice_consumer.shards.ranges import Fetched, FetchRequest, Limits


@mutant(
    "rows of children are put without any condition",
    "Shards come and go: a transaction, put if absent",
    stories="a_late_creation_of_children",
    rules="split succeed",
)
def blind_create(patch: Patch) -> None:
    """A late creation puts a shard back to its beginning."""

    def create(self: CheckpointStore, _owner: Epoch, _committed: int, rows: Sequence[ShardRow]) -> None:
        for row in rows:
            self.table.write(Put(row.to_item(), ()))

    patch.setattr(CheckpointStore, "create_shards", create)


@mutant(
    "a child joins its parent's batch", "Shards come and go: all of whose parents stand at END", hunted=True, stories="one_parent_of_a_merge_has_more"
)
def child_joins_parent(patch: Patch) -> None:
    """Records of a child come beside, or before, those of its parent."""
    patch.setattr(planner, "is_read_to_end", lambda *_: True)


@mutant(
    "one ended parent is enough",
    "Shards come and go: all of whose parents",
    stories="one_parent_of_a_merge_has_more",
    rules="merge split audit",
    processes=(habits.READ,),
)
def one_parent(patch: Patch) -> None:
    """Of a merge, the other parent still has records."""

    def takes_part(view: planner.TableView, row: ShardRow) -> bool:
        joined = row.joins <= view.number and row.committed_position(view.committed).at != "END"
        return joined and (not row.parents or any(planner.is_read_to_end(view, row, parent) for parent in row.parents))

    patch.setattr(planner, "_takes_part", takes_part)


@mutant(
    "children start at LATEST",
    "Shards come and go: every shard found later starts at TRIM_HORIZON (kinsumer PR 33)",
    hunted=True,
    stories="a_split_before_its_children_are_known",
)
def children_at_latest(patch: Patch) -> None:
    """What arrived in a child before it was known is lost."""
    real, clock = planner._beginning, clock_of(patch)

    def beginning(*args: Any) -> ShardRow:
        latest = Position.timestamp(clock())
        return replace(real(*args), start=latest, end=latest)

    patch.setattr(planner, "_beginning", beginning)


@mutant(
    "a plan without shards is not committed",
    "Shards come and go: committed at once if rows with a higher joins exist",
    stories="a_late_creation_of_children",
    rules="split succeed",
    processes=(habits.READ,),
)
def no_empty_commit(patch: Patch) -> None:
    """Who joins the batch after the next waits for ever."""
    patch.setattr(planner, "waits_for_number", lambda _view: False)


@mutant(
    "a child joins the next batch after a take-over",
    "Shards come and go: committed+2 until this epoch has committed a batch of its own",
    harmless="every epoch creates what its committed batches name before it plans, so no batch was issued without the child",
    rules="split succeed",
)
def joins_at_once(patch: Patch) -> None:
    """What an earlier epoch may have issued changes."""
    real = planner.missing_children
    patch.setattr(planner, "missing_children", lambda view, generation: real(replace(view, own_commits=True), generation))


@mutant(
    "LATEST is looked up when a shard is read",
    "The first start: LATEST is pinned to a time, once",
    hunted=True,
    stories="latest_with_a_crash_before_the_first_commit",
)
def latest_when_read(patch: Patch) -> None:
    """What arrived between the first start and the first bind is lost."""
    real, clock = ports.Source.fetch, clock_of(patch)

    def fetch(self: ports.Source, place: FetchRequest, limits: Limits) -> Fetched:
        late = replace(place, position=Position.timestamp(clock())) if place.position.at == "TIMESTAMP" else place
        return real(self, late, limits)

    patch.setattr(ports.Source, "fetch", fetch)


@mutant(
    "any listing says that a parent expired",
    "Shards come and go: only a listing that is no older than its child",
    stories="a_merge_that_is_known_before_its_other_parent",
)
def old_listings(patch: Patch) -> None:
    """The one that the epoch began with knows nothing of a shard that came since."""
    patch.setattr(planner, "_expired", lambda view, _, parent: parent not in view.listed)

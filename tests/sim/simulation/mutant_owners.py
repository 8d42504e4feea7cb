"""Mutants of the owner: who may take the lease, and how a table is handed over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulation import habits
from simulation.mutant import Patch, mutant, without_condition

from sluice_checkpoints.protocol import lease, owners
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.rows import ConsumerRow


@mutant(
    "a take-over does not ask whose the table is",
    "The owner: a driver takes the lease only if the row names its own owner, or none",
    stories="a_second_owner a_second_owner_by_force an_owner_of_another_cluster an_owner_after_a_run_without_one",
    rules="stranger advance",
    hunted=True,
    processes=(habits.READ,),
)
def anybody(patch: Patch) -> None:
    """Two resources take turns."""
    patch.setattr(owners, "check", lambda *_: None)


@mutant(
    "a taken lease leaves the owner out",
    "The owner: with the lease it writes its owner",
    stories="a_second_owner",
)
def nobodys(patch: Patch) -> None:
    """A table that nobody owns is taken by whoever comes."""
    patch.setattr(Owner, "taking", lambda _self, row: row)


@mutant(
    "an owner is known by its name alone",
    "The owner: and the cluster that it is in",
    stories="an_owner_of_another_cluster",
)
def any_cluster(patch: Patch) -> None:
    """The manifest is applied to two clusters of one account."""
    patch.setattr(Owner, "owns", lambda self, row: row.owner in {None, self.name})


@mutant(
    "a driver asks for the first identity of its cluster only",
    "The owner: one identity in common will do",
    stories="a_cluster_gets_a_name a_cluster_gets_another_name",
)
def one_name(patch: Patch) -> None:
    """Whoever gives a cluster a name stops its consumers."""
    real = Owner.owns

    def owns(self: Owner, row: ConsumerRow) -> bool:
        return real(replace(self, clusters=self.clusters[:1]), row)

    patch.setattr(Owner, "owns", owns)


@mutant(
    "a take writes the first identity of its cluster only",
    "The owner: and writes all that it knows",
    stories="a_cluster_gets_another_name",
)
def first_only(patch: Patch) -> None:
    """Whoever changes the name of a cluster stops its consumers."""
    real = Owner.taking

    def taking(self: Owner, row: ConsumerRow) -> ConsumerRow:
        return real(replace(self, clusters=self.clusters[:1]), row)

    patch.setattr(Owner, "taking", taking)


@mutant(
    "a handover does not watch the lease",
    "The owner: the lease is watched, so a driver of the former owner that works is never overtaken",
    stories="a_handover_under_a_driver",
)
def hasty(patch: Patch) -> None:
    """It takes the lease at once, and releases it."""
    real = lease.hand_over
    patch.setattr(lease, "hand_over", lambda store, claim, watcher: real(store, replace(claim, force=True), watcher))


@mutant(
    "a take has no condition on the owner",
    "The owner: also `owner` and `cluster` as read: equal, or still absent",
    harmless="whoever changes the owner moves the heartbeat's counter, too; the owner is the second lock",
)
def unasked(patch: Patch) -> None:
    """An owner that was named in between is overwritten."""

    def whose(condition: Any) -> bool:
        return getattr(condition, "path", None) in {("owner",), ("cluster",)}

    without_condition(patch, "take", whose)

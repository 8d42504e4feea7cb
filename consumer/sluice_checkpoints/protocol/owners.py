"""Whose a checkpoint table is (docs/protocol.md, "The owner"): a table has one owner, for two would take turns at its lease. May not read a clock."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol.rows import ConsumerRow

ADOPT = "sluice adopt"


@dataclass(frozen=True, slots=True)
class Owner:
    """A KinesisConsumer, as a driver of it knows it.

    Attributes:
        name: `<namespace>/<name>`; "" is a run that no resource made.
        clusters: by what its cluster is known: its name, its uid. None: the driver does not know its cluster.
        writes: whether a take writes it into the row. A person who runs as the owner of one table makes no other table the owner's.
    """

    name: str = ""
    clusters: tuple[str, ...] = ()
    writes: bool = True

    def owns(self, row: ConsumerRow) -> bool:
        """Whether a driver of this owner may take the table. Clusters count only where both sides know theirs: one identity in common will do."""
        here = row.cluster is None or not self.clusters or not set(self.clusters).isdisjoint(row.cluster.split())
        return row.owner is None or (row.owner == self.name and here)

    def taking(self, row: ConsumerRow) -> ConsumerRow:
        """The row as it is when a driver of this owner takes the lease. One that does not know its cluster keeps the row's."""
        if not self.name or not self.writes:
            return row
        known = row.cluster if row.owner == self.name else None
        return replace(row, owner=self.name, cluster=self._identities or known)

    def given(self, row: ConsumerRow) -> ConsumerRow:
        """The row as it is when a person gives the table to this owner: of no named cluster means of any."""
        return replace(row, owner=self.name, cluster=self._identities)

    @property
    def _identities(self) -> str | None:
        return " ".join(self.clusters) or None

    def __str__(self) -> str:
        return named(self.name, self._identities)


NOBODY = Owner()


def named(owner: str, cluster: str | None) -> str:
    """An owner, for people: by the first identity of its cluster, which is its name if it has one."""
    return f"{owner} (cluster {cluster.split()[0]})" if cluster else owner


def check(table: str, row: ConsumerRow, owner: Owner) -> None:
    """Makes sure that a driver of this owner may work on the table.

    Raises:
        Refused: it is another's; the message names both, and the command that hands it over.
    """
    if owner.owns(row):
        return
    theirs = named(row.owner or "", row.cluster)
    raise Refused(
        f"checkpoints.table: {table} belongs to {theirs}, and {_mine(owner)}. Two owners would take turns, and each would miss the records that "
        f"the other got. Name another table. Or stop {row.owner}, and {_way(table, row, owner)}"
    )


def _mine(owner: Owner) -> str:
    return f"this driver to {owner}" if owner.name else "this run names no owner"


def _way(table: str, row: ConsumerRow, owner: Owner) -> str:
    if owner.name:
        cluster = f" --cluster {owner.clusters[0]}" if owner.clusters else ""
        return f"hand the table over: {ADOPT} --table {table} --region REGION --owner {owner.name}{cluster}"
    cluster = f" SLUICE_CLUSTER={row.cluster.split()[0]}" if row.cluster else ""
    return f"run as it: SLUICE_OWNER={row.owner}{cluster}"

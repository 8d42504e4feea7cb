"""What takes a consumer's batches out of its sink again, as text: nothing is carried out here (docs/how-to/undo-a-deploy.md). Pure.

Batch N stands for the table as it was in front of batch N, as in `reset --to-batch N`: N and what came later are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.names import counted
from sluice_consumer.sinks.delta.lineage import History, TableVersion, undoing
from sluice_consumer.sinks.iceberg.lineage import LineageSnapshot, SnapshotLineage

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Rollback:
    """What is printed.

    Attributes:
        sink: `iceberg`, `delta` or `parquet`.
        place: the table or path of the sink.
        batch: the first batch that is taken out.
        statements: to be run in this order; SQL, or commands of a shell for files. None: the sink holds no such batch.
        others: what is taken out beside the consumer's batches.
        stays: what still keeps the rows afterwards, or lets readers see them.
    """

    sink: str
    place: str
    batch: int
    statements: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()


def identifier(parts: Sequence[str]) -> str:
    """The name of a table in SQL; a part is quoted where it has to be."""
    return ".".join(name if PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`" for name in parts)


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# -- Iceberg -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TakenOut:
    """A part of the line of `main`: what goes, the newest first, and the snapshot in front of it."""

    snapshots: tuple[LineageSnapshot, ...]
    back: int


def nothing_of(place: str, consumer: str) -> str:
    """What is said of a path or an id that may be mistyped."""
    return f"{place} holds no batch of consumer {consumer} at all: check --place and --consumer"


def taken_out(history: SnapshotLineage, place: str, consumer: str, batch: int) -> TakenOut | None:
    """What a table has to lose to be as it was in front of a batch; None: it holds no such batch.

    Raises:
        Refused: the snapshot to go back to has expired, or there was none; or the table has no batch of the consumer.
    """
    line, whole = _line(history)
    ours = [at for at, each in enumerate(line) if each.consumer == consumer and (each.batch or 0) >= batch]
    earlier = any(each.consumer == consumer and each.batch is not None and each.batch < batch for each in line)
    if not ours:
        if earlier:
            return None
        if whole:
            raise Refused(nothing_of(place, consumer))
        raise Refused(f"{place}: snapshots have expired, and those that are left do not show batch {batch} of consumer {consumer}; {BY_HAND}")
    back = line[ours[-1]].parent
    if back is None:
        raise Refused(f"{place}: there is no snapshot in front of batch {batch}, so the table was empty then. Run: TRUNCATE TABLE {place}")
    if history.snapshot(back) is None:
        raise Refused(f"{place}: snapshot {back}, the one in front of batch {batch}, has expired; {BY_HAND}")
    return TakenOut(tuple(line[: ours[-1] + 1]), back)


BY_HAND = "delete the rows by one of their columns, with a DELETE FROM of your own"


def _line(history: SnapshotLineage) -> tuple[list[LineageSnapshot], bool]:
    """Snapshots from `main` down, and whether none of them has expired."""
    line: list[LineageSnapshot] = []
    at = history.main
    while at is not None:
        here = history.snapshot(at)
        if here is None:
            return line, False
        line.append(here)
        at = here.parent
    return line, True


def iceberg_statements(parts: Sequence[str], back: int, tags: Sequence[str], branches: Sequence[str]) -> Iterator[str]:
    """Moves `main` back, and drops the consumer's marks, which name snapshots that `main` lost: the sink would refuse the next batch."""
    catalog, *table = parts
    name = identifier(parts)
    yield f"CALL {identifier([catalog])}.system.rollback_to_snapshot({literal(identifier(table))}, {back})"
    for tag in tags:
        yield f"ALTER TABLE {name} DROP TAG IF EXISTS {identifier([tag])}"
    for branch in branches:
        yield f"ALTER TABLE {name} DROP BRANCH IF EXISTS {identifier([branch])}"


def others_of(taken: TakenOut, consumer: str, operations: Mapping[int, str]) -> Iterator[str]:
    """Snapshots of other writers that go, too."""
    for each in taken.snapshots:
        if each.consumer is None:
            yield f"snapshot {each.id} of another writer ({operations.get(each.id, 'unknown operation')})"
        elif each.consumer != consumer:
            yield f"snapshot {each.id}: batch {each.batch} of consumer {each.consumer}"


def refs_that_stay(history: SnapshotLineage, taken: TakenOut, refs: Mapping[str, tuple[int, str]]) -> Iterator[str]:
    """Tags and branches that hold what is taken out. `refs`: snapshot and kind, by name, without the consumer's own."""
    gone = {each.id for each in taken.snapshots}
    for name, (snapshot, kind) in sorted(refs.items()):
        at: int | None = snapshot
        while at is not None and at not in gone:
            here = history.snapshot(at)
            at = here.parent if here else None
        if at is not None:
            yield f"{kind} {name} holds snapshot {at}: readers of it see the rows, and their files stay, until you drop it"


# -- Delta -------------------------------------------------------------------------------------------------------------------------


def delta_version(history: History, place: str, consumer: str, batch: int) -> int | None:
    """The version of a table in front of a batch; None: it holds no such batch.

    Raises:
        Refused: the history does not go back so far, or has no batch of the consumer.
    """
    ours = {at: each.batch or 0 for at, each in history.items() if _is_of(each, consumer)}
    later = [at for at, number in ours.items() if number >= batch]
    held = [at for at in later if undoing(history, at) is None]
    if not held:
        if ours:
            return None
        if 0 in history:
            raise Refused(nothing_of(place, consumer))
        raise Refused(f"{place}: the table's history does not go back to batch {batch} of consumer {consumer}; {BY_HAND}")
    first = min(held)
    if first - 1 not in history:
        raise Refused(f"{place}: version {first - 1}, the one in front of batch {batch}, is no longer in the table's history; {BY_HAND}")
    return first - 1


def _is_of(version: TableVersion, consumer: str) -> bool:
    """Whether it is a batch of a consumer, under its own id or one that the owner named after an undo (`KnownBatches.application`)."""
    return version.consumer is not None and version.consumer.partition("@")[0] == consumer


def delta_others(history: History, consumer: str, back: int) -> Iterator[str]:
    """Versions of other writers that go, too."""
    for at in sorted(history, reverse=True):
        each = history[at]
        if at <= back or _is_of(each, consumer):
            continue
        whose = f"batch {each.batch} of consumer {each.consumer}" if each.consumer else f"another writer ({each.operation or 'unknown operation'})"
        yield f"version {at}: {whose}"


def summary(plan: Rollback) -> str:
    """In one sentence."""
    if not plan.statements:
        return f"{plan.place} holds no batch from {plan.batch} on: there is nothing to take out"
    beside = f", and {counted(len(plan.others), 'change')} of others" if plan.others else ""
    return f"these statements take batch {plan.batch} and all later ones of this consumer out of {plan.place}{beside}; nothing was carried out"

"""Mutants of versions: what is written before the first batch of a spec, and by whom (docs/protocol.md, "Versions")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulation.mutant import Patch, ignoring, mutant, write_without

from sluice_checkpoints.position import END
from sluice_checkpoints.positions.placement import Placed, ResetPlacement
from sluice_checkpoints.protocol import versions as writes
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.table import AnyOf
from sluice_checkpoints.protocol.versions import KeptPosition, SpecName, Version
from sluice_consumer.batches import versions
from sluice_consumer.batches.consumer import Consumer


@mutant(
    "a batch is issued before its version is named",
    "Versions: before the first batch of an epoch the driver keeps the positions, then names the version",
    stories="another_spec_is_deployed a_spec_is_deployed_while_a_batch_is_open",
)
def named_after_the_first_batch(patch: Patch) -> None:
    """Its first batch seems to be of the version before."""
    real = versions.begin

    def begin(consumer: Consumer, spec: SpecName, at: int) -> None:
        commit: Any = consumer._commit

        def commits(*args: Any) -> None:
            commit(*args)
            real(consumer, spec, at)

        patch.setattr(consumer, "_commit", commits)

    patch.setattr(versions, "begin", begin)


@mutant(
    "a version is named without the lease",
    "Versions: to name a version, the lease is mine",
    stories="a_version_that_is_named_late",
)
def named_by_a_former_epoch(patch: Patch) -> None:
    """A driver that stood still takes away the version of the one that works."""
    write_without(patch, writes, "name", {"generation", "token"})


@mutant(
    "positions in front of a version are those behind an open batch",
    "Versions: a range that is bound in an open batch counts from its start",
    stories="a_spec_is_deployed_while_a_batch_is_open",
)
def behind_the_open_batch(patch: Patch) -> None:
    """Who goes back to its first batch misses that batch's records."""

    def places(rows: Mapping[str, ShardRow], *_: Any) -> dict[str, KeptPosition]:
        return {shard: KeptPosition(row.end) for shard, row in rows.items()}

    patch.setattr(writes, "places", places)


@mutant(
    "a version keeps no shard that was over",
    "Versions: positions are exact, those at END as well",
    stories="a_bad_version_is_undone a_bad_version_is_undone_after_another_reset",
)
def without_ends(patch: Patch) -> None:
    """What was over in front of its first batch comes again."""
    real = writes.places
    patch.setattr(writes, "places", lambda *args: {shard: kept for shard, kept in real(*args).items() if kept.position != END})


@mutant(
    "a shard that is at END now was over in front of the version, unless it follows one that was not",
    "Versions: a shard that is not among those that were kept had no row",
    stories="a_bad_version_is_undone_after_shards_were_folded",
)
def over_as_it_looks(patch: Patch) -> None:
    """Once the generations in between are folded, what the bad version read of it does not come again."""
    real = ResetPlacement._as_before

    def placed(self: ResetPlacement, kept: KeptPosition, shard: str) -> Placed | None:
        row = self.shards.table.rows.get(shard)
        follows = self.shards.descendants(self.before or ())
        looks_over = shard not in (self.before or {}) and row is not None and row.end == END and shard not in follows
        return real(self, KeptPosition(END) if looks_over else kept, shard)

    patch.setattr(ResetPlacement, "_as_before", placed)


@mutant(
    "a version is another one only if nobody named it before",
    "Versions: the row names the version that committed each batch",
    stories="another_spec_is_deployed",
)
def named_once(patch: Patch) -> None:
    """After a rollback the batches seem to be the bad version's."""
    real = writes.next_version

    def next_version(former: tuple[Version, ...], spec: SpecName, *args: Any) -> Version | None:
        return None if any(each.spec == spec for each in former) else real(former, spec, *args)

    patch.setattr(writes, "next_version", next_version)


@mutant(
    "a version continues over a reset",
    "Versions: a version is a run of epochs with the same hash, the same image and the same last reset",
    stories="a_version_that_read_again_is_undone",
)
def over_a_reset(patch: Patch) -> None:
    """Its first batch is in front of the reset, and what it read again is in none."""
    real = writes.next_version
    patch.setattr(writes, "next_version", lambda former, spec, first, generation, at, _reset: real(former, spec, first, generation, at))


@mutant(
    "positions are kept over those of a later epoch",
    "Versions: to keep positions, there is no row of a later epoch",
    harmless="whoever reads them asks for the generation: then they are not known any more, and never those of another version",
)
def kept_by_a_former_epoch(patch: Patch) -> None:
    """A driver that stood still writes over the positions of the one that works."""
    real = writes.keep
    patch.setattr(writes, "keep", lambda store, *args: real(ignoring(store, lambda condition: isinstance(condition, AnyOf)), *args))

"""Mutants of how user records are counted, and of places inside an aggregate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulation import habits
from simulation.mutant import Patch, mutant

from sluice_checkpoints.position import Position
from sluice_consumer.shards import bind, collect, reader
from sluice_consumer.shards.aggregation import UserRecord
from sluice_consumer.shards.collect import RangeBuffer
from sluice_lab.fakes import kinesis as memory

READING: dict[str, Any] = {"processes": (habits.READ,)}


@mutant(
    "a place inside an aggregate is read as its beginning",
    "Rows: {at: AFTER, sequence, sub} (inside an aggregated record)",
    stories="a_place_inside_an_aggregate",
)
def resume_loses_sub(patch: Patch) -> None:
    """What KCL has processed comes again."""
    patch.setattr(collect, "_after", lambda _start, _sequence, users: users)


@mutant(
    "a place inside an aggregate is read as its end",
    "Rows: {at: AFTER, sequence, sub} (inside an aggregated record)",
    stories="a_place_inside_an_aggregate",
)
def resume_skips_the_rest(patch: Patch) -> None:
    """The iterator starts after the record, not at it."""
    real = memory.iterator_type
    patch.setattr(memory, "iterator_type", lambda position: real(replace(position, sub=None)))


@mutant(
    "a range that was cut leaves the iterator of its reply",
    "Rows: `onward`, an iterator that goes on at `end`",
    stories="aggregates_around_a_limit",
    **READING,
)
def cut_leaves_an_iterator(patch: Patch) -> None:
    """What did not fit any more is skipped."""
    real = reader.ShardReader._cut
    patch.setattr(reader.ShardReader, "_cut", lambda self, pages, page: replace(real(self, pages, page), iterator=page.next_iterator))


@mutant("a migration drops the place inside an aggregate", "Rows: only migrations write it", stories="a_place_inside_an_aggregate")
def migration_drops_sub(patch: Patch) -> None:
    """KCL's number alone is taken over."""
    real = Position.after
    patch.setattr(Position, "after", staticmethod(lambda sequence, _sub=None: real(sequence)))


@mutant(
    "Kinesis records are counted",
    "A batch: bind, `records`",
    hunted=True,
    stories="a_replay_of_aggregates aggregates_around_a_limit",
    rules="succeed",
    **READING,
)
def kinesis_records_counted(patch: Patch) -> None:
    """A replay looks for fewer records than there are."""
    real = bind._range

    def counted(fetched: Any, *args: Any) -> Any:
        return replace(real(fetched, *args), records=len(set(fetched.columns.sequence)))

    patch.setattr(bind, "_range", counted)


@mutant(
    "a replay forgets where in an aggregate its range began",
    "A batch: every later reader of batch N reads exactly that range",
    stories="a_replay_from_inside_an_aggregate",
)
def replay_loses_sub(patch: Patch) -> None:
    """It finds more records than were bound, and gives up, epoch after epoch."""
    real = reader.RangeBuffer

    def fresh(start: Position, until: Position | None = None) -> RangeBuffer:
        inside = start.sub is not None
        return real(replace(start, sub=-1) if inside else start, until)

    patch.setattr(reader, "RangeBuffer", fresh)


@mutant(
    "a limit cuts an aggregate",
    "A batch: ranges end on whole Kinesis records",
    hunted=True,
    stories="aggregates_around_a_limit",
    rules="succeed",
    **READING,
)
def limit_inside_an_aggregate(patch: Patch) -> None:
    """What does not fit is dropped, and the place is after all of it."""
    real = RangeBuffer.take

    def take(self: RangeBuffer, records: Any, max_records: int, max_bytes: int) -> bool:
        everything = real(self, records, max_records, max_bytes)
        for number, part in enumerate(self.columns.parts):
            if part.sub is not None:
                self.columns.parts[number] = collect.RecordSlice(part.records.between(0, max_records), part.sub[:max_records])
        return everything

    patch.setattr(RangeBuffer, "take", take)


@mutant(
    "an aggregate is one record",
    "Rows: user records",
    hunted=True,
    stories="aggregates_around_a_limit",
    rules="succeed",
    **READING,
)
def aggregates_are_plain(patch: Patch) -> None:
    """It is handed over as it was sent."""
    patch.setattr(collect, "user_records", lambda key, data: [UserRecord(0, key, data)])
    patch.setattr(collect, "MAGIC", b"never")


@mutant(
    "an aggregate's user records come in any order",
    "Shards come and go: order within a shard",
    hunted=True,
    stories="aggregates_around_a_limit",
    rules="succeed",
    **READING,
)
def aggregates_reversed(patch: Patch) -> None:
    """The last one first."""
    real = collect.user_records
    patch.setattr(collect, "user_records", lambda key, data: real(key, data)[::-1])

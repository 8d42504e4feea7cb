"""Mutants of the write that accepts a loss, and of what comes before it (docs/protocol.md, "Retention")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from simulation import habits
from simulation.mutant import Patch, mutant, write_without

from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches import planner, retention
from sluice_consumer.batches.retention import Loss
from sluice_consumer.shards import bind, ranges, reader
from sluice_consumer.shards.collect import RecordColumnSet
from sluice_consumer.shards.ranges import Fetched

ONE_KIND: dict[str, Any] = {"processes": (habits.READ,), "limit": 3}


def _forfeits(patch: Patch, dropped: set[str]) -> None:
    write_without(patch, retention, "forfeit", dropped)


@mutant("a loss is accepted by an epoch that was fenced", "Retention: forfeit, my generation", stories="a_late_acceptance_beside_another")
def forfeit_without_generation(patch: Patch) -> None:
    """The owner finds another range than it has looked at, and cannot go on."""
    _forfeits(patch, {"generation"})


@mutant(
    "a loss is accepted whatever the batch",
    "Retention: forfeit, and `batch`",
    harmless="an epoch that was fenced is stopped by the generation, and one that was not binds nothing between its look and this write",
)
def forfeit_without_batch(patch: Patch) -> None:
    """The number of the batch alone is not what protects."""
    _forfeits(patch, {"batch"})


@mutant(
    "a loss is accepted of whatever stands there",
    "Retention: forfeit, my generation, and the range as looked at",
    stories="a_late_acceptance_two_batches_later a_late_acceptance_beside_another",
)
def forfeit_blindly(patch: Patch) -> None:
    """What a later batch contains is written over."""
    _forfeits(patch, {"generation", "batch", "first", "records", "end"})


@mutant(
    "any number accepts a loss",
    "Retention: only if the driver is told the number of this very batch",
    stories="a_word_about_another_batch",
)
def any_word(patch: Patch) -> None:
    """A word that was left over from an earlier loss."""
    real = retention.settle

    def settle(consumer: Any, client: Any, source: Any, accepted: int | None) -> Any:
        return real(consumer, client, source, accepted and planner.next_batch(consumer.view).number)

    patch.setattr(retention, "settle", settle)


@mutant(
    "a loss needs no word",
    "Retention: it changes nothing and ends; a person decides",
    stories="a_loss_that_nobody_accepted",
    rules="overtake",
    **ONE_KIND,
)
def no_word(patch: Patch) -> None:
    """What expired is passed over silently."""
    real = retention.settle

    def settle(consumer: Any, client: Any, source: Any, _accepted: int | None) -> Any:
        return real(consumer, client, source, planner.next_batch(consumer.view).number)

    patch.setattr(retention, "settle", settle)


@mutant(
    "what could still be read is given up",
    "Retention: looks whether the first record of every range is still there",
    stories="a_word_about_a_batch_that_is_still_there",
    rules="overtake",
    **ONE_KIND,
)
def all_is_lost(patch: Patch) -> None:
    """A person's word is taken for a look."""

    def losses(rows: Iterable[ShardRow], *_: Any) -> Iterator[Loss]:
        return (Loss(row, Fetched(row.id, row.start, row.end, RecordColumnSet())) for row in rows if row.first)

    patch.setattr(retention, "losses", losses)


@mutant(
    "more is given up than has expired",
    "Retention: `first`, `records` of what is left",
    stories="an_accepted_loss",
    rules="overtake",
    **ONE_KIND,
)
def the_whole_range(patch: Patch) -> None:
    """A range that has lost a part is given up as a whole."""
    real = retention._left

    def left(source: Any, row: ShardRow) -> Fetched | None:
        found = real(source, row)
        return found and replace(found, columns=RecordColumnSet(), first=None)

    patch.setattr(retention, "_left", left)


@mutant(
    "nobody looks whether an open batch is still there",
    "Retention: an epoch that takes over an open batch looks, before Spark starts",
    stories="an_accepted_loss",
    rules="overtake",
    **ONE_KIND,
)
def no_look(patch: Patch) -> None:
    """Its replay fails, epoch after epoch, and no word helps."""
    patch.setattr(retention, "settle", lambda *_: ())


@mutant(
    "a replay takes what there is",
    "A batch: every later reader of batch N reads exactly that range",
    stories="an_accepted_loss",
    rules="overtake",
    **ONE_KIND,
)
def replay_of_what_there_is(patch: Patch) -> None:
    """Nobody counts, neither before the batch nor in it."""
    patch.setattr(reader.ShardReader, "_check", lambda *_, **__: None)
    patch.setattr(retention, "settle", lambda *_: ())


@mutant(
    "what expired unread is not told",
    "Retention: the row's `note` says what may be missing",
    hunted=True,
    stories="a_day_before_the_first_range a_day_between_parents_and_children",
    rules="overtake",
    **ONE_KIND,
)
def no_note(patch: Patch) -> None:
    """Kinesis itself says nothing."""
    patch.setattr(reader.ShardReader, "_overtaken", lambda *_: None)


@mutant(
    "a shard that was never read cannot be overtaken",
    "Retention: before its first range a shard counts as read up to the time that it is to begin at",
    stories="a_day_before_the_first_range",
)
def no_first_time(patch: Patch) -> None:
    """A consumer that began at LATEST, and then stood still for a day."""
    real = reader.ShardReader._overtaken

    def overtaken(self: Any, place: Any, page: Any) -> str | None:
        return real(self, place, page) if place.read_to else None

    patch.setattr(reader.ShardReader, "_overtaken", overtaken)


@mutant(
    "children have no age before they are read",
    "Retention: or up to what was read of its parents",
    stories="a_day_between_parents_and_children",
)
def children_without_age(patch: Patch) -> None:
    """Their first day passes unseen."""
    patch.setattr(planner, "earliest_arrival_millis", lambda _: 0)
    patch.setattr(bind, "earliest_arrival_millis", lambda _: 0)


@mutant(
    "a shard that ended was open when it was last read",
    "Ages: after records a closed shard has yet to say its end",
    stories="a_day_between_a_parent_that_was_read_late_and_its_children a_day_between_a_parent_whose_end_nobody_read_and_its_children",
)
def open_when_it_was_read(patch: Patch) -> None:
    """Its children's first hours pass unseen: as long as it had been closed."""
    patch.setattr(reader.ShardReader, "_open_at", lambda _self, place: max(place.read_to, place.earliest_arrival_millis))


@mutant(
    "who emits a range again has not read it, and counts against who bound it",
    "Ages: a second attempt of a task has the name of the first",
    stories="children_of_a_parent_that_a_second_attempt_of_a_task_read",
)
def counted_readers(patch: Patch) -> None:
    """A shard that is idle and was split is asked for a record that has expired."""
    patch.setattr(ShardRow, "was_read", property(lambda row: len(row.readers) > row.replays))


@mutant(
    "a record that has expired says nothing of when its shard was open",
    "Ages: its last record may have expired since",
    stories="a_day_between_a_parent_whose_end_nobody_read_and_its_children",
)
def expired_records_say_nothing(patch: Patch) -> None:
    """What the row says is believed then."""
    real = reader.ShardReader._arrival

    def arrival(self: Any, shard_id: str, sequence: str) -> int:
        held = self._client.stream.shards.get(shard_id)
        return real(self, shard_id, sequence) if held and int(sequence) > held.trimmed else 2**60

    patch.setattr(reader.ShardReader, "_arrival", arrival)


@mutant(
    "a child's row says once and for all how old it is",
    "Ages: its parents' rows count, too",
    stories="children_whose_rows_were_made_when_their_parent_was_far_behind",
)
def ages_of_rows(patch: Patch) -> None:
    """A consumer that catches up suspects a loss in every child."""
    patch.setattr(ShardRow, "unread", property(lambda row: row.end == TRIM_HORIZON and not row.read_to))


@mutant(
    "a retention that was raised does not wait for parents of children that have not begun",
    "Retention: how old a child may be is known once its parents were read to their ends",
    stories="a_retention_that_is_raised_while_a_parent_has_yet_to_say_its_end",
)
def parents_do_not_hold_it(patch: Patch) -> None:
    """The parent's row says when it was read, and that is later than the children's first records."""
    patch.setattr(planner, "unread_since", lambda view, millis: any(0 < planner._unread_from(view, row) <= millis for row in view.opened))


@mutant(
    "children whose rows came first have no age",
    "Retention: also where the row was made before anything was read of them",
    stories="a_day_between_parents_and_children_of_an_audit",
)
def children_of_an_audit_without_age(patch: Patch) -> None:
    """An audit listed them while their parents had yet to be read."""
    patch.setattr(bind, "_earliest_arrival_millis", lambda *_: 0)


@mutant(
    "nobody looks for the record that the former consumer came to",
    "Retention: a place that was migrated begins with the record at it",
    stories="a_day_between_a_migration_and_its_first_range",
)
def checkpoints_without_their_record(patch: Patch) -> None:
    """The service goes on with what it still has, and says nothing."""
    patch.setattr(reader.ShardReader, "_gone", lambda *_: None)


@mutant(
    "a retention that was raised is believed for what was unread before",
    "Retention: a shorter one counts until all was read",
    stories="a_retention_that_is_raised_after_records_expired",
    rules="retention split succeed",
    hunted=True,
)
def believes_a_raised_retention(patch: Patch) -> None:
    """Nobody says that records are missing."""
    patch.setattr(ranges, "overtaken_before", lambda *_: None)


@mutant(
    "a retention that was raised is written at once",
    "Retention: a longer one is written once nothing is unread that the shorter one may have taken",
    stories="a_retention_that_is_raised_after_records_expired",
)
def writes_a_raised_retention_at_once(patch: Patch) -> None:
    """A driver that dies before it reads takes the shorter one with it."""
    patch.setattr(planner, "unread_since", lambda _view, _millis: False)


@mutant(
    "a retention that was raised does not wait for children that have not begun",
    "Retention: a longer one is written once nothing is unread that the shorter one may have taken; of children their parents' rows say since when",
    stories="a_retention_that_is_raised_after_records_of_unread_children_expired",
    rules="retention split audit",
)
def children_do_not_hold_it(patch: Patch) -> None:
    """Their own rows say nothing."""
    patch.setattr(planner, "_unread_from", lambda _view, row: row.read_to or row.end.millis or 0)


@mutant(
    "children are suspected whatever their parents still hold",
    "Retention: as long as a parent has a record, nothing of its children has expired",
    stories="a_retention_that_is_raised_in_time_for_unread_children a_retention_that_is_raised_in_time_for_children_of_an_open_shard",
    rules="retention split succeed",
    hunted=True,
)
def nobody_asks_parents(patch: Patch) -> None:
    """A person is told to compare a day with the sink, and all of it is there."""
    patch.setattr(reader.ShardReader, "_has_record", lambda _self, _shard: False)

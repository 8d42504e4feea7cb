"""Mutants of which shards a batch leaves out (docs/protocol.md, "Idle shards")."""

from __future__ import annotations

from typing import Any

from simulation import habits
from simulation.mutant import Patch, mutant

from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_consumer.batches import consumer, loop, planner
from sluice_consumer.kinesis.client import IteratorExpired, ShardNotFound
from sluice_consumer.shards import probes
from sluice_consumer.shards.probes import ProbedShard


@mutant(
    "a former epoch's range counts",
    "Idle shards: this epoch bound its last range",
    harmless="a probe of this epoch found nothing behind it, and it was read within an hour",
    rules="succeed driver",
)
def inherited_idleness(patch: Patch) -> None:
    """The first batch of an epoch leaves out what its probes find idle."""
    patch.setattr(planner, "_is_quiet", lambda _view, row: not (row.records or row.behind))


@mutant(
    "a former epoch's word is believed",
    "Idle shards: this epoch bound its last range, and a probe found nothing behind it",
    hunted=True,
    stories="a_shard_that_a_former_epoch_found_idle a_shard_that_joins_while_the_others_idle",
    rules="succeed driver",
    processes=(habits.READ,),
)
def inherited_word(patch: Patch) -> None:
    """What the rows say at the take-over is left out, and nobody probes."""
    real = loop.Loop._left_out

    def left_out(self: loop.Loop, only: frozenset[str]) -> frozenset[str]:
        view = self._consumer.view
        said = (row.id for row in view.rows.values() if row.batch <= view.inherited and not (row.records or row.behind or row.end.at == "END"))
        return real(self, only) | frozenset(said)

    patch.setattr(loop.Loop, "_left_out", left_out)


@mutant(
    "a range far behind the tip counts",
    "Idle shards: its last range came to the tip, and so did a probe",
    stories="a_sparse_shard_far_behind_the_tip",
)
def far_behind(patch: Patch) -> None:
    """The driver says that it is idle, and a row says otherwise."""
    patch.setattr(planner, "_is_quiet", lambda view, row: row.batch > view.inherited and not row.records)
    on_the_way(patch)


@mutant(
    "a range with records counts",
    "Idle shards: its last range had no record, or one for which a probe had woken the shard",
    harmless="the probe is made behind the range and finds what follows; it only costs calls at busy shards, and their records wait for probes",
)
def with_records(patch: Patch) -> None:
    """A busy shard takes part only when a probe has found something."""
    patch.setattr(planner, "_is_quiet", lambda view, row: row.batch > view.inherited and not row.behind)


@mutant(
    "an idle shard is not probed again",
    "Idle shards: the last probe is a second old at most",
    hunted=True,
    stories="a_record_in_a_shard_that_was_left_out a_record_between_the_probe_and_the_plan a_split_of_a_shard_that_was_left_out",
    processes=(habits.READ,),
)
def probed_once(patch: Patch) -> None:
    """Once idle, for ever idle."""
    real = ProbedShard.probe

    def probe(self: ProbedShard) -> probes.Probe:
        return probes.Probe(0, None) if self.idle else real(self)

    patch.setattr(ProbedShard, "probe", probe)


@mutant(
    "a probe that stops on the way counts",
    "Idle shards: a probe came to the tip",
    stories="a_record_far_behind_the_probe",
)
def on_the_way(patch: Patch) -> None:
    """A shard is left out for as long as its probes take to the tip."""
    patch.setattr(probes.KinesisProber, "idle", lambda self: not _found(self))


@mutant(
    "a probe goes on behind what it found",
    "Idle shards: what a probe found is found again",
    stories="news_that_process_does_not_read",
)
def found_once(patch: Patch) -> None:
    """The next probe stands behind the record that nobody has read."""

    def idle(self: probes.KinesisProber) -> bool:
        for _ in range(probes.FOLLOWED):
            try:
                page = self._page()
            except IteratorExpired:
                self._iterator = None
                continue
            except ShardNotFound:
                return False
            self._iterator = page.next_iterator
            if len(page.records) or page.next_iterator is None or page.behind_millis == 0:
                return not len(page.records) and page.next_iterator is not None
        return False

    patch.setattr(probes.KinesisProber, "idle", idle)


def _found(self: Any) -> bool:
    """Whether a probe found something; it may not have come to the tip."""
    for _ in range(probes.FOLLOWED):
        try:
            page = self._page()
        except IteratorExpired:
            self._iterator = None
            continue
        except ShardNotFound:
            return True
        found = len(page.records) > 0 or page.next_iterator is None
        self._iterator = None if found else page.next_iterator
        if found:
            return True
    return False


@mutant(
    "an idle shard is never refreshed",
    "Idle shards: it was read within the hour",
    stories="a_record_after_more_than_a_retention",
)
def never_refreshed(patch: Patch) -> None:
    """It looks as if its records had expired unread."""
    patch.setattr(planner, "_is_due", lambda row, _now, _groups: not row.read_to)


@mutant(
    "shards are probed in the order of their ids, as many as may be",
    "Idle shards: those first that were probed longest ago",
    stories="records_in_idle_shards_that_are_probed_in_turns",
)
def first_ids_first(patch: Patch) -> None:
    """The last ones are never probed again."""
    patch.setattr(probes, "last_probed", lambda _shard: 0.0)


@mutant(
    "a shard that is overdue waits for its turn",
    "Idle shards: what was not read for two hours takes part",
    stories="shards_that_are_refreshed_one_a_batch",
)
def overdue_waits(patch: Patch) -> None:
    """Where batches are rare, it looks as if its records had expired unread."""
    patch.setattr(planner, "OVERDUE_MILLIS", 100 * planner.STALE_MILLIS)


@mutant(
    "shards are refreshed in the order of their ids, as many as may be",
    "Idle shards: those first that were read longest ago",
    harmless="what is overdue takes part in any case; they would only be read in heaps, two hours after each other",
)
def refreshed_by_id(patch: Patch) -> None:
    """The last ones are refreshed when they are overdue."""

    def refreshed(rows: Any, now: int, how: planner.Refreshing) -> frozenset[str]:
        due = [row for row in rows if planner._is_due(row, now, how.groups)]
        return frozenset(row.id for row in [*due[: how.most], *(row for row in due if row.read_to < now - planner.OVERDUE_MILLIS)])

    patch.setattr(planner, "_refreshed", refreshed)


@mutant(
    "a search leaves idle shards out",
    "Idle shards: no record is searched for",
    harmless="a shard that probes find idle has no witness; within a second after a record came, the search would miss one, and doubt for longer",
)
def search_leaves_out(patch: Patch) -> None:
    """Probes go on during a search."""
    real = loop.Loop._left_out

    def left_out(self: loop.Loop, only: frozenset[str]) -> frozenset[str]:
        isolator, self._isolator = self._isolator, None
        try:
            return real(self, only)
        finally:
            self._isolator = isolator

    patch.setattr(loop.Loop, "_left_out", left_out)


@mutant(
    "only shards of the open batch are fenced",
    "Idle shards: the fence is on every row",
    rare=True,
    stories="a_bind_after_the_take_over",
    rules="succeed",
    processes=(habits.READ,),
)
def fences_participants(patch: Patch) -> None:
    """A late task of the former epoch binds a range of a shard that the replay does not hold, in a batch that is over."""
    real = consumer.Consumer.begin

    def begin(self: consumer.Consumer, *args: Any) -> None:
        store, self.store = self.store, Participants(self.store.table)
        real(self, *args)
        self.store = store

    patch.setattr(consumer.Consumer, "begin", begin)


class Participants(CheckpointStore):
    """Fences the rows that the open batch holds."""

    def fence(self, epoch: Epoch, shard_id: str) -> None:
        row, owner = self.table.get(f"shard/{shard_id}"), self.consumer()
        if row is not None and owner is not None and row["batch"] == owner.committed + 1:
            super().fence(epoch, shard_id)


@mutant(
    "a shard that stays full keeps the others out",
    "Idle shards: an interval after the last batch of all, all take part",
    stories="a_record_beside_a_shard_that_stays_full",
)
def full_alone(patch: Patch) -> None:
    """The interval of the others begins anew with each batch of the full ones."""
    real = loop.Loop._left_out

    def left_out(self: loop.Loop, only: frozenset[str]) -> frozenset[str]:
        if only:
            self._due = self._clock() + self._timings.interval
        return real(self, only)

    patch.setattr(loop.Loop, "_left_out", left_out)


@mutant(
    "a batch that comes again is one of all",
    "Idle shards: that interval begins with a batch of all shards only",
    stories="a_record_beside_a_full_shard_whose_drivers_die",
)
def replays_count(patch: Patch) -> None:
    """The interval begins with whatever batch was not of full shards."""
    real = loop.Loop._runs

    def runs(self: loop.Loop, plan: planner.BatchPlan) -> consumer.Committed | None:
        if plan.replay:
            self._due = self._clock() + self._timings.interval
        return real(self, plan)

    patch.setattr(loop.Loop, "_runs", runs)

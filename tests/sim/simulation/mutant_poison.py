"""Mutants of how a record is isolated on which `process` raises (docs/protocol.md, "Poison")."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulation import epochs, spark
from simulation.mutant import Patch, mutant, write_without

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.protocol.poison_note import IsolationNote
from sluice_consumer.batches.batch_letters import BatchLetters
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.poison import exclusions, isolator, search
from sluice_consumer.poison.search import BatchFailure
from sluice_consumer.shards import reader

ALL = {"generation", "batch", "first", "records", "end"}


@mutant("a batch is shortened by whoever comes late", "Poison: shorten, my generation", stories="a_late_shortening")
def shorten_blindly(patch: Patch) -> None:
    """What a later batch contains is written over."""
    write_without(patch, isolator, "shorten", ALL)


@mutant("a record is excluded by whoever comes late", "Poison: exclude, my generation", stories="a_late_exclusion")
def exclude_blindly(patch: Patch) -> None:
    """The owner finds another range than it has looked at, and cannot go on."""
    write_without(patch, exclusions, "exclude", ALL)


@mutant(
    "the rest of a shortened batch is forgotten",
    "Poison: the next range begins where this one ends now",
    stories="a_poisonous_record_among_good_ones an_outage_of_the_sink",
)
def rest_is_forgotten(patch: Patch) -> None:
    """The range keeps its end, as one does of which a loss was accepted."""
    real = isolator.first_records
    patch.setattr(isolator, "first_records", lambda fetched, row, keep: replace(real(fetched, row, keep), end=row.end))


@mutant(
    "an empty range on its way ends a search",
    "Poison: its shard is asked again",
    stories="a_poisonous_record_in_a_sparse_shard",
)
def nothing_is_coming(patch: Patch) -> None:
    """The suspect is still there, and fails again in the next batch of all shards."""
    real = search.Search.passed
    patch.setattr(search.Search, "passed", lambda self, content, **_: real(self, content))


@mutant(
    "a batch is shortened though the sink has it",
    "Poison: a `process` that raises has stored nothing",
    stories="a_commit_that_fails_in_a_world_that_isolates",
)
def isolates_after_the_sink(patch: Patch) -> None:
    """Whatever ends a batch counts as a failure of `process`: isolation commits the rest twice."""
    real = epochs.SimulatedEpoch._judged

    def judged(self: Any, error: Exception) -> BatchFailure | None:
        return BatchFailure("", transient=False, at=self.clock()) if isinstance(error, ServiceUnavailable) else real(self, error)

    patch.setattr(epochs.SimulatedEpoch, "_judged", judged)
    patch.setattr(epochs.SimulatedEpoch, "ATTEMPTS", 1)
    patch.setattr(search, "AGAIN", 1)


@mutant(
    "a batch is issued again while its tasks work",
    "Poison: the driver waits until no task of it can be working",
    stories="a_batch_that_fails_while_a_task_of_it_works",
)
def nobody_waits(patch: Patch) -> None:
    """A task of the longer batch hands over what the shorter one no longer holds."""
    real = isolator.Isolator.__init__

    def impatient(self: Any, consumer: Any, ports: Any, search: Any) -> None:
        real(self, consumer, replace(ports, quiet=lambda: True), search)

    patch.setattr(isolator.Isolator, "__init__", impatient)


@mutant(
    "a driver is quiet as soon as no job reads the batch",
    "Poison: so does a job that ends by itself",
    stories="a_job_that_hangs_beside_a_failure_loses_its_executor",
)
def over_is_quiet(patch: Patch) -> None:
    """The job lost an executor meanwhile, whose worker goes on for a while."""

    def quiet(self: Any) -> bool:
        return all(job.over for job in self.jobs) and self._clock() - self.troubled_at > self._lease

    patch.setattr(spark.Engine, "quiet", quiet)


@mutant(
    "a batch is issued again as soon as its jobs are cancelled",
    "Poison: a job that still reads it is cancelled, and counts as working for a lease duration more",
    stories="a_job_that_hangs_beside_a_failure",
)
def cancelled_is_over(patch: Patch) -> None:
    """Its task still hands over what the shorter batch no longer holds."""
    over_is_quiet(patch)
    real = spark.Engine.cancel

    def cancel(self: Any) -> None:
        before = self.troubled_at
        real(self)
        self.troubled_at = before

    patch.setattr(spark.Engine, "cancel", cancel)


@mutant(
    "a shard that no task bound stays open in a batch that failed",
    "Poison: it closes the shards that no task bound",
    stories="a_late_bind_in_a_batch_that_fails",
)
def nothing_is_closed(patch: Patch) -> None:
    """A late task binds it, and the batch is committed without having shown it to `process`."""

    def settled(self: Any, plan: Any) -> Any:
        rows = tuple(self.store.read(row.id for row in plan.rows).values())
        for row in rows:
            self.know(row)
        return rows

    patch.setattr(Consumer, "close_failed", settled)


@mutant(
    "a record is excluded before its letter is stored",
    "Poison: its dead letter is written, then it is excluded",
    stories="a_crash_before_the_letter",
)
def excluded_first(patch: Patch) -> None:
    """A crash between the two loses it."""
    real = exclusions.Exclusions._letter

    def letter(self: Any, row: Any, attempts: int, told: str) -> Any:
        made = real(self, row, attempts, told)
        self._consumer.know(exclusions.exclude(self._consumer.store, self._consumer.epoch, row))
        return made

    patch.setattr(exclusions.Exclusions, "_letter", letter)


@mutant(
    "nobody waits for a dead letter to be stored",
    "Poison: its dead letter is stored",
    stories="a_dead_letter_that_is_not_stored",
)
def letters_in_vain(patch: Patch) -> None:
    """The store is down, and nobody hears of it."""
    real = epochs.Letters.hold

    def hold(self: Any, name: Any, letters: Any) -> str:
        try:
            return real(self, name, letters)
        except ServiceUnavailable:
            return str(name)

    patch.setattr(epochs.Letters, "hold", hold)


@mutant(
    "a letter is published before its batch is committed",
    "Letters are final with their batch: the commit names them",
    stories="a_crash_between_letter_and_exclusion_and_a_repair",
)
def published_at_once(patch: Patch) -> None:
    """The next `process` can deal with the record: it is in the sink, and a redrive stores it again."""
    real = BatchLetters.exclude

    def exclude(self: Any, letter: Any) -> Any:
        entry = real(self, letter)
        self.publish([entry])
        return entry

    patch.setattr(BatchLetters, "exclude", exclude)


@mutant(
    "whatever is pending of a batch is published with it",
    "Letters are final with their batch: the letter of an excluded record is the one that its row names",
    stories="a_crash_between_letter_and_exclusion_and_a_repair",
)
def published_with_the_rest(patch: Patch) -> None:
    """A letter was stored, and its record was not excluded."""
    patch.setattr(BatchLetters, "final", lambda self, batch, _rows: tuple(entry for entry, (name, _) in self._held.items() if name.batch == batch))


@mutant(
    "nobody publishes what a dead driver's commit named",
    "Letters are final with their batch: whoever comes next publishes it",
    stories="a_crash_between_commit_and_publication",
)
def never_published(patch: Patch) -> None:
    """The record is in no batch, and has no letter."""
    real = Consumer.begin

    def begin(self: Any, *args: Any) -> None:
        real(self, *args)
        self.unpublished = ()

    patch.setattr(Consumer, "begin", begin)


@mutant(
    "a record that failed alone is poison",
    "Poison: alone at every try for a time",
    stories="an_outage_of_the_sink",
)
def no_evidence(patch: Patch) -> None:
    """So does any record while the sink is down."""
    patch.setattr(search.Evidence, "is_poison", lambda self, attempts, *_: self.failures >= attempts)


@mutant(
    "a part of the sink that is down excludes a record",
    "Poison: alone at every try for a time, though witnesses pass",
    stories="an_outage_of_the_sink_for_one_shard an_outage_of_the_sink_for_one_key",
)
def witnesses_suffice(patch: Patch) -> None:
    """What other shards can do says nothing of the part."""
    real = search.Evidence.doubt
    patch.setattr(search.Evidence, "doubt", lambda self, limits, others: 0.0 if self.witnesses else real(self, limits, others))


@mutant(
    "a record is poison by what it did before it passed",
    "Poison: one success ends the search",
    stories="an_outage_of_the_sink_for_most_calls",
)
def success_is_forgotten(patch: Patch) -> None:
    """One call of many fails: nothing that passes ends that."""
    real = search.Evidence.is_poison
    patch.setattr(search.Evidence, "is_poison", lambda self, attempts, now, seconds: real(self, attempts, now, min(seconds, 1.0)))


@mutant("nobody needs a witness", "Poison: with fewer", stories="an_outage_of_the_sink_of_the_only_shard")
def without_witness(patch: Patch) -> None:
    """The only shard's outage looks like poison sooner."""
    patch.setattr(epochs, "PATIENCE", replace(epochs.PATIENCE, nothing=0.0))


@mutant(
    "that records of other shards fail, too, says nothing",
    "Poison: if the last record of another shard failed too",
    stories="an_outage_of_the_whole_sink_that_lasts",
)
def refusals_are_ignored(patch: Patch) -> None:
    """An outage of everything looks like poison sooner."""
    patch.setattr(epochs, "PATIENCE", replace(epochs.PATIENCE, refused=0.0))


@mutant(
    "a batch is shortened before its sink is asked again",
    "Poison: a content is shortened only after it failed twice by one and the same error",
    stories="a_sink_that_raises_when_it_has_the_batch",
)
def asked_once(patch: Patch) -> None:
    """The sink has it: what is let go comes twice."""
    patch.setattr(search, "AGAIN", 1)
    patch.setattr(epochs.SimulatedEpoch, "ATTEMPTS", 1)


@mutant(
    "a noted failure is counted again",
    "Poison: the epoch that counts its failure writes the note again without the failure",
    stories="a_crash_after_a_noted_failure_was_counted",
)
def counted_again(patch: Patch) -> None:
    """A record is poison by failures of the batch that it was in."""
    real = exclusions.Exclusions.write

    def write(self: Any, wanted: IsolationNote) -> None:
        if wanted.failed is not None:
            real(self, wanted)

    patch.setattr(exclusions.Exclusions, "write", write)


@mutant("a failure is noted by whoever comes late", "Poison: note, the lease is mine", stories="a_late_note")
def note_blindly(patch: Patch) -> None:
    """It is counted, of a batch that is shorter by now."""
    write_without(patch, exclusions, "note", {"generation", "token"})


@mutant(
    "a batch that ends inside an aggregate is replayed to the end of that",
    "A batch: every later reader of batch N reads exactly that range",
    stories="a_poisonous_record_in_an_aggregate",
)
def replay_goes_beyond(patch: Patch) -> None:
    """It finds more records than the batch holds."""
    real = reader.RangeBuffer
    patch.setattr(reader, "RangeBuffer", lambda start, _until=None: real(start))

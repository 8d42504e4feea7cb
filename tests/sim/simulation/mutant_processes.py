"""Mutants of what the return of `process` means (docs/protocol.md, "What returning means")."""

from __future__ import annotations

from simulation import habits, spark
from simulation.mutant import Patch, mutant

from sluice_checkpoints.errors import LostRace
from sluice_consumer.batches import consumer
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.process.lease_release import LeaseRelease


@mutant(
    "a process that cannot deal with a replay returns",
    "What returning means: it raises NotNow",
    rare=True,
    stories="a_replay_that_comes_too_early",
    rules="succeed driver start_epoch",
    processes=(habits.NOTHING, habits.READ),
)
def returns_unread(patch: Patch) -> None:
    """The return counts what it has not read as dealt with."""
    patch.setattr(spark.Engine, "_returns_unread", lambda *_: None)


@mutant(
    "a replay that is not read is refused",
    "What returning means: read or not",
    hunted=True,
    stories="a_replay_of_what_the_sink_has",
    rules="succeed driver start_epoch",
    processes=(habits.READ,),
    looks_first=True,
)
def unread_is_refused(patch: Patch) -> None:
    """A sink that looks first can never commit the batch that it has."""
    real = consumer.Consumer._all_closed

    def all_closed(self: consumer.Consumer, plan: consumer.BatchPlan) -> tuple[consumer.ShardRow, ...]:
        rows = real(self, plan)
        if any(consumer.unread(row, self.epoch.generation) for row in rows):
            raise LostRace("nobody read some rows in this epoch")
        return rows

    patch.setattr(consumer.Consumer, "_all_closed", all_closed)


@mutant(
    "a job that still runs is refused",
    "A batch: the commit waits for the jobs that run",
    hunted=True,
    stories="a_query_that_ends_before_its_jobs",
    processes=(habits.EARLY,),
)
def running_is_refused(patch: Patch) -> None:
    """A query that ends before its jobs ends every epoch, at the same batch."""
    real = spark.Engine.check

    def check(self: spark.Engine) -> None:
        if any(not job.over for job in self.jobs):
            raise spark.JobsNotDone("a job still runs")
        real(self)

    patch.setattr(spark.Engine, "check", check)


@mutant(
    "a job that still runs is not waited for",
    "A batch: the commit waits for the jobs that run",
    hunted=True,
    stories="a_query_that_ends_before_its_jobs",
    processes=(habits.EARLY,),
)
def running_is_left(patch: Patch) -> None:
    """Its tasks bind while the batch is being closed."""
    real = spark.Engine._wait_for

    def wait_for(self: spark.Engine, job: spark.Job) -> None:
        if self._kind(self.plan or BatchPlan(0, ())) != habits.EARLY:
            real(self, job)

    patch.setattr(spark.Engine, "_wait_for", wait_for)


@mutant(
    "a loss is reported only by the epoch that commits it", "Retention: an epoch reports what its rows note", stories="a_loss_that_nobody_reported"
)
def notes_vanish(patch: Patch) -> None:
    """Its driver dies before the report, and the next bind takes the note away."""
    patch.setattr(consumer.Consumer, "notes", ())


@mutant(
    "a run that raises releases its lease at once",
    "An epoch: it releases when no task of it can be working",
    stories="a_run_that_raises_while_a_task_of_it_is_cut_off",
    own_session=True,
)
def released_at_once(patch: Patch) -> None:
    """The next run reads while a task of the former one has yet to hand over what it bound."""
    real = LeaseRelease.release

    def release(self: LeaseRelease) -> bool:
        self.quiet = lambda: True
        return real(self)

    patch.setattr(LeaseRelease, "release", release)


@mutant(
    "a run that raises keeps its lease",
    "An epoch: it releases when no task of it can be working",
    stories="a_run_that_raises_and_is_followed_at_once",
    own_session=True,
)
def never_released(patch: Patch) -> None:
    """The next run waits for nothing."""
    patch.setattr(LeaseRelease, "release", lambda _self: True)

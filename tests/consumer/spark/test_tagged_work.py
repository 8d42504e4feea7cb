"""The proof that no task of an epoch works, where Spark's own account is late or forgets. Without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError

from sluice_consumer.spark.job_tags import TaggedWork


@dataclass
class Stage:
    tasks: int = 0
    attempt: int = 0

    def numActiveTasks(self) -> int:  # noqa: N802 - Spark's name
        return self.tasks

    def attemptId(self) -> int:  # noqa: N802
        """Above 0: it was repeated."""
        return self.attempt


@dataclass
class Spark:
    """A context in which each job has one stage of its number. `jobs`: with their status."""

    jobs: dict[int, str] = field(default_factory=dict)
    stages: dict[int, Stage] = field(default_factory=dict)
    active: set[int] = field(default_factory=set)
    asked: list[int] = field(default_factory=list)

    def work(self) -> TaggedWork:
        counters = SimpleNamespace(get=lambda _name: None)
        bus = SimpleNamespace(metrics=lambda: SimpleNamespace(metricRegistry=lambda: SimpleNamespace(getCounters=lambda: counters)))
        scala = SimpleNamespace(
            statusStore=lambda: SimpleNamespace(job=self.job, lastStageAttempt=self.stage),
            statusTracker=lambda: SimpleNamespace(getJobIdsForTag=lambda _tag: list(self.jobs)),
            dagScheduler=lambda: SimpleNamespace(jobIdToActiveJob=lambda: SimpleNamespace(contains=self.active.__contains__)),
            listenerBus=lambda: bus,
        )
        return TaggedWork(cast("Any", SimpleNamespace(sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scala)))), "sluice-mine-1")

    def job(self, number: int) -> Any:
        self.asked.append(number)
        stages = SimpleNamespace(size=lambda: 1, apply=lambda _i: number)
        return SimpleNamespace(status=lambda: SimpleNamespace(toString=lambda: self.jobs[number]), stageIds=lambda: stages)

    def stage(self, number: int) -> Stage:
        if number not in self.stages:
            raise Py4JError("NoSuchElementException: No stage with id")
        return self.stages[number]


@pytest.fixture
def spark() -> Spark:
    return Spark({1: "SUCCEEDED"}, {1: Stage()})


def test_work_that_was_proven_to_be_over_stays_so_when_spark_forgets_its_stages(spark: Spark) -> None:
    """It keeps as many stages as jobs, and a job has several. So the first ones of a run are forgotten while their jobs are known."""
    work = spark.work()
    assert work.is_over()
    spark.stages.clear()
    spark.jobs[2], spark.stages[2] = "SUCCEEDED", Stage()
    assert work.is_over()
    assert not spark.work().is_over()  # it was never asked while the stage was known


def test_a_context_that_was_stopped_proves_nothing(spark: Spark) -> None:
    """Its scheduler is None. Whoever waits for the proof lives on, and reports."""
    work = spark.work()
    work._scala.dagScheduler = lambda: None
    assert not work.is_over()


def test_each_job_is_asked_for_until_it_is_proven_to_be_over_and_no_longer(spark: Spark) -> None:
    """A run may have ten thousand, and a lost lease leaves seconds."""
    work = spark.work()
    spark.jobs[2], spark.stages[2] = "FAILED", Stage(tasks=1)
    assert not work.is_over()
    spark.asked.clear()
    assert not work.is_over()
    spark.stages[2].tasks = 0
    assert work.is_over()
    assert spark.asked == [2, 2]


def test_a_job_that_the_scheduler_has_given_up_works_until_its_events_have_arrived(spark: Spark) -> None:
    """The start of a task may be on its way, too: until the end of its job is known, nobody knows how many run."""
    work = spark.work()
    spark.jobs[2], spark.stages[2] = "RUNNING", Stage()
    assert not work.is_over()
    spark.jobs[2], spark.stages[2] = "FAILED", Stage(tasks=1)
    assert not work.is_over()
    spark.stages[2].tasks = 0
    assert work.is_over()

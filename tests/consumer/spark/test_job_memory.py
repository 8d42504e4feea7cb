"""A batch of one consumer that lasts while many others begin jobs: Spark forgets, and the verdict does not."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spark_accounts import Spark, judged

from sluice_consumer.spark.job_memory import JobMemory
from sluice_consumer.spark.job_tags import tag_of
from sluice_consumer.spark.jobs import Jobs, JobsNotDone
from sluice_consumer.spark.status import FAILED, FORGOTTEN, RUNNING, SUCCEEDED

MINE, ANOTHERS = tag_of("mine", 3), tag_of("anothers", 3)
RETAINED = 10_000  # spark.ui.retainedJobs
A_SECOND = 120  # jobs of forty consumers with three each


class Busy(Spark):
    """A Spark that knows the last jobs only. It forgets none that runs, as its source has it (its listener cleans up jobs that are over)."""

    def __init__(self, retained: int = RETAINED) -> None:
        super().__init__()
        self.retained, self.asked = retained, Counter[int]()

    def status(self, job: int) -> str:
        self.asked[job] += 1
        return super().status(job) if self._knows(job) else FORGOTTEN

    def tags(self, job: int) -> frozenset[str] | None:
        return super().tags(job) if self._knows(job) else None

    def _knows(self, job: int) -> bool:
        return job >= len(self.jobs) - self.retained or self.jobs[job] == RUNNING

    def begin(self, count: int, tag: str | None, how: str = SUCCEEDED) -> None:
        for job in range(len(self.jobs), len(self.jobs) + count):
            self.jobs[job] = how
            if tag is not None:
                self.tagged[job] = tag


def lasting(spark: Spark, jobs: Jobs, seconds: int, *, memory: JobMemory | None) -> None:
    """A batch with one job at its beginning, which lasts for so long beside others. The memory looks once a second."""
    jobs.issue()
    assert isinstance(spark, Busy)
    spark.begin(1, MINE)
    for _ in range(seconds):
        spark.begin(A_SECOND, ANOTHERS)
        if memory is not None:
            memory.observe()
    jobs.check()


def test_without_a_memory_a_batch_of_84_seconds_beside_39_others_is_never_committed() -> None:
    """Its own job is forgotten by then, and so are those of others. It comes again, and is refused again."""
    spark = Busy()
    lasting(spark, judged(spark, MINE), 83, memory=None)
    with pytest.raises(JobsNotDone, match="unknown"):
        lasting(spark, judged(spark, MINE), 84, memory=None)


def test_with_a_memory_the_longest_batch_of_a_group_is_committed() -> None:
    """`batch.maxSeconds` is 600 in a group, and four times as long for one that moves: 288,000 jobs. Each of them was asked for once."""
    spark = Busy()
    memory, jobs = JobMemory(spark), judged(spark, MINE)
    jobs.memory = memory
    lasting(spark, jobs, 4 * 600, memory=memory)
    assert not jobs.troubled()
    assert max(spark.asked.values()) == 1


@pytest.mark.parametrize(("tag", "said"), [(MINE, "FAILED|unknown"), (None, "FAILED|unknown")])
def test_a_failed_job_that_spark_has_forgotten_still_refuses_the_batch(tag: str | None, said: str) -> None:
    spark = Busy(retained=10)
    memory, jobs = JobMemory(spark), judged(spark, MINE)
    jobs.memory = memory
    spark.begin(1, tag, FAILED)
    memory.observe()
    spark.begin(20, ANOTHERS)
    memory.observe()
    with pytest.raises(JobsNotDone, match=said):
        jobs.check()


def test_a_failed_job_of_another_consumer_refuses_no_batch_after_spark_has_forgotten_it() -> None:
    spark = Busy(retained=10)
    memory, jobs = JobMemory(spark), judged(spark, MINE)
    jobs.memory = memory
    spark.begin(1, ANOTHERS, FAILED)
    for _ in range(3):
        memory.observe()
        spark.begin(9, MINE)
    jobs.check()


def test_a_memory_that_comes_too_late_says_nothing() -> None:
    spark = Busy(retained=10)
    memory, jobs = JobMemory(spark), judged(spark, MINE)
    jobs.memory = memory
    spark.begin(30, ANOTHERS)
    memory.observe()
    with pytest.raises(JobsNotDone, match="job 0 is unknown"):
        jobs.check()


def test_a_job_that_runs_for_long_is_followed_to_its_end() -> None:
    spark = Busy(retained=10)
    memory = JobMemory(spark)
    spark.jobs |= {0: RUNNING, 1: FORGOTTEN}
    spark.tagged = {0: MINE}
    memory.observe()
    spark.jobs |= {0: SUCCEEDED, 1: SUCCEEDED}
    spark.tagged[1] = ANOTHERS
    memory.observe()
    spark.begin(20, ANOTHERS)
    assert [memory.succeeded(job) for job in (0, 1)] == [True, True]
    assert [memory.tags(job) for job in (0, 1)] == [{MINE}, {ANOTHERS}]


def test_a_memory_has_an_end() -> None:
    """A driver lives for months. What is forgotten refuses a batch, as without a memory."""
    spark = Busy()
    memory = JobMemory(spark, kept=100)
    for _ in range(10):
        spark.begin(50, ANOTHERS)
        memory.observe()
    assert (memory.tags(499), memory.tags(400), memory.tags(0)) == ({ANOTHERS}, {ANOTHERS}, None)
    assert not memory.succeeded(0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([MINE, ANOTHERS, None]), st.sampled_from([SUCCEEDED, FAILED]), st.booleans()), max_size=40))
def test_a_memory_commits_nothing_that_a_spark_that_forgets_nothing_would_refuse(steps: list[tuple[str | None, str, bool]]) -> None:
    spark, whole = Busy(retained=4), Busy()
    memory, jobs, judge = JobMemory(spark), judged(spark, MINE), judged(whole, MINE)
    jobs.memory = memory
    for tag, how, looks in steps:
        spark.begin(1, tag, how)
        whole.begin(1, tag, how)
        if looks:
            memory.observe()
    try:
        jobs.check()
    except JobsNotDone:
        return
    judge.check()

"""The verdict on a batch's jobs, and who may still be working, where Spark's own account is late, has gaps or forgets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from py4j.protocol import Py4JError
from spark_accounts import LEASE, QUERY, READ, Spark, judged

from sluice_consumer.spark.job_tags import tag_of
from sluice_consumer.spark.jobs import LISTENER_SECONDS, JobsNotDone
from sluice_consumer.spark.status import FAILED, FORGOTTEN, RUNNING, SUCCEEDED, Execution, last_words


@pytest.fixture
def spark() -> Spark:
    return Spark({0: FAILED})


# -- the verdict -------------------------------------------------------------------------------------------------------------------


def test_a_batch_is_accepted_while_a_listener_of_the_users_is_behind(spark: Spark) -> None:
    jobs = judged(spark)
    spark.jobs[1], spark.busy = SUCCEEDED, True
    jobs.check()
    assert spark.time == 0


def test_an_event_that_is_on_its_way_costs_the_batch_no_pause(spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark says that a job has ended a moment after its result is there: its events are waited for, and nothing else."""
    jobs = judged(spark)
    spark.jobs[1] = RUNNING
    monkeypatch.setattr(spark, "drained", lambda _seconds: spark.jobs.update({1: SUCCEEDED}) is None)
    jobs.check()
    assert spark.time == 0


def test_the_end_of_a_job_that_is_reported_late_is_waited_for(spark: Spark) -> None:
    """A queue that needs longer than Spark's ten seconds is no failure."""
    jobs = judged(spark)
    spark.jobs[1], spark.busy = RUNNING, True
    spark.later[30] = lambda: spark.jobs.update({1: SUCCEEDED})
    jobs.check()
    assert spark.time >= 30


def test_a_refusal_waits_for_events_but_not_for_a_listener_that_hangs(spark: Spark) -> None:
    """An event on its way may say that the query did without the job."""
    jobs = judged(spark)
    spark.jobs[1], spark.busy = FAILED, True
    with pytest.raises(JobsNotDone, match=r"job 1 \(collect at pipeline.py:7\) FAILED: ValueError: no"):
        jobs.check()
    assert LISTENER_SECONDS < spark.time < LISTENER_SECONDS + 5


def test_a_job_whose_end_was_dropped_is_refused_and_not_waited_for(spark: Spark) -> None:
    """It looks as if it ran, for ever; the scheduler knows better."""
    jobs = judged(spark)
    spark.jobs[1], spark.lost_events, spark.working = RUNNING, 5, {1}
    spark.later[30] = spark.working.clear
    with pytest.raises(JobsNotDone, match=r"job 1 .*has no known end.*eventqueue\.appStatus\.capacity"):
        jobs.check()
    assert spark.time >= 30
    assert jobs.troubled()


@pytest.mark.parametrize(("lost_events", "hint"), [(0, "spark.ui.retainedJobs"), (1, "eventqueue.appStatus.capacity")])
def test_a_job_that_spark_does_not_know_is_refused_with_what_to_change(spark: Spark, lost_events: int, hint: str) -> None:
    """Nobody can say whether its read failed."""
    jobs = judged(spark)
    spark.jobs[1], spark.lost_events = FORGOTTEN, lost_events
    with pytest.raises(JobsNotDone, match=f"job 1 is unknown: .*{hint}"):
        jobs.check()


@pytest.mark.parametrize(
    ("query", "accepted"),
    [
        (QUERY, True),
        (replace(QUERY, clean=False), False),  # it failed, or it is an iterator, whose query says nothing
        (replace(QUERY, ended=None), False),  # a query of a thread that does not end
    ],
)
def test_a_failed_job_is_excused_only_by_the_result_of_its_query(spark: Spark, query: Execution, *, accepted: bool) -> None:
    jobs = judged(spark)
    spark.jobs[1], spark.about[1] = FAILED, replace(READ, execution=query)
    if accepted:
        jobs.check()
    else:
        with pytest.raises(JobsNotDone, match=r"query 3 \(save at pipeline.py:9\)"):
            jobs.check()
    assert jobs.troubled()


def test_a_query_says_how_it_ended_after_its_jobs_have(spark: Spark) -> None:
    jobs = judged(spark)
    spark.jobs[1], spark.about[1] = FAILED, replace(READ, execution=replace(QUERY, ended=None))
    spark.later[1] = lambda: spark.about.update({1: replace(READ, execution=QUERY)})
    jobs.check()


def test_a_job_that_begins_while_another_is_waited_for_is_waited_for_too(spark: Spark) -> None:
    """A broadcast that adaptive execution left may begin its job after the query has ended."""
    jobs = judged(spark)
    spark.jobs[1] = RUNNING
    spark.later = {2: lambda: spark.jobs.update({1: SUCCEEDED, 2: RUNNING}), 4: lambda: spark.jobs.update({2: SUCCEEDED})}
    jobs.check()
    assert spark.time >= 4


def test_waiting_says_whom_it_waits_for(spark: Spark, caplog: pytest.LogCaptureFixture) -> None:
    jobs = judged(spark)
    spark.jobs[1] = RUNNING
    spark.later[50] = lambda: spark.jobs.update({1: SUCCEEDED})
    with caplog.at_level("INFO"):
        jobs.check()
    said = [said for record in caplog.records if "waiting for job 1 (collect at pipeline.py:7) RUNNING" in (said := record.getMessage())]
    assert len(said) == 3


# -- quiet -------------------------------------------------------------------------------------------------------------------------


def test_a_batch_without_a_job_leaves_nobody_at_work(spark: Spark) -> None:
    """As one that `process` refuses at once: the lease need not be waited out."""
    jobs = judged(spark)
    spark.repeated = True
    jobs.observe()
    assert jobs.quiet(LEASE)


def test_a_lease_duration_after_trouble_it_is_quiet_again(spark: Spark) -> None:
    """Whoever was given up has ended by then."""
    jobs = judged(spark)
    spark.jobs[1], spark.repeated = SUCCEEDED, True
    jobs.observe()
    spark.time += LEASE
    assert not jobs.quiet(LEASE)
    spark.time += 1
    assert jobs.quiet(LEASE)


def test_a_job_that_runs_on_after_the_batch_has_failed_counts_until_it_ends(spark: Spark) -> None:
    """Between two looks its executor may be lost, and another attempt succeed: the lost worker goes on for a while."""
    jobs = judged(spark)
    spark.jobs[1] = RUNNING
    jobs.observe()
    spark.sleep(LEASE + 1)
    assert not jobs.quiet(LEASE)
    spark.jobs[1] = SUCCEEDED
    assert not jobs.quiet(LEASE)
    spark.sleep(LEASE + 1)
    assert jobs.quiet(LEASE)


def test_an_executor_that_leaves_while_there_is_no_batch_keeps_no_lease(spark: Spark) -> None:
    """Hours later the driver drains, and releases it at once."""
    spark.alive.add("1")
    jobs = judged(spark)
    spark.jobs[1] = SUCCEEDED
    jobs.observe()
    spark.alive, spark.dead = {"driver"}, {"1": "worker lost"}
    spark.sleep(1)
    assert jobs.quiet(LEASE)


def test_an_executor_that_is_lost_after_the_batch_has_failed_counts_from_then(spark: Spark) -> None:
    spark.alive.add("1")
    jobs = judged(spark)
    spark.jobs[1] = RUNNING
    jobs.observe()
    spark.sleep(LEASE - 1)
    spark.alive, spark.dead, spark.jobs[1] = {"driver"}, {"1": "worker lost"}, SUCCEEDED
    spark.sleep(2)
    assert not jobs.quiet(LEASE)
    spark.sleep(LEASE + 1)
    assert jobs.quiet(LEASE)


@pytest.mark.parametrize("status", [RUNNING, FAILED, FORGOTTEN])
def test_a_job_that_has_not_succeeded_is_trouble(spark: Spark, status: str) -> None:
    """Its tasks may emit rows of shards; also when `process` raised beside it."""
    jobs = judged(spark)
    spark.jobs[1] = status
    assert jobs.troubled()


def test_a_running_job_that_reads_nothing_of_ours_is_no_trouble(spark: Spark) -> None:
    jobs = judged(spark)
    spark.jobs[1], spark.about[1] = RUNNING, replace(READ, reads=False)
    assert not jobs.troubled()


def test_dropped_events_are_trouble_though_every_job_succeeded(spark: Spark) -> None:
    """A task that failed and was repeated may be among them."""
    jobs = judged(spark)
    spark.jobs[1], spark.lost_events = SUCCEEDED, 1
    assert jobs.troubled()
    jobs.issue()
    assert not jobs.troubled()


def test_what_spark_has_forgotten_is_trouble_and_no_error_of_its_own(spark: Spark) -> None:
    """The error that ended the batch is the one to be reported."""
    jobs = judged(spark)
    spark.jobs[1], spark.silent = SUCCEEDED, True
    assert jobs.troubled()


def test_a_lost_executor_is_seen_when_spark_forgets_another_at_the_same_moment(spark: Spark) -> None:
    """Spark keeps a number of dead executors; their count stays as it is then."""
    spark.alive, spark.dead = {"driver", "8", "9"}, {"1": "lost", "2": "lost"}
    jobs = judged(spark)
    assert not jobs.troubled()
    spark.alive, spark.dead = {"driver", "9", "10"}, {"2": "lost", "8": "Executor heartbeat timed out"}
    assert jobs.troubled()
    assert not jobs.troubled()


def test_a_lost_executor_is_seen_though_spark_has_forgotten_it_at_once(spark: Spark) -> None:
    """It was there, and no record says that it was sent away."""
    spark.alive = {"driver", "1"}
    jobs = judged(spark)
    spark.alive = {"driver"}
    assert jobs.troubled()


def test_an_executor_that_came_and_was_lost_between_two_looks_is_seen(spark: Spark) -> None:
    jobs = judged(spark)
    spark.dead = {"1": "Command exited with code 137"}
    assert jobs.troubled()


def test_an_executor_that_was_sent_away_is_no_trouble(spark: Spark) -> None:
    spark.alive = {"driver", "1"}
    jobs = judged(spark)
    spark.alive, spark.dead = {"driver", "2"}, {"1": "Executor decommission: scale down"}
    assert not jobs.troubled()


# -- what still reads a batch that failed -------------------------------------------------------------------------------------------


def test_a_job_whose_end_was_dropped_reads_no_batch_any_more(spark: Spark) -> None:
    """As far as events say it runs for ever; a search for poison would wait for it."""
    jobs = judged(spark)
    spark.jobs[1], spark.working = RUNNING, {1}
    assert jobs.busy()
    spark.lost_events = 5
    assert jobs.busy()
    spark.working.clear()
    assert not jobs.busy()


def test_a_cancelled_job_counts_as_working_for_a_lease_more(spark: Spark, caplog: pytest.LogCaptureFixture) -> None:
    """Its tasks are told to end, and may hand over what they have fetched. It is said once which job it was."""
    jobs = judged(spark)
    spark.jobs |= {1: RUNNING, 2: RUNNING}
    spark.about[2] = replace(READ, reads=False)
    spark.time = 100.0
    with caplog.at_level("INFO"):
        jobs.cancel()
        jobs.cancel()
    assert spark.cancelled == [1, 1], "a job of the user's that does not read the batch goes on"
    assert [said for record in caplog.records if "cancelling" in (said := record.getMessage())] == [
        "cancelling job 1 (collect at pipeline.py:7) RUNNING: ValueError: no, which reads a batch that failed"
    ]
    spark.sleep(1)
    assert not jobs.busy()
    assert not jobs.quiet(LEASE)
    spark.sleep(LEASE)
    assert jobs.quiet(LEASE)


def test_a_spark_that_does_not_answer_may_still_work(spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease is not released by somebody who does not know."""
    jobs = judged(spark)
    spark.jobs[1] = RUNNING
    monkeypatch.setattr(spark, "status", lambda _job: (_ for _ in ()).throw(Py4JError("gone")))
    assert jobs.busy()


# -- words -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("[X] thrown: Traceback (most recent call last):\n  File\nValueError: no\n SQLSTATE: 38000", "ValueError: no"),
        (
            "Job aborted: Lost task 0.3: java.io.IOException: disk full\n\tat a.b(c)\nCaused by: x",
            "Job aborted: Lost task 0.3: java.io.IOException: disk full",
        ),
        ("", ""),
        ("x" * 9000, "x" * 500),
    ],
)
def test_the_reason_of_a_failed_stage_is_its_error(reason: str, words: str) -> None:
    assert last_words(reason) == words


# -- several consumers in one Spark ------------------------------------------------------------------------------------------------

MINE, ANOTHERS = tag_of("mine", 3), tag_of("anothers", 3)


def test_a_failed_job_of_another_consumer_refuses_no_batch_and_troubles_nobody(spark: Spark) -> None:
    jobs = judged(spark, MINE)
    spark.jobs |= {1: FAILED, 2: RUNNING, 3: SUCCEEDED}
    spark.tagged = {1: ANOTHERS, 2: ANOTHERS, 3: MINE}
    jobs.check()
    jobs.cancel()
    assert (spark.time, jobs.troubled(), jobs.busy(), spark.cancelled, jobs.moved()) == (0, False, False, [], (3,))


def test_a_consumer_alone_is_asked_for_all_that_moves_and_for_no_job(spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked each second while a batch is long, and a batch may have thousands of jobs. Each is asked once whose it is."""
    asked, whose = list[object](), list[int]()
    tags = spark.tags
    monkeypatch.setattr(spark, "moved", lambda of=None: asked.append(of) or ())
    monkeypatch.setattr(spark, "tags", lambda job: whose.append(job) or tags(job))
    jobs = judged(spark, MINE)
    spark.jobs |= {1: SUCCEEDED, 2: RUNNING}
    spark.tagged = {1: MINE}
    jobs.moved()
    jobs.moved()
    assert (asked, whose) == ([None, None], [1, 2])


@pytest.mark.parametrize("tag", [MINE, tag_of("mine", 2), "the users own", "sluice-nightly", None])
def test_a_failed_job_refuses_the_batch_of_its_own_consumer_and_of_all_if_nobody_knows_whose_it_is(spark: Spark, tag: str | None) -> None:
    """A thread of the user's begins jobs without a tag: better a batch too many comes again than one with a failed read is committed."""
    jobs = judged(spark, MINE)
    spark.jobs[1] = FAILED
    spark.tagged = {1: tag} if tag else {}
    with pytest.raises(JobsNotDone, match="job 1"):
        jobs.check()


def test_where_no_consumer_has_a_tag_every_job_counts(spark: Spark) -> None:
    jobs = judged(spark)
    spark.jobs[1], spark.tagged = FAILED, {1: ANOTHERS}
    with pytest.raises(JobsNotDone, match="job 1"):
        jobs.check()


def test_a_job_of_another_consumer_that_has_just_begun_is_waited_for_until_it_is_known_whose_it_is(spark: Spark) -> None:
    """Spark counts a job before its store knows of it."""
    jobs = judged(spark, MINE)
    spark.jobs |= {1: SUCCEEDED, 2: FORGOTTEN}
    spark.later[1] = lambda: spark.jobs.update({2: RUNNING}) or spark.tagged.update({2: ANOTHERS})
    jobs.check()
    assert 1 <= spark.time < 2


def test_a_job_of_another_consumer_that_has_just_begun_troubles_nobody(spark: Spark) -> None:
    """It is counted a moment before it is known. Else a busy group would never be quiet, and release no lease."""
    jobs = judged(spark, MINE)
    spark.jobs |= {1: SUCCEEDED, 2: FORGOTTEN}
    spark.later[0.3] = lambda: spark.jobs.update({2: RUNNING, 3: FORGOTTEN}) or spark.tagged.update({2: ANOTHERS})
    jobs.observe()
    assert jobs.quiet(LEASE)
    assert spark.time < 1


def test_a_job_that_stays_unknown_troubles_its_epoch(spark: Spark) -> None:
    """It may be one of its own, of which Spark has forgotten what became of it."""
    jobs = judged(spark, MINE)
    spark.jobs |= {1: SUCCEEDED, 2: FORGOTTEN}
    jobs.observe()
    assert not jobs.quiet(LEASE)


def test_each_generation_of_a_consumer_has_a_tag_of_its_own() -> None:
    """To end the work of one epoch must not end that of the next."""
    assert tag_of("a", 1) != tag_of("a", 2)
    assert "," not in tag_of("a,b", 1)

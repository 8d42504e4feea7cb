"""New executors get a job that only warms them up, and batches go to those that are warm."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Event

import pytest
from patience import PATIENCE

from sluice_consumer.spark.warmup import WarmUp


@dataclass
class Spark:
    """A scheduler whose executors have two slots each. Who ran the tasks of a job the test says."""

    registered: list[str] = field(default_factory=list)
    said: list[int] = field(default_factory=list)
    jobs: list[Future[frozenset[str]]] = field(default_factory=list)
    started: Event = field(default_factory=Event)
    refuses: bool = False
    rehearsals: int = 0
    rehearsed: Event = field(default_factory=Event)
    planned: Event | None = None
    plans: bool = True

    def come(self, *executors: str) -> None:
        self.registered += executors

    def live(self) -> frozenset[str]:
        if self.refuses:
            raise RuntimeError("Spark is gone")
        return frozenset(self.registered)

    def slots(self) -> dict[str, int]:
        return dict.fromkeys(self.registered, 2)

    def rehearse(self) -> None:
        self.rehearsals += 1
        self.rehearsed.set()
        if self.planned is not None:
            assert self.planned.wait(PATIENCE)
        if not self.plans:
            raise RuntimeError("no plan")

    def start(self, tasks: int) -> Future[frozenset[str]]:
        self.said.append(tasks)
        self.jobs.append(Future())
        self.started.set()
        return self.jobs[-1]

    def end(self, *ran: str) -> None:
        self.jobs.pop(0).set_result(frozenset(ran))


@pytest.fixture
def spark() -> Spark:
    return Spark()


@pytest.fixture
def warm_up(spark: Spark) -> WarmUp:
    return WarmUp(spark)


def test_nothing_happens_without_executors(spark: Spark, warm_up: WarmUp) -> None:
    """They come when they come; a batch is planned for as many as Spark says."""
    warm_up.before_batch()
    assert (spark.said, warm_up.slots) == ([], 0)


def test_the_first_executors_get_the_batch_itself(spark: Spark, warm_up: WarmUp) -> None:
    """It would only wait for them; whoever comes later is warmed up while they work."""
    spark.come("1", "2")
    warm_up.before_batch()
    assert (spark.said, warm_up.slots) == ([], 4)
    spark.come("3")
    warm_up.before_batch()
    assert (spark.said, warm_up.slots) == ([6], 4)


def test_a_new_executor_gets_a_task_for_each_slot_once(spark: Spark, warm_up: WarmUp) -> None:
    spark.come("1")
    warm_up.while_waiting()
    warm_up.before_batch()
    assert (spark.said, warm_up.slots) == ([2], 0)
    spark.end("1")
    warm_up.before_batch()
    assert (spark.said, warm_up.slots) == ([2], 2)


def test_there_is_a_task_for_each_free_slot_so_that_the_new_ones_get_theirs(spark: Spark, warm_up: WarmUp) -> None:
    """Spark deals them to all that are free; whoever warms up already is not."""
    spark.come("1")
    warm_up.while_waiting()
    spark.end("1")
    spark.come("2")
    warm_up.before_batch()
    spark.come("3")
    warm_up.before_batch()
    assert spark.said == [2, 4, 4]
    spark.end("1", "2")
    warm_up.before_batch()
    assert warm_up.slots == 4
    spark.end("1", "3")
    warm_up.before_batch()
    assert (spark.said, warm_up.slots) == ([2, 4, 4], 6)


def test_one_that_did_not_take_tasks_yet_is_still_new(spark: Spark, warm_up: WarmUp) -> None:
    """It has registered, and the others ran the tasks that were meant for it."""
    spark.come("1")
    warm_up.while_waiting()
    spark.end("1")
    spark.come("2")
    warm_up.before_batch()
    spark.end("1")
    warm_up.before_batch()
    assert (spark.said, warm_up.slots) == ([2, 4, 4], 2)


def test_one_that_left_is_forgotten(spark: Spark, warm_up: WarmUp) -> None:
    spark.come("1", "2")
    warm_up.while_waiting()
    spark.registered.remove("2")
    spark.end("1", "2")
    warm_up.before_batch()
    assert warm_up.slots == 2
    spark.registered.remove("1")
    warm_up.before_batch()
    assert (spark.said, warm_up.slots) == ([4], 0)


def test_a_job_that_fails_is_told_and_not_repeated(spark: Spark, warm_up: WarmUp, caplog: pytest.LogCaptureFixture) -> None:
    spark.come("1")
    warm_up.while_waiting()
    spark.jobs.pop().set_exception(RuntimeError("no credentials"))
    warm_up.before_batch()
    assert (spark.said, warm_up.slots) == ([2], 2)
    assert "no credentials" in caplog.text


def test_a_job_that_fails_is_not_repeated_beside_an_executor_that_is_warm(spark: Spark, warm_up: WarmUp) -> None:
    spark.come("1")
    warm_up.while_waiting()
    spark.end("1")
    spark.come("2")
    warm_up.before_batch()
    spark.jobs.pop().set_exception(RuntimeError("no credentials"))
    for _ in range(2):
        warm_up.before_batch()
        assert (spark.said, warm_up.slots) == ([2, 4], 4)


def test_batches_do_without_if_spark_cannot_be_asked(spark: Spark, warm_up: WarmUp, caplog: pytest.LogCaptureFixture) -> None:
    spark.refuses = True
    warm_up.while_waiting()
    warm_up.before_batch()
    assert len(caplog.records) == 1


def test_nobody_counts_as_warm_once_spark_cannot_be_asked(spark: Spark, warm_up: WarmUp) -> None:
    """Or batches would go to so many slots for ever, however many executors come."""
    spark.come("1")
    warm_up.before_batch()
    assert warm_up.slots == 2
    spark.refuses = True
    warm_up.before_batch()
    assert warm_up.slots == 0


def test_it_looks_while_no_batch_can_run(spark: Spark, warm_up: WarmUp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_consumer.spark.warmup.LOOK_SECONDS", 0.0)
    spark.come("1")
    with warm_up.meanwhile():
        assert spark.started.wait(PATIENCE)
    spark.come("2")
    assert spark.said == [2]


def test_a_driver_that_waits_plans_before_executors_come_and_once(spark: Spark, warm_up: WarmUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first batch finds the Python workers that plan."""
    monkeypatch.setattr("sluice_consumer.spark.warmup.LOOK_SECONDS", 0.0)
    for _ in range(2):
        with warm_up.meanwhile():
            assert spark.rehearsed.wait(PATIENCE)
    assert (spark.rehearsals, spark.said) == (1, [])


def test_a_driver_that_need_not_wait_plans_its_batch_and_nothing_else(spark: Spark, warm_up: WarmUp) -> None:
    """A rehearsal beside it would take the same processors."""
    with warm_up.meanwhile():
        pass
    assert spark.rehearsals == 0


@pytest.mark.parametrize("plans", [True, False])
def test_a_rehearsal_that_lasts_or_fails_holds_up_neither_the_driver_nor_warm_ups(
    spark: Spark, warm_up: WarmUp, monkeypatch: pytest.MonkeyPatch, *, plans: bool
) -> None:
    monkeypatch.setattr("sluice_consumer.spark.warmup.LOOK_SECONDS", 0.0)
    spark.plans, spark.planned = plans, Event()
    spark.come("1")
    with warm_up.meanwhile():
        assert spark.rehearsed.wait(PATIENCE)
        assert spark.started.wait(PATIENCE)
    spark.planned.set()
    spark.end("1")
    warm_up.before_batch()
    assert warm_up.slots == 2

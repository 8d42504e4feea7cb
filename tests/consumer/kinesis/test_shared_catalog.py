"""Who asks together is answered together, and by what was asked after it came."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.stream.model import ShardList, StreamIdentity
from sluice_consumer.kinesis.shared_catalog import SharedCatalog

CALLERS = 8


class Service:
    def __init__(self) -> None:
        self.asked, self.error = 0, None
        self.came, self.go = threading.Semaphore(0), threading.Semaphore(0)

    error: Exception | None

    def describe(self) -> StreamIdentity:
        """The answer carries the number of the question."""
        self.asked += 1
        number = self.asked
        self.came.release()
        assert self.go.acquire(timeout=30)
        if self.error:
            raise self.error
        return StreamIdentity("orders", "arn", number, 0, "ACTIVE")

    def list_shards(self) -> ShardList:
        return ShardList((), 0)


class Time:
    """Virtual time: a pause begins when `began` says so and ends when the test lets it."""

    def __init__(self) -> None:
        self.now, self.began, self.over = 0.0, threading.Semaphore(0), threading.Semaphore(0)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.began.release()
        assert self.over.acquire(timeout=30)
        self.now += seconds


def waiting(shared: SharedCatalog, threads: ThreadPoolExecutor, count: int) -> list[Future[StreamIdentity]]:
    arrived = threading.Semaphore(0)
    lock = shared._lock

    class Seen:
        """The lock, which everybody passes once before waiting."""

        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()
            arrived.release()

    shared._lock = Seen()  # type: ignore[assignment]
    found = [threads.submit(shared.describe) for _ in range(count)]
    for _ in range(count):
        assert arrived.acquire(timeout=30)
    shared._lock = lock
    return found


def test_who_comes_while_it_is_asked_gets_the_next_answer_and_all_of_them_the_same() -> None:
    """The answer under way may be older than what they have read."""
    service, time = Service(), Time()
    shared = SharedCatalog(service, time.clock, time.sleep)
    with ThreadPoolExecutor(CALLERS + 1) as threads:
        early = threads.submit(shared.describe)
        assert service.came.acquire(timeout=30)
        late = waiting(shared, threads, CALLERS)
        service.go.release()
        assert early.result(30).created_millis == 1
        assert time.began.acquire(timeout=30)
        time.over.release()
        service.go.release()
        assert {one.result(30).created_millis for one in late} == {2}
    assert (service.asked, time.now) == (2, 1.0)


def test_one_a_second_is_asked_for_at_most() -> None:
    service = Service()
    now = [0.0]
    shared = SharedCatalog(service, lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds))
    for _ in range(5):
        service.go.release()
        shared.describe()
    assert now[0] == 4.0
    now[0] += 7
    service.go.release()
    shared.describe()
    assert now[0] == 11.0


def test_a_failure_is_everybodys_and_the_next_caller_asks_again() -> None:
    service = Service()
    service.error = ServiceUnavailable("DescribeStreamSummary")
    shared = SharedCatalog(service, lambda: 0.0, lambda _: None)
    service.go.release(2)
    for _ in range(2):
        with pytest.raises(ServiceUnavailable):
            shared.describe()
    service.error = None
    service.go.release()
    assert shared.describe().created_millis == 3

"""What a task's process calls arrives once, with the next row that it binds."""

from __future__ import annotations

import pytest

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_consumer.shards.request_counts import BIND, Counts, RequestCounter

GET = "kinesis/GetRecords"


class Row:
    def __init__(self, requests: RequestCounter) -> None:
        self._requests, self.carried = requests, list[dict[str, int]]()
        self.table = requests.listener("dynamodb")

    def bind(self, *, tries: int = 1) -> None:
        def write(counts: Counts) -> None:
            self._call(tries)
            self.carried.append(dict(counts))

        assert self._requests.carry(write) is None

    def lose(self) -> None:
        def write(_counts: Counts) -> str:
            self._call(1)
            return "a replay"

        assert self._requests.carry(write) == "a replay"

    def fail(self) -> None:
        def write(_counts: Counts) -> None:
            self._call(3)
            raise ServiceUnavailable("no answer")

        with pytest.raises(ServiceUnavailable):
            self._requests.carry(write)

    def _call(self, tries: int) -> None:
        for again in range(tries):
            if again:
                self.table.again("UpdateItem", "Throttled")
            self.table.called("UpdateItem")


@pytest.fixture
def requests() -> RequestCounter:
    return RequestCounter()


@pytest.fixture
def row(requests: RequestCounter) -> Row:
    return Row(requests)


def left(requests: RequestCounter) -> dict[str, int]:
    return {key: number for key, number in requests.counts().items() if number}


def test_a_bind_carries_what_was_called_before_it_and_itself(requests: RequestCounter, row: Row) -> None:
    """A worker that ends after its last bind takes nothing with it."""
    requests.add(GET)
    requests.add(GET)
    row.bind()
    assert (row.carried, left(requests)) == ([{GET: 2, BIND: 1}], {})


def test_what_was_carried_is_not_carried_again(requests: RequestCounter, row: Row) -> None:
    requests.add(GET)
    row.bind()
    row.bind()
    assert row.carried == [{GET: 1, BIND: 1}, {BIND: 1}]


def test_the_tries_of_a_bind_come_with_the_next_one(requests: RequestCounter, row: Row) -> None:
    """They were made after the counts had been written down."""
    row.bind(tries=3)
    row.bind()
    assert row.carried == [{BIND: 1}, {BIND: 3, f"{BIND}/Throttled": 2}]
    assert left(requests) == {}


def test_a_bind_that_lost_leaves_its_counts_to_the_next(requests: RequestCounter, row: Row) -> None:
    requests.add(GET)
    row.lose()
    row.bind()
    assert (row.carried, left(requests)) == ([{GET: 1, BIND: 2}], {})


def test_a_bind_without_an_answer_leaves_its_counts_to_the_next(requests: RequestCounter, row: Row) -> None:
    """Retries are never more interesting than then."""
    requests.add(GET)
    row.fail()
    row.bind()
    assert row.carried == [{GET: 1, BIND: 4, f"{BIND}/Throttled": 2}]


def test_threads_that_bind_at_once_share_the_counts(requests: RequestCounter) -> None:
    seen: list[dict[str, int]] = []
    table = requests.listener("dynamodb")
    requests.add(GET)

    def outer(counts: Counts) -> None:
        seen.append(dict(counts))
        assert requests.carry(inner) is None
        table.called("UpdateItem")

    def inner(counts: Counts) -> None:
        seen.append(dict(counts))
        table.called("UpdateItem")

    assert requests.carry(outer) is None
    assert (seen, left(requests)) == ([{GET: 1, BIND: 1}, {BIND: 1}], {})

"""When the lease of a run in a session of its user's is released after its end."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_consumer.process.lease_release import LeaseRelease


@dataclass
class Lease:
    answers: bool = True
    released: list[str] = field(default_factory=list)

    def give(self) -> None:
        self.released.append("released")
        if not self.answers:
            raise ServiceUnavailable("no answer")


def test_it_is_released_once_no_task_can_be_working() -> None:
    lease, quiet = Lease(), iter([False, False, True])
    end = LeaseRelease(quiet=lambda: next(quiet), give=lease.give)
    assert [end.release() for _ in range(5)] == [False, False, True, True, True]
    assert lease.released == ["released"]


def test_a_promise_of_a_forced_take_is_kept() -> None:
    """Even if no task is working: the driver that was given up may be."""
    lease, due = Lease(), iter([False, True])
    end = LeaseRelease(due=lambda: next(due), give=lease.give)
    assert [end.release(), lease.released == [], end.release()] == [False, True, True]


def test_a_lease_that_was_lost_is_not_released() -> None:
    lease = Lease()
    end = LeaseRelease(give=lease.give)
    end.keep()
    assert end.release()
    assert lease.released == []


def test_a_run_that_never_had_a_lease_has_nothing_to_release() -> None:
    assert LeaseRelease(quiet=lambda: False).release()


def test_a_table_that_does_not_answer_is_asked_once() -> None:
    lease = Lease(answers=False)
    end = LeaseRelease(give=lease.give)
    with pytest.raises(ServiceUnavailable):
        end.release()
    assert end.release()
    assert lease.released == ["released"]

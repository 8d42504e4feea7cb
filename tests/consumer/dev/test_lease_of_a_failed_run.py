"""`dev` releases the lease of a run that failed while it waits for its user, so that the next run need not wait."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_consumer.dev import program, session
from sluice_consumer.dev.program import CommandLine
from sluice_consumer.dev.session import DevSession
from sluice_consumer.process.lease_release import LeaseRelease


@pytest.fixture
def dev(monkeypatch: pytest.MonkeyPatch) -> DevSession:
    monkeypatch.setattr(session, "RELEASE_SECONDS", 0)
    return DevSession(program.options(CommandLine("my_pipeline:process"), Path("/none")), Console(file=io.StringIO()))


def test_it_is_released_as_soon_as_no_task_can_be_working(dev: DevSession) -> None:
    quiet = iter([False, False, True])
    dev._wait_for_a_change(LeaseRelease(quiet=lambda: next(quiet), give=dev._changed.set))
    assert next(quiet, None) is None


def test_a_save_before_that_does_not_make_the_next_run_watch_the_lease(dev: DevSession) -> None:
    """The rest of the wait is shorter than a lease."""
    quiet, released = iter([False, False, True]), list[bool]()
    dev._changed.set()
    dev._wait_for_a_change(LeaseRelease(quiet=lambda: next(quiet), give=lambda: released.append(True)))
    assert released == [True]


def test_a_task_that_never_ends_is_not_waited_for_without_an_end(dev: DevSession) -> None:
    dev._config = replace(dev._config, lease_duration_seconds=0.01)
    dev._changed.set()
    dev._wait_for_a_change(LeaseRelease(quiet=lambda: False, give=lambda: pytest.fail("a task may be working")))


def test_an_interrupt_ends_the_wait(dev: DevSession) -> None:
    dev._over.set()
    dev._changed.set()
    dev._wait_for_a_change(LeaseRelease(quiet=lambda: False, give=lambda: pytest.fail("a task may be working")))


def test_an_emulator_that_does_not_answer_ends_nothing(dev: DevSession) -> None:
    def give() -> None:
        dev._changed.set()
        raise ServiceUnavailable("no answer")

    dev._wait_for_a_change(LeaseRelease(give=give))

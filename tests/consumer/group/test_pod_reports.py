"""When the reports of a pool's pod are written: in virtual time."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_consumer.group.pod_reports import READY_SECONDS, PodReports
from sluice_consumer.process.pod import ALIVE_SECONDS, REPORT_SECONDS

RUNNING = {"phase": "Running", "executors": 2, "batch": 1}


def due(reports: PodReports, now: float, **words: dict[str, Any]) -> dict[str, Any] | None:
    """What is written then; None: nothing."""
    reports.say(words)
    if reports.wait(now) > 0:
        return None
    return {name: None if text is None else json.loads(text) for name, text in reports.begin(now).items()}


def test_all_reports_that_changed_are_one_patch_and_at_most_every_five_seconds() -> None:
    reports = PodReports()
    assert due(reports, 0.0, a=RUNNING, b=RUNNING) == {"a": {"number": 1} | RUNNING, "b": {"number": 1} | RUNNING}
    later = RUNNING | {"batch": 2}
    assert due(reports, REPORT_SECONDS - 0.1, a=later, b=RUNNING) is None
    assert due(reports, REPORT_SECONDS, a=later, b=RUNNING) == {"a": {"number": 2} | later}


def test_a_change_of_readiness_and_an_end_are_written_after_a_second() -> None:
    reports, later, ended = PodReports(), RUNNING | {"batch": 2}, RUNNING | {"exit": {"code": 1}}
    due(reports, 0.0, a=RUNNING, b=RUNNING)
    assert due(reports, READY_SECONDS - 0.1, a=later, b=RUNNING | {"executors": 0}) is None
    assert due(reports, READY_SECONDS, a=later, b=RUNNING | {"executors": 0}) == {
        "a": {"number": 2} | later,
        "b": {"number": 2, "phase": "Running", "executors": 0, "batch": 1},
    }
    assert due(reports, 2 * READY_SECONDS, a=ended, b=RUNNING | {"executors": 0}) == {"a": {"number": 3} | ended}


def test_a_report_that_does_not_change_is_repeated_and_an_end_is_not() -> None:
    """The operator calls a report stale after 90 s."""
    reports, ended = PodReports(), {"exit": {"code": 0}}
    due(reports, 0.0, a=RUNNING, b=ended)
    assert due(reports, ALIVE_SECONDS - 0.1, a=RUNNING, b=ended) is None
    assert due(reports, ALIVE_SECONDS, a=RUNNING, b=ended) == {"a": {"number": 2} | RUNNING}


def test_a_patch_that_failed_is_written_again_with_other_numbers() -> None:
    """It may have arrived. An end that is lost would hold up the next attempt for ever."""
    reports, ended = PodReports(), {"exit": {"code": 0}}
    due(reports, 0.0, a=ended)
    reports.fail()
    assert due(reports, READY_SECONDS, a=ended) is None
    assert due(reports, REPORT_SECONDS, a=ended) == {"a": {"number": 2} | ended}
    assert due(reports, 2 * REPORT_SECONDS, a=ended) is None


def test_annotations_of_seats_that_are_gone_are_removed_in_the_same_patch() -> None:
    reports = PodReports()
    due(reports, 0.0, a=RUNNING)
    reports.see({"a": "{}", "b": "{}"}, ["b", "a"])
    assert due(reports, REPORT_SECONDS, a=RUNNING | {"batch": 2}) == {"a": {"number": 2, **RUNNING, "batch": 2}, "b": None}


def test_an_end_that_somebody_removed_is_written_again() -> None:
    """The operator waits for it."""
    reports, ended = PodReports(), {"exit": {"code": 0}}
    due(reports, 0.0, a=ended)
    reports.see({"another": "{}"}, [])
    assert due(reports, REPORT_SECONDS, a=ended) == {"a": {"number": 2} | ended}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 20), st.booleans(), st.integers(0, 3)), max_size=30))
def test_whatever_fails_the_last_words_arrive(steps: list[tuple[int, bool, int]]) -> None:
    reports, now, has, words = PodReports(), 0.0, dict[str, Any](), RUNNING
    for tenths, works, batch in steps:
        now, words = now + tenths / 10, RUNNING | {"batch": batch}
        written = due(reports, now, a=words)
        if written and works:
            has |= written
        elif written:
            reports.fail()
    for _ in range(3):
        now += REPORT_SECONDS
        has |= due(reports, now, a=words) or {}
    assert {name: value for name, value in has["a"].items() if name != "number"} == words

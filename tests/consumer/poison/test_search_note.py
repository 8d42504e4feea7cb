"""What outlives a driver of the search for a record on which `process` hangs (docs/protocol.md, "Poison")."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice_consumer.poison.search import HANG, BatchFailure, Evidence, Exclude, Search, restored, stored

HANGS = BatchFailure("BatchOverdue at m.py:1", transient=False, at=100.0, kind=HANG)


def test_the_time_between_two_drivers_does_not_count() -> None:
    """Nobody tried the record meanwhile, and the clocks of two machines are not compared."""
    search, _ = Search(3).failed({"a": 1}, HANGS)
    known = stored(search, 130.4)
    assert restored(Search(3), known, 7000.0).evidence == Evidence(HANGS.error, 1, 1, since=6970.0, kind=HANG)


def test_a_search_goes_on_where_the_last_driver_ended() -> None:
    search, now = Search(3), 0.0
    for _ in range(5):
        search, step = restored(Search(3), stored(search, now), now).failed({"a": 1}, replace(HANGS, at=now), ["b"])
        if isinstance(step, Exclude):
            break
        search, now = search.passed({"b": 1}) if search.control else search, now + 30
    assert (now, step) == (90, Exclude("a"))


def test_a_record_that_is_tried_for_another_is_not_taken_for_the_suspect() -> None:
    search = Search(3)
    for _ in range(3):
        search, _ = search.failed({"a": 1}, HANGS, ["b"])
    again, _ = restored(Search(3), stored(search, 0.0), 0.0).failed({"b": 1}, HANGS, ["a"])
    assert (again.control, again.evidence.refused) == ("b", False)
    again, _ = restored(Search(3), stored(again, 0.0), 0.0).failed({"b": 1}, HANGS, ["a"])
    assert (again.suspects, again.evidence.alone, again.evidence.refused) == ({"a": 1}, search.evidence.alone, True)


def test_a_day_without_success_outlives_its_drivers() -> None:
    search, now = Search(3), 0.0
    for tries in range(24):
        search, _ = restored(Search(3), stored(search, now), now).failed({"a": 1}, replace(HANGS, error=f"BatchOverdue at m.py:{tries}", at=now))
        now += 3600
    assert restored(Search(3), stored(search, now), 0.0).waited(0.0) == 24 * 3600


@pytest.mark.parametrize("alone", [0, 1])
def test_what_is_stored_has_no_floats(alone: int) -> None:
    """A checkpoint table holds none."""
    known = stored(Search(3, evidence=Evidence("e", 3, alone, since=1.5)), 9.75)
    assert {type(value) for value in known["evidence"].values()} <= {str, int, bool}

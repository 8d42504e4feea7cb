"""An edit of `spec.start` that comes too late is never silent; nothing else says it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from plan.views import HASH, MIGRATING, RAW, attempt, gone, migration, view, wanted

from sluice_operator.plan.rules import plan
from sluice_operator.state.actions import Plan
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import DriverStatus, MigrationState, Status

LATEST = {"position": "LATEST"}
NOON, SAME_NOON = ({"position": "AT_TIMESTAMP", "timestamp": text} for text in ("2026-11-26T12:00:00Z", "2026-11-26T13:00:00+01:00"))
HELD = attempt(generation=3)
DONE = migration(state=MigrationState.COMPLETE)


def edited(start: dict[str, Any], status: Status, before: dict[str, Any] | None = None, **spec: Any) -> Plan:
    """The plan after an edit of spec.start; `before` is the spec that the operator saw last."""
    seen = replace(status, observed_generation=1, last_good_spec={**RAW, **spec} if before is None else before)
    return plan(view(spec=wanted(start=start, **spec), status=seen, observed=Observed() if status.driver.pod is None else None))


def warns(found: Plan) -> bool:
    condition = found.status.condition("StartIgnored")
    events = [event for event in found.events if event.reason == "StartIgnored"]
    assert len(events) == (condition is not None)
    assert all(event.warning for event in events)
    return condition is not None


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(Status(driver=HELD), id="a driver reads"),
        pytest.param(Status(driver=gone(generation=3)), id="none runs now"),
        pytest.param(Status(driver=DriverStatus(), migration=DONE), id="a migration wrote the positions"),
    ],
)
def test_an_edit_after_the_consumer_has_positions_is_never_silent(status: Status) -> None:
    found = edited(LATEST, status)
    assert warns(found)
    condition = found.status.condition("StartIgnored")
    assert condition is not None
    assert condition.message.startswith("spec.start was edited from TRIM_HORIZON to LATEST, which moves nothing")
    assert "read-again.md" in condition.message
    assert condition.message.endswith(".")
    assert all(other.status != "True" for other in found.status.conditions if other.type == "Stalled")


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(Status(), id="nothing was made"),
        pytest.param(Status(driver=attempt(uid=None)), id="the driver that is named is made with it"),
        pytest.param(Status(driver=gone()), id="no driver came as far as a table"),
    ],
)
def test_an_edit_before_that_has_its_effect_and_needs_no_word(status: Status) -> None:
    assert not warns(edited(LATEST, status))


def test_an_edit_between_a_driver_and_its_first_report_is_said_once_there_is_a_table() -> None:
    """That driver has the position of its configuration; until it reports nobody knows whether it made a table with it."""
    early = edited(LATEST, Status(driver=attempt()))
    assert not warns(early)
    late = plan(view(spec=wanted(start=LATEST), status=replace(early.status, driver=HELD)))
    assert warns(late)


def test_it_stays_without_another_event_until_the_edit_is_taken_back() -> None:
    found = edited(LATEST, Status(driver=HELD))
    again = plan(view(spec=wanted(start=LATEST), status=found.status))
    assert again.status.condition("StartIgnored") == found.status.condition("StartIgnored")
    assert not [event for event in again.events if event.reason == "StartIgnored"]
    back = plan(view(status=again.status))
    assert back.status.condition("StartIgnored") is None
    assert back.status.start is None
    assert warns(edited(NOON, replace(again.status, conditions=()), before=found.status.last_good_spec))


@pytest.mark.parametrize(
    ("before", "start"),
    [
        (None, {}),
        (None, {"position": "TRIM_HORIZON"}),
        ({**RAW, "start": SAME_NOON}, NOON),
        ({**RAW, "start": "what no operator took"}, {}),
        ({}, {}),
    ],
    ids=["left out", "the default written out", "another zone", "it cannot be read", "left out before"],
)
def test_another_way_to_write_the_same_is_no_edit(before: dict[str, Any] | None, start: dict[str, Any]) -> None:
    """The API server writes defaults out, and a status may have anything."""
    assert not warns(edited(start, Status(driver=HELD), before=before))


def test_an_operator_that_comes_new_finds_no_edit() -> None:
    """An older one kept no start, and took edits of it for years: its last good spec is what counts, and nothing is written."""
    old = Status(observed_generation=1, driver=HELD, last_good_spec=wanted(start=LATEST).raw)
    found = plan(view(spec=wanted(start=LATEST), status=old))
    assert not warns(found)
    assert found.status.start is None
    assert not warns(plan(view(spec=wanted(start=LATEST), status=replace(old, last_good_spec=None))))


def test_a_migration_that_runs_has_no_positions_yet() -> None:
    """It may still fail, and nothing was started."""
    found = edited(LATEST, Status(migration=migration()), migrateFrom=MIGRATING.raw["migrateFrom"])
    assert not warns(found)
    assert HASH in (found.status.migration.job if found.status.migration else "")

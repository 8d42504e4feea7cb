"""Which differences of two statuses cannot wait. Pure.

What people and machines wait for is written at once, and so is everything an action depends on (the caller sees to that). The rest is
figures, words, and memory that another look finds again: many small writes of it cost the API server more than they tell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice_operator.state.status import Phase

if TYPE_CHECKING:
    from sluice_operator.state.status import Status


STARTS = "DriverStarting"
TURNS = {"Ready", "Reconciling", "Draining"}  # what a restart says of itself


def urgent(old: Status, new: Status) -> bool:
    """Whether what somebody may be waiting for differs."""
    return _waited_for(old) != _waited_for(_as_told(old, new))


def remembered(old: Status, new: Status) -> bool:
    """Whether nothing differs but figures and what another look finds again.

    That is which pod the driver is, since when it runs, its first executors; and how far a restart has come that was told whole when it began.
    """
    new = _as_told(old, new)
    driver = replace(new.driver, uid=old.driver.uid, started_at=old.driver.started_at)
    replicas = old.replicas if new.phase is Phase.STARTING else new.replicas
    return replace(new, stream=old.stream, driver=driver, replicas=replicas) == old


def to_write(old: Status, new: Status, *, acting: bool) -> bool:
    """Whether the new one is to be written now. No action depends on what another look finds again, so that is not written for its sake."""
    return new != old and not (acting and remembered(old, new))


def _as_told(old: Status, new: Status) -> Status:
    """Of a restart that goes on as it should, what was told when it began; anything else as it is."""
    ready = new.condition("Ready")
    goes_on = old.driver.leaving is not None and old.driver.attempt == new.driver.attempt
    if not goes_on or ready is None or ready.reason != STARTS:
        return new
    conditions = tuple(old.condition(item.type) or item if item.type in TURNS else item for item in new.conditions)
    return replace(new, conditions=conditions, driver=replace(new.driver, leaving=old.driver.leaving))


def _waited_for(status: Status) -> tuple[Any, ...]:
    """Phase, conditions without words, generation, restarts (a pause counts from here), attempt, the migration without what a look finds again."""
    conditions = {item.type: item.status for item in status.conditions}
    migration = replace(status.migration, uid=None, podless_since=None) if status.migration else None
    driver = (status.driver.attempt, status.driver.stopping if status.driver.pod else None)
    return status.phase, conditions, status.observed_generation, status.last_good_spec, status.restarts, driver, migration

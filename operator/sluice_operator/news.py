"""Which differences of two statuses cannot wait. Pure.

What people and machines wait for is written at once, and so is everything an action depends on (the caller sees to that). The rest is
figures, words, and memory that another look finds again: many small writes of it cost the API server more than they tell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice_operator.model import Phase

if TYPE_CHECKING:
    from sluice_operator.model import Status


def urgent(old: Status, new: Status) -> bool:
    """Whether what somebody may be waiting for differs."""
    return _waited_for(old) != _waited_for(new)


def remembered(old: Status, new: Status) -> bool:
    """Whether nothing differs but figures and what another look finds again: which pod the driver is, since when it runs, its first executors."""
    driver = replace(new.driver, uid=old.driver.uid, started_at=old.driver.started_at)
    replicas = old.replicas if new.phase is Phase.STARTING else new.replicas
    return replace(new, stream=old.stream, driver=driver, replicas=replicas) == old


def _waited_for(status: Status) -> tuple[Any, ...]:
    """Phase, conditions without their words, generation, restarts (a pause counts from here), attempt, the migration without its Job's uid."""
    conditions = {item.type: item.status for item in status.conditions}
    migration = replace(status.migration, uid=None) if status.migration else None
    driver = (status.driver.attempt, status.driver.stopping if status.driver.pod else None)
    return status.phase, conditions, status.observed_generation, status.last_good_spec, status.restarts, driver, migration

"""What kstatus (Flux and others) and Argo CD's health check read of each row of the planner's table is what a person would say of it."""

from __future__ import annotations

import pytest
from argo_lua import argo_health
from kstatus import CURRENT, FAILED, IN_PROGRESS, TERMINATING, kstatus
from plan.rows import GOING, SETTLED, STUCK, Row
from plan.test_rules import ROWS

from sluice_operator.plan.rules import plan
from sluice_operator.state.serialization import dump_status

READ = {GOING: (IN_PROGRESS, "Progressing"), SETTLED: (CURRENT, "Healthy"), STUCK: (FAILED, "Degraded")}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_clients_say_what_a_person_would_say(row: Row) -> None:
    """Argo CD has a word of its own for what a person has stopped, once it has."""
    deleted = {"deletionTimestamp": "2026-11-22T12:00:00Z"} if row.view.resource.deleting else {}
    body = {"metadata": {"generation": 1, **deleted}, "status": dump_status(plan(row.view).status)}
    wanted, health = (TERMINATING, "Progressing") if deleted else READ[row.plan.health]
    stopped = row.plan.reason == "Paused" or (row.plan.reason, row.plan.ready) == ("Suspended", "True")
    assert (kstatus(body), argo_health(body)) == (wanted, "Suspended" if stopped else health)

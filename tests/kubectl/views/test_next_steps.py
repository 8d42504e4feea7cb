"""The command that a screen names is there, and does something."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scene import DATA, resource

from sluice_kubectl.cli.group import SOURCES
from sluice_kubectl.views.actions import ACTIONS, late_driver
from sluice_kubectl.views.consumer import ConditionView, consumer
from sluice_kubectl.views.next_steps import BY_REASON, next_step
from sluice_kubectl.views.objects import PodView

CASES = sorted({path.stem for folder in ("testdata", "actions/testdata") for path in (DATA / folder).glob("*.yaml")})
NAMED = [case for case in CASES if next_step(consumer(resource(case)), ())]
ROLES = ("executor", "driver")
RUNBOOKS = (Path(__file__).parents[3] / "docs" / "runbooks.md").read_text()


def test_every_step_is_a_command() -> None:
    assert set(BY_REASON.values()) <= {name for source in SOURCES if source.extra == "kubectl" for name in source.names}


def test_every_reason_is_one_that_the_operator_gives() -> None:
    """By the table of docs/runbooks.md."""
    assert [reason for reason in BY_REASON if f"`{reason}`" not in RUNBOOKS] == []


def test_who_works_or_is_deleted_has_no_next_step() -> None:
    assert not {"running", "starting", "deleting", "migrating"} & set(NAMED)
    assert {"migration_failed", "source_active", "driver_overdue", "paused", "suspended"} <= set(NAMED)


def test_a_log_is_named_only_while_its_pod_is_there() -> None:
    one = replace(consumer(resource("running")), reason="Failed")
    pods = [
        PodView("orders-1", "u", role, "Failed", ready=False, restarts=0, node="n", created=None, leaving=False, metrics_port=None) for role in ROLES
    ]
    assert next_step(one, pods) == "logs orders"
    assert next_step(one, [pod for pod in pods if pod.role != "driver"]) == "events orders"


def test_a_version_that_was_rolled_back_can_be_tried_again() -> None:
    one = consumer(resource("running"))
    back = ConditionView("RolledBack", "True", "Failed", "version 2 failed on trial", None, speaks=True)
    rolled = replace(one, conditions=(*one.conditions, back))
    assert (next_step(rolled, ()) or "").split()[:2] == ["restart", "orders"]
    assert (next_step(replace(rolled, paused=True), ()) or "").split()[:2] == ["resume", "orders"]
    assert next_step(replace(one, conditions=(*one.conditions, replace(back, status="False"))), ()) is None


@pytest.mark.parametrize("case", NAMED)
def test_a_step_that_is_named_is_offered(case: str) -> None:
    body = resource(case)
    command = (next_step(consumer(body), ()) or "").split()[0]
    offered = late_driver(body) if command == "force" else ACTIONS[command](body, "2026-11-25T12:00:00Z").patch
    assert offered

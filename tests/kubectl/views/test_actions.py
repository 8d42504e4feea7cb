"""Actions are those that Argo CD offers, with the same conditions and the same changes."""

from __future__ import annotations

from typing import Any

import pytest
from argo_lua import CLOCK, act, actions, same
from scene import DATA, resource

from sluice_kubectl.views.actions import ACTIONS, GivenUp, Intent, NotOffered, force, late_driver
from sluice_lab.fakes.cluster import _merge

Json = dict[str, Any]
CASES = sorted({path.stem for folder in ("testdata", "actions/testdata") for path in (DATA / folder).glob("*.yaml")})


def intent(action: str, body: Json) -> Intent | None:
    """What the action would do; None if it is not offered, or would change nothing."""
    try:
        found = ACTIONS[action](body, CLOCK)
    except NotOffered:
        return None
    return found if found.patch else None


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("case", CASES)
def test_an_action_is_offered_exactly_where_argo_cd_offers_it(case: str, action: str) -> None:
    body = resource(case)
    assert (intent(action, body) is None) == actions(body)[action]["disabled"]


@pytest.mark.parametrize(("case", "action"), [(case, action) for case in CASES for action in ACTIONS if intent(action, resource(case))])
def test_a_patch_leaves_what_argo_cds_action_leaves(case: str, action: str) -> None:
    body = resource(case)
    found = intent(action, body)
    assert found is not None
    assert same(_merge(body, found.patch), act(action, body))


@pytest.mark.parametrize("action", ACTIONS)
def test_a_patch_is_conditional_on_what_was_read(action: str) -> None:
    body = next(body for body in map(resource, CASES) if intent(action, body))
    found = intent(action, body)
    assert found is not None
    assert found.patch is not None
    assert found.patch["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("action", "case", "words"),
    [
        ("restart", "paused", "orders is paused, so a restart would do nothing; next: resume orders"),
        ("restart", "suspended", "orders is suspended, so a restart would do nothing; next: resume orders"),
        ("restart", "migration_failed", "orders has had no driver yet"),
        ("restart", "scaled_to_zero", "next: kubectl scale kc orders --replicas=1"),
        ("restart", "completed", "orders has reached spec.until, so a restart would do nothing; next: edit spec.until"),
        ("retry", "running", "orders has nothing to retry: it has no migration; next: for a driver that failed, restart orders"),
        ("pause", "deleting", "orders is being deleted"),
    ],
)
def test_a_refusal_says_why_and_what_to_do(action: str, case: str, words: str) -> None:
    with pytest.raises(NotOffered) as refused:
        ACTIONS[action](resource(case), CLOCK)
    assert words in str(refused.value)


def test_force_names_the_uid_of_the_driver_that_is_late() -> None:
    body = resource("driver_overdue")
    late = late_driver(body)
    assert late == GivenUp("orders-driver-1", "uid-6")
    patch = force(body, late).patch
    assert patch == {"metadata": {"resourceVersion": "31", "annotations": {"sluice.dev/force": "uid-6"}}}


def test_force_is_about_the_driver_that_leaves_not_about_the_next_one() -> None:
    body = resource("driver_overdue")
    body["status"]["driver"] |= {"pod": "orders-driver-2", "uid": None, "leaving": {"attempt": 1, "pod": "orders-driver-1", "uid": "uid-6"}}
    assert late_driver(body) == GivenUp("orders-driver-1", "uid-6")


def test_force_does_nothing_to_another_driver_than_the_one_agreed_on() -> None:
    with pytest.raises(NotOffered, match="the driver is now orders-driver-1 with uid uid-6, and you agreed to remove uid-5"):
        force(resource("driver_overdue"), GivenUp("orders-driver-0", "uid-5"))


def test_there_is_nothing_to_force_without_a_driver() -> None:
    with pytest.raises(NotOffered, match="orders has no driver pod that could be removed"):
        late_driver(resource("migration_failed"))

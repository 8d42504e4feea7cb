"""Trials of new versions, `spec.rollout.trial`: the operator's machine with a user who deploys, and versions that are bad in every way."""

from __future__ import annotations

from typing import Any

import pytest
from argo_lua import argo_health
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from kstatus import CURRENT, FAILED, kstatus
from steering.machine import Operating, seconds
from test_ending import QUICK, begun

TRIAL: dict[str, Any] = {"batches": 2, "seconds": 60}
STRATEGIES = ["Recreate", "Standby"]
FAULTS = ["raises", "refused", "hangs", "searches"]
NEVER = "missing"  # an image that no registry has


def rollout(strategy: str) -> dict[str, Any]:
    return {"strategy": strategy, "readySeconds": 30, "trial": TRIAL}


class Trying(Operating):
    """And deploys of versions."""

    @rule(
        strategy=st.sampled_from(STRATEGIES),
        image=st.sampled_from(["one", "two", "three", NEVER]),
        fault=st.sampled_from([None, None, *FAULTS]),
        seconds=seconds,
    )
    def deploys(self, strategy: str, image: str, fault: str | None, seconds: int) -> None:
        self.spec = {**self.spec, "rollout": rollout(strategy)}
        super().deploys(image, fault, seconds)

    @rule(image=st.sampled_from(["one", "two", "three", "*"]), fault=st.sampled_from([None, *FAULTS]))
    def blames(self, image: str, fault: str | None) -> None:
        super().blames(image, fault)


def proven(strategy: str = "Recreate") -> Operating:
    operating = begun()
    operating.rolls(rollout(strategy), "ok")
    operating.deploys("one", None, 60)
    assert "trial" not in operating.world.status
    assert operating.world.status["provenSpec"]["pipeline"]["image"] == "one"
    return operating


def image(operating: Operating) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in operating.world.drivers()]


def test_trials_keep_the_invariants_through_anything() -> None:
    run_state_machine_as_test(Trying, settings=QUICK)  # type: ignore[no-untyped-call]  # hypothesis


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_good_version_is_proven_and_stays_whatever_happens_later(strategy: str) -> None:
    operating = proven(strategy)
    operating.deploys("two", None, 60)
    world = operating.world
    assert (world.status["provenSpec"]["pipeline"]["image"], kstatus(world.must())) == ("two", CURRENT)
    assert [reason for reason in world.reasons() if reason.startswith("Trial")][-2:] == ["TrialStarted", "TrialPassed"]
    operating.driver_ends(code=1, times=2, seconds=180)
    assert (image(operating), world.status.get("trial")) == (["two"], None)
    operating.teardown()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("fault", [*FAULTS, NEVER])
def test_a_bad_version_goes_back_by_itself_and_is_not_tried_again(strategy: str, fault: str) -> None:
    operating = proven(strategy)
    operating.deploys(NEVER if fault == NEVER else "two", None if fault == NEVER else fault, 150)
    world = operating.world
    assert (image(operating), world.condition("Ready")["status"], world.condition("RolledBack")["status"]) == (["one"], "True", "True")
    assert (kstatus(world.must()), argo_health(world.must()), world.condition("Stalled")["reason"]) == (FAILED, "Degraded", "RolledBack")
    made = world.reasons().count("RolledBack")
    operating.scale(replicas=4, seconds=60)
    operating.suspend(seconds=60)
    assert kstatus(world.must()) == CURRENT  # what was asked for is that nothing runs
    operating.suspend(seconds=30)
    attempt = world.status["driver"]["attempt"]
    operating.wait(seconds=300)
    assert (image(operating), world.status["driver"]["attempt"], len(world.executors())) == (["one"], attempt, 4)
    assert (made, world.reasons().count("RolledBack"), world.must()["spec"]["pipeline"]["image"]) == (1, 1, NEVER if fault == NEVER else "two")
    operating.deploys("three", None, 90)
    assert (image(operating), kstatus(world.must()), world.condition("RolledBack")) == (["three"], CURRENT, {})
    operating.teardown()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_record_that_fails_in_both_versions_blames_neither(strategy: str) -> None:
    operating = proven(strategy)
    operating.blames("*", "raises")
    operating.deploys("two", None, 200)
    world = operating.world
    assert (world.status["trial"]["state"], world.status["trial"]["reason"], world.condition("RolledBack")) == ("Forward", "FormerFails", {})
    assert world.condition("Stalled").get("reason") != "RolledBack"
    operating.blames("*", None)
    operating.wait(120)
    assert (image(operating), world.status["provenSpec"]["pipeline"]["image"]) == (["two"], "two")
    operating.teardown()


@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("what", ["crash", "lose", "late"])
def test_a_rollback_survives_the_end_of_the_operator_at_every_write(what: str, at: int) -> None:
    operating = proven()
    operating.deploys("two", "raises", 1)
    operating.call_fails(who=0, what=what, at=at, times=1, seconds=150)
    assert (image(operating), operating.world.condition("RolledBack")["status"]) == (["one"], "True")
    operating.teardown()


def test_an_idle_hour_and_an_hour_without_an_operator_fail_no_version() -> None:
    """Time counts only while a driver works, two minutes at most at once."""
    operating = begun()
    operating.rolls({"strategy": "Recreate", "trial": {"batches": 2, "seconds": 300}}, "ok")
    operating.deploys("one", None, 60)
    operating.deploys("two", "hangs", 30)
    operating.leader_ends(who=0, down=1000, seconds=1001)
    operating.blames("two", None)
    operating.wait(seconds=30)
    assert operating.world.status["provenSpec"]["pipeline"]["image"] == "two"
    operating.teardown()

from __future__ import annotations

import logging
import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from steering.ledger import INVARIANTS, Broken
from steering.machine import Operating, told
from steering.mutant import MUTANTS, OperatorMutant
from steering.mutant_cache import never_lost
from steering.mutant_health import no_deadline
from steering.mutant_stranger import labels_are_believed

assert no_deadline  # entered into the list by its import
assert labels_are_believed
assert never_lost

EXAMPLES = int(os.environ.get("SLUICE_SIM_EXAMPLES", "100"))
DEEP = os.environ.get("SLUICE_SIM") == "deep"
QUICK = settings(
    max_examples=EXAMPLES,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,  # the same schedules every time: a check that fails by chance is no check
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
LONG = settings(QUICK, max_examples=max(EXAMPLES, 10_000), stateful_step_count=40, derandomize=False, print_blob=True)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Injected failures are logged by the code under test; thousands of them say nothing."""
    caplog.set_level(logging.CRITICAL)


def test_the_operator_keeps_its_invariants_through_anything() -> None:
    """Crashes, lost replies, two leaders, lost nodes, watch gaps, and a user who does anything at any moment."""
    run_state_machine_as_test(Operating, settings=LONG if DEEP else QUICK)  # type: ignore[no-untyped-call]  # hypothesis


def test_a_driver_that_was_intended_and_never_made_is_forgotten_at_once() -> None:
    """Found by another machine's examples: the news waited to be written, and a pass asked for the next one without a pause."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=5)
    operating.leader_ends(down=8, seconds=2, who=0)
    operating.delete(again=False, foreground=True, seconds=1)
    for _ in range(3):
        operating.delete_job(seconds=1)
    operating.lose_node(how="cut", node="a", seconds=1)
    operating.call_fails(at=1, seconds=1, times=1, what="crash", who=0)
    operating.teardown()


def test_a_driver_that_ends_on_a_node_nobody_hears_of_is_believed_until_its_reports_are_old() -> None:
    """Found by 2,500 examples: the observer knew at once what no operator could."""
    operating = Operating()
    operating.begin(migrating=False, leaders=2, source="ok", run=120)
    for node in "ab":
        operating.lose_node(how="cut", node=node, seconds=1)
    operating.pod_ends(how="kill", role="driver", seconds=10)
    assert operating.world.condition("Ready")["status"] == "True"
    operating.wait(seconds=120)
    assert operating.world.condition("Ready")["status"] == "False"
    operating.teardown()


def test_a_driver_whose_account_comes_late_has_a_deadline_of_its_own() -> None:
    """Found by 1,200 random examples: the observer counted the time in which no pod could be made."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=20)
    for seconds in (9, 1):
        operating.delete_pod(grace=None, role="driver", seconds=seconds)
    operating.account(missing=True, seconds=3)
    operating.linger(seconds=427)
    assert operating.world.condition("Stalled")["status"] == "True"
    operating.account(missing=False, seconds=21)
    operating.teardown()


def test_a_driver_without_its_label_is_read_before_anything_is_said_of_it() -> None:
    """Found by 60 examples: no watch shows it any more, and the cache would call it Ready while it drains."""
    operating = Operating()
    operating.begin(migrating=False, leaders=2, source="ok", run=60)
    operating.delete_pod(grace=None, role="executor", seconds=34)
    operating.unlabel(kind="Pod", seconds=21)
    operating.delete_pod(grace=None, role="driver", seconds=7)
    operating.teardown()


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_the_story_ends_well(mutant: OperatorMutant) -> None:
    """So that it is the mutant, and not the story, that breaks something."""
    told(mutant.story).teardown()


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_the_story_catches_that(mutant: OperatorMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a rule taken out, the invariant breaks that was named beforehand."""
    mutant.apply(monkeypatch)
    with pytest.raises(Broken, match=f"^{mutant.breaks}: "):
        told(mutant.story).teardown()


def test_every_invariant_is_seen_to_break() -> None:
    """One that no mutant breaks may be one that cannot fail."""
    assert {mutant.breaks for mutant in MUTANTS} == set(INVARIANTS)

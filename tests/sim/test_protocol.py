from __future__ import annotations

import logging
import os

import pytest
from drawn import TIMES
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from simulation.every import MUTANTS, ProtocolMutant
from simulation.ledger import INVARIANTS
from simulation.machine import Protocol, focused
from simulation.machine_migration import Beginning
from simulation.machine_resets import Resetting
from simulation.machine_standby import Standing

EXAMPLES = 60 * TIMES
DEEP = os.environ.get("SLUICE_SIM") == "deep"
QUICK = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,  # the same schedules every time: a check that fails by chance is no check
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
LONG = settings(QUICK, max_examples=10_000, stateful_step_count=60, derandomize=False, print_blob=True)
HUNT = settings(QUICK, max_examples=1500, phases=[Phase.generate], report_multiple_bugs=False)  # a mutant need not be shrunk


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Injected failures are logged by the code under test; thousands of them say nothing."""
    caplog.set_level(logging.CRITICAL)


def test_the_protocol_keeps_its_invariants_through_anything() -> None:
    """Crashes, zombies, pauses, lost replies, reshards, rivals: nothing is lost, nothing comes twice, everything arrives."""
    run_state_machine_as_test(Protocol, settings=LONG if DEEP else QUICK)  # type: ignore[no-untyped-call]  # hypothesis


def test_a_table_begins_once_whatever_jobs_and_drivers_do() -> None:
    """Pods of a migration Job, late, twice, crashed and paused, beside the first epochs of a driver; then everything arrives, once."""
    run_state_machine_as_test(Beginning, settings=LONG if DEEP else settings(QUICK, max_examples=min(EXAMPLES, 60)))  # type: ignore[no-untyped-call]  # hypothesis


def test_positions_are_moved_whatever_happens() -> None:
    """Resets of all shards and some, crashed, twice and late, beside drivers: what comes again comes once, in order, and nothing else is lost."""
    run_state_machine_as_test(Resetting, settings=LONG if DEEP else settings(QUICK, max_examples=min(EXAMPLES, 100)))  # type: ignore[no-untyped-call]  # hypothesis


def test_a_standby_takes_over_whatever_happens() -> None:
    """Drivers that stand by, crashed, frozen and cut off, beside drivers that drain, die and stand still."""
    run_state_machine_as_test(Standing, settings=LONG if DEEP else settings(QUICK, max_examples=min(EXAMPLES, 60)))  # type: ignore[no-untyped-call]  # hypothesis


# What the machine finds by chance, always within its examples; the other mutants are caught by stories only.
FOUND = [mutant for mutant in MUTANTS if mutant.hunted or (mutant.rare and DEEP)]


@pytest.mark.slow  # a story of each shows the same
@pytest.mark.parametrize("mutant", FOUND, ids=[mutant.name for mutant in FOUND])
def test_the_machine_finds_that(mutant: ProtocolMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.apply(monkeypatch)
    with pytest.raises(AssertionError, match=f"^({'|'.join(INVARIANTS)}): "):
        run_state_machine_as_test(focused(mutant.rules, mutant.world), settings=HUNT)  # type: ignore[no-untyped-call]  # hypothesis


def test_every_mutant_is_caught_or_argued_away() -> None:
    """None is on the list only for show."""
    assert [s.name for s in MUTANTS if not (s.stories or s.hunted or s.rare or s.harmless)] == []

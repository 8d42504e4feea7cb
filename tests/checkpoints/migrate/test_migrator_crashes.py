"""The migrator under crashes, lost replies, pauses, rivals and sources that move, for every kind of source (see `migrating`).

`SLUICE_SIM=deep` tries three faults in a row, every pair of calls of two rivals, and thousands of interleavings.
"""

from __future__ import annotations

import os

import pytest
from migrating import consumers, rivals, schedules
from migrating.cases import CASES
from migrating.mutant import MUTANTS, SNOWPLOW, MigratorMutant
from migrating.stage import Case

from sluice_checkpoints.migrate import store

DEEP = os.environ.get("SLUICE_SIM") == "deep"
every_source = pytest.mark.parametrize("case", CASES, ids=str)


@pytest.fixture(autouse=True)
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows a transaction, so that four or five rows can be written in part."""
    monkeypatch.setattr(store, "MEMBERS", 2)


@every_source
@pytest.mark.slow
def test_two_faults_at_any_calls_lead_to_the_same_end(case: Case) -> None:
    explored = schedules.crashes(case, 3 if DEEP else 2)
    assert explored.states[0] == 1
    assert explored.states[1] >= 10, "the table was never left half-done"
    assert explored.faults > 900, "calls were left out"


def test_now_stays_that_of_the_first_claim_through_any_two_faults() -> None:
    """What arrives between two tries is not passed over."""
    assert schedules.crashes(SNOWPLOW, unstarted="now").states[1] >= 10


@every_source
def test_a_write_that_is_sent_twice_is_recognised(case: Case) -> None:
    assert schedules.repeated_writes(case)


@every_source
def test_a_migrator_that_sleeps_at_any_call_writes_nothing_after_another_took_over(case: Case) -> None:
    """Five lease durations, in which the source moves and another migrator comes to the end."""
    assert rivals.pauses(case)


@every_source
def test_a_migrator_that_sleeps_at_any_call_writes_nothing_under_the_claim_of_one_that_died(case: Case) -> None:
    """The other dies at any call of its own; a sample of all pairs of calls."""
    assert rivals.usurpers(case, 1.0 if DEEP else 0.03)


@every_source
def test_one_of_two_migrators_that_start_at_any_call_of_each_other_comes_to_the_same_end(case: Case) -> None:
    assert rivals.one_starts_at_any_call_of_the_other(case)


@every_source
def test_two_migrators_in_any_order_come_to_the_same_end_and_rob_nobody(case: Case) -> None:
    """Seeded orders of calls; also after a third died, and with waits longer than a claim lasts."""
    assert rivals.taking_turns(case, 2000 if DEEP else 30)


@every_source
def test_a_checkpoint_of_the_old_consumer_at_any_call_is_in_the_target_or_refused(case: Case) -> None:
    assert consumers.a_checkpoint_at_any_call(case)


@every_source
def test_a_consumer_that_only_beats_is_active(case: Case) -> None:
    assert consumers.a_consumer_that_lives(case)


@every_source
def test_rows_that_another_program_writes_at_any_call_are_neither_overwritten_nor_trusted(case: Case) -> None:
    assert schedules.an_intruder(case)


@every_source
def test_a_source_that_moved_between_two_tries_is_copied_as_it_stands(case: Case) -> None:
    assert consumers.a_source_that_moved_between_two_tries(case)


@pytest.mark.parametrize("case", [case for case in CASES if "interrupted" in case.name and "KCL" not in case.name], ids=str)
def test_a_migration_of_nifis_own_that_goes_on_at_any_call_is_active_or_copied(case: Case) -> None:
    assert consumers.nifi_goes_on(case)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_rule_taken_out_is_noticed(mutant: MigratorMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.apply(monkeypatch)
    with pytest.raises(AssertionError, match=f"^{mutant.says}"):
        mutant.noticed_by()

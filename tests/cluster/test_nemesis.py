"""The nemesis, short: what each take-over costs, and a minute and a half of a seeded schedule of faults. The long one is `make nemesis`.

It takes seven minutes of a cluster of its own, and runs where SLUICE_NEMESIS=1 asks for it (docs/nemesis.md).
"""

from __future__ import annotations

import os

import pytest
from cluster_bench import Bench

from sluice_lab import places
from sluice_lab.nemesis import checker, experiment
from sluice_lab.nemesis.checker import CheckResult
from sluice_lab.nemesis.schedule import NemesisRun

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("SLUICE_NEMESIS") != "1", reason="the nemesis takes seven minutes; SLUICE_NEMESIS=1, or `make nemesis`, runs it"
    ),
]
SEED, SECONDS = 7, 90.0  # a zombie, a driver cut off, executors killed, a split, delays, and 1 -> 4 -> 2 executors


@pytest.fixture(scope="module")
def result(bench: Bench) -> CheckResult:
    home = places.work() / "nemesis"
    found = experiment.run(bench.cluster, NemesisRun(SEED, SECONDS), home)
    checker.show(found, home)
    return found


def test_an_idempotent_sink_holds_every_record_once_and_in_order(result: CheckResult) -> None:
    assert result.account.right, result.account.total
    assert result.account.total.produced > 5_000


def test_no_two_epochs_and_no_two_attempts_worked_on_a_shard_within_a_lease(result: CheckResult) -> None:
    assert [str(pair) for pair in result.violations] == []
    assert {"two epochs", "two attempts of a task"} <= result.smallest_gaps.keys()


def test_a_batch_is_the_same_for_all_who_read_it(result: CheckResult) -> None:
    assert result.divergent == []
    assert result.rereads > 0


def test_adding_and_draining_executors_repeats_nothing(result: CheckResult) -> None:
    """No task is killed, so none waits."""
    assert result.forced_rereads == 0


@pytest.mark.parametrize("number", range(5))
def test_a_take_over_takes_no_longer_than_it_must(result: CheckResult, number: int) -> None:
    pause = result.pauses[number]
    assert pause.right, f"{pause.name}: {pause.seconds:.1f} s, more than {pause.needed}"

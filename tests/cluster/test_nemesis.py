"""The nemesis, short: what each take-over costs, and a minute and a half of a seeded schedule of harm. The long one is `make nemesis`.

It takes seven minutes of a cluster of its own, and was run whole only once so far (docs/nemesis.md): until it has proved to be steady it runs where
SLUICE_NEMESIS=1 asks for it.
"""

from __future__ import annotations

import os

import pytest
from cluster_bench import Bench

from sluice_lab import places
from sluice_lab.nemesis import judgement, trial
from sluice_lab.nemesis.judgement import Judgement

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        os.environ.get("SLUICE_NEMESIS") != "1", reason="the nemesis takes seven minutes; SLUICE_NEMESIS=1, or `make nemesis`, runs it"
    ),
]
SEED, SECONDS = 7, 90.0  # a zombie, a driver cut off, executors killed, a split, delays, and 1 -> 4 -> 2 executors


@pytest.fixture(scope="module")
def judged(bench: Bench) -> Judgement:
    """One trial; its picture stays in the lab's folder."""
    home = places.work() / "nemesis"
    found = trial.run(bench.cluster, SEED, SECONDS, home)
    judgement.show(found, home)
    return found


def test_an_idempotent_sink_holds_every_record_once_and_in_order(judged: Judgement) -> None:
    """Of every shard, parents before children."""
    assert judged.account.right, judged.account.total
    assert judged.account.total.produced > 5_000


def test_no_two_epochs_and_no_two_attempts_worked_on_a_shard_within_a_lease(judged: Judgement) -> None:
    """By the times in a sink that keeps everything; and there were some to compare."""
    assert [str(pair) for pair in judged.clashes] == []
    assert {"two epochs", "two attempts of a task"} <= judged.closest.keys()


def test_a_batch_is_the_same_for_all_who_read_it(judged: Judgement) -> None:
    """Whoever came second got what the first had got, or was getting."""
    assert judged.unlike == []
    assert judged.again > 0


def test_adding_and_draining_executors_repeats_nothing(judged: Judgement) -> None:
    """No task is killed, so none waits."""
    assert judged.forced == 0


@pytest.mark.parametrize("number", range(5))
def test_a_take_over_takes_no_longer_than_it_must(judged: Judgement, number: int) -> None:
    """Clean restart, scale up, executor SIGKILL, scale down, driver SIGKILL."""
    pause = judged.pauses[number]
    assert pause.right, f"{pause.name}: {pause.seconds:.1f} s, more than {pause.needed}"

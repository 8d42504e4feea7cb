"""What each take-over costs: one thing at a time, each from calm to calm, before the harm begins."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sluice_lab.nemesis import hands, manifest
from sluice_lab.nemesis.schedule import Deed, FaultKind
from sluice_lab.nemesis.takeover import CALM, DOWN, DRIVER, EXECUTOR, RESTART, UP

if TYPE_CHECKING:
    from sluice_lab.nemesis.trial import Trial

CALM_SECONDS = 8.0
BUSY_PACE, BUSY_SECONDS = 0.2, 3.0  # tasks take longer than the pause between batches: a process that is killed then is at work


def measure(trial: Trial) -> None:
    """All of it."""
    with trial.happening(CALM):
        time.sleep(CALM_SECONDS)
    with trial.happening(RESTART):
        _another_epoch(trial, _change)
    _scale(trial, UP, 4)
    trial.hands.pace(BUSY_PACE)
    time.sleep(BUSY_SECONDS)
    with trial.happening(EXECUTOR):
        _kill_executor(trial)
    _scale(trial, DOWN, 2)
    with trial.happening(DRIVER):
        _another_epoch(trial, lambda trial: trial.hands.do(Deed(0, FaultKind.KILL_DRIVER)))
    trial.until("two executors", lambda: trial.settled(2))


def _change(trial: Trial) -> None:
    """Something that the driver reads."""
    patch = json.dumps({"spec": {"batch": {"maxRecordsPerShard": 9_999}}})
    trial.kubectl("patch", f"kc/{manifest.NAME}", "--type=merge", f"--patch={patch}")


def _another_epoch(trial: Trial, cause: Callable[[Trial], object]) -> None:
    """Until the next epoch has committed a batch."""
    before = trial.watch.epoch
    cause(trial)
    trial.until("another epoch", lambda: trial.watch.epoch != before)
    trial.batches(1)


def _scale(trial: Trial, name: str, count: int) -> None:
    with trial.happening(name):
        trial.hands.scale(count)
        trial.until(f"{count} executors", lambda: trial.settled(count) and trial.hands.workers(trial.watch.epoch) >= count)


def _kill_executor(trial: Trial) -> None:
    """One that is at work; until another replaces it."""
    victim, _ = trial.hands.do(Deed(0, FaultKind.KILL_EXECUTOR))
    trial.hands.pace(hands.PACE)
    trial.until("another executor", lambda: victim not in trial.view.look().running and trial.settled(4))

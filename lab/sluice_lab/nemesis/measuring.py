"""Measures what each take-over costs, before the schedule runs: one change at a time, each from calm to calm."""

import json
import time
from collections.abc import Callable
from typing import Any

from sluice_checkpoints.names import counted
from sluice_lab.nemesis import injector, manifest
from sluice_lab.nemesis.schedule import Fault, FaultKind
from sluice_lab.nemesis.takeover import CALM, DOWN, DRIVER, EXECUTOR, RESTART, STANDBY, UP
from sluice_lab.nemesis.under_test import Experiment

Json = dict[str, Any]
CALM_SECONDS = 8.0
BUSY_PACE, BUSY_SECONDS = 0.2, 3.0  # a task takes longer than the pause between batches, so that a kill interrupts one


def measure(experiment: Experiment) -> None:
    """Measure all of them."""
    with experiment.window(CALM):
        time.sleep(CALM_SECONDS)
    with experiment.window(RESTART):
        _another_epoch(experiment, _change)
    _scale(experiment, UP, 4)
    experiment.injector.pace(BUSY_PACE)
    time.sleep(BUSY_SECONDS)
    with experiment.window(EXECUTOR):
        _kill_executor(experiment)
    _scale(experiment, DOWN, 2)
    with experiment.window(DRIVER):
        _another_epoch(experiment, lambda experiment: experiment.injector.inject(Fault(0, FaultKind.KILL_DRIVER)))
    experiment.until("two executors", lambda: experiment.settled(2))


def stand_by(experiment: Experiment) -> None:
    """Ask for a standby, and measure what the driver's SIGKILL costs with it. Another one is ready afterwards."""
    _patch(experiment, {"rollout": manifest.STANDS_BY, "restart": manifest.SOON_NO_SERIES})
    _await_standby(experiment)
    with experiment.window(STANDBY):
        _another_epoch(experiment, lambda experiment: experiment.injector.inject(Fault(0, FaultKind.KILL_DRIVER)))
    _await_standby(experiment)


def _await_standby(experiment: Experiment) -> None:
    experiment.until("a standby is ready", lambda: bool(experiment.view.refresh().standby_pod) and experiment.settled(2))


def _change(experiment: Experiment) -> None:
    """Change a field that the driver reads at its start, so that the driver is restarted; that of a pool restarts for nothing else than its own."""
    if pool := experiment.injector.pool:
        pool.restart()
        return
    _patch(experiment, {"batch": {"maxRecordsPerShard": 9_999}})


def _patch(experiment: Experiment, spec: Json) -> None:
    experiment.kubectl("patch", f"kc/{manifest.NAME}", "--type=merge", f"--patch={json.dumps({'spec': spec})}")


def _another_epoch(experiment: Experiment, cause: Callable[[Experiment], object]) -> None:
    """Wait until the next epoch has committed a batch."""
    before = experiment.sampler.epoch
    cause(experiment)
    experiment.until("another epoch", lambda: experiment.sampler.epoch != before)
    experiment.batches(1)


def _scale(experiment: Experiment, name: str, count: int) -> None:
    with experiment.window(name):
        experiment.injector.scale(count)
        experiment.until(
            counted(count, "executor"), lambda: experiment.settled(count) and experiment.injector.workers(experiment.sampler.epoch) >= count
        )


def _kill_executor(experiment: Experiment) -> None:
    """Kill an executor at work, and wait until another replaces it."""
    victim, _ = experiment.injector.inject(Fault(0, FaultKind.KILL_EXECUTOR))
    experiment.injector.pace(injector.PACE)
    experiment.until("another executor", lambda: victim not in experiment.view.refresh().running and experiment.settled(4))

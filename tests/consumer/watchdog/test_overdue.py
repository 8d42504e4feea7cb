"""Which limits a configuration sets, what a driver says of a batch that does not end, and what it leaves for the next one."""

from __future__ import annotations

import json
import math
import traceback
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluice_checkpoints.errors import Fenced
from sluice_consumer import config
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.watchdog import overdue
from sluice_consumer.watchdog.batch_watch import BatchLimits, BatchPhase, WatchedBatch

PLAN = BatchPlan(7, ())
FRAMES = [traceback.FrameSummary("/app/orders.py", 12, "write")]


def parsed(**batch: Any) -> config.BatchConfig:
    document = {"stream": {"name": "s", "region": "r"}, "checkpoints": {"table": "abc"}, "pipeline": {"entrypoint": "m:f"}, "batch": batch}
    return config.parse(json.dumps(document)).batch


@pytest.mark.parametrize(
    ("batch", "limits"),
    [
        ({}, BatchLimits(3600, 86_400)),
        ({"maxSeconds": 60}, BatchLimits(60, 240)),
        ({"maxSeconds": 0}, BatchLimits(math.inf, math.inf)),
    ],
)
def test_a_batch_has_an_end_unless_somebody_switches_it_off(batch: dict[str, Any], limits: BatchLimits) -> None:
    assert overdue.limits(parsed(**batch), 2.0) == limits


def test_still_is_three_heartbeats_at_least() -> None:
    """In between, nobody knows what a task does that runs."""
    windows = {heartbeat: overdue.limits(parsed(maxSeconds=300), heartbeat).window for heartbeat in (0.3, 2.0, 10.0, 400.0)}
    assert windows == {0.3: 10.0, 2.0: 10.0, 10.0: 30.0, 400.0: 1200.0}


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (BatchPhase.BEGINNING, "its ranges are being read"),
        (BatchPhase.FAILED, "process raised ValueError: no such column; what follows that has no end"),
        (BatchPhase.CLOSING, "process has returned, and the batch is being committed"),
    ],
)
def test_a_person_is_told_in_which_phase_a_batch_hangs(phase: BatchPhase, words: str) -> None:
    batch = WatchedBatch(PLAN, phase, 3600.0, ValueError("no such column"))
    assert overdue.words(batch, FRAMES) == f"batch 7 of 0 shards has not ended after 3600 s (batch.maxSeconds): {words}"


@pytest.mark.parametrize(
    ("batch", "noted"),
    [
        (WatchedBatch(PLAN, BatchPhase.PROCESS), "BatchOverdue at "),
        (WatchedBatch(PLAN, BatchPhase.FAILED, error=ValueError("no such column")), "ValueError"),
        (WatchedBatch(PLAN, BatchPhase.FAILED, error=ConnectionError("refused")), None),
        (WatchedBatch(PLAN, BatchPhase.FAILED, error=Fenced("a later epoch")), None),
        (WatchedBatch(PLAN, BatchPhase.CLOSING), None),
        (WatchedBatch(PLAN, BatchPhase.PROCESS, drained=True), None),
        (WatchedBatch(PLAN, BatchPhase.PROCESS, planning=True), None),
    ],
    ids=["process hangs", "what process raised", "what waiting cures", "no failure of process", "the table", "a drain", "Spark plans"],
)
def test_only_a_failure_of_process_counts_for_the_next_driver(batch: WatchedBatch, noted: str | None) -> None:
    """It goes on with the search; anything else would exclude records for somebody else's fault."""
    notes: list[Any] = []
    overdue.note(cast("Any", SimpleNamespace(overdue=lambda *note: notes.append(note))), batch, FRAMES)
    assert [note[1].startswith(noted) for note in notes] == ([True] if noted else [])

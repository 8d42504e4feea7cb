"""A driver whose code holds Python's lock: what its supervisor tells and notes of its end. Real processes."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import pytest
from supervising import CONFIG, leased

from sluice_checkpoints.protocol.poison_note import IsolationNote, note, noted
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.config import DeadLetterConfig, OnErrorConfig
from sluice_consumer.exits.ending import Ending
from sluice_consumer.poison.search import DoubtLimits, Search, restored
from sluice_consumer.process.child_process import DriverProcess, end_group
from sluice_consumer.process.supervisor import Supervisor
from sluice_consumer.watchdog.armed_timer import ERROR, ArmedTimer

SEARCHES = OnErrorConfig(DeadLetterConfig(path="/letters"))
REGEX = 're.match("(a+)+$", "a" * 60 + "b")'
DRIVER = """
import os, re, signal, threading, time
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.watchdog import batch_watch
from sluice_consumer.watchdog.batch_watch import BatchLimits, BatchWatch, WatchPorts
from sluice_consumer.exits.ending import OwnWord
signal.alarm(60)
OwnWord.open()
batch_watch.GRACE_SECONDS = 0.2
class Engine:
    def run(self, plan):
        {process}
ports = WatchPorts(called=lambda: True, progress=lambda: (1,), warn=print, end=print)
watch = BatchWatch(Engine(), BatchLimits({still}, 60, 0.2), ports)
with watch.started(), watch.batch(BatchPlan(7, ())):
    watch.run(BatchPlan(7, ()))
{after}
"""


def ended(process: str, how: OnErrorConfig | None, still: float = 0.2, after: str = "", *, lost: bool = False) -> tuple[Ending, IsolationNote]:
    """How such a driver ended, and the note that is there then. `lost`: another epoch has taken the lease by then, and no beat has said so."""
    store, taken = leased()
    taken = replace(taken, sent=time.monotonic())
    keeper = Supervisor(replace(CONFIG, on_error=how), store, store)
    child = DriverProcess([sys.executable, "-c", DRIVER.format(process=process, still=still, after=after)])
    if lost:
        taken = replace(taken, row=replace(taken.row, token="of another"))
        keeper._beating = CheckpointStoreThatAccepts(store.table)
    try:
        return keeper.watch(child, taken), noted(store)
    finally:
        end_group(child)
        child.close()


class CheckpointStoreThatAccepts(CheckpointStore):
    def beat(self, *_: object) -> bool:
        return True


def test_code_that_holds_pythons_lock_is_told_as_a_batch_that_does_not_end_and_counts_for_the_next_driver() -> None:
    """Nothing in the driver could say it: not the watch, and no thread of its own."""
    ending, left = ended(REGEX, SEARCHES)
    assert (ending.code, ending.reason) == (1, "BatchOverdue")
    assert "batch 7 has not ended (batch.maxSeconds): code in the driver holds Python's lock" in ending.message
    assert "it counts as a failure" in ending.message
    assert (left.batch, left.failed) == (7, ERROR)
    assert restored(Search(3, DoubtLimits()), left.search, 0.0).evidence.failures == 0


@pytest.mark.parametrize("how", [None, replace(SEARCHES, isolate=False), replace(SEARCHES, dead_letter=None)])
def test_where_no_record_is_searched_for_nothing_is_noted(how: OnErrorConfig | None) -> None:
    ending, left = ended(REGEX, how)
    assert (ending.reason, left) == ("BatchOverdue", IsolationNote())
    assert "counts" not in ending.message


def test_an_epoch_that_lost_its_lease_leaves_no_note() -> None:
    """The condition fails: the note may be another's by now."""
    ending, left = ended(REGEX, SEARCHES, lost=True)
    assert (ending.reason, left) == ("BatchOverdue", IsolationNote())


@pytest.mark.parametrize(
    ("process", "still", "after"),
    [("os._exit(1)", 30.0, ""), ("os._exit(3)", 0.2, ""), ("pass", 0.2, "time.sleep(0.8); os._exit(1)")],
    ids=["before the timer", "with another status", "between two batches"],
)
def test_a_process_that_exits_by_itself_was_not_ended_by_the_timer(process: str, still: float, after: str) -> None:
    ending, left = ended(process, SEARCHES, still, after)
    assert (ending.reason, left) == ("DriverExited", IsolationNote())


@pytest.mark.parametrize("phase", ["beginning", "failed", "closing"])
def test_only_in_process_it_is_a_failure_of_process(phase: str) -> None:
    """Else records would be excluded for somebody else's fault."""
    store, taken = leased()
    timer = ArmedTimer(7, phase, 0.0)
    timer.note(store, taken.epoch, SEARCHES)
    assert noted(store) == IsolationNote()
    assert "counts" not in timer.ending(SEARCHES).message


def test_what_is_known_of_the_batch_already_stays_in_the_note() -> None:
    store, taken = leased()
    known = {"evidence": {"failures": 2}}
    note(store, taken.epoch, IsolationNote(7, known, hour=5, excluded=4, ever=9))
    ArmedTimer(7, "process", 0.0).note(store, taken.epoch, SEARCHES)
    left = noted(store)
    assert (left.search, left.failed, left.hour, left.excluded, left.ever) == (known, ERROR, 5, 4, 9)
    ArmedTimer(8, "process", 0.0).note(store, taken.epoch, SEARCHES)
    assert noted(store).search != known


def test_a_mark_is_read_as_it_was_written() -> None:
    timer = ArmedTimer(12_345_678, "beginning", 12_345_678.125)
    assert ArmedTimer.parse(str(timer)) == timer
    assert [ArmedTimer.parse(mark) for mark in ("", "  ", "armed 7")] == [None, None, None]

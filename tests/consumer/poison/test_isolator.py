"""What a batch that failed waits for before it is given out again: for how long, what is said, and what ends it (docs/protocol.md, "Poison")."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches.planner import BatchPlan, TableView
from sluice_consumer.poison import isolator
from sluice_consumer.poison.isolator import BatchOverdue, IsolationPorts, Isolator, SettlePatience
from sluice_consumer.poison.search import DAY, BatchFailure, Search

LEASE, LIMIT = 20.0, 300.0
ROW = ShardRow("a", Position.after("1"), Position.after("3"), batch=4, records=2)
PLAN = BatchPlan(4, (ROW,))
POISON = ValueError("unknown status")


@dataclass
class World:
    """A driver whose `process` raised while another job of the batch reads on, in virtual time.

    Attributes:
        ends: when that job ends by itself. cancelled_ends: how long after it was cancelled it does.
        drains: when the driver is told to drain.
    """

    ends: float = float("inf")
    cancelled_ends: float = float("inf")
    drains: float = float("inf")
    transient: bool = False
    time: float = 0.0
    waits: int = 0
    cancelled: float | None = None
    said: list[str | None] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)

    def isolator(self, monkeypatch: pytest.MonkeyPatch) -> Isolator:
        view = TableView({"a": ROW}, 3, frozenset())
        consumer = SimpleNamespace(store=None, epoch=None, view=view, close_failed=lambda _plan: (ROW,), know=lambda *_rows: None)
        note = SimpleNamespace(batch=None, search=None, failed=None, trace=None, ever=0)
        monkeypatch.setattr(isolator, "noted", lambda _store: note)
        monkeypatch.setattr(Isolator, "_note", lambda _self, number, failed=None, trace=None: self.notes.append((number, failed, trace)))
        ports = IsolationPorts(
            excluding=cast("Any", None),
            judge=lambda _error: BatchFailure("ValueError at m.py:1", self.transient, self.time, "a trace"),
            quiet=self.quiet,
            wait=self.wait,
            clock=lambda: self.time,
            cancel=self.cancel,
            patience=SettlePatience(LEASE, LIMIT),
            state=self.said.append,
        )
        return Isolator(cast("Any", consumer), ports, Search(3))

    def quiet(self) -> bool:
        return self.time >= min(self.ends, float("inf") if self.cancelled is None else self.cancelled + self.cancelled_ends)

    def cancel(self) -> None:
        self.cancelled = self.time if self.cancelled is None else self.cancelled

    def wait(self, seconds: float) -> bool:
        self.time += seconds
        self.waits += 1
        assert self.waits < 10 * LIMIT, "it waits for ever"
        return self.time >= self.drains


def test_a_job_that_ends_by_itself_is_waited_for_and_not_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adaptive execution leaves such jobs. Why nothing comes is said from the beginning."""
    world = World(ends=5.0)
    world.isolator(monkeypatch).failed(PLAN, POISON)
    assert world.cancelled is None
    assert world.said[0] == "batch 4 failed (ValueError at m.py:1); it comes again when no task of it can be working"
    assert "batch 4 failed (ValueError at m.py:1); the same 2 records of 1 shard come again" in str(world.said[1])


def test_a_job_that_hangs_beside_the_failure_is_cancelled_after_a_lease_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(cancelled_ends=LEASE)
    world.isolator(monkeypatch).failed(PLAN, POISON)
    assert world.cancelled == pytest.approx(LEASE, abs=1)
    assert world.time < 3 * LEASE


@pytest.mark.parametrize("transient", [False, True])
def test_a_job_that_cannot_be_cancelled_ends_the_epoch_and_the_original_error_is_named(
    monkeypatch: pytest.MonkeyPatch,
    transient: bool,  # noqa: FBT001
) -> None:
    world = World(transient=transient)
    with pytest.raises(BatchOverdue, match=r"batch 4 failed \(ValueError at m\.py:1\), and 300 s later \(batch\.maxSeconds\)") as raised:
        world.isolator(monkeypatch).failed(PLAN, POISON)
    assert raised.value.__cause__ is POISON
    assert world.time <= LIMIT + 1
    assert world.notes == ([] if transient else [(4, "ValueError at m.py:1", "a trace")])


@pytest.mark.parametrize("ends", [float("inf"), 0.0])
def test_a_drain_during_a_search_is_a_drain(monkeypatch: pytest.MonkeyPatch, ends: float) -> None:
    world = World(ends=ends, drains=0.5)
    world.isolator(monkeypatch).failed(PLAN, POISON)
    assert world.time <= 1


def test_what_has_failed_for_a_day_is_said_to_have_done_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(ends=0.0, transient=True)
    search = world.isolator(monkeypatch)
    for _ in range(2):
        search.failed(PLAN, POISON)
        assert "for a day" not in str(world.said[-1])
        world.time += DAY / 2
    search.failed(PLAN, POISON)
    assert str(world.said[-1]).endswith("; for a day nothing of it has passed, or was left out")

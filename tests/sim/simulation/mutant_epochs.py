"""Mutants of an epoch: its take-over, its lease, its commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from simulation import habits, ports
from simulation.mutant import Patch, mutant, without_condition

from sluice_checkpoints.protocol import lease
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.batches import bootstrap, planner
from sluice_consumer.batches import consumer as epoch
from sluice_lab.fakes.table import MemoryTable, copied


def _begin(patch: Patch, fenced: Callable[[epoch.Consumer], dict[str, ShardRow]]) -> None:
    """Another way to begin an epoch: `fenced` gives the rows it starts from."""

    def begin(self: epoch.Consumer, _progress: object = None) -> None:
        consumer = self.store.consumer()
        assert consumer is not None
        self.row = bootstrap.finish(self.store, consumer, self.epoch)
        self.view = planner.TableView(fenced(self), consumer.committed, frozenset())
        self.audit()

    patch.setattr(epoch.Consumer, "begin", begin)


@mutant(
    "a take-over fences no row",
    "An epoch: then fence every shard row",
    hunted=True,
    stories="a_bind_between_scan_and_fence a_bind_after_the_take_over",
)
def no_fence(patch: Patch) -> None:
    """A late bind of an earlier epoch counts."""
    _begin(patch, lambda self: self.store.shards())


@mutant(
    "rows are read before they are fenced",
    "An epoch: take, then fence, then read",
    stories="a_bind_between_scan_and_fence",
    rules="usurp advance",
    processes=(habits.READ,),
)
def read_before_fence(patch: Patch) -> None:
    """A bind between the two is not seen (KAFKA-8187)."""

    def fenced(self: epoch.Consumer) -> dict[str, ShardRow]:
        rows = self.store.shards()
        for row in rows.values():
            self.store.fence(self.epoch, row.id)
        return rows

    _begin(patch, fenced)


@mutant(
    "a commit has no condition", "A batch: IF generation=:g AND committed=:N-1", stories="a_late_commit", rules="succeed", processes=(habits.READ,)
)
def blind_commit(patch: Patch) -> None:
    """An epoch that stood still before its commit takes the consumer back."""
    without_condition(patch, "commit", lambda _condition: True)


@mutant(
    "a taken lease shortens the promise",
    "An epoch: takes at once with leaseMillis = the larger promise",
    stories="a_usurper_that_dies",
    rules="usurp start_epoch advance zombie",
    processes=(habits.READ,),
)
def short_promise(patch: Patch) -> None:
    """Who watches next does not watch long enough."""
    real = CheckpointStore.take

    def take(self: CheckpointStore, seen: Any, wanted: Any) -> Any:
        return real(self, seen, replace(wanted, lease_millis=min(wanted.lease_millis, 12_000)))

    patch.setattr(CheckpointStore, "take", take)


@mutant(
    "a lease is taken without watching it",
    "An epoch: watch for the whole duration the holder promised",
    stories="a_rival a_usurper_that_dies",
    rules="start_epoch step",
    processes=(habits.READ,),
)
def no_watch(patch: Patch) -> None:
    """The former epoch is still working (KCL issue 11)."""
    patch.setattr(lease.Watcher, "wait_out", lambda _self, read: read())


@mutant(
    "a lease is watched for no longer than it was promised",
    "An epoch: watched for the whole duration that its holder promised, and 5 % longer",
    stories="two_clocks_that_differ",
)
def no_margin(patch: Patch) -> None:
    """The watcher's clock is fast, the holder's is slow, and both work for a moment."""
    patch.setattr(lease, "MARGIN", 1.0)


@mutant(
    "rows are read eventually consistent",
    "Rows: every read that decides is strongly consistent",
    stories="a_bind_between_scan_and_fence",
    rules="usurp",
    processes=(habits.READ,),
)
def stale_reads(patch: Patch) -> None:
    """The answer is that of a machine which has not heard of the last few writes (KCL reads so by default)."""
    real, before = MemoryTable._apply, deque([MemoryTable()], maxlen=4)

    def apply(self: MemoryTable, write: Any) -> Any:
        before.append(MemoryTable())
        before[-1].rows = copied(self.rows)
        return real(self, write)

    patch.setattr(MemoryTable, "_apply", apply)
    patch.setattr(ports.Client, "scan", lambda _self: before[0].scan())

"""Mutants of a batch: what it contains, and who may emit it."""

from __future__ import annotations

from dataclasses import replace

from simulation import habits, spark
from simulation.mutant import Patch, mutant, without_condition

from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, Range, Replay, TaskAttempt
from sluice_checkpoints.protocol.table import Equals
from sluice_consumer.batches import consumer, planner


@mutant(
    "an empty range is not bound",
    "A batch: what a batch contains is fixed, also when it is nothing",
    hunted=True,
    stories="a_late_fetch_after_an_empty_range",
)
def no_empty_bind(patch: Patch) -> None:
    """What was nothing may become something while the batch is open."""
    real = CheckpointStore.bind

    def bind(self: CheckpointStore, owner: Epoch, batch: int, bound: Range, reader: TaskAttempt) -> Replay | None:
        return real(self, owner, batch, bound, reader) if bound.records or bound.end.at == "END" else None

    patch.setattr(CheckpointStore, "bind", bind)


@mutant(
    "a batch is committed without closing",
    "A batch: close each unbound one",
    hunted=True,
    stories="a_late_bind_after_the_close",
    rules="executor",
    processes=(habits.SWALLOW,),
    only_close=True,
    looks_first=True,
    attempts=1,
)
def no_close(patch: Patch) -> None:
    """A zombie binds into a batch that is over."""
    patch.setattr(consumer.Consumer, "_closed", lambda _self, _batch, row: row)


@mutant(
    "failed jobs are not looked for",
    "A batch: refuse to commit if any job failed",
    hunted=True,
    stories="a_swallowed_failure",
    rules="executor",
    processes=(habits.SWALLOW,),
    only_close=False,
    attempts=1,
)
def no_check(patch: Patch) -> None:
    """A process that swallows a failure loses what was not read."""
    patch.setattr(spark.Engine, "check", lambda _self: None)


@mutant(
    "a retry does not wait",
    "A batch: wait out the lease duration",
    hunted=True,
    stories="a_retry_beside_its_former_attempt",
    rules="executor",
    processes=(habits.READ,),
    attempts=3,
)
def no_wait(patch: Patch) -> None:
    """Two attempts of a task emit the same shard side by side."""
    patch.setattr(spark.Engine, "_sleep", lambda _self, process, _until: process.pause("no wait"))


@mutant(
    "a replay does not register",
    "A batch: before a replay emits it registers",
    hunted=True,
    stories="a_retry_beside_its_former_attempt",
    rules="executor",
    processes=(habits.READ,),
    attempts=3,
)
def no_register(patch: Patch) -> None:
    """Nobody knows who may be emitting."""
    patch.setattr(CheckpointStore, "register", lambda *_: None)


@mutant(
    "a row at END has nothing to replay",
    "A batch: a row bound to END in the open batch takes part in its replay",
    rare=True,
    stories="a_crash_after_the_end_was_bound",
    rules="split succeed",
    processes=(habits.READ,),
    limit=8,
    end_with_records=True,
)
def end_is_over(patch: Patch) -> None:
    """END is read as `end=END`, not as *stands at END*."""
    real = planner.next_batch

    def next_batch(view: planner.TableView, idle: frozenset[str] = frozenset()) -> planner.BatchPlan:
        plan = real(view, idle)
        return replace(plan, rows=tuple(row for row in plan.rows if row.end.at != "END"))

    patch.setattr(planner, "next_batch", next_batch)


@mutant(
    "a replay gains a shard",
    "A batch: that batch is exactly those rows",
    stories="a_crash_in_a_batch_that_left_a_shard_out",
    rules="succeed",
    looks_first=False,
    processes=(habits.READ,),
)
def replay_gains(patch: Patch) -> None:
    """Whoever was left out of the batch joins the replay; a sink that has the batch skips it."""

    def next_batch(view: planner.TableView, idle: frozenset[str] = frozenset()) -> planner.BatchPlan:
        rows = (view.rows[shard] for shard in sorted(view.rows))
        taking = tuple(row for row in rows if row.batch == view.number or (row.id not in idle and planner._takes_part(view, row)))
        return planner.BatchPlan(view.number, taking)

    patch.setattr(planner, "next_batch", next_batch)


@mutant(
    "a bind does not look at the generation",
    "A batch: IF generation=:g",
    stories="a_bind_after_the_take_over",
    rules="succeed",
    processes=(habits.READ,),
)
def bind_without_generation(patch: Patch) -> None:
    """A fenced epoch goes on binding."""
    without_condition(patch, "bind", lambda c: isinstance(c, Equals) and c.path == ("generation",))


@mutant(
    "a range may be bound again in its batch",
    "A batch: IF batch<:N",
    rare=True,
    stories="a_late_fetch_after_an_empty_range",
    rules="executor",
    processes=(habits.READ,),
    attempts=3,
    shards_per_task=2,
    bind_all_first=True,
)
def bind_again(patch: Patch) -> None:
    """The second attempt decides again what the batch contains."""
    without_condition(patch, "bind", lambda c: not isinstance(c, Equals))


@mutant(
    "a range may begin anywhere",
    "A batch: IF end=:start",
    harmless="a zombie's bind is stopped by the generation, by `batch<:N` or by the close first; the chain is the second lock",
    rules="executor succeed",
)
def bind_without_chain(patch: Patch) -> None:
    """A zombie of an earlier batch... is stopped by `batch<:N` alone, if at all."""
    without_condition(patch, "bind", lambda c: isinstance(c, Equals) and c.path == ("end",))

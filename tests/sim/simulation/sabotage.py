"""One-line sabotages of the protocol, each a rule taken out, and the invariant that is expected to notice.

A sabotage patches the real code (and, where a rule is Spark's part, its simulated twin) through pytest's `monkeypatch`. `habits` narrows the worlds
to those in which the rule matters, so that few examples suffice.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from simulation import ports, spark, world

from sluice_checkpoints import lease
from sluice_checkpoints.memory import MemoryTable
from sluice_checkpoints.model import Position, ShardRow
from sluice_checkpoints.store import CheckpointStore, Life, Range, Reader, Replay
from sluice_checkpoints.table import Equals, Put
from sluice_consumer import bootstrap, life, planner
from sluice_consumer.shard_reader import Fetched, Limits, Place

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Sabotage:
    """A rule taken out.

    Attributes:
        name: what is wrong then.
        rule: where protocol.md says otherwise.
        apply: takes the rule out.
        stories: those of `stories` that catch it, whatever the machine does.
        hunted: the machine finds it too, within a few seconds.
        harmless: why nothing breaks without this rule alone.
        rules: the machine's rules that may bring it to light, beside `put` and `work`; none: all of them.
        world: habits of the worlds to look in: those in which the rule matters.
    """

    name: str
    rule: str
    apply: Callable[[Patch], None]
    stories: tuple[str, ...]
    hunted: bool
    harmless: str
    rules: frozenset[str]
    world: Mapping[str, Any]


SABOTAGES: list[Sabotage] = []


def sabotage(
    name: str, rule: str, stories: str = "", rules: str = "", *, hunted: bool = False, harmless: str = "", **habits: Any
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Enters a function into the list."""

    def enter(apply: Callable[[Patch], None]) -> Callable[[Patch], None]:
        SABOTAGES.append(Sabotage(name, rule, apply, tuple(stories.split()), hunted, harmless, frozenset(rules.split()), habits))
        return apply

    return enter


def _without_condition(patch: Patch, method: str, drop: Callable[[Any], bool]) -> None:
    """Takes conditions out of the writes that one method of the store makes."""
    real = getattr(CheckpointStore, method)

    class Deaf:
        """A table that overhears some conditions."""

        def __init__(self, table: Any) -> None:
            self._table = table

        def __getattr__(self, name: str) -> Any:
            return getattr(self._table, name)

        def write(self, write: Any) -> Any:
            return self._table.write(replace(write, when=tuple(c for c in write.when if not drop(c))))

    def deaf(self: CheckpointStore, *args: Any) -> Any:
        return real(CheckpointStore(Deaf(self.table)), *args)  # type: ignore[arg-type]  # Deaf forwards everything

    patch.setattr(CheckpointStore, method, deaf)


def _clock(patch: Patch) -> Callable[[], int]:
    """The clock of the world that was made last, for sabotages of code that has none."""
    worlds: list[world.World] = []
    real = world.World.__init__

    def init(self: world.World, *args: Any) -> None:
        real(self, *args)
        worlds[:] = [self]

    patch.setattr(world.World, "__init__", init)
    return lambda: worlds[0].stream.now()  # noqa: PLW0108 - the world is made later


def _begin(patch: Patch, fenced: Callable[[life.Consumer], dict[str, ShardRow]]) -> None:
    """Another way to begin a life: `fenced` gives the rows it starts from."""

    def begin(self: life.Consumer, _progress: object = None) -> None:
        consumer = self.store.consumer()
        assert consumer is not None
        self.row = bootstrap.finish(self.store, consumer, self.life)
        self.view = planner.View(fenced(self), consumer.committed, frozenset())
        self.audit()

    patch.setattr(life.Consumer, "begin", begin)


@sabotage(
    "a take-over fences no row", "A life: then fence every shard row", hunted=True, stories="a_bind_between_scan_and_fence a_bind_after_the_take_over"
)
def no_fence(patch: Patch) -> None:
    """A late bind of an earlier life counts."""
    _begin(patch, lambda self: self.store.shards())


@sabotage(
    "rows are read before they are fenced",
    "A life: take, then fence, then read",
    stories="a_bind_between_scan_and_fence",
    rules="usurp advance",
    processes=(spark.READ,),
)
def read_before_fence(patch: Patch) -> None:
    """A bind between the two is not seen (KAFKA-8187)."""

    def fenced(self: life.Consumer) -> dict[str, ShardRow]:
        rows = self.store.shards()
        for row in rows.values():
            self.store.fence(self.life, row.id)
        return rows

    _begin(patch, fenced)


@sabotage(
    "an empty range is not bound",
    "Batches 2: what a batch contains is fixed, also when it is nothing",
    hunted=True,
    stories="a_late_fetch_after_an_empty_range",
)
def no_empty_bind(patch: Patch) -> None:
    """What was nothing may become something while the batch is open."""
    real = CheckpointStore.bind

    def bind(self: CheckpointStore, owner: Life, batch: int, bound: Range, reader: Reader) -> Replay | None:
        return real(self, owner, batch, bound, reader) if bound.records or bound.end.at == "END" else None

    patch.setattr(CheckpointStore, "bind", bind)


@sabotage(
    "a batch is committed without closing",
    "Batches 6: close each unbound one",
    hunted=True,
    stories="a_late_bind_after_the_close",
    rules="executor",
    processes=(spark.SWALLOW,),
    only_close=True,
    looks_first=True,
    attempts=1,
)
def no_close(patch: Patch) -> None:
    """A zombie binds into a batch that is over."""
    patch.setattr(life.Consumer, "_closed", lambda _self, _batch, row: row)


@sabotage(
    "failed jobs are not looked for",
    "Batches 6: refuse to commit if any job failed",
    hunted=True,
    stories="a_swallowed_failure",
    rules="executor",
    processes=(spark.SWALLOW,),
    only_close=False,
    attempts=1,
)
def no_check(patch: Patch) -> None:
    """A process that swallows a failure loses what was not read."""
    patch.setattr(spark.Engine, "check", lambda _self: None)


@sabotage(
    "a retry does not wait",
    "Batches 4: wait out the lease duration",
    hunted=True,
    stories="a_retry_beside_its_former_attempt",
    rules="executor",
    processes=(spark.READ,),
    attempts=3,
)
def no_wait(patch: Patch) -> None:
    """Two attempts of a task emit the same shard side by side."""
    patch.setattr(spark.Engine, "_sleep", lambda _self, process, _until: process.pause("no wait"))


@sabotage(
    "a replay does not register",
    "Batches 4: before a replay emits it registers",
    hunted=True,
    stories="a_retry_beside_its_former_attempt",
    rules="executor",
    processes=(spark.READ,),
    attempts=3,
)
def no_register(patch: Patch) -> None:
    """Nobody knows who may be emitting."""
    patch.setattr(CheckpointStore, "register", lambda *_: None)


@sabotage(
    "a row at END has nothing to replay",
    "Batches 1: a row bound to END in the open batch takes part in its replay",
    hunted=True,
    stories="a_crash_after_the_end_was_bound",
    rules="split succeed",
    processes=(spark.READ,),
    limit=8,
    end_with_records=True,
)
def end_is_over(patch: Patch) -> None:
    """END is read as `end=END`, not as *stands at END*."""
    real = planner.next_batch

    def next_batch(view: planner.View) -> planner.BatchPlan:
        plan = real(view)
        return replace(plan, rows=tuple(row for row in plan.rows if row.end.at != "END"))

    patch.setattr(planner, "next_batch", next_batch)


@sabotage(
    "rows of children are put without any condition",
    "Batches 1: a transaction, put if absent",
    stories="a_late_creation_of_children",
    rules="split succeed",
)
def blind_create(patch: Patch) -> None:
    """A late creation puts a shard back to its beginning."""

    def create(self: CheckpointStore, _owner: Life, _committed: int, rows: Sequence[ShardRow]) -> None:
        for row in rows:
            self.table.write(Put(row.to_item(), ()))

    patch.setattr(CheckpointStore, "create_shards", create)


@sabotage(
    "a replay gains a shard",
    "Batches 1: that batch is exactly those rows",
    harmless="a process that reads everything has bound every row of its plan before its sink knows the batch; the rest has nothing to lose",
    rules="succeed",
)
def replay_gains(patch: Patch) -> None:
    """Whoever bound nothing joins the replay."""

    def next_batch(view: planner.View) -> planner.BatchPlan:
        rows = (view.rows[shard] for shard in sorted(view.rows))
        taking = tuple(row for row in rows if row.batch == view.number or planner._takes_part(view, row))
        return planner.BatchPlan(view.number, taking)

    patch.setattr(planner, "next_batch", next_batch)


@sabotage("a child joins its parent's batch", "Batches 1: all of whose parents stand at END", hunted=True, stories="one_parent_of_a_merge_has_more")
def child_joins_parent(patch: Patch) -> None:
    """Records of a child come beside, or before, those of its parent."""
    patch.setattr(planner, "stands_at_end", lambda _view, _shard: True)


@sabotage(
    "one ended parent is enough",
    "Batches 1: all of whose parents",
    hunted=True,
    stories="one_parent_of_a_merge_has_more",
    rules="merge split audit",
    processes=(spark.READ,),
)
def one_parent(patch: Patch) -> None:
    """Of a merge, the other parent still has records."""

    def takes_part(view: planner.View, row: ShardRow) -> bool:
        joined = row.joins <= view.number and row.stands(view.committed).at != "END"
        return joined and (not row.parents or any(planner.stands_at_end(view, parent) for parent in row.parents))

    patch.setattr(planner, "_takes_part", takes_part)


@sabotage(
    "children start at LATEST",
    "Bootstrap: every shard found later starts at TRIM_HORIZON (kinsumer PR 33)",
    hunted=True,
    stories="a_split_before_its_children_are_known",
)
def children_at_latest(patch: Patch) -> None:
    """What arrived in a child before it was known is lost."""
    real, clock = planner._beginning, _clock(patch)

    def beginning(child: Any, generation: int, joins: int) -> ShardRow:
        latest = Position.timestamp(clock())
        return replace(real(child, generation, joins), start=latest, end=latest)

    patch.setattr(planner, "_beginning", beginning)


@sabotage(
    "a commit has no condition", "Batches 7: IF generation=:g AND committed=:N-1", stories="a_late_commit", rules="succeed", processes=(spark.READ,)
)
def blind_commit(patch: Patch) -> None:
    """A life that stood still before its commit takes the consumer back."""
    _without_condition(patch, "commit", lambda _condition: True)


@sabotage(
    "a bind does not look at the generation",
    "Batches 2: IF generation=:g",
    stories="a_bind_after_the_take_over",
    rules="succeed",
    processes=(spark.READ,),
)
def bind_without_generation(patch: Patch) -> None:
    """A fenced life goes on binding."""
    _without_condition(patch, "bind", lambda c: isinstance(c, Equals) and c.path == ("generation",))


@sabotage(
    "a range may be bound again in its batch",
    "Batches 2: IF batch<:N",
    hunted=True,
    stories="a_late_fetch_after_an_empty_range",
    rules="executor",
    processes=(spark.READ,),
)
def bind_again(patch: Patch) -> None:
    """The second attempt decides anew what the batch contains."""
    _without_condition(patch, "bind", lambda c: not isinstance(c, Equals))


@sabotage(
    "a range may begin anywhere",
    "Batches 2: IF end=:start",
    harmless="a zombie's bind is stopped by the generation, by `batch<:N` or by the close first; the chain is the second lock",
    rules="executor succeed",
)
def bind_without_chain(patch: Patch) -> None:
    """A zombie of an earlier batch... is stopped by `batch<:N` alone, if at all."""
    _without_condition(patch, "bind", lambda c: isinstance(c, Equals) and c.path == ("end",))


@sabotage(
    "a taken lease shortens the promise",
    "A life: takes at once with leaseMillis = the larger promise",
    stories="a_usurper_that_dies",
    rules="usurp start_life advance zombie",
    processes=(spark.READ,),
)
def short_promise(patch: Patch) -> None:
    """Who watches next does not watch long enough."""
    real = CheckpointStore.take

    def take(self: CheckpointStore, seen: Any, wanted: Any) -> Any:
        return real(self, seen, replace(wanted, lease_millis=min(wanted.lease_millis, 12_000)))

    patch.setattr(CheckpointStore, "take", take)


@sabotage(
    "a lease is taken without watching it",
    "A life: watch for the whole duration the holder promised",
    stories="a_rival a_usurper_that_dies",
    rules="start_life step",
    processes=(spark.READ,),
)
def no_watch(patch: Patch) -> None:
    """The former life is still working (KCL issue 11)."""
    patch.setattr(lease.Watcher, "wait_out", lambda _self, read: read())


@sabotage(
    "a lease is watched for no longer than it was promised",
    "A life: watched for the whole duration that its holder promised, and 5 % longer",
    stories="two_clocks_that_differ",
)
def no_margin(patch: Patch) -> None:
    """The watcher's clock is fast, the holder's is slow, and both work for a moment."""
    patch.setattr(lease, "MARGIN", 1.0)


@sabotage(
    "rows are read eventually consistent",
    "Rows: every read that decides is strongly consistent",
    hunted=True,
    processes=(spark.READ,),
)
def stale_reads(patch: Patch) -> None:
    """The answer is that of a machine which has not heard of the last write (KCL reads so by default)."""
    real, before = MemoryTable._apply, MemoryTable("before")

    def apply(self: MemoryTable, write: Any) -> Any:
        before.rows = copy.deepcopy(self.rows)
        return real(self, write)

    patch.setattr(MemoryTable, "_apply", apply)
    patch.setattr(ports.Client, "scan", lambda _self: before.scan())


@sabotage(
    "a plan without shards is not committed",
    "Batches 1: committed at once if rows with a higher joins exist",
    stories="a_late_creation_of_children",
    rules="split succeed",
    processes=(spark.READ,),
)
def no_empty_commit(patch: Patch) -> None:
    """Who joins the batch after the next waits for ever."""
    patch.setattr(planner, "waits_for_number", lambda _view: False)


@sabotage(
    "a child joins the next batch after a take-over",
    "Batches 1: committed+2 until this life has committed a batch of its own",
    harmless="every life creates what its committed batches name before it plans, so no batch was issued without the child",
    rules="split succeed",
)
def joins_at_once(patch: Patch) -> None:
    """What an earlier life may have issued changes."""
    real = planner.missing_children
    patch.setattr(planner, "missing_children", lambda view, generation: real(replace(view, own_commits=True), generation))


@sabotage(
    "LATEST is looked up when a shard is read",
    "Bootstrap: LATEST is pinned to a time, once",
    hunted=True,
    stories="latest_with_a_crash_before_the_first_commit",
)
def latest_when_read(patch: Patch) -> None:
    """What arrived between the first start and the first bind is lost."""
    real, clock = ports.Source.fetch, _clock(patch)

    def fetch(self: ports.Source, place: Place, limits: Limits) -> Fetched:
        late = replace(place, position=Position.timestamp(clock())) if place.position.at == "TIMESTAMP" else place
        return real(self, late, limits)

    patch.setattr(ports.Source, "fetch", fetch)

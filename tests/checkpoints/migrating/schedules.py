"""What can happen to migrators, one function a claim; each raises AssertionError where the claim does not hold, and returns how many ran.

A claim is tried at every call of a run: "at" is the number of a call, and a call that writes counts twice, before it took effect and after. What
holds at any time (`Bench.check_write`) is looked at after every single write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any

from faults import Crash
from migrating.bench import TARGET, Bench, Calls, State
from migrating.stage import Case

from sluice_checkpoints.errors import LeaseHeld, ProtocolViolation, Refused, ServiceUnavailable, SluiceError, SourceActive
from sluice_checkpoints.migrate.ports import MigrationPorts
from sluice_checkpoints.position import END
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, take_over
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION, SHARD_PREFIX, Item, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import Member, Outcome, Transaction, Write
from sluice_consumer.config import CheckpointsConfig, Config, MigrateFromConfig, PipelineConfig, StreamConfig
from sluice_consumer.process import supervisor
from sluice_lab.fakes.table import MemoryTable, copied

QUIET = 15.0  # seconds: long enough for a heartbeat of the claim, short enough for thousands of runs
LEASE = 30.0
PASSING = (LeaseHeld, SourceActive, ServiceUnavailable)  # exit 75, or "run it again"


def bench(case: Case, **asked: Any) -> Bench:
    return Bench(case, **{"quiet_seconds": QUIET, **asked})


def attempt(world: Bench, calls: Calls, wrapped: Callable[[MigrationPorts], MigrationPorts] = lambda world: world) -> type[BaseException] | None:
    """Runs one process; returns what ended it, None if it came to its end. Only what passes by itself may end it."""
    try:
        world.process(calls, wrapped).run()
    except (Crash, *PASSING) as ended:
        return type(ended)
    except SluiceError as error:
        raise AssertionError(f"a migrator gave up, though nothing is wrong: {error!r}") from error
    return None


def finish(world: Bench, expected: dict[str, Item], calls: Calls | None = None) -> None:
    ended = attempt(world, calls or Calls())
    assert ended is None, f"same_end: the next run ended with {ended}"
    assert world.end_state() == expected, "same_end"


def check_gate(world: Bench, expected: dict[str, Item]) -> None:
    """A driver that tries to start here is refused, unless everything is as it will be."""
    complete = TARGET in world.targets.tables and CONSUMER in world.table.rows
    assert starts(world) is complete, "gate: a driver could start" if not complete else "gate: no driver can start"
    if complete:
        assert world.end_state() == expected, "gate: a driver could start before the end"


def starts(world: Bench) -> bool:
    table = MemoryTable()
    table.rows = copied(world.table.rows) if TARGET in world.targets.tables else {}
    store = CheckpointStore(table)
    stream, source = StreamConfig(world.stream.name, "eu-west-1"), MigrateFromConfig(world.case.table)
    config = Config(stream, CheckpointsConfig(TARGET), PipelineConfig("orders:process"), migrate_from=source)
    try:
        supervisor.prepare(config, store, world.stream)
    except Refused:
        return False
    return take_over(store, LeaseRequest(45_000, "driver", "now"), Watcher(lambda: 0.0, lambda _: None)).row.generation == 1


def is_over(world: Bench) -> bool:
    return TARGET in world.targets.tables and CONSUMER in world.table.rows


def run_length(case: Case) -> int:
    calls = Calls()
    assert attempt(bench(case), calls) is None
    return calls.made


def log_of(case: Case) -> list[str]:
    calls = Calls()
    attempt(bench(case), calls)
    return calls.log


@cache
def moves_in(case: Case) -> str:
    world = bench(case)
    before = copied(world.sources.tables)
    world.move()
    return next(name for name, (_, rows) in world.sources.tables.items() if rows != before[name][1])


def undisturbed(case: Case, **asked: Any) -> Bench:
    world = bench(case, **asked)
    assert attempt(world, Calls()) is None
    return world


# -- crashes and lost replies ------------------------------------------------------------------------------------------------------


@dataclass
class Explored:
    """What was tried: runs of migrators, faults (crashes and lost replies), and by depth the different tables that they left behind."""

    runs: int = 0
    faults: int = 0
    states: list[int] = field(default_factory=list)


def crashes(case: Case, depth: int = 2, **asked: Any) -> Explored:
    """At every call the process dies or the reply is lost; then at every call of the next run; and so on, `depth` deep.

    A crash leaves what stands there at that call and nothing of the process, so one run shows the crashes at all of its calls. Faults that leave the
    same tables behind have the same future, so each such state is continued from once.
    """
    expected = undisturbed(case, **asked).end_state()
    world = bench(case, **asked)
    states, explored = [world.state()], Explored()
    source, seen = states[0].sources, {states[0].key}
    for level in range(depth + 1):
        explored.states.append(len(states))
        following: list[State] = []
        for left in (left for state in states for left in _continued(world, state, expected, explored, last=level == depth)):
            if left.key not in seen:
                seen.add(left.key)
                following.append(left)
                world.restore(left)
                check_gate(world, expected)
        assert world.sources.tables == source, "source_is_only_read"
        states = following
    return explored


def _continued(world: Bench, state: State, expected: dict[str, Item], explored: Explored, *, last: bool) -> Iterator[State]:
    """Runs a migration from `state` to its end, unless `last` also with every fault; gives what each fault leaves behind."""
    world.restore(state)
    calls, at_calls = Calls(), [state]
    calls.wrote = lambda: at_calls.append(world.state())
    finish(world, expected, calls)
    explored.runs += 1
    explored.faults += 0 if last else calls.made
    yield from () if last else at_calls
    for at in () if last else count():
        world.restore(state)
        calls = Calls(lose_at=at)
        if attempt(world, calls) is None:
            # The last call gives a claim back that is complete: what becomes of that is nothing to anybody.
            assert calls.made <= at + 1, f"lost_replies: call {at} of {calls.made} was not missed"
            break
        explored.runs += 1
        explored.faults += 1
        yield world.state()


class Repeating(MemoryTable):
    """A table whose every write loses its first reply and is sent again, without the idempotency token that DynamoDB offers."""

    def write(self, write: Write) -> Outcome:
        super().write(write)
        return super().write(write)

    def transact(self, members: list[Member]) -> Transaction:  # type: ignore[override]  # the narrower type is what callers give
        super().transact(members)
        return super().transact(members)


def repeated_writes(case: Case) -> int:
    """A write that is sent twice, because its first reply was lost, is recognised: no run ends for it, and none is needed after it."""
    expected = undisturbed(case).end_state()
    world = bench(case)
    world.targets.tables[TARGET] = Repeating(TARGET)
    ended = attempt(world, Calls())
    assert ended is None, f"repeated_writes: ended with {ended}"
    assert world.end_state() == expected, "same_end"
    return 1


# -- other programs ----------------------------------------------------------------------------------------------------------------


def an_intruder(case: Case) -> int:
    """Something that is no migrator writes a row of the target at any call: nothing of it is overwritten, and no consumer row follows it."""
    log = log_of(case)
    verified = [i for i, line in enumerate(log) if line == "before scan"][-1]
    for at in range(len(log)):
        world, calls = bench(case), Calls()
        key = SHARD_PREFIX + world.one
        intrusion: dict[str, Item] = {}

        def visit(number: int, world: Bench = world, at: int = at, key: str = key, intrusion: dict[str, Item] = intrusion) -> None:
            if number == at and TARGET in world.targets.tables and MIGRATION in world.table.rows:
                row = world.table.rows.get(key, ShardRow(world.one, END, END).to_item())
                intrusion[key] = world.table.rows[key] = row | {"batch": 1, "start": END.to_map(), "end": END.to_map()}

        calls.visit = visit
        try:
            world.process(calls).run()
        except ProtocolViolation:
            assert CONSUMER not in world.table.rows, "gate"
        assert not intrusion or world.table.rows[key] == intrusion[key], "nothing_is_overwritten"
        assert not intrusion or at > verified or CONSUMER not in world.table.rows, f"verified: the row written at call {at} went unnoticed"
    return len(log)

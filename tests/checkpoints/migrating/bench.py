"""A world of in-memory fakes for migrations: one clock, a stream, a source, a place for targets, and a fault at any call."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from faults import Catalog, Crash
from migrating.cases import KCL1
from migrating.stage import Case, Stage, Tables

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.migrate.migrator import Migrator
from sluice_checkpoints.migrate.plan import digest_of
from sluice_checkpoints.migrate.ports import MigrationPorts, MigrationRequest, PreparedTarget
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION, SHARD_PREFIX, Item, ShardRow
from sluice_lab.fakes.migration import MemorySources, MemoryTargets
from sluice_lab.fakes.table import MemoryTable, copied

TARGET = "sluice-orders"
# What is random, or counts: tokens, ids and heartbeats, and the time of the first claim.
VOLATILE = frozenset({"token", "consumerId", "counter", "now"})


@dataclass
class Calls:
    """Every call of one process (or of several) passes here, numbered from 0. One of them may be made to fail.

    Attributes:
        crash_at: from this call on the process is dead. A crash "after" took effect, one "before" did not.
        lose_at: the reply of this call is lost.
        visit: called at every call with its number; may do what other programs would do at this moment.
        wrote: called after every write that took effect.
    """

    made: int = 0
    log: list[str] = field(default_factory=list)
    arguments: list[object] = field(default_factory=list)
    crash_at: int | None = None
    lose_at: int | None = None
    visit: Callable[[int], None] = lambda _number: None
    wrote: Callable[[], None] = lambda: None

    def __call__(self, when: str, operation: str, argument: object) -> None:
        number, self.made = self.made, self.made + 1
        self.log.append(f"{when} {operation}")
        self.arguments.append(argument)
        if self.crash_at is not None and number > self.crash_at:
            raise Crash  # a handler's call: a process that is gone makes none
        if when == "after" and operation != "create":
            self.wrote()
        if number == self.crash_at:
            raise Crash
        if number == self.lose_at:
            raise ServiceUnavailable(f"call {number} had no answer")
        self.visit(number)

    def last(self, operation: str, argument: object) -> int:
        """The number of the last such call; -1: there was none."""
        return max((i for i, line in enumerate(self.log) if line == f"before {operation}" and self.arguments[i] == argument), default=-1)


class TargetsView(MemoryTargets):
    """One process's view of targets that are shared: its calls go by its own hook."""

    def find(self, name: str) -> MemoryTable | None:
        self.hook("before", "find", name)
        return self._view(self.tables[name]) if name in self.tables else None

    def ensure(self, name: str) -> PreparedTarget:
        prepared = super().ensure(name)
        return replace(prepared, table=self._view(self.tables[name]))

    def _view(self, table: MemoryTable) -> MemoryTable:
        view = copy.copy(table)  # of the same rows and lock
        view.hook = self.hook
        return view


@dataclass(frozen=True)
class State:
    """All that outlives a process: the rows of target and source, and what the time is."""

    targets: dict[str, dict[str, Item]]
    sources: Tables

    @property
    def key(self) -> str:
        """States of one key lead to the same future: only what is random, and the time of the first claim, is left out."""
        rows = self.targets.get(TARGET)
        if rows is None:
            return "no table"
        return repr({i: {k: v for k, v in row.items() if k not in {"token", "consumerId", "now"}} for i, row in sorted(rows.items())})


def settled(rows: dict[str, Item]) -> dict[str, Item]:
    """A target without what is random, counted or the time; of the plan's digest only whether it is that of the rows."""
    now = {"at": "TIMESTAMP", "millis": rows[MIGRATION]["now"]}
    digest = digest_of(ShardRow.from_item(row) for row in rows.values() if row["id"].startswith(SHARD_PREFIX))
    state = {i: {k: "T0" if v == now else v for k, v in row.items() if k not in VOLATILE} for i, row in rows.items()}
    del state[MIGRATION]["generation"]
    state[MIGRATION]["planDigest"] = rows[MIGRATION]["planDigest"] == digest
    return state


class Bench:
    """One world, over which any number of migrators may run.

    Attributes:
        seconds: the clock of every process, and of the stream.
        calls: what the processes of `migrator` have called, taken together.
        sources, targets: the tables, as those processes see them.
        request: what all migrators are asked.
        holders: tokens of the claim, one for each time it was taken since the world was made or restored.
    """

    def __init__(self, case: Case = KCL1, **asked: Any) -> None:
        self.case, self.seconds, self.calls = case, 0.0, Calls()
        stage = Stage(lambda: 1_700_000_000_000 + round(self.seconds * 1000))
        self.stream, self.reached = stage.stream, stage.reached
        self.zero, self.one, self.two, self.three = stage.zero, stage.one, stage.two, stage.three
        self.sources = MemorySources(case.make(stage, case.table), self.calls)
        self.targets = TargetsView(hook=self.calls)
        self.request = replace(MigrationRequest(case.table, TARGET), **asked)
        self.holders: list[str] = []
        self._tokens, self._names, self._moved = count(1), count(1), count(1)

    @property
    def rows(self) -> list[Any]:
        return self.sources.tables[self.case.table][1]

    @property
    def table(self) -> MemoryTable:
        return self.targets.tables[self.request.target]

    def world(self, calls: Calls | None = None, name: str = "token") -> MigrationPorts:
        """The ports of one process; the tokens it draws begin with its name. Its sleep is a call only where all calls are counted together."""
        sleep = self._sleep if calls else self._sleep_and_wake
        calls = calls or self.calls
        return MigrationPorts(
            MemorySources(self.sources.tables, calls),
            Catalog(self.stream, calls),
            TargetsView(self.targets.tables, calls, self.targets.warnings),
            self._clock,
            sleep,
            lambda: f"{name}-{next(self._tokens)}",
        )

    def migrator(self, **changes: Any) -> Migrator:
        return Migrator(replace(self.request, **changes), self.world())

    def process(self, calls: Calls, world: Callable[[MigrationPorts], MigrationPorts] = lambda world: world) -> Migrator:
        """A new process with calls of its own, held to what every process must keep to whenever it writes."""
        name = f"process {next(self._names)} "
        told = calls.wrote

        def wrote() -> None:
            self.check_write(name)
            told()

        calls.wrote = wrote
        return Migrator(self.request, world(self.world(calls, name)))

    def move(self) -> None:
        """What a worker that lives does every few seconds: it checkpoints."""
        self.reached = self.stream.put_in(self.one, b"later")
        self.case.checkpoint(self.sources.tables, self.case, self.reached)

    def beat(self) -> None:
        self.case.beat(self.sources.tables, self.case, next(self._moved))

    # -- what holds at any time ----------------------------------------------------------------------------------------------------

    def check_write(self, name: str) -> None:
        """Only the holder of the claim writes, the consumer comes last, and T0 stays what it was first."""
        rows = self.table.rows
        claim = rows[MIGRATION]
        if claim["token"] not in self.holders:
            self.holders.append(claim["token"])
        assert claim["token"].startswith(name), f"only_the_claimant_writes: {name}wrote under the claim of {claim['token']}"
        assert (CONSUMER in rows) == (claim["state"] == "COMPLETE"), "complete_and_consumer_are_one"
        at = {row["start"]["millis"] for row in rows.values() if row.get("start", {}).get("at") == "TIMESTAMP"}
        assert at <= {claim["now"]}, f"one_t0: {at} beside the claim's {claim['now']}"

    def end_state(self) -> dict[str, Item]:
        return settled(self.table.rows)

    def places(self) -> dict[str, Item]:
        return {i.removeprefix(SHARD_PREFIX): row["start"] for i, row in self.table.rows.items() if i.startswith(SHARD_PREFIX)}

    def due(self) -> dict[str, Item]:
        planned = Migrator(replace(self.request, target="another", quiet_seconds=0), self.world(Calls())).dry_run().plan
        assert planned
        return {one.id: one.row.start.to_map() for one in planned.shards}

    # -- going back ----------------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        return State({name: copied(table.rows) for name, table in self.targets.tables.items()}, copied(self.sources.tables))

    def restore(self, state: State) -> None:
        self.holders.clear()
        self.targets.tables.clear()
        for name, rows in state.targets.items():
            self.targets.tables[name] = MemoryTable(name, self.calls)
            self.targets.tables[name].rows = copied(rows)
        self.sources.tables.clear()
        self.sources.tables.update(copied(state.sources))

    def _clock(self) -> float:
        return self.seconds

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def _sleep_and_wake(self, seconds: float) -> None:
        self._sleep(seconds)
        self.calls("before", "wake", seconds)

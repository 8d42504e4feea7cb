from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Any, cast

import pytest

from sluice_checkpoints.errors import LeaseHeld, Refused, ServiceUnavailable
from sluice_checkpoints.memory.stream import MemoryStream
from sluice_checkpoints.memory.table import MemoryTable
from sluice_checkpoints.migrate.ports import PreparedTarget
from sluice_checkpoints.protocol.lease import LeaseRequest, TakenLease, Watcher, take_over
from sluice_checkpoints.protocol.rows import ConsumerRow, MigrationRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.config import CheckpointsConfig, Config, MigrateFromConfig, PipelineConfig, StartConfig, StreamConfig
from sluice_consumer.process import child_process as children
from sluice_consumer.process import supervisor, wiring
from sluice_consumer.process.child_process import die_with_parent, end_group
from sluice_consumer.process.ending import QUIET, UNCLEAN
from sluice_consumer.process.lease_handoff import LeaseHandoff
from sluice_consumer.process.supervisor import Heartbeats, Supervisor
from sluice_operator.apply import spark_settings

LEASE = 30.0
CONFIG = Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig("m:f"), lease_duration_seconds=LEASE)


@dataclass
class Stop:
    """An event in virtual time that is set after some waits."""

    heart: Any = None
    waits: list[float] = field(default_factory=list)
    limit: int = 10

    def is_set(self) -> bool:
        """Whether the test is over."""
        return len(self.waits) >= self.limit

    def wait(self, seconds: float) -> None:
        """Lets time pass."""
        self.waits.append(seconds)
        self.heart.time[0] += seconds


class Beating(Heartbeats):
    """A heart in virtual time; `answers` are what beats come to, the last one for ever."""

    def __init__(self, *answers: bool | Exception, keep: float = 0.0, limit: int = 10, seconds: float = 0.0) -> None:
        self.time, self.promises, self.answers, self.seconds = [0.0], list[int | None](), list(answers), seconds
        stop = Stop(self, limit=limit)
        super().__init__(self._answer, LEASE, 0.0, keep, clock=lambda: self.time[0], stop=cast("Any", stop))
        self.waits = stop.waits

    def _answer(self, promise: int | None) -> bool:
        self.promises.append(promise)
        self.time[0] += self.seconds
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


YES, NO, GONE = True, False, ServiceUnavailable("no answer")


def test_a_heart_beats_every_third_of_the_lease() -> None:
    """And lives as long as its beats are accepted."""
    heart = Beating(YES, limit=4)
    heart.run()
    assert heart.waits == [10.0] * 4
    assert heart.alive


def test_after_a_failure_a_heart_tries_sooner() -> None:
    """It has until two thirds of the lease are over."""
    heart = Beating(YES, GONE, GONE, YES, limit=4)
    heart.run()
    assert heart.waits == [10.0, 1.25, 1.25, 10.0]


def test_an_epoch_ends_when_no_beat_sent_in_the_last_two_thirds_was_accepted() -> None:
    """The watchdog asks; it kills then."""
    heart = Beating(GONE)
    heart.time[0] = 20.0
    assert heart.alive
    heart.time[0] = 20.1
    assert not heart.alive


def test_what_counts_is_when_a_beat_was_sent_not_when_it_was_answered() -> None:
    """The next epoch counts from the moment it saw the counter move."""
    heart = Beating(YES, seconds=15.0)
    heart.once()
    assert (heart.accepted, heart.alive) == (0.0, True)
    heart.time[0] = 20.1
    assert not heart.alive


def test_a_refused_beat_ends_the_epoch_at_once_and_no_other_is_sent() -> None:
    """The lease is another's."""
    heart = Beating(NO)
    heart.run()
    assert heart.refused
    assert not heart.alive
    assert len(heart.promises) == 1


def test_a_heart_that_stood_still_for_too_long_does_not_revive_its_epoch() -> None:
    """Its driver has ended itself by then, even if the table still accepts the beat."""
    heart = Beating(YES)
    heart.time[0] = 20.1
    heart.once()
    assert heart.accepted == 20.1
    assert not heart.alive


def test_the_send_time_of_each_accepted_beat_is_told() -> None:
    """The driver judges by it; a beat without an answer, or a refused one, tells it nothing."""
    heart, told = Beating(YES, GONE, YES, NO), list[float]()
    heart.on_beat = told.append
    heart.run()
    assert told == [0.0, 11.25]


def test_a_longer_promise_is_kept_until_it_was_waited_out() -> None:
    """Only then a beat makes its own, shorter promise."""
    heart = Beating(YES, keep=25.0, limit=4)
    heart.run()
    assert heart.promises == [None, None, None, 30_000]


@pytest.mark.parametrize(
    ("code", "at", "released", "reason"),
    [
        (0, 50.0, True, "Drained"),
        (UNCLEAN, 50.0, False, "Drained"),
        (0, 10.0, False, "Drained"),
        (1, 50.0, False, ""),
        (65 | QUIET, 50.0, True, ""),
        (65 | QUIET, 10.0, False, ""),
        (-9, 50.0, False, "DriverKilled"),
    ],
    ids=[
        "a clean drain",
        "a drain after trouble",
        "a drain before a forced promise is over",
        "an error",
        "a refusal",
        "a refusal before a forced promise is over",
        "a killed driver",
    ],
)
def test_the_lease_is_released_only_after(code: int, at: float, released: bool, reason: str) -> None:  # noqa: FBT001
    """Somebody may still be working otherwise, and the next driver has to wait."""
    store, taken = leased()
    heart = Beating(YES, keep=25.0)
    heart.time[0] = at
    ending = Supervisor(CONFIG, store, store)._ended(code, heart, taken.epoch)
    row = store.consumer()
    assert row is not None
    assert (row.released, ending.reason) == (released, reason)


def test_a_clean_drain_stays_one_although_its_lease_could_not_be_released() -> None:
    """An exit with 1 would count as a failure, and say nothing of why the next driver waits."""
    store, taken = leased()
    beating = CheckpointStore(MemoryTable())
    cast("MemoryTable", beating.table).hook = lambda *_: (_ for _ in ()).throw(GONE)
    ending = Supervisor(CONFIG, store, beating)._ended(0, Beating(YES), taken.epoch)
    assert (ending.code, ending.reason) == (0, "Drained")
    assert "was not released: no answer" in ending.message


def test_everything_of_an_epoch_is_silent_before_the_next_one_takes_its_lease() -> None:
    """Two thirds until the watchdog looks, one third until executors have noticed; clocks run at the same rate within one percent."""
    heart, seen = Beating(GONE), []
    while heart.alive:
        heart.time[0] += LEASE / 40
    silent = (heart.time[0] + LEASE / 3) * 1.01
    store, _ = leased(round(LEASE * 1000))
    virtual = Time()
    take_over(store, LeaseRequest(1000, "me", ""), replace(virtual.watcher(), notify=seen.append))
    assert silent <= seen[0] * 0.99 + 1e-9
    assert virtual.now == pytest.approx(seen[0])


# -- draining ----------------------------------------------------------------------------------------------------------------------

LIMIT = CONFIG.drain_timeout_seconds + supervisor.STOP_SECONDS
HANGS = "signal.SIG_IGN"
DRAINS = "lambda *_: os._exit(0)"


class Drain:
    """A supervisor whose clock stands at 0 when its driver, a real process, is told to stop."""

    def __init__(self, on_term: str) -> None:
        self.store, taken = leased()
        self.taken = replace(taken, sent=time.monotonic())  # beats are sent in real time
        self.now = 0.0
        self.keeper = Supervisor(CONFIG, self.store, self.store, lambda: self.now)
        code = f"import os, signal; signal.alarm(60); signal.signal(signal.SIGTERM, {on_term}); print('ready', flush=True); signal.pause()"
        self.child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        assert self.child.stdout is not None
        self.child.stdout.readline()
        self.keeper._child = self.child

    def told(self) -> Drain:
        """SIGTERM reaches the supervisor."""
        self.keeper.on_term()
        return self

    def watched(self, at: float) -> tuple[int, str, bool]:
        """Exit code and reason, and whether the lease was released, if it is watched from then on."""
        self.now = at
        try:
            ending = self.keeper.watch(self.child, self.taken)
        finally:
            if self.child.poll() is None:
                end_group(self.child)
            for pipe in (self.child.stdin, self.child.stdout):
                assert pipe is not None
                pipe.close()
        row = self.store.consumer()
        assert row is not None
        return ending.code, ending.reason, row.released


def test_a_drain_that_does_not_end_is_ended_and_its_lease_runs_out() -> None:
    """Outside of a cluster nobody else would, and the supervisor would beat for ever. Somebody may still be working: nothing is released."""
    assert Drain(HANGS).told().watched(at=LIMIT) == (1, "DrainTimeout", False)


def test_being_told_again_gives_a_drain_no_more_time() -> None:
    """Whoever presses Ctrl-C again wants it sooner."""
    drain = Drain(HANGS).told()
    drain.now = LIMIT - 1
    assert drain.told().watched(at=LIMIT) == (1, "DrainTimeout", False)


def test_a_drain_has_all_of_its_time() -> None:
    """A driver that ends by itself is not killed, however late."""
    assert Drain(DRAINS).told().watched(at=LIMIT - 0.001) == (0, "Drained", True)


def test_a_pod_is_not_killed_before_its_supervisor_has_ended_the_drain() -> None:
    """So the pod's last words say what happened, and the kubelet's limit is only for a supervisor that hangs."""
    assert 0 < supervisor.STOP_SECONDS < spark_settings.MARGIN


# -- a driver starts before its lease is taken -------------------------------------------------------------------------------------


def test_a_driver_dies_when_its_lease_is_not_taken() -> None:
    """With all that it has started: it has no epoch to work for."""
    with pytest.raises(LeaseHeld), children.starting(["sleep", "60"]) as child:
        raise LeaseHeld("it beats")
    assert child.poll() == -signal.SIGKILL


def test_a_driver_gets_its_epoch_once_the_lease_is_taken(tmp_path: Path) -> None:
    """On standard input, and nothing before."""
    _, taken = leased()
    with children.starting(["sh", "-c", f"head -n 1 >{tmp_path}/said"]) as child:
        children.order(child, replace(taken, wait_out_millis=7, how="forced"), number=5)
        assert child.wait(60) == 0
    with FileIO(tmp_path / "said") as said:
        assert LeaseHandoff.read(said) == LeaseHandoff(taken.epoch.generation, taken.epoch.token, "forced", 7, 5, taken.sent)


def test_a_driver_that_died_while_the_lease_was_waited_for_is_judged_by_its_exit_code() -> None:
    """Not by the orders that could not be handed over; and its lease is not released."""
    store, taken = leased()
    with children.starting(["sh", "-c", "exit 3"]) as child:
        child.wait(60)
        children.order(child, taken, number=0)
        assert Supervisor(CONFIG, store, store).watch(child, taken).code == 3
    row = store.consumer()
    assert row is not None
    assert not row.released


def test_a_driver_without_its_supervisor_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have died before the driver's death signal was set."""
    monkeypatch.setenv(children.PARENT, "1" if os.getppid() != 1 else "2")
    with pytest.raises(SystemExit):
        die_with_parent()


# -- taking ------------------------------------------------------------------------------------------------------------------------


@dataclass
class Time:
    """Virtual time, in which things happen while somebody sleeps."""

    now: float = 0.0
    slept: float = 0.0
    at: dict[float, Any] = field(default_factory=dict)

    def watcher(self) -> Watcher:
        """A watcher in this time."""
        return Watcher(clock=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds
        self.slept += seconds
        for moment in sorted(m for m in self.at if m <= self.now):
            self.at.pop(moment)()


def leased(lease_millis: int = 30_000) -> tuple[CheckpointStore, TakenLease]:
    """A table whose lease is held."""
    store = CheckpointStore(MemoryTable())
    store.create_consumer(ConsumerRow("id", "arn", 1))
    return store, take_over(store, LeaseRequest(lease_millis, "me", ""), Time().watcher())


def test_a_new_table_and_a_released_lease_are_taken_at_once() -> None:
    """Nobody can be working."""
    store, taken = leased()
    store.release(taken.epoch)
    virtual = Time()
    again = take_over(store, LeaseRequest(1000, "me", ""), virtual.watcher())
    assert (taken.how, again.how, again.row.generation, virtual.slept) == ("new", "released", 2, 0)
    assert not store.consumer().released  # type: ignore[union-attr]  # it is there


def test_a_lease_that_was_not_released_is_watched_for_all_of_what_its_holder_promised() -> None:
    """The holder's promise counts, not the taker's."""
    store, _ = leased()
    virtual = Time()
    taken = take_over(store, LeaseRequest(1000, "me", ""), virtual.watcher())
    assert virtual.slept >= LEASE
    assert (taken.row.lease_millis, taken.wait_out_millis, taken.how) == (1000, 0, "expired")


def test_a_lease_that_beats_is_held() -> None:
    """Even with the very last look."""
    store, taken = leased()
    virtual = Time(at={LEASE - 0.1: lambda: store.beat(taken.epoch)})
    with pytest.raises(LeaseHeld):
        take_over(store, LeaseRequest(1000, "me", ""), virtual.watcher())


def test_a_forced_take_keeps_the_larger_promise_and_waits_it_out() -> None:
    """Whoever watches next must watch long enough for both before it."""
    for mine, larger in ((1000, 30_000), (60_000, 60_000)):
        store, _ = leased()
        virtual = Time()
        taken = take_over(store, LeaseRequest(mine, "me", "", force=True), virtual.watcher())
        assert (taken.row.lease_millis, taken.wait_out_millis, taken.how, virtual.slept) == (larger, larger, "forced", 0)


def test_a_forced_take_of_a_released_lease_waits_for_nobody() -> None:
    """There is nothing to force."""
    store, taken = leased()
    store.release(taken.epoch)
    assert take_over(store, LeaseRequest(1000, "me", "", force=True), Time().watcher()).wait_out_millis == 0


@pytest.mark.parametrize("force", [True, False])
def test_an_exported_table_is_refused(force: bool) -> None:  # noqa: FBT001
    """Its positions belong to another system now."""
    store = CheckpointStore(MemoryTable())
    store.create_consumer(ConsumerRow("id", "arn", 1, state="EXPORTED"))
    with pytest.raises(Refused, match="EXPORTED"):
        take_over(store, LeaseRequest(1000, "me", "", force=force), Time().watcher())


# -- a table that is gone ---------------------------------------------------------------------------------------------------------


class Targets:
    """DynamoDB, with a table or without."""

    def __init__(self, table: MemoryTable | None) -> None:
        self.table, self.asked, self.id = table, list[str](), "arn:t@1"

    def identity(self, _name: str) -> str:
        """See `DynamoTargets.identity`."""
        return self.id

    def find(self, _name: str) -> MemoryTable | None:
        """See `migrate.ports.Targets`."""
        return self.table

    def ensure(self, name: str) -> PreparedTarget:
        """See `migrate.ports.Targets`."""
        self.asked.append(name)
        return PreparedTarget(MemoryTable(), ())


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Targets:
    """A stream, and no table."""
    targets, table, stream = Targets(None), CheckpointStore(MemoryTable()), MemoryStream("s")
    for name, made in (("store", table), ("catalog", stream), ("targets", targets)):
        monkeypatch.setattr(wiring, name, lambda _config, made=made: made)
    return targets


@pytest.mark.parametrize("config", [CONFIG, replace(CONFIG, migrate_from=MigrateFromConfig("old"))], ids=["begun here", "migrated"])
def test_a_table_that_was_deleted_is_not_made_again(config: Config, services: Targets) -> None:
    """The new one would begin at start.position, and what lies between would be lost without a word."""
    with pytest.raises(Refused, match=r"checkpoints\.table: t does not exist, .* Restore it from a backup; or, to begin again, delete"):
        supervisor.open_table(config, made=True)
    assert services.asked == []


@pytest.mark.parametrize("made", [True, False])
def test_a_table_that_is_there_is_opened_and_one_that_never_was_is_made(made: bool, services: Targets) -> None:  # noqa: FBT001
    """Whoever has heard of it, and whoever has not."""
    services.table = MemoryTable() if made else None
    assert supervisor.open_table(CONFIG, made=made).consumer() is not None
    assert services.asked == ([] if made else ["t"])


# -- preparing ---------------------------------------------------------------------------------------------------------------------


def test_preparing_a_fresh_table_writes_one_plan_and_preparing_it_again_changes_nothing() -> None:
    """Where each shard begins is decided once."""
    stream, table = MemoryStream("s", 2), MemoryTable()
    supervisor.prepare(CONFIG, CheckpointStore(table), stream)
    before = dict(table.rows)
    supervisor.prepare(replace(CONFIG, start=StartConfig("LATEST")), CheckpointStore(table), stream)
    assert table.rows == before
    assert {key.split("/")[0] for key in before} == {"consumer", "bootstrap"}


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (None, "none"),
        (MigrationRow("old", "kcl", 1), "CLAIMED"),
        (MigrationRow("other", "kcl", 1, state="COMPLETE"), "other"),
    ],
    ids=["was never begun", "is not complete", "is of another table"],
)
def test_nothing_starts_when_the_migration_that_was_asked_for(row: MigrationRow | None, found: str) -> None:
    """It would start from the wrong place."""
    store = CheckpointStore(MemoryTable())
    if row:
        store.put_new(row.to_item())
    with pytest.raises(Refused, match=rf"migrateFrom\.table.*{found}"):
        supervisor.prepare(replace(CONFIG, migrate_from=MigrateFromConfig("old")), store, MemoryStream("s"))
    assert store.consumer() is None


def test_nothing_starts_on_the_target_of_an_unfinished_migration() -> None:
    """Even when this consumer was not told of it."""
    store = CheckpointStore(MemoryTable())
    store.put_new(MigrationRow("old", "kcl", 1).to_item())
    with pytest.raises(Refused, match=r"checkpoints\.table"):
        supervisor.prepare(CONFIG, store, MemoryStream("s"))


def test_nothing_starts_on_a_recreated_stream() -> None:
    """Refused before the lease is taken."""
    now = [1000]
    stream, store = MemoryStream("s", now=lambda: now[0]), CheckpointStore(MemoryTable())
    supervisor.prepare(CONFIG, store, stream)
    now[0] += 1
    stream.recreate()
    with pytest.raises(Refused, match="new table"):
        supervisor.prepare(CONFIG, store, stream)


def test_a_table_that_was_restored_under_the_name_is_refused(services: Targets) -> None:
    """Its batch numbers would come again with other records; nothing is written, the lease included."""
    store = supervisor.open_table(CONFIG)
    services.table = cast("MemoryTable", store.table)
    services.id = "arn:t@2"
    before = dict(services.table.rows)
    with pytest.raises(Refused, match=r"checkpoints\.table: .*is a copy of arn:t@1"):
        supervisor.open_table(CONFIG)
    assert services.table.rows == before


def test_sigterm_before_there_is_a_driver_stops_cleanly() -> None:
    """There is nothing to drain."""
    with pytest.raises(supervisor.Stopped) as stopped:
        Supervisor(CONFIG, CheckpointStore(MemoryTable()), CheckpointStore(MemoryTable())).on_term()
    assert stopped.value.exit_code == 0


def test_sigterm_while_the_lease_is_waited_for_ends_the_wait() -> None:
    """It may take minutes, and nothing was taken."""
    store, _ = leased()
    keeper, virtual = Supervisor(CONFIG, store, store), Time()
    virtual.at[10.0] = keeper.on_term
    with pytest.raises(supervisor.Stopped):
        keeper.take(virtual.watcher())
    assert virtual.now < LEASE
    assert store.consumer().generation == 1  # type: ignore[union-attr]  # it is there


@pytest.mark.parametrize("force", [False, True])
def test_sigterm_in_the_middle_of_a_take_releases_what_was_taken(force: bool) -> None:  # noqa: FBT001
    """Nobody else would. After a forced take a former epoch may still be working, and nothing is released."""
    store, taken = leased()
    if not force:
        store.release(taken.epoch)
    keeper = Supervisor(replace(CONFIG, force=force), store, store)
    table = cast("MemoryTable", store.table)
    table.hook = lambda when, operation, _: keeper.on_term() if (when, operation) == ("after", "write") and not keeper._stopping else None
    with pytest.raises(supervisor.Stopped):
        keeper.take(Time().watcher())
    row = store.consumer()
    assert row is not None
    assert (row.generation, row.released) == (2, not force)


def test_sigterm_between_take_and_watch_reaches_the_driver() -> None:
    """The driver drains, and its lease is released."""
    drain = Drain(DRAINS)
    keeper = drain.keeper = Supervisor(CONFIG, drain.store, drain.store, lambda: drain.now)
    keeper._waits = False
    keeper.on_term()
    assert drain.watched(at=0.0) == (0, "Drained", True)

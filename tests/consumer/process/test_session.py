"""The work of an epoch over in-memory fakes: how it begins and ends, and what it reports. With Spark: tests/contract/spark and tests/lab."""

from __future__ import annotations

import datetime
import gc
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from prometheus_client import generate_latest

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.batches import bootstrap
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.batches.retention import DataLost
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.config import BatchConfig, CheckpointsConfig, Config, OnErrorConfig, PipelineConfig, StartConfig, StreamConfig, UntilConfig
from sluice_consumer.driver_report import DriverReport, DriverWarning, ReportPhase, WarningReason
from sluice_consumer.exits.ending import ending_of
from sluice_consumer.kinesis.http import HttpKinesis
from sluice_consumer.process import poison_ports, session, wiring
from sluice_consumer.process.pod import ReportChange, Reporter
from sluice_consumer.process.session import Session, WorkLease, root_cause
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.shards.reader import ShardReader as Source
from sluice_consumer.shards.request_counts import RequestCounter
from sluice_consumer.spark.engine import SparkEngine
from sluice_lab.fakes.kinesis import MemoryKinesis
from sluice_lab.fakes.stream import DAY_MILLIS, MemoryStream
from sluice_lab.fakes.table import MemoryTable

HOUR_MILLIS = 3_600_000


class Bench:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000
        self.stream, self.table = MemoryStream("s", now=lambda: self.now), MemoryTable()
        self.store = CheckpointStore(self.table)
        bootstrap.prepare(self.store, bootstrap.Seed("p", "id", self.stream.describe(), self.stream.list_shards()), StartConfig())
        self.consumer = Consumer(self.store, self.stream, self.take())
        self.consumer.begin()

    def take(self) -> Epoch:
        before = self.store.consumer()
        assert before is not None
        after = self.store.take(before, replace(before, token="t", lease_millis=1))
        assert after is not None
        return Epoch(after.generation, after.token)

    def recreate(self) -> None:
        self.now += 1
        self.stream.recreate()

    def delete(self) -> None:
        self.stream.exists = False

    def cut(self) -> None:
        def refuse(*_: object) -> None:
            raise ServiceUnavailable("no answer")

        self.table.hook = refuse
        self.stream.describe = refuse  # type: ignore[method-assign, assignment]  # a service that does not answer


@pytest.mark.parametrize(
    ("behind", "code", "reason"),
    [
        (Bench.take, 76, "Fenced"),
        (Bench.recreate, 65, "Refused"),
        (Bench.delete, 65, "StreamNotFound"),
        (Bench.cut, 1, "RuntimeError"),
        (lambda _bench: None, 1, "RuntimeError"),
    ],
    ids=["a later epoch took over", "the stream was made again", "the stream is gone", "nothing answers", "of itself"],
)
def test_a_batch_failed_because(behind: Callable[[Bench], object], code: int, reason: str) -> None:
    """Spark's words for it would hide the reason, and the exit code would promise that a restart helps."""
    bench = Bench()
    behind(bench)
    ending = ending_of(root_cause(bench.consumer, RuntimeError("Job aborted due to stage failure")))
    assert (ending.code, ending.reason) == (code, reason)


# -- a whole life, without Spark ---------------------------------------------------------------------------------------------------


@dataclass
class Engine:
    world: World
    epoch: Epoch
    identity: StreamIdentity
    act: Callable[[], object] = lambda: None
    called: bool = True
    end: RunEnd | None = None
    read: list[bytes] = field(default_factory=list)

    def run(self, plan: BatchPlan) -> None:
        store, source = self.world.store, Source(self.world.client, self.world.stream, self.identity)
        reader = TaskAttempt(f"{self.epoch.generation}.0.0", 1)
        task = Task(
            self.epoch, plan.number, reader, Limits(4, 1000, self.end.millis if self.end else None), 1.0, lambda _seconds: None, self.world.requests
        )
        for row in plan.rows:
            self.read += read_shard(store, source, task, store.read([row.id])[row.id]).columns.data
        self.world.now_millis += 300
        self.act()

    def rest(self) -> None:
        """See `SparkEngine`."""

    def heartbeat(self) -> float:
        return 10.0


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, hours_ago: float = 0, age_hours: float = 0) -> None:
        self.ago = round(age_hours * HOUR_MILLIS)
        self.now_millis = round(time.time() * 1000)  # of the service; batches take time, and nothing else does
        self.stream = MemoryStream("s", 2, now=lambda: self.now_millis - self.ago)
        self.requests = RequestCounter()
        self.client, self.store = MemoryKinesis(self.stream), CheckpointStore(MemoryTable())
        monkeypatch.setattr(wiring, "store", lambda *_: self.store)
        monkeypatch.setattr(wiring, "catalog", lambda *_: self.stream)
        monkeypatch.setattr(session, "client", lambda *_, **__: self.client)
        self.ago = 0
        start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=hours_ago)
        config = StartConfig("AT_TIMESTAMP", start.isoformat()) if hours_ago else StartConfig()
        bootstrap.prepare(self.store, bootstrap.Seed("p", "id", self.stream.describe(), self.stream.list_shards()), config)
        self.reports: list[DriverReport] = []

    def put(self, shard: int, *data: bytes) -> None:
        for each in data:
            self.stream.put_in(f"shardId-{shard:012d}", each)

    def epoch(self, **config: Any) -> Session:
        before = self.store.consumer()
        assert before is not None
        after = self.store.take(before, replace(before, token=f"t{before.generation}", lease_millis=1))
        assert after is not None
        reporter = Reporter(None)

        def update(change: ReportChange) -> None:
            self.reports.append(change(self.reports[-1] if self.reports else DriverReport()))

        reporter.update = update  # type: ignore[method-assign]  # what the operator would read
        given: dict[str, Any] = {"until": UntilConfig(tip=True), "batch": BatchConfig(interval_seconds=0), **config}
        whole = Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig("m:f"), **given)
        return Session(whole, WorkLease(Epoch(after.generation, after.token), "released"), reporter, threading.Event())

    def engine(self, of: Session, act: Callable[[], object] = lambda: None) -> Engine:
        return Engine(self, of.consumer.epoch, of.consumer.identify(), act)

    def crash(self) -> None:
        dead = self.epoch()
        dead.begin(in_pod=False)

        def die() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            dead.loop(cast("SparkEngine", self.engine(dead, die)))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_backfill_reads_what_was_there_and_ends_though_records_keep_coming(world: World) -> None:
    world.put(0, *(b"%d" % n for n in range(9)))
    one = world.epoch()
    one.begin(in_pod=False)
    engine = world.engine(one, lambda: world.put(1, b"late"))
    one.loop(cast("SparkEngine", engine))
    assert {b"%d" % n for n in range(9)} <= set(engine.read)
    row = world.store.consumer()
    assert row is not None
    assert row.committed >= 3
    page = generate_latest(one._metrics.registry).decode()
    assert f"sluice_records_total {float(len(engine.read))}" in page
    assert f"sluice_committed_batch {float(row.committed)}" in page
    assert 'sluice_takeovers_total{how="released"} 1.0' in page


@pytest.mark.parametrize("expired", [True, False])
def test_the_exit_message_says_which_records_had_expired_at_the_first_start(world: World, monkeypatch: pytest.MonkeyPatch, *, expired: bool) -> None:
    """Nothing else names them. A table that does not answer at the end changes nothing about the end."""
    one = world.epoch()
    one.begin(in_pod=False)
    monkeypatch.setattr(bootstrap, "expired_before", lambda *_: 1_700_000_000_000 if expired else None)
    said = "; records that arrived before 2023-11-14T22:13:20+00:00 had expired at the first start"
    assert one.done.endswith(said) == expired
    monkeypatch.setattr(bootstrap, "expired_before", lambda *_: 1 / 0)
    assert one.done.startswith("0 records in 0 batches")


def test_what_tasks_called_is_counted_by_the_epoch_that_commits_their_batch(world: World) -> None:
    world.put(0, b"a")
    world.requests.add("kinesis/GetRecords")
    world.crash()
    world.requests.add("kinesis/GetRecords")  # of the replay: no row of this batch can carry it
    heir = world.epoch()
    heir.begin(in_pod=False)
    heir.loop(cast("SparkEngine", world.engine(heir)))
    batches = world.store.consumer().committed  # type: ignore[union-attr]  # it is there
    page = generate_latest(heir._metrics.registry).decode()
    assert 'sluice_calls_total{operation="GetRecords",process="tasks",service="kinesis"} 2.0' in page
    assert f'sluice_calls_total{{operation="UpdateItem",process="tasks",service="dynamodb"}} {2.0 * batches}' in page


def test_an_open_batch_that_expired_ends_an_epoch_before_it_begins(world: World) -> None:
    world.put(0, b"a", b"b", b"c")
    world.crash()
    world.stream.trim("shardId-000000000000", 2)
    heir = world.epoch()
    with pytest.raises(DataLost) as lost:
        heir.begin(in_pod=False)
    assert ending_of(lost.value).code == 65
    assert world.store.consumer().committed == 0  # type: ignore[union-attr]  # it is there


def test_the_batch_that_is_open_when_an_epoch_fails_is_known_with_what_it_holds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put(0, b"a", b"b", b"c")
    epoch = world.epoch()
    epoch.begin(in_pod=False)
    assert epoch.open_batch(ask=True) is None

    def die() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        epoch.loop(cast("SparkEngine", world.engine(epoch, die)))
    found = epoch.open_batch(ask=True)
    assert found is not None
    assert (found.number, sum(row.records for row in found.rows or ())) == (1, 3)
    assert epoch.open_batch(ask=False) == replace(found, rows=None)
    with monkeypatch.context() as patch:
        patch.setattr(epoch.consumer.store, "shards", lambda: 1 // 0)
        assert epoch.open_batch(ask=True) == replace(found, rows=None)
    heir = world.epoch()
    heir.begin(in_pod=False)
    heir.loop(cast("SparkEngine", world.engine(heir)))
    assert heir.open_batch(ask=True) is None


def test_an_accepted_loss_is_reported_and_counted(world: World) -> None:
    world.put(0, b"a", b"b", b"c")
    world.crash()
    world.stream.trim("shardId-000000000000", 2)
    heir = world.epoch(accept_loss_of_batch=1)
    heir.begin(in_pod=False)
    engine = world.engine(heir)
    heir.loop(cast("SparkEngine", engine))
    assert engine.read == [b"c"]
    assert "DataLossSuspected: shardId-000000000000: accepted as lost" in str((world.reports[-1].warnings or ())[0])
    assert 'sluice_warnings_total{reason="DataLossSuspected"} 1.0' in generate_latest(heir._metrics.registry).decode()


def test_retention_that_is_near_is_reported_until_it_is_over(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.ago = round(DAY_MILLIS * 0.9)
    one = world.epoch()
    one.begin(in_pod=False)
    seen: list[Any] = []

    def take_long() -> None:
        world.ago = 0
        one.consumer.audit()
        seen.append(one.current_warnings())

    one.loop(cast("SparkEngine", world.engine(one, take_long)))
    assert seen[0] == ()  # nothing was committed yet
    (warning,) = seen[1]
    assert str(warning).startswith("RetentionNear: shardId-000000000001 and 1 more read up to ")
    assert (warning,) in [report.warnings for report in world.reports]
    assert caplog.text.count("RetentionNear") == 1
    assert world.reports[-1].warnings == ()


def test_a_batch_that_comes_again_is_reported_until_it_passes(world: World) -> None:
    one = world.epoch()
    one.begin(in_pod=False)
    one._failing("why")
    assert one.current_warnings() == world.reports[-1].warnings == (DriverWarning(WarningReason.ISOLATING, "why"),)
    one._failing(None)
    assert one.current_warnings() == world.reports[-1].warnings == ()


def test_what_befalls_a_batch_that_fails_is_reported_by_its_reason(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = list[poison_ports.SessionParts]()
    monkeypatch.setattr(poison_ports, "isolator", lambda _consumer, _engine, _how, here: ports.append(here))
    one = world.epoch(on_error=OnErrorConfig())
    one.begin(in_pod=False)
    one.loop(cast("SparkEngine", world.engine(one)))
    (here,) = ports
    here.excluded("a record")
    here.state("a batch")
    assert {str(warning) for warning in one.current_warnings()} == {"PoisonExcluded: a record", "Isolating: a batch"}


def test_a_driver_reports_where_it_is(world: World) -> None:
    world.put(0, b"a")
    one = world.epoch()
    one.begin(in_pod=False)
    one.loop(cast("SparkEngine", world.engine(one)))
    seen = [(report.phase, report.open_batch) for report in world.reports]
    assert seen[:4] == [(ReportPhase.STARTING, None), (ReportPhase.RUNNING, None), (ReportPhase.RUNNING, 1), (ReportPhase.RUNNING, None)]
    one.report_progress(cast("SparkEngine", world.engine(one)), None, 0.0)
    assert world.reports[-1].phase is ReportPhase.IDLE
    one._drain.set()
    one.report_progress(cast("SparkEngine", world.engine(one)), None, 0.0)
    assert world.reports[-1].phase is ReportPhase.DRAINING


def test_a_driver_that_waits_out_a_lease_says_until_when(world: World) -> None:
    """The one before it may be working until then."""
    one = world.epoch()
    one._lease = replace(one._lease, wait_out_millis=60_000)
    one._drain.set()
    one.begin(in_pod=False)
    one.wait_out()
    assert (world.reports[-1].phase, bool(world.reports[-1].deadline)) == (ReportPhase.WAITING_OUT_LEASE, True)


def lived(world: World, hours_later: float = 0) -> list[str]:
    """All warnings of an epoch that reads to the tip, so many hours after the consumer was made."""
    world.ago = -round(hours_later * HOUR_MILLIS)
    one = world.epoch()
    one.begin(in_pod=False)
    one.loop(cast("SparkEngine", world.engine(one)))
    return [str(warning) for report in world.reports for warning in report.warnings or ()]


@pytest.mark.parametrize("age_hours", [1, 100], ids=["of a stream that is younger", "of a stream that is older"])
def test_a_start_before_the_oldest_record_is_no_loss(monkeypatch: pytest.MonkeyPatch, age_hours: float) -> None:
    """Nobody has read the shards before, and what had expired was never owed: no warning stays, in no epoch."""
    world = World(monkeypatch, hours_ago=43, age_hours=age_hours)
    world.put(0, b"a")
    assert lived(world) == lived(world) == []


def test_a_start_that_retention_overtakes_before_the_first_driver_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """What arrived in the first of these hours had been there when the consumer was made, and expired unread."""
    warnings = lived(World(monkeypatch, hours_ago=23, age_hours=100), hours_later=2)
    assert any("DataLossSuspected: shardId-000000000000: it was to begin at 20" in warning for warning in warnings)
    assert not any(warning.count("shardId-000000000000") > 1 for warning in warnings)


def test_a_driver_that_starts_tells_no_batch_before_it_has_read_the_table(world: World) -> None:
    """0 would look as if the consumer's place were lost."""
    lived(world)
    world.reports.clear()
    committed = world.store.consumer().committed  # type: ignore[union-attr]  # it is there
    world.epoch().begin(in_pod=False)
    assert committed > 0
    assert [report.batch for report in world.reports] == [None]


def test_a_driver_that_was_away_is_behind_before_its_first_batch(world: World) -> None:
    """After ten hours of suspension, and in each driver that dies in its first batch. Then the last commit counts."""
    lived(world)
    world.reports.clear()
    lived(world, hours_later=10)
    behind = [report.millis_behind_latest for report in world.reports if report.batch is not None]
    assert behind[0] == pytest.approx(10 * HOUR_MILLIS, rel=0.01)
    assert behind[-1] == 0


def test_how_far_a_driver_is_behind_is_unknown_if_no_shard_was_ever_read(world: World) -> None:
    """Not 0: there may be a day's records."""
    lived(world)
    assert next(report.millis_behind_latest for report in world.reports if report.batch is not None) is None


def test_a_driver_whose_clock_is_wrong_warns_of_no_retention(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ages are a matter of the service's clock alone."""
    one = world.epoch()
    one.begin(in_pod=False)
    one.loop(cast("SparkEngine", world.engine(one)))
    wrong = time.time() + 0.9 * DAY_MILLIS / 1000
    monkeypatch.setattr(time, "time", lambda: wrong)
    assert one.current_warnings() == ()


def test_a_retention_that_was_changed_reaches_the_tasks(world: World) -> None:
    """They would suspect a loss where there is none."""
    world.put(0, b"a")
    one = world.epoch()
    one.begin(in_pod=False)

    def change() -> None:
        world.stream.retention_millis *= 7
        one.consumer.audit()

    engine = world.engine(one, change)
    one.loop(cast("SparkEngine", engine))
    assert engine.identity.retention_millis == world.stream.retention_millis


def test_a_retention_that_an_audit_found_reaches_the_tasks_of_the_next_batch(world: World) -> None:
    """Not only those of the one after it: records may have expired by a shorter one."""
    world.put(0, b"a")
    one = world.epoch()
    one.begin(in_pod=False)
    seen: list[int] = []
    engine = world.engine(one, lambda: seen.append(engine.identity.retention_millis))
    world.stream.retention_millis //= 2
    one.consumer.audit()
    one.loop(cast("SparkEngine", engine))
    assert set(seen) == {world.stream.retention_millis}  # of every batch, however many it takes


def test_a_loss_that_the_epoch_before_committed_and_did_not_report_is_reported(world: World) -> None:
    world.put(0, b"a", b"b", b"c")
    world.crash()
    world.stream.trim("shardId-000000000000", 2)
    heir = world.epoch(accept_loss_of_batch=1)
    heir.begin(in_pod=False)
    plan = heir.consumer.plan()
    assert plan is not None
    heir.consumer.run(plan, world.engine(heir))
    last = world.epoch()
    last.begin(in_pod=False)
    assert "DataLossSuspected: shardId-000000000000: accepted as lost" in str(last.current_warnings()[0])


def test_a_client_of_the_stream_goes_with_its_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool's driver has thousands of epochs. What opens sockets stays: one for all of them, whoever counts the calls."""
    monkeypatch.setattr(wiring, "store", lambda *_: CheckpointStore(MemoryTable()))
    monkeypatch.setattr(wiring, "catalog", lambda *_: MemoryStream("s"))
    config = Config(StreamConfig("s", "eu-west-1", kinesis_endpoint="http://127.0.0.1:1"), CheckpointsConfig("t"), PipelineConfig("m:f"))
    clients, wires = list[weakref.ref[HttpKinesis]](), set[int]()
    for generation in range(1, 21):
        one = Session(config, WorkLease(Epoch(generation, "t"), "released"), Reporter(None), threading.Event())
        assert one.kinesis() is one.kinesis()
        wires.add(id(one.kinesis()._wire))
        clients.append(weakref.ref(one.kinesis()))
    del one
    gc.collect()
    assert [found for each in clients if (found := each()) is not None] == []
    assert len(wires) == 1


def test_slots_are_waited_for_while_nothing_watches_the_batch(world: World) -> None:
    world.put(0, *(b"%d" % n for n in range(9)))
    one, watched, batches = world.epoch(), list[bool](), list[int]()

    def queue_up() -> None:
        assert one._watch is not None
        watched.append(one._watch._batch is not None or one._watch._lock.locked())

    def act() -> None:
        batches.append(1)
        one._rest(0)

    one.queue_up = queue_up
    one.begin(in_pod=False)
    one.loop(cast("SparkEngine", world.engine(one, act)))
    assert len(batches) >= 3
    assert watched == [False] * 2 * len(batches)

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice_checkpoints.errors import ProtocolViolation
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_consumer.batches import bootstrap, retention
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.planner import BatchPlan, TableView
from sluice_consumer.batches.retention import DataLost
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.config import StartConfig
from sluice_consumer.kinesis.client import ShardNotFound
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.ranges import Limits
from sluice_consumer.shards.reader import ReplayShort
from sluice_consumer.shards.reader import ShardReader as Source
from sluice_lab.fakes.kinesis import FakeBehaviour, MemoryKinesis
from sluice_lab.fakes.stream import DAY_MILLIS, MemoryStream
from sluice_lab.fakes.table import MemoryTable

HOUR = 3_600_000
S0, S1 = "shardId-000000000000", "shardId-000000000001"

# -- about to be overtaken ---------------------------------------------------------------------------------------------------------

NOW = 100 * HOUR


def seen(*rows: ShardRow) -> TableView:
    return TableView({row.id: row for row in rows}, 3, frozenset())


def row(name: str, hours_ago: float, end: Position = TRIM_HORIZON, batch: int = 3) -> ShardRow:
    return ShardRow(name, TRIM_HORIZON, end, batch=batch, read_to=round(NOW - hours_ago * HOUR))


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (seen(row("a", 19)), False),
        (seen(row("a", 19.3)), True),
        (seen(row("a", 50, END)), False),
        (seen(row("a", 50, END, batch=4)), True),
        (seen(ShardRow("a", TRIM_HORIZON, TRIM_HORIZON)), False),
        (seen(ShardRow("a", Position.timestamp(1), Position.timestamp(NOW - 20 * HOUR))), True),
        (seen(), False),
    ],
    ids=[
        "79 %",
        "80 %",
        "an ended shard",
        "an end that is not committed",
        "a shard that was never read",
        "a time that nothing was read from",
        "no shard",
    ],
)
def test_retention_is_near_after(view: TableView, expected: bool) -> None:  # noqa: FBT001 - a table's column
    """Four fifths of the retention since the time up to which a shard was read; records are kept for a day here."""
    assert (retention.near(view, DAY_MILLIS, NOW) is not None) == expected


def test_the_service_s_time_goes_on_from_its_last_listing_whatever_this_machine_s_clock_says() -> None:
    """An hour of difference is a twentieth of a day's retention."""
    now = [100.0]
    service = retention.ServiceTime(clock=lambda: now[0])
    assert service.now(5_000) == 5_000
    now[0] += 60
    assert service.now(5_000) == 65_000
    now[0] += 60
    assert service.now(125_000) == 125_000


@pytest.mark.parametrize(
    ("view", "hours"),
    [
        (seen(row("a", 3), row("b", 10), row("c", 50, END)), 10),
        (seen(row("a", 3), ShardRow("b", TRIM_HORIZON, TRIM_HORIZON)), 3),
        (seen(ShardRow("b", TRIM_HORIZON, TRIM_HORIZON)), None),
        (seen(ShardRow("a", Position.timestamp(1), Position.timestamp(NOW - 5 * HOUR))), 5),
        (seen(ShardRow("a", Position.timestamp(1), Position.timestamp(1))), 60),
        (seen(row("c", 50, END)), 0),
        (seen(), 0),
    ],
    ids=["the oldest", "one was never read", "none was ever read", "a start", "a start before the stream", "all ended", "none"],
)
def test_before_its_first_batch_an_epoch_is_behind_by_what_was_not_read(view: TableView, hours: float | None) -> None:
    expected = None if hours is None else round(hours * HOUR)
    assert retention.behind(view, NOW, NOW - 60 * HOUR) == expected


def test_a_start_before_the_stream_was_made_is_not_near() -> None:
    view = seen(ShardRow("a", Position.timestamp(1), Position.timestamp(NOW - 43 * HOUR)))
    assert retention.near(view, DAY_MILLIS, NOW, NOW - HOUR) is None
    assert retention.near(view, DAY_MILLIS, NOW)


def test_a_shard_that_is_past_the_end_of_a_run_is_not_near_and_no_child_that_waits_for_it() -> None:
    """Nothing of them is owed. Without that end both are, and so is a third one in front of it."""
    done, child = (
        replace(row("a", 21), behind=1, readers={"1.0.0": 1}, read_by="1.0.0"),
        ShardRow("b", TRIM_HORIZON, TRIM_HORIZON, parents=frozenset({"a"}), read_to=NOW - 21 * HOUR),
    )
    end, view = RunEnd(NOW - 21 * HOUR), seen(done, child)
    assert end.finished(view) == {"a", "b"}
    assert retention.near(view, DAY_MILLIS, NOW, 0, end.finished(view)) is None
    assert retention.near(view, DAY_MILLIS, NOW)
    going = seen(done, child, row("c", 22))
    assert "c read up to" in str(retention.near(going, DAY_MILLIS, NOW, 0, end.finished(going)))


def test_a_child_that_waits_is_as_old_as_its_parents_rows_say_by_now() -> None:
    """Its own row is from when they were far behind, or knows nothing. Neither is a warning, nor is it the lag of a driver that begins."""
    parent = replace(row("a", 2, END), batch=1, children=(Child("b", frozenset("a")),))
    for read_to in (NOW - 23 * HOUR, 0):
        child = ShardRow("b", TRIM_HORIZON, TRIM_HORIZON, parents=frozenset("a"), read_to=round(read_to))
        assert retention.near(seen(parent, child), DAY_MILLIS, NOW) is None
        assert retention.behind(seen(parent, child), NOW, 0) == 2 * HOUR
        assert retention.near(seen(replace(parent, read_to=round(NOW - 23 * HOUR)), child), DAY_MILLIS, NOW)


def test_a_longer_retention_ends_the_warning() -> None:
    view = seen(row("a", 23))
    assert retention.near(view, DAY_MILLIS, NOW)
    assert retention.near(view, 7 * DAY_MILLIS, NOW) is None


def test_the_warning_names_the_shard_that_is_farthest_behind_and_counts_the_others() -> None:
    warning = str(retention.near(seen(row("a", 20), row("b", 23), row("c", 1)), DAY_MILLIS, NOW))
    assert warning.startswith("b and 1 more read up to 1970-01-04T05:00:00+00:00, 96% of the 24 h")


# -- overtaken ---------------------------------------------------------------------------------------------------------------------


class Bench:
    """A consumer of two shards whose first epoch bound a batch of five records each, and died."""

    def __init__(self, behaviour: FakeBehaviour | None = None, shards: int = 2) -> None:
        self.now = 1_700_000_000_000
        self.stream = MemoryStream("s", shards, now=lambda: self.now)
        self.client = MemoryKinesis(self.stream, behaviour)
        self.table = MemoryTable()
        self.store = CheckpointStore(self.table)
        self.attempt = 0
        bootstrap.prepare(self.store, bootstrap.Seed("p", "id", self.stream.describe(), self.stream.list_shards()), StartConfig())
        self.put(5)
        first = self.begin()
        for shard in first.view.rows:
            self.read(first, 1, shard)
        self.client.calls.clear()

    @property
    def source(self) -> Source:
        return Source(self.client, self.stream, self.stream.describe())

    def put(self, records: int) -> None:
        """Puts records into every open shard, an hour apart."""
        for n in range(records):
            for shard in [s.id for s in self.stream.list_shards().shards if not s.closed]:
                self.stream.put_in(shard, b"%d" % n)
            self.now += HOUR

    def begin(self) -> Consumer:
        before = self.store.consumer()
        assert before is not None
        after = self.store.take(before, replace(before, token=f"t{before.generation}", lease_millis=1))
        assert after is not None
        consumer = Consumer(self.store, self.stream, Epoch(after.generation, after.token))
        consumer.begin()
        return consumer

    def read(self, consumer: Consumer, batch: int, shard: str) -> list[bytes]:
        self.attempt += 1
        reader = TaskAttempt(f"{consumer.epoch.generation}.0.0", self.attempt)
        task = Task(consumer.epoch, batch, reader, Limits(5, 1000), 1.0, lambda _seconds: None)
        return read_shard(self.store, self.source, task, self.store.read([shard])[shard]).columns.data

    def settle(self, consumer: Consumer, accepted: int | None = None) -> tuple[retention.Loss, ...]:
        return retention.settle(consumer, self.client, self.source, accepted)

    def run(self, consumer: Consumer) -> tuple[Committed, dict[str, list[bytes]]]:
        plan = consumer.plan()
        assert plan is not None
        read: dict[str, list[bytes]] = {}

        class Engine:
            def run(_, plan: BatchPlan) -> None:  # noqa: N805 - the bench's own self is meant below
                read.update({row.id: self.read(consumer, plan.number, row.id) for row in plan.rows})

        return consumer.run(plan, Engine()), read


def test_a_batch_that_is_still_there_is_left_alone_and_costs_two_small_calls_a_shard() -> None:
    """Every restart after a crash looks."""
    bench = Bench()
    before = dict(bench.table.rows)
    consumer = bench.begin()
    after = {key: value for key, value in bench.table.rows.items() if key != "consumer"}
    assert bench.settle(consumer) == ()
    assert sorted(bench.client.calls) == ["GetRecords"] * 2 + ["GetShardIterator"] * 2
    assert {key: bench.table.rows[key] for key in after} == after
    assert before.keys() == bench.table.rows.keys()


def test_without_an_open_batch_nothing_is_looked_at() -> None:
    """What was committed may expire."""
    bench = Bench()
    consumer = bench.begin()
    bench.run(consumer)
    bench.client.calls.clear()
    bench.stream.trim(S0, 5)
    assert bench.settle(bench.begin()) == ()
    assert bench.client.calls == []


@pytest.mark.parametrize("accepted", [None, 2, 41], ids=["nobody said anything", "another batch was accepted", "a number left over"])
def test_an_overtaken_batch_ends_the_epoch_with_the_procedure_and_changes_nothing(accepted: int | None) -> None:
    """Exit 65: no restart helps. The message says what is lost, and how to go on."""
    bench = Bench()
    bench.stream.trim(S0, 2)
    consumer = bench.begin()
    before = dict(bench.table.rows)
    with pytest.raises(DataLost) as lost:
        bench.settle(consumer, accepted)
    assert lost.value.exit_code == 65
    for words in (f"{S0}: 2 of the 5 records", "set acceptLossOfBatch to 1 ", "sluice.dev/accept-loss=1", "the batch (id, 1)"):
        assert words in str(lost.value)
    assert S1 not in str(lost.value)
    assert bench.table.rows == before


def test_a_message_names_a_few_shards_and_counts_the_rest() -> None:
    """A termination message holds 4 KB."""
    bench = Bench(shards=9)
    for shard in list(bench.stream.shards):
        bench.stream.trim(shard, 5)
    with pytest.raises(DataLost, match="and 4 more shards"):
        bench.settle(bench.begin())


@pytest.mark.parametrize("trimmed", [2, 5], ids=["in part", "as a whole"])
def test_an_accepted_loss_goes_on_with_what_is_left(trimmed: int) -> None:
    bench = Bench()
    bench.stream.trim(S0, trimmed)
    bench.put(1)
    consumer = bench.begin()
    bench.settle(consumer, accepted=1)
    committed, read = bench.run(consumer)
    assert read == {S0: [b"0", b"1", b"2", b"3", b"4"][trimmed:], S1: [b"0", b"1", b"2", b"3", b"4"]}
    (note,) = committed.notes
    assert note.startswith(f"{S0}: accepted as lost, expired before batch 1 was processed: {trimmed} of the 5 records from ")
    assert (committed.number, committed.replay, committed.records) == (1, True, 10 - trimmed)
    assert bench.run(consumer)[1] == {S0: [b"0"], S1: [b"0"]}


def test_the_loss_of_a_shard_that_is_gone_as_a_whole_can_be_accepted() -> None:
    bench = Bench()
    bench.stream.split(S0)
    bench.stream.expire_shard(S0)
    consumer = bench.begin()
    (loss,) = bench.settle(consumer, accepted=1)
    assert (loss.row.id, loss.left.records) == (S0, 0)
    assert bench.run(consumer)[1] == {S0: [], S1: [b"0", b"1", b"2", b"3", b"4"]}


def test_sparse_replies_are_followed_before_anything_is_called_lost() -> None:
    """Empty replies far from the tip say nothing."""
    bench = Bench(FakeBehaviour(empty_pages=3))
    assert bench.settle(bench.begin()) == ()


@pytest.mark.parametrize("records", [4, 6], ids=["more than were bound", "fewer than were bound"])
def test_a_range_that_is_counted_in_another_way_can_be_accepted(records: int) -> None:
    """As after an upgrade: its first record is there, so nothing of it expired, and no replay of it will ever be right."""
    bench = Bench()
    row = bench.begin().view.rows[S0]
    bench.table.rows[row.key] = replace(row, records=records).to_item()
    consumer = bench.begin()
    assert bench.settle(consumer) == ()
    with pytest.raises(ReplayShort, match="set acceptLossOfBatch"):
        bench.run(consumer)
    heir = bench.begin()
    (loss,) = bench.settle(heir, accepted=1)
    assert (loss.row.id, loss.left.records) == (S0, 5)
    committed, read = bench.run(heir)
    assert [len(found) for found in read.values()] == [5, 5]
    (note,) = committed.notes
    assert f"the {records} records from {row.first} to {row.end}, which are read as 5 from {row.first} now" in note


def test_a_range_that_is_not_read_to_its_end_is_no_matter_of_acceptance() -> None:
    """The service may only have cut it short; what was not seen cannot be given up."""
    bench = Bench()
    row = bench.begin().view.rows[S0]
    beyond = Position.after(str(int(row.end.sequence or 0) + 10))
    bench.table.rows[row.key] = replace(row, end=beyond).to_item()
    with pytest.raises(ReplayShort, match="its end is not met"):
        bench.settle(bench.begin(), accepted=1)


def test_a_range_of_another_first_record_and_as_many_has_to_be_accepted() -> None:
    bench = Bench()
    row = bench.begin().view.rows[S0]
    bench.table.rows[row.key] = replace(row, records=4).to_item()
    bench.stream.trim(S0, 1)
    with pytest.raises(DataLost, match="which are read as 4 from"):
        bench.settle(bench.begin())
    bench.settle(heir := bench.begin(), accepted=1)
    assert len(bench.run(heir)[1][S0]) == 4


def test_an_acceptance_is_refused_when_the_row_is_not_the_one_that_was_looked_at() -> None:
    bench = Bench()
    bench.stream.trim(S0, 2)
    consumer = bench.begin()
    stored = bench.table.rows[f"shard/{S0}"]
    bench.table.rows[f"shard/{S0}"] = {**stored, "records": 4}
    with pytest.raises(ProtocolViolation, match="another range"):
        bench.settle(consumer, accepted=1)
    assert bench.table.rows[f"shard/{S0}"]["records"] == 4


def test_a_shard_that_the_service_does_not_find_is_not_there() -> None:
    """ResourceNotFound of a bound range is a loss, or the wrong stream, and neither is passed over."""
    bench = Bench()
    bench.client.fail(ShardNotFound("gone"))
    assert not retention.holds_first(bench.client, bench.begin().view.rows[S0])

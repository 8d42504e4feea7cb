from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from sluice_checkpoints.errors import Fenced, LostRace, ProtocolViolation
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import Child, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch, TaskAttempt
from sluice_consumer.kinesis.client import Records
from sluice_consumer.shards.bind import Task, read_shard
from sluice_consumer.shards.collect import RecordColumnSet, RecordSlice
from sluice_consumer.shards.ranges import BoundRange, Fetched, FetchRequest, Limits
from sluice_lab.fakes.table import MemoryTable

EPOCH = Epoch(4, "token")
LEASE = 20.0
ROW = ShardRow("s", TRIM_HORIZON, Position.after("10"), generation=4, batch=5, read_to=900)


TWELVE = Position.after("12")


@dataclass
class Source:
    end: Position = TWELVE
    sequences: tuple[str, ...] = ("11", "12")
    children: tuple[Child, ...] | None = None
    read_to: int = 1000
    iterator: str | None = None
    asked: list[object] = field(default_factory=list)

    def fetch(self, place: FetchRequest, limits: Limits) -> Fetched:
        self.asked.append((place, limits))
        return self._fetched(place.position, self.end)

    def replay(self, bound: BoundRange) -> Fetched:
        self.asked.append(bound)
        return self._fetched(bound.start, bound.end)

    def _fetched(self, start: Position, end: Position) -> Fetched:
        count = len(self.sequences)
        columns = RecordColumnSet([RecordSlice(Records(list(self.sequences), ["key"] * count, [b""] * count, [0] * count))] if count else [])
        first = self.sequences[0] if self.sequences else None
        return Fetched("s", start, end, columns, first, 2, 3, self.read_to, self.children, iterator=self.iterator)


class Bench:
    def __init__(self, row: ShardRow = ROW) -> None:
        self.table = MemoryTable()
        self.store = CheckpointStore(self.table)
        self.store.put_new(row.to_item())
        self.waited: list[float] = []

    def read(self, source: Source, row: ShardRow | None = None, key: str = "4.0.0", attempt: int = 1, batch: int = 6) -> Fetched:
        task = Task(EPOCH, batch, TaskAttempt(key, attempt), Limits(10, 100), LEASE, self.waited.append)
        return read_shard(self.store, source, task, row or self.row)

    @property
    def row(self) -> ShardRow:
        return self.store.shards()["s"]


def test_a_new_range_goes_on_where_the_last_one_ended_and_is_bound_before_it_is_handed_over() -> None:
    """Fetch has no side effect; the bind fixes what was fetched."""
    bench, source = Bench(), Source()
    fetched = bench.read(source)
    assert source.asked == [(FetchRequest("s", Position.after("10"), 900), Limits(10, 100))]
    assert (bench.row.batch, bench.row.start, bench.row.end) == (6, Position.after("10"), fetched.end)
    assert (bench.row.first, bench.row.records, bench.row.size, bench.row.behind, bench.row.read_to) == ("11", 2, 2, 3, 1000)
    assert bench.row.readers == {"4.0.0": 1}
    assert not bench.waited


def test_each_range_goes_on_with_the_iterator_that_the_last_one_left() -> None:
    bench, source = Bench(), Source(iterator="AAAA")
    bench.read(source)
    assert bench.row.iterator == "AAAA"
    source.iterator = None
    bench.read(source, batch=7)
    assert source.asked[-1] == (FetchRequest("s", Position.after("12"), 1000, "AAAA"), Limits(10, 100))
    assert bench.row.iterator is None


FRESH = ShardRow("s", TRIM_HORIZON, TRIM_HORIZON, generation=4, parents=frozenset({"p", "unlisted"}))
PARENT = ShardRow("p", TRIM_HORIZON, END, generation=4, batch=5, read_to=700)


@pytest.mark.parametrize(
    ("parent", "millis"),
    [(PARENT, 700), (replace(PARENT, start=Position.timestamp(600), read_to=0), 600), (replace(PARENT, read_to=0), 0), (None, 0)],
    ids=["read", "begun at a time", "never seen open", "without a row"],
)
def test_a_shard_whose_row_is_older_than_the_reading_of_its_parents_is_younger_than_that(parent: ShardRow | None, millis: int) -> None:
    """From then on what it holds may have expired; it was not read to there itself. A parent that expired unlisted has no row."""
    bench, source = Bench(FRESH), Source()
    if parent:
        bench.store.put_new(parent.to_item())
    bench.read(source)
    assert source.asked[0] == (FetchRequest("s", TRIM_HORIZON, earliest_arrival_millis=millis, parents=FRESH.parents), Limits(10, 100))
    assert bench.row.read_to == source.read_to


OTHERS = {
    "age": replace(FRESH, batch=5, readers={"4.0.0": 1}, read_by="4.0.0", read_to=900),
    "place": replace(FRESH, end=Position.after("10")),
    "orphan": replace(FRESH, parents=frozenset()),
}


@pytest.mark.parametrize("row", OTHERS.values(), ids=OTHERS)
def test_parents_are_asked_for_only_by_a_shard_that_nobody_has_read(row: ShardRow) -> None:
    bench, source = Bench(row), Source()
    bench.store.put_new(replace(PARENT, read_to=800).to_item())
    bench.read(source)
    assert source.asked[0] == (FetchRequest("s", row.end, row.read_to, parents=row.parents, was_open=row.was_open), Limits(10, 100))


@pytest.mark.parametrize("batch", [0, 5], ids=["made while they were read", "closed unread since"])
def test_parents_that_have_come_farther_since_are_asked(batch: int) -> None:
    """What the row says is from when it was made. A consumer that was a day behind would suspect a loss in each child."""
    bench, source = Bench(replace(FRESH, batch=batch, read_to=600)), Source()
    bench.store.put_new(PARENT.to_item())
    bench.read(source)
    assert source.asked[0] == (FetchRequest("s", TRIM_HORIZON, 600, earliest_arrival_millis=700, parents=FRESH.parents), Limits(10, 100))


def test_an_empty_range_is_bound_too() -> None:
    bench = Bench(replace(ROW, first="9"))
    bench.read(Source(Position.after("10"), ()))
    assert (bench.row.batch, bench.row.records, bench.row.first) == (6, 0, None)


def test_the_end_of_a_shard_and_its_children_are_bound_in_one_write() -> None:
    """SHARD_END can't be forgotten and can't be known before it is true."""
    bench, children = Bench(), (Child("t", frozenset("s")),)
    bench.read(Source(END, children=children))
    assert (bench.row.end, bench.row.children) == (END, children)


@pytest.mark.parametrize(
    ("changed", "open_"),
    [
        ({"start": Position.after("10"), "readers": {"4.0.0": 1}, "read_by": "4.0.0"}, True),
        ({"start": Position.after("10"), "readers": {"4.0.0": 1}, "read_by": "4.0.0", "behind": 5}, False),
        ({"start": Position.after("10")}, False),
        ({"start": Position.after("10"), "readers": {"4.0.0": 1}, "replays": 1}, False),
        ({"start": Position.after("10"), "readers": {"4.0.0": 1}, "read_by": "4.0.0", "replays": 1}, True),
        ({"readers": {"4.0.0": 1}, "read_by": "4.0.0"}, False),
    ],
    ids=["nothing at the tip", "nothing far from it", "nobody read", "nobody read, and its batch came again", "its batch came again", "records"],
)
def test_the_reader_is_told_whether_the_shard_was_open_then(changed: dict[str, object], open_: bool) -> None:  # noqa: FBT001
    """If its end comes next, without a record, its children are younger than that."""
    bench, source = Bench(replace(ROW, **changed)), Source()  # type: ignore[arg-type]  # literals of a test
    bench.read(source)
    assert source.asked[0] == (FetchRequest("s", Position.after("10"), 900, was_open=open_), Limits(10, 100))


def test_a_further_action_of_the_same_epoch_replays_at_once() -> None:
    """Another task of the same DataFrame: there is nothing to steal."""
    bench, source = Bench(), Source()
    bench.read(source)
    bench.read(source, key="4.1.0", attempt=2)
    assert source.asked[-1] == BoundRange("s", Position.after("10"), Position.after("12"), "11", 2)
    assert not bench.waited
    assert bench.row.readers == {"4.0.0": 1, "4.1.0": 2}


def test_a_retry_waits_out_the_lease_before_it_replays() -> None:
    """The former attempt may be alive and emitting."""
    bench, source = Bench(), Source()
    bench.read(source)
    bench.read(source, attempt=2)
    assert bench.waited == [LEASE]
    assert isinstance(source.asked[-1], BoundRange)


def test_an_attempt_that_is_too_late_gives_way_to_the_retry() -> None:
    bench, stale = Bench(), ROW
    bench.read(Source(), attempt=2)
    with pytest.raises(LostRace):
        bench.read(Source(), row=stale, attempt=1)


def test_a_bind_that_lost_to_another_task_discards_what_it_fetched() -> None:
    bench, stale = Bench(), ROW
    bench.read(Source(Position.after("11"), ("11",)))
    source = Source()
    bench.read(source, row=stale, key="4.1.0", attempt=2)
    assert source.asked[-1] == BoundRange("s", Position.after("10"), Position.after("11"), "11", 1)
    assert bench.row.end == Position.after("11")


def test_what_an_earlier_epoch_bound_is_replayed_at_once() -> None:
    """Its lease was waited out at the take-over."""
    bench = Bench(replace(ROW, start=Position.after("8"), first="9", records=2, batch=6, readers={"3.7.0": 70}, read_by="3.7.0"))
    source = Source()
    bench.read(source)
    assert source.asked == [BoundRange("s", Position.after("8"), Position.after("10"), "9", 2)]
    assert not bench.waited
    assert bench.row.readers == {"3.7.0": 70, "4.0.0": 1}


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"generation": 5}, Fenced),
        ({"generation": 5, "batch": 6}, Fenced),
        ({"batch": 7}, LostRace),
        ({"end": Position.after("11")}, ProtocolViolation),
    ],
    ids=["a later epoch fenced the row", "a later epoch replays the batch", "a later batch is open", "the row ends elsewhere"],
)
def test_nothing_is_handed_over_when(changed: dict[str, object], error: type[Exception]) -> None:
    bench = Bench(replace(ROW, **changed))  # type: ignore[arg-type]  # literals of a test
    with pytest.raises(error):
        bench.read(Source(), row=ROW)


def test_a_task_of_a_past_batch_fetches_nothing() -> None:
    bench, source = Bench(replace(ROW, end=END, batch=7)), Source()
    with pytest.raises(LostRace):
        bench.read(source)
    assert source.asked == []


def test_a_row_that_nobody_fenced_yet_is_fenced_and_bound_again() -> None:
    bench = Bench(replace(ROW, generation=3))
    bench.read(Source())
    assert (bench.row.generation, bench.row.batch) == (4, 6)

"""When a shard is looked at, and when there is something to read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.shards.new_records import STALE_MILLIS, Every, NewRecords

ROW = ShardRow("a", Position.after("1"), Position.after("2"), read_to=1_700_000_000_000)


@dataclass
class Bench:
    """Shards that have news when a test says so."""

    now: float = 1_700_000_000.0
    asked: int = 0
    made: int = 0
    something: bool = False
    news: NewRecords = field(init=False)

    def __post_init__(self) -> None:
        self.news = NewRecords(self.watch, lambda: int(self.now * 1000), Every(1.0, clock=lambda: self.now))

    def watch(self, _row: ShardRow) -> Bench:
        """Makes a prober."""
        self.made += 1
        return self

    def ask(self) -> bool:
        """See `new_records.Prober`."""
        self.asked += 1
        return self.something


def test_an_idle_shard_is_asked_once_a_second_with_one_iterator() -> None:
    """However often Spark asks."""
    bench = Bench()
    for _ in range(100):
        assert not bench.news([ROW])
    bench.now += 1
    assert not bench.news([ROW])
    assert (bench.asked, bench.made) == (2, 1)


def test_news_of_one_shard_are_enough_and_a_shard_that_moved_gets_a_new_prober() -> None:
    """The old iterator stands where it stood before."""
    bench = Bench(something=True)
    assert bench.news([ROW, replace(ROW, id="b")])
    bench.now += 1
    assert bench.news([replace(ROW, end=Position.after("3"))])
    assert bench.made == 3


def test_a_shard_that_was_left_behind_the_tip_is_read_on_unasked() -> None:
    """Its last reply said so."""
    bench = Bench()
    assert bench.news([replace(ROW, behind=1)])
    assert bench.asked == 0


def test_a_shard_that_nobody_looked_at_for_an_hour_gets_an_empty_batch() -> None:
    """Its `readTo` must not look as if records had expired unread."""
    bench = Bench()
    row = replace(ROW, read_to=int(bench.now * 1000) - STALE_MILLIS - 1)
    assert bench.news([row])
    assert not bench.news([replace(ROW, read_to=0)])
    assert bench.news([replace(ROW, id="b", read_to=0), row])


def test_something_is_due_at_first_or_an_interval_after_a_given_moment() -> None:
    """And then once each interval."""
    now = [10.0]
    due, later = Every(5, clock=lambda: now[0]), Every(5, clock=lambda: now[0], last=10.0)
    assert (due(), due(), later()) == (True, False, False)
    now[0] = 15.0
    assert (due(), due(), later(), later()) == (True, False, True, False)

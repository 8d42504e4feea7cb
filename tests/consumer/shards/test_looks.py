"""When a shard is looked at, and what is remembered of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.shards.looks import KEPT_SECONDS, LOOK_SECONDS, Every, ShardLooks

ROW = ShardRow("a", Position.after("1"), Position.after("2"))


@dataclass
class Bench:
    """Shards that are idle, or not, as a test says."""

    now: float = 1000.0
    asked: int = 0
    made: int = 0
    idles: bool = True
    looks: ShardLooks = field(init=False)

    def __post_init__(self) -> None:
        self.looks = ShardLooks(self.watch, lambda: self.now)

    def watch(self, _row: ShardRow) -> Bench:
        """Makes a prober."""
        self.made += 1
        return self

    def idle(self) -> bool:
        """See `looks.Prober`."""
        self.asked += 1
        return self.idles


def test_an_idle_shard_is_looked_at_once_a_second_with_one_iterator() -> None:
    """However often Spark asks; in between it is what it was."""
    bench = Bench()
    for _ in range(100):
        assert bench.looks([ROW]) == {"a": True}
    bench.now += LOOK_SECONDS
    assert bench.looks([ROW]) == {"a": True}
    assert (bench.asked, bench.made) == (2, 1)


def test_news_stay_news_until_the_next_look() -> None:
    """Who sees them may not be who plans the batch."""
    bench = Bench(idles=False)
    assert bench.looks([ROW]) == {"a": False}
    bench.idles = True
    assert bench.looks([ROW]) == {"a": False}
    bench.now += LOOK_SECONDS
    assert bench.looks([ROW]) == {"a": True}


def test_a_shard_that_moved_is_not_known_until_a_look_at_its_new_place() -> None:
    """The old iterator stands where it stood before, and a shard is looked at once a second, wherever it stands."""
    bench, moved = Bench(), replace(ROW, end=Position.after("3"))
    bench.looks([ROW])
    assert bench.looks([moved]) == {}
    bench.now += LOOK_SECONDS
    assert bench.looks([moved]) == {"a": True}
    assert (bench.asked, bench.made) == (2, 2)


def test_shards_are_looked_at_each_for_itself() -> None:
    """One that comes later need not wait for the others' second."""
    bench, other = Bench(), replace(ROW, id="b")
    bench.looks([ROW])
    bench.now += LOOK_SECONDS / 2
    assert bench.looks([ROW, other]) == {"a": True, "b": True}
    assert bench.asked == 2


def test_an_iterator_is_kept_for_as_long_as_it_is_good() -> None:
    """A sparse shard that takes part in a batch need not be walked through again; of those that ended nothing is left in the end."""
    bench = Bench()
    bench.looks([ROW])
    bench.now += KEPT_SECONDS - 1
    bench.looks([])
    bench.looks([ROW])
    assert bench.made == 1
    bench.now += KEPT_SECONDS
    bench.looks([])
    bench.looks([ROW])
    assert bench.made == 2


def test_something_is_due_at_first_or_an_interval_after_a_given_moment() -> None:
    """And then once each interval."""
    now = [10.0]
    due, later = Every(5, clock=lambda: now[0]), Every(5, clock=lambda: now[0], last=10.0)
    assert (due(), due(), later()) == (True, False, False)
    now[0] = 15.0
    assert (due(), due(), later(), later()) == (True, False, True, False)

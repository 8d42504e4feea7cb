"""When a shard is probed, and what is remembered of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest

from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.config import StreamConfig
from sluice_consumer.shards.probes import (
    ACTIVE_SECONDS,
    EMPTY,
    KEPT_SECONDS,
    MOST_PROBES,
    PROBE_SECONDS,
    UNANSWERED_SECONDS,
    Every,
    ProbeLimits,
    ProbeScheduler,
)

REFUSED = "ProvisionedThroughputExceededException"
ROW = ShardRow("a", Position.after("1"), Position.after("2"))


@dataclass
class Bench:
    now: float = 1000.0
    calls: int = 0
    made: int = 0
    idles: bool = True
    fails: Again | None = None
    takes: float = 0.0
    probes: ProbeScheduler = field(init=False)

    def __post_init__(self) -> None:
        self.probes = ProbeScheduler(self.watch, lambda: self.now, ProbeLimits.of(0.2))

    def watch(self, _row: ShardRow) -> Bench:
        self.made += 1
        return self

    def idle(self) -> bool:
        self.calls += 1
        self.now += self.takes
        if self.fails is not None:
            raise self.fails
        return self.idles


def test_an_idle_shard_is_probed_once_a_second_with_one_iterator() -> None:
    bench = Bench()
    for _ in range(100):
        assert bench.probes([ROW]) == {"a": True}
    bench.now += PROBE_SECONDS
    assert bench.probes([ROW]) == {"a": True}
    assert (bench.calls, bench.made) == (2, 1)


def test_shards_that_are_probed_together_are_due_together_however_long_each_call_takes() -> None:
    """Else each has a round of its own before long, which costs a plan, and twice the CPU a probe."""
    bench = Bench(takes=0.03)
    rows = [replace(ROW, id=name) for name in "abc"]
    bench.probes(rows)
    rounds = 0
    while bench.calls < 30:
        bench.now += bench.probes.pause()
        bench.probes(rows)
        rounds += 1
    assert rounds == 9


def test_news_stay_news_until_the_next_probe() -> None:
    """Who sees them may not be who plans the batch."""
    bench = Bench(idles=False)
    assert bench.probes([ROW]) == {"a": False}
    bench.idles = True
    assert bench.probes([ROW]) == {"a": False}
    bench.now += PROBE_SECONDS
    assert bench.probes([ROW]) == {"a": True}


def test_a_shard_that_moved_is_not_known_until_a_probe_at_its_new_place() -> None:
    """The old iterator stands where it stood before, and a shard is probed once a second, wherever it stands."""
    bench, moved = Bench(), replace(ROW, end=Position.after("3"))
    bench.probes([ROW])
    assert bench.probes([moved]) == {}
    bench.now += PROBE_SECONDS
    assert bench.probes([moved]) == {"a": True}
    assert (bench.calls, bench.made) == (2, 2)


def test_shards_are_probed_each_for_itself() -> None:
    bench, other = Bench(), replace(ROW, id="b")
    bench.probes([ROW])
    bench.now += PROBE_SECONDS / 2
    assert bench.probes([ROW, other]) == {"a": True, "b": True}
    assert bench.calls == 2


def test_an_iterator_is_kept_for_as_long_as_it_is_good() -> None:
    """A sparse shard that takes part in a batch need not be walked through again; of those that ended nothing is left in the end."""
    bench = Bench()
    bench.probes([ROW])
    bench.now += KEPT_SECONDS - 1
    bench.probes([])
    bench.probes([ROW])
    assert bench.made == 1
    bench.now += KEPT_SECONDS
    bench.probes([])
    bench.probes([ROW])
    assert bench.made == 2


@pytest.mark.parametrize("known", [True, False, None])
def test_a_probe_without_an_answer_changes_nothing_for_a_minute_then_the_shard_is_read(
    known: bool | None,  # noqa: FBT001
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A batch has patience and others' errors; a probe that waited would hold up every other shard."""
    bench = Bench(fails=Again("not now", cause=REFUSED))
    if known is not None:
        bench.fails, bench.idles = None, known
        bench.probes([ROW])
        bench.fails = Again("not now", cause=REFUSED)
    before = {} if known is None else {"a": known}
    begun = bench.now
    while bench.now < begun + UNANSWERED_SECONDS:
        assert bench.probes([ROW]) == before
        bench.now += PROBE_SECONDS
    assert caplog.messages == []
    assert bench.probes([ROW]) == {"a": False}
    assert len(caplog.messages) == 1
    bench.fails, bench.idles = None, True
    bench.now += PROBE_SECONDS
    assert bench.probes([ROW]) == {"a": True}


def test_a_shard_that_is_refused_for_a_minute_is_read_by_one_batch_and_not_by_each(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(fails=Again("not now", cause=REFUSED))
    read = list[int]()
    for second in range(200):
        if bench.probes([replace(ROW, batch=len(read))]) == {"a": False}:
            read.append(second)
        bench.now += 1
    assert read == [60, 121, 182]
    assert caplog.messages == ["probes of 1 shard have had no answer for a minute; batches read them: not now"] * 3


@pytest.mark.parametrize(("takes", "calls"), [(0.5, 4), (0.0, 100)])
def test_no_probe_begins_after_a_round_has_taken_too_long(takes: float, calls: int) -> None:
    """Else slow or silent calls hold up the plan of shards that have records. Those that are left are probed first before the next plan."""
    bench, rows = Bench(takes=takes), [replace(ROW, id=str(number)) for number in range(100)]
    bench.probes._threads = ThreadPoolExecutor(1)
    first = bench.probes(rows)
    assert (len(first), bench.calls) == (calls, calls), "of the others nothing is known"
    bench.now += PROBE_SECONDS
    assert len(bench.probes(rows)) == min(100, 2 * calls)


def test_a_shard_is_probed_again_a_while_after_its_last_probe_has_ended() -> None:
    bench = Bench(takes=0.5)
    bench.probes([ROW])
    assert bench.probes.pause() == PROBE_SECONDS


def test_who_asks_again_at_once_gets_no_further_probes() -> None:
    bench, rows = Bench(), [replace(ROW, id=str(number)) for number in range(2 * MOST_PROBES)]
    for _ in range(3):
        bench.probes(rows)
    assert bench.calls == MOST_PROBES


def test_something_is_due_at_first_or_an_interval_after_a_given_moment() -> None:
    now = [10.0]
    due, later = Every(5, clock=lambda: now[0]), Every(5, clock=lambda: now[0], last=10.0)
    assert (due(), due(), later()) == (True, False, False)
    now[0] = 15.0
    assert (due(), due(), later(), later()) == (True, False, True, False)


# -- the share of a shard's calls ---------------------------------------------------------------------------------------------------


@dataclass
class Stream:
    """Quiet shards in virtual time. `taken`: calls a second and shard that other consumers make; beyond five in all, calls are throttled."""

    share: float | None = 0.2
    taken: int = 0
    walks: int = 1
    seconds: float = 60.0
    shards: int = 1
    now: float = 0.0
    made: dict[str, list[float]] = field(default_factory=dict)
    refused: int = 0

    def probe(self, row: ShardRow) -> Counted:
        return Counted(self, row.id)

    def run(self) -> Stream:
        probes = ProbeScheduler(self.probe, lambda: self.now, ProbeLimits.of(self.share))
        rows = [replace(ROW, id=str(number)) for number in range(self.shards)]
        while self.now < self.seconds:
            probes(rows)
            self.now += probes.pause()
        return self

    def most(self) -> int:
        return max(sum(0 <= call - first < 1 - 1e-6 for call in calls) for calls in self.made.values() for first in calls)

    def a_second(self) -> float:
        return sum(map(len, self.made.values())) / self.seconds


@dataclass
class Counted:
    stream: Stream
    shard: str
    calls: int = 0

    def idle(self) -> bool:
        """See `probes.Prober`."""
        made = self.stream.made.setdefault(self.shard, [])
        for _ in range(self.stream.walks):
            if sum(self.stream.now - call < 1 - 1e-6 for call in made) + self.stream.taken >= 5:
                self.stream.refused += 1
                raise Again("not now", cause=REFUSED)
            made.append(self.stream.now)
            self.calls += 1
        return True


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0])
def test_a_quiet_shard_is_probed_as_often_as_its_share_allows_and_never_more(share: float) -> None:
    """Five calls a second are all that a shard gives; by default a probe takes one."""
    stream = Stream(share).run()
    assert stream.most() <= max(1, 5 * share)
    assert stream.a_second() == pytest.approx(5 * share, rel=0.05)


def test_by_default_a_shard_is_probed_five_times_a_second_until_it_brought_no_record_for_five_minutes() -> None:
    stream = Stream(StreamConfig("s", "r").probe_share, seconds=ACTIVE_SECONDS)
    probes = ProbeScheduler(stream.probe, lambda: stream.now, ProbeLimits.of(stream.share))

    def a_second(row: ShardRow, until: float) -> float:
        begun, before = stream.now, sum(map(len, stream.made.values()))
        while stream.now < until:
            probes([row])
            stream.now += probes.pause()
        return (sum(map(len, stream.made.values())) - before) / (stream.now - begun)

    moved, unread = replace(ROW, end=Position.after("3")), replace(ROW, end=Position.timestamp(1))
    assert a_second(ROW, ACTIVE_SECONDS) == pytest.approx(5, rel=0.02)
    assert a_second(ROW, 2 * ACTIVE_SECONDS) == pytest.approx(1, rel=0.02)
    assert a_second(moved, 3 * ACTIVE_SECONDS) == pytest.approx(5, rel=0.02), "it moved, so it brought a record"
    assert a_second(moved, 4 * ACTIVE_SECONDS) == pytest.approx(1, rel=0.02)
    assert a_second(unread, 5 * ACTIVE_SECONDS) == pytest.approx(1, rel=0.02), "of a time nobody knows whether a record came"
    assert stream.refused == 0


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_a_probe_that_walks_through_empty_replies_never_takes_more_than_a_shard_gives(share: float) -> None:
    """A sparse shard far from the tip: five replies a probe."""
    stream = Stream(share, walks=5).run()
    assert stream.most() <= 5


def test_a_probe_that_walked_after_a_pause_is_followed_by_none_within_a_second() -> None:
    """Meanwhile the shard has saved up calls, but not twice a second's."""
    stream = Stream(None, walks=5)
    probes = ProbeScheduler(stream.probe, lambda: stream.now, ProbeLimits.of(stream.share))
    for _ in range(2):
        stream.now += 10
        probes([ROW])
    assert probes.pause() == pytest.approx(1)


def test_a_shard_that_batches_read_is_probed_less_often() -> None:
    """Their calls count, too: two a second leave one for a probe, if it and what it may find are to fit."""
    stream = Stream(1.0)
    probes = ProbeScheduler(stream.probe, lambda: stream.now, ProbeLimits.of(stream.share))
    while stream.now < stream.seconds:
        probes([replace(ROW, batch=int(2 * stream.now))])
        stream.now += probes.pause()
    assert stream.a_second() == pytest.approx(5 - 2 * EMPTY, rel=0.1)


@pytest.mark.parametrize("share", [1.0, None])
def test_where_others_ask_a_shard_too_it_is_probed_once_a_second(share: float | None) -> None:
    """Four other consumers take a call a second each; one is left for this one."""
    stream = Stream(share, taken=4, seconds=120.0).run()
    assert stream.a_second() < 1.2
    assert stream.refused < stream.seconds / 5, "it tries now and then whether they are gone"
    alone = Stream(share, taken=0, seconds=120.0).run()
    assert alone.refused == 0


def test_probes_of_many_shards_share_what_the_driver_can_do() -> None:
    """Five probes a second of each of 1,000 shards would be a core's work: they are 500 a second in all."""
    stream = Stream(1.0, shards=1000, seconds=20.0).run()
    assert stream.a_second() <= 500 + 1000 / stream.seconds
    assert min(map(len, stream.made.values())) >= 9, "each in its turn"
    assert Stream(1.0, shards=50, seconds=20.0).run().a_second() == pytest.approx(250, rel=0.05)


@pytest.mark.parametrize("trigger", [0.3, 1.0, 10.0, 600.0])
def test_each_shard_has_its_turn_though_others_are_asked_for_in_between(trigger: float) -> None:
    """As a query does, whose busy shards have moved when it probes a second time. Who waits for a first probe keeps its place in the queue."""
    stream = Stream(shards=1200)
    probes = ProbeScheduler(stream.probe, lambda: stream.now, ProbeLimits.of(0.2))
    rows = [replace(ROW, id=str(number)) for number in range(1200)]
    for step in range(20):
        probes(rows)
        probes([replace(ROW, id="busy", batch=step, end=Position.after(str(step)))])
        stream.now += trigger
    assert len(stream.made.keys() - {"busy"}) == 1200


def test_an_idle_driver_without_a_shard_to_probe_rests_for_a_second() -> None:
    probes = Bench().probes
    assert probes.pause() == PROBE_SECONDS
    probes([])
    assert probes.pause() == PROBE_SECONDS

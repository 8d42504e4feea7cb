"""A query that may die anywhere: Spark's two logs, our table and the sink, each written at another moment."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming_world import Checkpoint, Content, Crash, Steps, World

from sluice_checkpoints.errors import Fenced, LostRace, Refused
from sluice_checkpoints.positions.ports import ResetPorts
from sluice_checkpoints.positions.resetter import Resetter
from sluice_checkpoints.positions.target import ResetRequest, ResetTarget
from sluice_consumer.batches.folding import FoldLimits
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.shards.probes import KinesisProber, ProbeLimits, ProbeScheduler
from sluice_consumer.spark.jobs import JobsNotDone
from sluice_consumer.streaming.offsets import Offset
from sluice_consumer.streaming.planner import StreamPlanner
from sluice_lab.fakes.kinesis import MemoryKinesis


def steps_of_a_run() -> list[str]:
    world = World()
    world.query()
    return world.steps.names


STEPS = steps_of_a_run()
HABITS = pytest.mark.parametrize("names_the_start", [True, False], ids=["Spark names the start", "Spark 4.1"])


@HABITS
def test_a_query_reads_every_record_once_and_leaves_nothing_open(*, names_the_start: bool) -> None:
    world = World(names_the_start=names_the_start)
    world.query()
    world.judge()
    assert world.committed() == Offset.from_map(world.spark.offsets[-1]).batch
    assert sum(batch.records for batch in world.told if batch) == 29


@HABITS
@pytest.mark.parametrize("at", range(len(STEPS)), ids=[f"{i} {name}" for i, name in enumerate(STEPS)])
def test_a_query_that_dies_at_any_step_goes_on_without_loss_or_repetition(at: int, *, names_the_start: bool) -> None:
    world = World(steps=Steps(at), names_the_start=names_the_start)
    assert not world.survive()
    world.query()
    world.judge()


@settings(max_examples=60, deadline=None)
@given(crashes=st.lists(st.integers(0, len(STEPS)), min_size=2, max_size=6), names_the_start=st.booleans())
def test_a_query_that_dies_again_and_again_does_so_too(crashes: list[int], *, names_the_start: bool) -> None:
    world = World(names_the_start=names_the_start)
    for at in crashes:
        world.steps = Steps(at)
        world.survive()
    world.query()
    world.judge()


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, len(STEPS)), offset_too=st.booleans(), names_the_start=st.booleans())
def test_a_commit_that_spark_forgot_is_made_up_for_by_an_exact_replay(at: int, *, offset_too: bool, names_the_start: bool) -> None:
    """A crash of the machine may take the last files that Spark wrote with it, after we had committed. Without any it is a lost directory."""
    world = World(steps=Steps(at), names_the_start=names_the_start)
    world.survive()
    log = world.spark
    if log.commits == len(log.offsets) > 0:
        log.commits -= 1
        if offset_too and log.commits:
            world.sink.pop(len(log.offsets) - 1)
            log.offsets.pop()
    world.query()
    world.judge()


def test_a_batch_that_was_planned_and_not_bound_is_read_when_spark_repeats_it() -> None:
    """Its offset is in Spark's log; that it would come out empty loses nothing, but was not what was answered."""
    world = World(steps=Steps(STEPS.index("offsets written")))
    world.survive()
    world.query()
    assert [len(data) for _, data in world.sink[0]] == [3, 3]


def test_a_batch_from_an_offset_to_itself_holds_nothing() -> None:
    """Spark may ask; the last committed batch does not come again."""
    world = World()
    world.query()
    last = Offset.from_map(world.spark.offsets[-1])
    assert world.epoch().partitions(last, last) is None


@HABITS
def test_a_lost_directory_starts_where_the_table_stands(*, names_the_start: bool) -> None:
    world = World(steps=Steps(STEPS.index("in the sink", STEPS.index("in the sink") + 1)), names_the_start=names_the_start)
    world.survive()
    first, opened = world.sink[0], world.sink[1]
    world.spark, world.sink = Checkpoint(), {}
    world.query()
    assert world.sink[0] == opened
    world.sink = {n + 1: content for n, content in world.sink.items()} | {0: first}
    world.judge()


@HABITS
def test_a_directory_that_is_two_batches_old_is_refused(*, names_the_start: bool) -> None:
    world = World(names_the_start=names_the_start)
    world.query()
    world.spark.offsets, world.spark.commits = world.spark.offsets[:-2], len(world.spark.offsets) - 2
    with pytest.raises(Refused, match=r"restored from a backup.*new checkpoint directory"):
        world.query()


@HABITS
def test_a_directory_one_batch_old_is_refused_once_the_next_batch_was_begun(*, names_the_start: bool) -> None:
    """The rows hold the later ranges then."""
    world = World(names_the_start=names_the_start)
    world.query()
    world.put([max(shard.id for shard in world.stream.list_shards().shards)], 1)
    world.steps = Steps(STEPS.index("before the sink"))
    world.survive()
    world.spark.offsets.pop()
    world.spark.commits = len(world.spark.offsets) - 1
    with pytest.raises(Refused, match="knows no batch after"):
        world.query()


class Full(dict[int, Content]):
    """A sink that takes no further batch: the driver dies of it."""

    def __setitem__(self, key: int, value: Content) -> None:
        raise Crash


@HABITS
@pytest.mark.parametrize("behind", [1, 2, 5])
def test_an_old_directory_is_refused_though_every_shard_is_in_a_batch_that_is_open(behind: int, *, names_the_start: bool) -> None:
    """No row says any more that a batch came between."""
    world = World(names_the_start=names_the_start)
    world.query()
    live = [shard.id for shard in world.stream.list_shards().shards if not shard.closed]
    for _ in range(7):
        world.put(live, 1)
        world.query()
    world.put(live, 1)
    world.sink = Full(world.sink)
    assert not world.survive()
    assert {row.batch for row in world.store.shards().values() if row.end.at != "END"} == {world.committed() + 1}
    world.spark.offsets = world.spark.offsets[: -1 - behind]
    world.spark.commits = len(world.spark.offsets)
    with pytest.raises(Refused, match="knows no batch after"):
        world.query()


@HABITS
@pytest.mark.parametrize("ahead", [{"batch": 2}, {"batch": 1, "first": True}], ids=["of a batch", "of a beginning"])
def test_a_table_that_is_older_than_the_directory_is_refused(ahead: dict[str, int], *, names_the_start: bool) -> None:
    """It was restored, or is another. Where a query begins was committed then, so one ahead is too much there."""
    world = World(names_the_start=names_the_start)
    world.query()
    world.spark.offsets[-1] |= ahead | {"batch": world.committed() + ahead["batch"]}
    with pytest.raises(Refused, match="has committed only"):
        world.query()


@HABITS
def test_the_directory_of_another_consumer_is_refused(*, names_the_start: bool) -> None:
    """Its numbers mean nothing here, even if they fit."""
    world = World(names_the_start=names_the_start)
    world.query()
    world.spark.offsets[-1]["consumer"] = "other"
    with pytest.raises(Refused, match="belongs to consumer other"):
        world.query()


@HABITS
def test_the_directory_of_a_query_from_before_a_reset_is_refused_and_a_new_one_reads_again(*, names_the_start: bool) -> None:
    """Its state holds what comes again. A new directory begins where positions were moved to, and every record comes once more."""
    world = World(names_the_start=names_the_start)
    world.query()
    whole = sorted(record for content in world.sink.values() for record in content)
    ports = ResetPorts(world.store, world.stream, world.stream)
    Resetter(ResetRequest("again", ResetTarget("trimHorizon")), ports).run()
    with pytest.raises(Refused, match=r"reset again moved.*new checkpoint directory"):
        world.query()
    world.spark, world.sink = Checkpoint(), {}
    world.query()
    assert sorted(record for content in world.sink.values() for record in content) == whole


@HABITS
def test_a_directory_from_before_a_reset_is_refused_wherever_its_query_died(*, names_the_start: bool) -> None:
    """Also if Spark had logged the next batch, and no task had bound it: it repeats that one, which is behind the reset."""
    accepted = [f"{at} {name}" for at, name in enumerate(STEPS) if not _is_refused_after_a_reset(at, names_the_start=names_the_start)]
    assert accepted == []


def _is_refused_after_a_reset(at: int, *, names_the_start: bool) -> bool:
    """Whether a query that died before a step is refused; one that has stored nothing yet has no state."""
    world = World(steps=Steps(at), names_the_start=names_the_start)
    world.survive()
    row = world.store.consumer()
    if row is None or not row.bootstrapped or not world.sink:
        return True
    opened = row.committed + 1 if any(each.batch > row.committed for each in world.store.shards().values()) else None
    clock = iter(range(0, 10**6, 50))
    ports = ResetPorts(world.store, world.stream, world.stream, sleep=lambda _seconds: None, clock=lambda: float(next(clock)))
    Resetter(ResetRequest("again", ResetTarget("trimHorizon"), give_up=opened), ports).run()
    try:
        world.query()
    except Refused:
        return True
    return False


@HABITS
def test_a_batch_whose_jobs_failed_is_not_committed(*, names_the_start: bool) -> None:
    """A function of foreachBatch swallowed it, and Spark asks for the next batch."""
    world = World(names_the_start=names_the_start)

    def fail(_plan: BatchPlan) -> None:
        raise JobsNotDone("job 3: FAILED")

    world.check = fail
    with pytest.raises(JobsNotDone):
        world.query()
    assert world.committed() == 0


@HABITS
def test_a_shard_that_foreach_batch_did_not_read_comes_in_the_next_batch(*, names_the_start: bool) -> None:
    world = World(names_the_start=names_the_start)
    skipped = sorted(shard.id for shard in world.stream.list_shards().shards)[1]
    world.reads = lambda shard: shard != skipped or len(world.spark.offsets) > 2
    world.query()
    world.judge()
    assert not any(shard == skipped for n in (0, 1) for shard, _ in world.sink[n])


@HABITS
def test_a_query_that_finds_nothing_begins_with_a_batch_of_nothing(*, names_the_start: bool) -> None:
    """Spark makes one of an unmoved first offset; it is not the last committed batch over again, and counts as none of ours."""
    world = World(names_the_start=names_the_start)
    world.query()
    before = world.committed()
    world.spark, world.sink = Checkpoint(), {}
    world.query()
    assert world.sink == {0: ()}
    assert world.committed() == before
    assert world.told[-1] is None


@pytest.mark.parametrize("guess", ["what the table has committed", "what the table has begun"])
def test_where_spark_stands_cannot_be_guessed_from_the_table(guess: str) -> None:
    """It died between Spark's commit log and ours; or after a task had bound its range, and the directory was lost."""
    before_ours = guess == "what the table has committed"
    world = World(steps=Steps(STEPS.index("commit written" if before_ours else "before the sink")), names_the_start=False)
    world.survive()
    world.spark = world.spark if before_ours else Checkpoint()

    def guessed() -> Offset:
        begun = max(row.batch for row in world.store.shards().values())
        return Offset("id", world.committed() if before_ours else begun)

    def go_on() -> None:
        world.query()
        world.judge()

    world.stands = guessed  # type: ignore[method-assign]
    with pytest.raises((AssertionError, Refused)):
        go_on()


def test_a_batch_is_read_only_from_where_the_query_stood_that_asked_for_it() -> None:
    """Spark 4.1 does not say who asks: of two queries one could be asked about, and the other read."""
    world = World(names_the_start=False)
    planner = world.epoch()
    end = planner.latest(None)
    with pytest.raises(Refused, match="one at batch 7"):
        planner.partitions(Offset("id", 7), end)


def test_a_later_epoch_ends_the_query() -> None:
    world = World()
    planner = world.epoch()
    end = planner.latest(planner.initial())
    world.epoch()
    with pytest.raises(Fenced):
        planner.latest(end)


def test_a_lost_lease_ends_the_query_before_anything_is_answered() -> None:
    world = World()
    planner = world.epoch()

    def lost() -> None:
        raise Fenced("the lease was taken")

    planner._around = replace(planner._around, alive=lost)
    start = planner.initial()
    for ask in (lambda: planner.latest(start), lambda: planner.partitions(start, start), lambda: planner.finish(start)):
        with pytest.raises(Fenced):
            ask()


def test_available_now_ends_though_records_keep_coming() -> None:
    world = World()
    planner = world.epoch()
    world.now += 5000
    planner.until_now()
    start = planner.initial()
    batches = 0
    while (end := planner.latest(start)) != start:
        plan = planner.partitions(start, end)
        assert plan is not None
        world.read(plan, planner.end)
        world.now += 2000
        world.put([row.id for row in plan.rows if not world.closed(row.id)], 3)
        start, batches = end, batches + 1
    assert batches > 3
    assert sum(batch.records for batch in world.told if batch) >= 29


def test_a_batch_read_late_after_it_was_closed_gives_nothing() -> None:
    """A task of a thread that foreachBatch left behind: its range is the closed, empty one; after the next bind it is told so."""
    world = World()
    world.reads = lambda _shard: False
    planner = world.epoch()
    start = planner.initial()
    end = planner.latest(start)
    plan = planner.partitions(start, end)
    assert plan is not None
    following = planner.latest(end)
    world.reads = lambda _shard: True
    assert all(not data for _, data in world.read(plan))
    later = planner.partitions(end, following)
    assert later is not None
    world.read(later)
    with pytest.raises(LostRace):
        world.read(plan)


def next_read(world: World, planner: StreamPlanner, start: Offset) -> tuple[Offset, list[str]]:
    end = planner.latest(start)
    plan = planner.partitions(start, end)
    assert plan is not None
    world.read(plan)
    return end, sorted(row.id for row in plan.rows)


def test_a_query_leaves_idle_shards_out_and_does_not_close_them() -> None:
    world = World()
    planner = world.epoch()
    start = planner.initial()
    while (end := planner.latest(start)) != start:
        plan = planner.partitions(start, end)
        assert plan is not None
        world.read(plan)
        start = end
    busy, idle, *_ = sorted(shard.id for shard in world.stream.list_shards().shards if not shard.closed)
    world.put([busy], 1)
    start, first = next_read(world, planner, start)
    world.put([busy], 1)
    before = world.store.shards()[idle].batch
    start, second = next_read(world, planner, start)
    assert idle in first, "its last range had records"
    assert second == [busy]
    assert world.store.shards()[idle].batch == before
    world.put([idle], 1)
    _, third = next_read(world, planner, start)
    assert third == [idle], "and a probe had woken the other one for its one record"


def trigger(world: World, planner: StreamPlanner) -> bool:
    """Spark's next micro-batch, of a query that goes on; whether there was one."""
    start = Offset.from_map(world.spark.offsets[-1]) if world.spark.offsets else planner.initial()
    end = planner.latest(start)
    if end == start:
        return False
    world.spark.offsets.append(end.to_map())
    if len(world.spark.offsets) > 1:
        planner.finish(start)
    world._batch(planner, start, end)
    return True


def test_a_shard_whose_first_probe_has_no_turn_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.query()
    kinesis = MemoryKinesis(world.stream)
    monkeypatch.setattr(world, "probe", ProbeScheduler(lambda row: KinesisProber(kinesis, row.id, row.end), limits=ProbeLimits(most=0)))
    world.put([world.stream.list_shards().shards[-1].id], 1)
    assert trigger(world, world.epoch())
    world.judge()


@pytest.mark.parametrize("most", [1, 2, 500])
def test_a_shard_of_the_last_batch_has_its_turn_beside_idle_ones(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes are bounded. If each poll spent them on the shards that were left out, a record in the others would not be found for an hour."""
    world, time = World(), [0.0]
    kinesis = MemoryKinesis(world.stream)
    probes = ProbeScheduler(
        lambda row: KinesisProber(kinesis, row.id, row.end), clock=lambda: time[0], limits=replace(ProbeLimits.of(0.2), most=most)
    )
    monkeypatch.setattr(world, "probe", probes)
    planner = world.epoch()

    def triggers(count: int) -> int:
        found = 0
        for _ in range(count):
            found += trigger(world, planner)
            time[0] += 1.2
        return found

    triggers(12)
    busy = world.stream.list_shards().shards[-1].id
    for _ in range(3):
        world.put([busy], 1)
        assert triggers(6) == 1
    world.judge()


@HABITS
def test_a_query_folds_shards_that_are_over_and_goes_on(*, names_the_start: bool) -> None:
    world = World(names_the_start=names_the_start, audits=True, folds=FoldLimits(least=1))
    world.query()
    ended, *others = [shard.id for shard in world.stream.list_shards().shards]
    world.now += 3 * world.stream.retention_millis
    world.stream.expire_shard(ended)
    for _ in range(3):
        world.put(others, 2)
        world.query()
    assert world.store.contents().folded.keys() == {ended}
    assert set(world.store.shards()) == set(others)
    read = [data for _, content in sorted(world.sink.items()) for shard, part in content if shard == others[0] for data in part]
    assert read == [record.data for record in world.records(others[0])]

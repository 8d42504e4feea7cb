"""A sink that skips ids of Spark's batches that it knows, as files and many a foreachBatch do, beside directories that are lost or come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming_world import Checkpoint, Content, Steps, World

from sluice_checkpoints.errors import Refused
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.streaming.offsets import Offset
from sluice_consumer.streaming.planner import StreamPlanner

Skip = Callable[[World, StreamPlanner, BatchPlan | None], None]


def unread(_world: World, _planner: StreamPlanner, _plan: BatchPlan | None) -> None:
    """The file sink looks at its log, and starts no job."""


def says_so(_world: World, planner: StreamPlanner, _plan: BatchPlan | None) -> None:
    """A function that knows batches by (consumer, batch), and says that its sink holds this one."""
    planner.stored()


def looks_first(world: World, _planner: StreamPlanner, plan: BatchPlan | None) -> None:
    """A function that asks whether the batch is empty before it skips it: one task of it runs."""
    first = plan.rows[0].id if plan else ""
    world.reads, before = (lambda shard: shard == first), world.reads
    if plan:
        world.read(plan)
    world.reads = before


@dataclass
class Life:
    """A world whose owner does what the refusal says: another directory and another output path. What the sinks hold is kept."""

    world: World
    outputs: list[dict[int, Content]] = field(default_factory=list)
    refusals: int = 0

    def new_directory(self, *, output_too: bool) -> None:
        self.world.spark = Checkpoint()
        if output_too:
            self.outputs.append(self.world.sink)
            self.world.sink = {}

    def go_on(self) -> None:
        for _ in range(4):
            try:
                self.world.query()
            except Refused:
                self.refusals += 1
                self.new_directory(output_too=True)
            else:
                return
        raise AssertionError("the ways out of the refusal do not help")

    def held(self) -> Counter[bytes]:
        return Counter(data for sink in (*self.outputs, self.world.sink) for batch in sink.values() for _, rows in batch for data in rows)

    def lost(self) -> set[bytes]:
        put = {record.data for shard in self.world.stream.list_shards().shards for record in self.world.records(shard.id)}
        return put - set(self.held())


def steps_of_a_run() -> list[str]:
    world = World()
    world.query()
    return world.steps.names


STEPS = steps_of_a_run()
HABITS = pytest.mark.parametrize("names_the_start", [True, False], ids=["Spark names the start", "Spark 4.1"])
AT = pytest.mark.parametrize("at", range(len(STEPS)), ids=[f"{i} {name}" for i, name in enumerate(STEPS)])


def dead_in_the_second_batch(moment: str = "before the sink", *, skips: Skip = unread) -> World:
    world = World(steps=Steps(STEPS.index(moment, STEPS.index(moment) + 1)), skips=skips)
    assert not world.survive()
    return world


@HABITS
@AT
def test_a_death_at_any_step_is_survived_by_a_sink_that_skips_what_it_knows(at: int, *, names_the_start: bool) -> None:
    """With the directory that it had: a batch that is in the sink and not in Spark's log is skipped, and committed."""
    world = World(steps=Steps(at), names_the_start=names_the_start, skips=unread)
    assert not world.survive()
    world.query()
    world.judge()


@HABITS
@AT
def test_a_directory_that_is_lost_at_any_step_loses_no_record(at: int, *, names_the_start: bool) -> None:
    """The output stays, and skips the ids that it knows: what was bound and never read is refused, what comes new comes again."""
    life = Life(World(steps=Steps(at), names_the_start=names_the_start, skips=unread))
    assert not life.world.survive()
    life.new_directory(output_too=False)
    life.go_on()
    assert not life.lost()
    assert max(life.held().values()) <= 2


@AT
def test_an_output_path_that_another_consumer_had_used_loses_no_record(at: int) -> None:
    """Its ids are known from the beginning: what is skipped was never bound, and comes again until Spark's ids are new."""
    world = World(steps=Steps(at), skips=unread, sink={0: (), 1: (), 2: ()})
    world.survive()
    world.query()
    world.judge()


@HABITS
def test_a_bound_batch_that_a_new_directory_skips_is_refused_for_as_long_as_that_directory_is_used(*, names_the_start: bool) -> None:
    """Spark's log of that directory holds the batch from then on, so that a later epoch is not given it again."""
    world = dead_in_the_second_batch()
    world.names_the_start = names_the_start
    committed = world.committed()
    world.spark = Checkpoint()
    for _ in range(3):
        with pytest.raises(Refused, match=r"batch 2 was not committed: 6 of its records were never read.*new output path.*acceptLossOfBatch to 2"):
            world.query()
    assert world.committed() == committed


def test_a_new_directory_with_an_output_path_of_its_own_reads_what_was_refused() -> None:
    life = Life(dead_in_the_second_batch())
    life.new_directory(output_too=False)
    life.go_on()
    assert life.refusals == 1
    assert not life.lost()
    assert max(life.held().values()) == 1


def test_a_batch_of_which_a_part_was_read_is_refused_too() -> None:
    world = dead_in_the_second_batch(skips=looks_first)
    world.spark = Checkpoint()
    with pytest.raises(Refused, match="3 of its records were never read"):
        world.query()


def known_by_its_number() -> World:
    """The second batch is in the sink and the directory is lost; the sink knows the batch by (consumer, batch), and what comes then by Spark's id."""
    world = dead_in_the_second_batch("in the sink", skips=says_so)
    world.spark, world.sink = Checkpoint(), {-1: world.sink[0], 0: world.sink[1]}
    return world


def steps_after_a_lost_directory() -> list[str]:
    world = known_by_its_number()
    world.query()
    return world.steps.names


@pytest.mark.parametrize("at", range(len(steps_after_a_lost_directory())))
def test_what_a_function_says_to_be_stored_is_committed_by_whichever_epoch_comes_to_it(at: int) -> None:
    """The process may die between what the function said and the commit; it is in the table."""
    world = known_by_its_number()
    world.steps = Steps(at)
    assert not world.survive()
    world.query()
    world.judge()


def test_what_is_said_of_a_batch_that_nobody_had_begun_changes_nothing() -> None:
    world = World(skips=says_so, sink={0: ()})
    world.query()
    world.judge()


def test_a_batch_that_a_person_accepts_is_committed_unread() -> None:
    world = dead_in_the_second_batch()
    world.spark, world.accepted = Checkpoint(), 3
    with pytest.raises(Refused, match="batch 2 was not committed"):
        world.query()
    world.accepted = 2
    world.query()
    assert world.committed() > 2


def test_a_directory_of_an_older_version_goes_on_as_before() -> None:
    """Its offsets do not say which epoch gave them: a batch that is in Spark's log is committed, whoever read it."""
    world = World(steps=Steps(STEPS.index("commit written")), skips=unread)
    assert not world.survive()
    for offset in world.spark.offsets:
        del offset["generation"]
    world.query()
    world.judge()


def test_an_offset_is_the_same_text_after_it_was_read() -> None:
    """Spark compares the text: another one would be a new batch."""
    for offset in (Offset("id", 3), Offset("id", 3, first=True), Offset("id", 3, generation=7)):
        assert list(Offset.from_map(offset.to_map()).to_map().items()) == list(offset.to_map().items())


ACCIDENTS = st.lists(st.tuples(st.integers(0, len(STEPS)), st.sampled_from(["nothing", "lost", "restored"])), min_size=1, max_size=5)


@settings(max_examples=150, deadline=None)
@given(accidents=ACCIDENTS, names_the_start=st.booleans(), state=st.booleans(), kept=st.integers(0, 4))
def test_no_accident_of_directories_loses_a_record(accidents: list[tuple[int, str]], kept: int, *, names_the_start: bool, state: bool) -> None:
    """Deaths at any step, between which the directory is lost, or an old backup of it comes back; with and without batches without data."""
    life = Life(World(names_the_start=names_the_start, skips=unread, batches_without_data=state))
    world = life.world
    for at, what in accidents:
        world.steps = Steps(at)
        try:
            world.survive()
        except Refused:
            life.new_directory(output_too=True)
        if what == "lost":
            life.new_directory(output_too=False)
        elif what == "restored":
            world.spark.offsets = world.spark.offsets[: max(0, len(world.spark.offsets) - kept)]
            world.spark.commits = min(world.spark.commits, len(world.spark.offsets))
    life.go_on()
    assert not life.lost()

"""Stories of records that `process` cannot deal with, and of outages that only look so (docs/protocol.md, "Poison")."""

from __future__ import annotations

from dataclasses import replace

from simulation.epochs import Orders, SimulatedEpoch
from simulation.habits import EARLY, LATE, Habits
from simulation.outages import CALLS, EVERYTHING, KEY, SECONDS, SHARD, Outage
from simulation.ports import LOST, UNAVAILABLE
from simulation.story import begin, beside, go, inherit, reach, story
from simulation.world import World

from sluice_consumer.shards.reader import FOLLOWED

ISOLATES = Habits(limit=8, isolates=True)


def poisoned(records: int = 4, poison: int = 2, shards: int = 2, habits: Habits = ISOLATES) -> World:
    """Shards with records; one of the first shard's is poison."""
    world = World(shards, habits)
    for shard in world.open_shards:
        world.put(shard, records)
    world.put(world.open_shards[0], records, poison=poison)
    return world


@story
def a_poisonous_record_among_good_ones() -> World:
    """It is found, and all others are delivered in order."""
    world = poisoned()
    world.work(begin(world), 12)
    return world


@story
def a_poisonous_record_in_a_sparse_shard() -> World:
    """What is let go of it is found again after more empty replies than a range follows."""
    world = poisoned(habits=replace(ISOLATES, sparse=FOLLOWED + 1))
    world.work(begin(world), 12)
    return world


@story
def a_poisonous_record_of_the_only_shard() -> World:
    """Nothing else can pass meanwhile: it is found after minutes."""
    world = poisoned(shards=1, poison=0)
    world.work(begin(world), 4)
    return world


@story
def a_poisonous_record_in_an_aggregate() -> World:
    """Only it is excluded: the batch ends inside the aggregate, and the next begins there."""
    world = World(2, ISOLATES)
    for shard in world.open_shards:
        world.put(shard, 2)
    world.put(world.open_shards[0], 5, together=True, poison=3)
    world.work(begin(world), 12)
    return world


@story
def two_poisonous_records_side_by_side() -> World:
    """One after the other."""
    world = poisoned(records=3, poison=1)
    world.put(world.open_shards[1], 2, poison=0)
    world.work(begin(world), 16)
    return world


@story
def a_shard_that_ends_with_a_poisonous_record() -> World:
    """Its end is let go with what the batch lets go, and found again."""
    world = World(2, Habits(limit=8, isolates=True, end_with_records=True))
    for shard in world.open_shards:
        world.put(shard, 3)
    world.put(world.open_shards[0], 1, poison=0)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard, 1)
    world.work(begin(world), 12)
    return world


@story
def an_outage_of_the_sink() -> World:
    """`process` raises the same error on everything, until nothing but one record is left in the batch; then all is well again."""
    world = World(2, ISOLATES)
    for shard in world.open_shards:
        world.put(shard, 4)
    epoch = begin(world)
    world.outage = Outage()
    for _ in range(12):
        world.work(epoch, calls=30)
        world.until_it_looks(epoch)
    world.outage = None
    return world


def with_an_outage(of: str, which: int = 0, *, seconds: float = SECONDS, shards: int = 3) -> World:
    """A part of the sink is down for so long; the driver goes on meanwhile."""
    world = World(shards, ISOLATES)
    for shard in world.open_shards:
        world.put(shard, 4)
    epoch = begin(world)
    world.outage = Outage(of, which, until=world.time + seconds)
    for _ in range(60):
        world.work(epoch, calls=40)
        world.until_it_looks(epoch)
    return world


@story
def an_outage_of_the_sink_for_one_shard() -> World:
    """The records of the others pass all the time."""
    return with_an_outage(SHARD)


@story
def an_outage_of_the_sink_for_one_key() -> World:
    """Other records of the same shard pass, too, a moment before."""
    return with_an_outage(KEY, which=2)


@story
def an_outage_of_the_sink_for_most_calls() -> World:
    """Whatever is tried passes now and then."""
    return with_an_outage(CALLS, which=8)


@story
def an_outage_of_the_sink_of_the_only_shard() -> World:
    """Nothing else can pass, or fail, meanwhile: that takes a while longer."""
    return with_an_outage(SHARD, seconds=66, shards=1)


@story
def an_outage_of_the_whole_sink_that_lasts() -> World:
    """Records of all shards fail one after the other: that takes the longest."""
    return with_an_outage(EVERYTHING, seconds=150)


@story
def a_sink_that_raises_when_it_has_the_batch() -> World:
    """It is asked again before anything is let go: then it says that it has the batch."""
    world = poisoned(poison=0, habits=Habits(limit=8, isolates=True, processes=(LATE,)))
    world.work(begin(world), 12)
    return world


@story
def a_crash_between_letter_and_exclusion() -> World:
    """The next epoch writes the letter again, and excludes the record."""
    world = poisoned()
    epoch = begin(world)
    reach(world, epoch, "exclude")
    world.crash(epoch)
    world.work(inherit(world), 4)
    return world


@story
def a_crash_between_letter_and_exclusion_and_a_repair() -> World:
    """The next epoch's `process` can deal with the record: it is in the sink, and its letter is never final."""
    world = poisoned()
    epoch = begin(world)
    reach(world, epoch, "exclude")
    world.crash(epoch)
    world.ledger.poison.clear()
    world.work(inherit(world), 4)
    return world


@story
def a_late_letter_and_a_repair() -> World:
    """An epoch stands still before it stores a letter; the next one's `process` can deal with the record, and a third finds what the first left."""
    world = poisoned()
    former = begin(world)
    late = reach(world, former, "letter")[1]
    world.freeze_epoch(former)
    world.ledger.poison.clear()
    heir = inherit(world)
    world.work(heir, 4)
    world.thaw(late, 1)
    world.crash(heir)
    world.work(inherit(world), 2)
    return world


@story
def a_crash_between_commit_and_publication() -> World:
    """The record is in no batch, and nobody reads it again: the next epoch makes its letter final."""
    world = poisoned()
    epoch = begin(world)
    reach(world, epoch, "publish")
    world.crash(epoch)
    world.work(inherit(world), 4)
    return world


@story
def a_publication_that_is_not_told() -> World:
    """The letter is final, and the row still names it: the next epoch publishes the same."""
    world = poisoned()
    epoch = begin(world)
    world.step(*reach(world, epoch, "named"), fault=UNAVAILABLE)
    world.work(inherit(world), 4)
    return world


@story
def a_dead_letter_that_is_not_stored() -> World:
    """The store of letters is down: the record stays owed."""
    world = poisoned()
    epoch = begin(world)
    world.step(*reach(world, epoch, "letter"), fault=UNAVAILABLE)
    world.work(epoch)
    return world


@story
def a_crash_before_the_letter() -> World:
    """Nothing was excluded."""
    world = poisoned()
    epoch = begin(world)
    reach(world, epoch, "letter")
    world.crash(epoch)
    return world


@story
def a_crash_between_two_shortened_shards() -> World:
    """The content of the batch is what the rows say."""
    world = poisoned(shards=4)
    epoch = begin(world)
    world.step(*reach(world, epoch, "shorten"))
    world.crash(epoch)
    world.work(inherit(world), 4)
    return world


@story
def a_shortening_whose_reply_was_lost() -> World:
    """It took effect; the epoch ends for it, and the next one begins with the shorter batch."""
    world = poisoned()
    world.step(*reach(world, begin(world), "shorten"), fault=LOST)
    return world


@story
def an_exclusion_whose_reply_was_lost() -> World:
    """It took effect."""
    world = poisoned()
    world.step(*reach(world, begin(world), "exclude"), fault=LOST)
    return world


@story
def a_late_shortening() -> World:
    """An epoch stands still before it shortens a batch; the next one is in the middle of a later batch when it goes on."""
    world = poisoned()
    former = begin(world)
    world.step(*reach(world, former, "shorten"))
    late = reach(world, former, "shorten")[1]
    world.freeze_epoch(former)
    heir = inherit(world)
    world.work(heir, 2)
    reach(world, heir, "emit")
    world.thaw(late, 1)
    return world


@story
def a_late_exclusion() -> World:
    """An epoch stands still before it excludes a record; the next one does it, and is in the middle of a later batch when the first goes on."""
    world = poisoned()
    former = begin(world)
    late = reach(world, former, "exclude")[1]
    world.freeze_epoch(former)
    heir = inherit(world)
    world.step(*reach(world, heir, "exclude"))
    world.put(world.open_shards[0], 1)
    world.work(heir)
    reach(world, heir, "emit shardId-000000000000")
    world.thaw(late, 1)
    return world


@story
def a_batch_that_fails_while_a_task_of_it_works() -> World:
    """A query ended early, and `process` raises; a task has yet to hand over what it bound when the batch is shortened."""
    world = poisoned(habits=Habits(limit=8, isolates=True, processes=(EARLY,)))
    epoch = begin(world)
    world.outage = Outage()
    driver = reach(world, epoch, "query")[1]
    first, other = (process for _, process, attempt in world.processes() if attempt is not None)
    go(world, first, 8)
    go(world, other, 4)
    for _ in range(3):
        go(world, driver, 12)
        world.until_it_looks(epoch)
    go(world, other, 1)
    return world


@story
def a_job_that_hangs_beside_a_failure() -> World:
    """It is cancelled, and the batch comes again; a cancelled task hands over what it had fetched, when it can."""
    world = poisoned(habits=Habits(limit=8, isolates=True, straggles=True))
    epoch = begin(world)
    for _ in range(2):  # the second failure shortens the batch
        reach(world, epoch, "straggle")
        stragglers = [process for _, process, attempt in world.processes() if attempt is not None and attempt.job.hangs]
        until_issued_again(world, epoch)
    world.work(epoch, calls=16)
    for process in stragglers:
        go(world, process, 6)
    world.work(epoch, 6)
    return world


@story
def a_job_that_hangs_beside_a_failure_loses_its_executor() -> World:
    """Spark gives the task up, and the job is over; the lost worker hands over what it had fetched, when it can."""
    world = poisoned(habits=Habits(limit=8, isolates=True, straggles=True, attempts=1))
    epoch = begin(world)
    assert epoch.engine is not None
    reach(world, epoch, "straggle")
    until_issued_again(world, epoch)
    reach(world, epoch, "straggle")
    world.until_it_looks(epoch)
    stragglers = [(process, attempt) for _, process, attempt in world.processes() if attempt is not None and attempt.job.hangs]
    for _, attempt in stragglers:
        epoch.engine.lose(attempt)
    until_issued_again(world, epoch)  # shortened
    world.work(epoch, calls=16)
    for process, _ in stragglers:
        go(world, process, 6)
    world.work(epoch, 6)
    return world


def until_issued_again(world: World, epoch: SimulatedEpoch) -> None:
    """Only the driver goes on, and time."""
    assert epoch.driver is not None
    assert epoch.engine is not None
    failed = epoch.engine.jobs
    for _ in range(200):
        if epoch.engine.jobs is not failed and epoch.driver.at == "job":
            return
        go(world, epoch.driver, 1)
        world.until_it_looks(epoch)
    raise AssertionError("the batch is not issued again")


@story
def a_late_bind_in_a_batch_that_fails() -> World:
    """A task whose executor was lost binds its shard, when the batch without that shard was issued again."""
    world = poisoned(habits=Habits(limit=8, isolates=True, attempts=1))
    epoch = begin(world)
    late = beside(world, epoch, reach(world, epoch, "emit")[1])
    world.freeze(late)
    world.lose_attempt(epoch, next(a for e, p, a in world.processes() if p is late and a is not None))
    world.work(epoch, calls=30)
    world.advance(20)
    world.work(epoch, calls=30)
    world.thaw(late, 2)
    return world


@story
def a_commit_that_fails_in_a_world_that_isolates() -> World:
    """The sink holds the batch; that its commit got no answer is no failure of `process`."""
    world = poisoned(poison=0)
    world.ledger.poison.clear()
    epoch = begin(world)
    world.step(*reach(world, epoch, "commit"), fault=UNAVAILABLE)
    world.work(epoch, calls=40)
    return world


HANGS = Habits(limit=8, isolates=True, overdue=True)


@story
def a_record_on_which_process_hangs() -> World:
    """Each of its failures ends a driver; what is known outlives them."""
    world = poisoned(records=2, poison=1, habits=HANGS)
    world.work(begin(world), 12)
    return world


@story
def a_note_that_is_not_written() -> World:
    """The table is down when the driver ends: that failure does not count."""
    world = poisoned(records=2, poison=1, habits=HANGS)
    world.step(*reach(world, begin(world), "transact ['isolation']"), fault=UNAVAILABLE)
    return world


@story
def a_note_whose_reply_was_lost() -> World:
    """It counts, once."""
    world = poisoned(records=2, poison=1, habits=HANGS)
    world.step(*reach(world, begin(world), "transact ['isolation']"), fault=LOST)
    return world


def in_an_outage() -> World:
    """Two records of one shard, and `process` hangs on everything."""
    world = World(2, replace(HANGS, hasty=True))
    world.put(world.open_shards[0], 2)
    world.outage = Outage()
    return world


def crash_when_shortened(world: World, epoch: SimulatedEpoch) -> None:
    """Once the batch holds one record; the outage is over."""
    world.step(*reach(world, epoch, "shorten"))
    world.crash(epoch)
    world.outage = None


def until_it_is_counted(world: World, epoch: SimulatedEpoch, failures: int) -> SimulatedEpoch:
    """Epochs end, so many of them because `process` hangs; the one after them is about to count the last of these failures."""
    for _ in range(failures):
        world.work(epoch)
        epoch = inherit(world)
    return epoch


def then_it_fails_twice(world: World, epoch: SimulatedEpoch) -> None:
    """Each time another shard's record passes, and then the record fails in a short outage: once less than makes it poison."""
    for _ in range(2):
        world.put(world.open_shards[1], 1)
        world.step(*reach(world, epoch, "sink"))
        reach(world, epoch, "next batch")
        world.outage = Outage()
        world.work(epoch)
        world.outage = None
        epoch = inherit(world)
    world.work(epoch)


@story
def a_crash_after_a_noted_failure_was_counted() -> World:
    """The batch was shortened to one record by then, which had not failed; it fails twice afterwards, when another shard's has passed."""
    world = in_an_outage()
    epoch = until_it_is_counted(world, begin(world), 2)
    crash_when_shortened(world, epoch)
    then_it_fails_twice(world, inherit(world))
    return world


@story
def a_late_note() -> World:
    """An epoch stands still before it notes a failure; when it goes on, the batch holds one record only, which had not failed."""
    world = in_an_outage()
    late = until_it_is_counted(world, begin(world), 1)
    reach(world, late, "transact ['isolation']")
    world.step(*reach(world, late, "next batch"))
    process = reach(world, late, "transact ['isolation']")[1]
    world.freeze_epoch(late)
    epoch = until_it_is_counted(world, inherit(world), 1)
    crash_when_shortened(world, epoch)
    world.thaw(process, 1)
    then_it_fails_twice(world, inherit(world))
    return world


@story
def a_day_before_a_shortened_batch() -> World:
    """Nobody works until retention has taken the oldest records of a batch that was shortened; a person goes on without them."""
    world = poisoned()
    epoch = begin(world)
    world.step(*reach(world, epoch, "shorten"))
    world.overtake(2)
    heir = world.start(Orders(accept=1))
    world.settle(heir)
    world.advance(40)
    world.work(heir, 3)
    return world

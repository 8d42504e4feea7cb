"""Stories of versions of the spec (see `story`)."""

from __future__ import annotations

from collections.abc import Container

from simulation.epochs import Orders, SimulatedEpoch
from simulation.stories_folding import FOLDS, a_retention_later, turns, works
from simulation.stories_resets import resets
from simulation.story import begin, reach, story, with_records
from simulation.world import World

from sluice_checkpoints.positions.target import ResetTarget


def deployed(world: World, spec: str) -> SimulatedEpoch:
    """A driver of a spec starts when the lease can be taken."""
    epoch = world.start(Orders(spec=spec))
    world.settle(epoch)
    world.advance(40)
    return epoch


def worked(world: World) -> SimulatedEpoch:
    """The first version has committed a batch; another record is there."""
    epoch = begin(world)
    world.work(epoch)
    world.put(world.open_shards[0])
    return epoch


@story
def another_spec_is_deployed() -> World:
    """It commits batches; then the first one comes back."""
    world = with_records(shards=2)
    former = worked(world)
    for spec in ("b", "a"):
        former.draining = True
        world.work(former)
        world.advance(1)
        former = deployed(world, spec)
        world.work(former)
        world.put(world.open_shards[0])
    return world


@story
def a_spec_is_deployed_while_a_batch_is_open() -> World:
    """The former driver dies with records in the hands of `process`; the next one is given the same batch."""
    world = with_records(shards=2)
    former = worked(world)
    reach(world, former, "emit")
    world.crash(former)
    world.work(deployed(world, "b"))
    return world


@story
def a_driver_dies_before_it_names_its_version() -> World:
    """Its positions are kept; nobody knows of them. The next one is of the first spec."""
    world = with_records(shards=2)
    world.crash(worked(world))
    dying = deployed(world, "b")
    reach(world, dying, "transact")
    world.crash(dying)
    world.put(world.open_shards[0])
    world.work(deployed(world, "a"))
    return world


@story
def a_version_that_is_named_late() -> World:
    """Its driver stands still before it names it, and a driver of a third spec takes over and commits."""
    world = with_records(shards=2)
    world.crash(worked(world))
    late = deployed(world, "b")
    process = reach(world, late, "transact")[1]
    world.freeze_epoch(late)
    heir = deployed(world, "c")
    world.work(heir)
    world.put(world.open_shards[0])
    world.thaw(process, 1)
    world.work(heir)
    return world


def drained(world: World, epoch: SimulatedEpoch) -> None:
    """It ends its batch, and releases the lease."""
    epoch.draining = True
    while not epoch.over:
        world.work(epoch)
        world.advance(1)


def with_a_bad_version() -> World:
    """Version a has worked over a split, b over a split and a merge; both have drained. Some records arrived under a, and b read them."""
    world = with_records(2, shards=2)
    good = begin(world)
    world.work(good, 2)
    world.split(world.open_shards[0])
    world.work(good, 2)
    for shard in world.open_shards:
        world.put(shard, 2)  # these arrive while a works, and b reads them
    drained(world, good)
    bad = deployed(world, "b")
    world.work(bad, 2)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard, 2)
    world.work(bad, 4)
    world.advance(5)
    assert world.merge(world.open_shards[-2])
    for shard in world.open_shards:
        world.put(shard)
    world.work(bad, 4)
    drained(world, bad)
    return world


def first_of(world: World, spec: str) -> int:
    return next(int(each["first"]) for each in world.table.rows["versions"]["list"] if each.get("hash") == spec)


def undoes(world: World, first: int, name: str = "one", there: Container[str] | None = None) -> None:
    """Goes back to the first batch of version b; what that committed, of shards that are there, comes again, and nothing else. Then a works."""
    batches = (shards for (_, batch), shards in world.ledger.sink.batches.items() if batch >= first)
    theirs = {record for shards in batches for shard, records in shards.items() if there is None or shard in there for record in records}
    resets(world, ResetTarget(batch=first), name)
    if set(world.ledger.moves.returned) != theirs:
        world.ledger.breaks("what_it_says_is_true", f"version b committed {sorted(theirs)}, and {sorted(world.ledger.moves.returned)} come again")
    world.work(deployed(world, "a"), 5)


@story
def a_bad_version_is_undone() -> World:
    """Exactly the records that it committed come again, parents first; then the good version works."""
    world = with_a_bad_version()
    undoes(world, first_of(world, "b"))
    return world


@story
def a_bad_version_is_undone_after_shards_were_folded() -> World:
    """Between the shard that it began with and one that it read to its end, two generations have left the stream and the table."""
    world = with_records(habits=FOLDS)
    drained(world, worked(world))
    bad = deployed(world, "b")
    world.work(bad)
    world.split(world.open_shards[0])
    world.work(bad, 3)
    world.advance(5)
    assert world.merge(world.open_shards[0])
    world.work(bad, 3)
    drained(world, bad)
    a_retention_later(world)
    bad = deployed(world, "b")
    works(world, bad)
    turns(world, bad, 4)
    world.split(world.open_shards[0])
    works(world, bad)
    world.work(bad, 3)
    drained(world, bad)
    undoes(world, first_of(world, "b"), there=world.stream.shards)
    return world


@story
def a_bad_version_is_undone_after_another_reset() -> World:
    """Somebody went back to the oldest record first, and thought better of it: what was over before the version stays over."""
    world = with_a_bad_version()
    resets(world, "trimHorizon", "first")
    resets(world, ResetTarget(batch=first_of(world, "b")), "second")
    world.work(deployed(world, "a"), 5)
    return world


@story
def a_version_that_read_again_is_undone() -> World:
    """Positions were moved back, and the same version read from there: what it committed since comes again, and no record of it is left out."""
    world = with_a_bad_version()
    resets(world, "trimHorizon", "first")
    again = deployed(world, "b")
    world.work(again, 6)
    drained(world, again)
    resets(world, ResetTarget(batch=first_of(world, "b")), "second")
    if world.table.rows["consumer"]["lastReset"] != "first":
        world.ledger.breaks("what_it_says_is_true", "a reset went back over another one: what the sink lost for that would not come again")
    first = int(world.table.rows["consumer"]["resetAfter"]) + 1
    undoes(world, first, "third")
    return world

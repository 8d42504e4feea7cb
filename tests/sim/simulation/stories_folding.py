"""Stories of shards that are over, and whose rows are folded (docs/protocol.md, "Folded shards")."""

from __future__ import annotations

from dataclasses import replace

from simulation.epochs import Orders, SimulatedEpoch
from simulation.habits import NOTHING, READ, Habits
from simulation.ports import LATE, LOST, TORN
from simulation.story import Entry, begin, inherit, reach, story, with_records
from simulation.world import World

HOUR = 3600
FOLDS = Habits(folds=1)


def reads_a_split(world: World, epoch: SimulatedEpoch, shard: str) -> None:
    """A shard is split and read to its end, and a range of each child is committed."""
    world.split(shard)
    for child in world.open_shards[-2:]:
        world.put(child)
    world.work(epoch, 5)


def a_retention_later(world: World) -> None:
    """Nobody works for more than a retention; shards that were closed before leave the stream."""
    world.advance(26 * HOUR)
    world.stream.expire()
    world.advance(2)


def after_a_split(habits: Habits = FOLDS, *, again: bool = False) -> World:
    """The driver died after a shard was read to its end; one of its children, too, if it was split `again`. Retention has taken them."""
    world = with_records(habits=habits)
    epoch = begin(world)
    reads_a_split(world, epoch, world.open_shards[0])
    if again:
        reads_a_split(world, epoch, world.open_shards[0])
    world.crash(epoch)
    a_retention_later(world)
    return world


def works(world: World, epoch: SimulatedEpoch) -> None:
    """A record comes in each shard, and is committed: what was committed before is not the newest batch."""
    for shard in world.open_shards:
        world.put(shard)
    world.work(epoch, 2)


def turns(world: World, epoch: SimulatedEpoch, audits: int = 1) -> None:
    """A driver lists the shards some times, each time before its next batch."""
    for _ in range(audits):
        epoch.audit = True
        world.work(epoch)
        world.work(epoch)


def lists(world: World, epoch: SimulatedEpoch, fault: str) -> None:
    """A driver lists the shards, and is given an odd answer."""
    epoch.audit = True
    world.step(*reach(world, epoch, "list"), fault=fault)


@story
def rows_of_ended_shards_go() -> World:
    """They are folded, and at the next listing deleted; the consumer goes on, and so does the next driver."""
    world = after_a_split(again=True)
    epoch = inherit(world)
    works(world, epoch)
    turns(world, epoch, 4)
    assert [key for key in sorted(world.table.rows) if key.startswith("ended/")]
    assert not [row for row in world.table.rows.values() if row.get("end") == {"at": "END"}]
    world.crash(epoch)
    works(world, inherit(world))
    return world


@story
def a_crash_between_fold_and_delete() -> World:
    """The ids are written when the driver dies; the next one deletes the rows."""
    world = after_a_split()
    epoch = inherit(world)
    world.step(*reach(world, epoch, "transact ['ended/"))
    world.crash(epoch)
    heir = inherit(world)
    works(world, heir)
    turns(world, heir)
    assert "shard/shardId-000000000000" not in world.table.rows
    return world


@story
def a_fold_whose_reply_is_lost() -> World:
    """The ids are in the table, and the driver does not know. When it folds again, another shard has come to be over."""
    world = with_records(shards=3, habits=FOLDS)
    first, second, _ = world.open_shards
    epoch = begin(world)
    reads_a_split(world, epoch, first)
    world.crash(epoch)
    a_retention_later(world)
    epoch = inherit(world)
    world.step(*reach(world, epoch, "transact ['ended/"), fault=LOST)
    reads_a_split(world, epoch, second)
    world.stream.retention_millis = 60_000
    world.advance(70)
    world.stream.expire()
    works(world, epoch)
    turns(world, epoch, 3)
    return world


@story
def a_delete_whose_reply_is_lost() -> World:
    """The row is gone, and the driver takes it for one that is there."""
    world = after_a_split(again=True)
    epoch = inherit(world)
    works(world, epoch)
    epoch.audit = True
    world.step(*reach(world, epoch, "transact ['shard/"), fault=LOST)
    turns(world, epoch, 3)
    return world


@story
def a_listing_that_still_names_a_folded_shard() -> World:
    """A machine of the service has not heard yet that it expired."""
    world = after_a_split()
    epoch = inherit(world)
    works(world, epoch)
    turns(world, epoch, 2)
    lists(world, epoch, LATE)
    turns(world, epoch, 2)
    world.crash(epoch)
    heir = world.start(world.owned)
    world.settle(heir)
    world.advance(40)
    world.step(*reach(world, heir, "list"), fault=LATE)
    works(world, heir)
    return world


@story
def a_shard_that_is_idle_for_longer_than_the_retention_and_then_closed() -> World:
    """All that was read of it has expired, and the stream still has it."""
    world = with_records(habits=FOLDS)
    first = begin(world)
    world.work(first, 2)
    world.crash(first)
    world.advance(26 * HOUR)
    world.stream.expire()
    world.split(world.open_shards[0])
    epoch = inherit(world)
    works(world, epoch)
    works(world, epoch)
    turns(world, epoch, 2)
    return world


def commits_an_end(world: World, epoch: SimulatedEpoch, shard: str) -> None:
    """A driver dies when it has committed the end of a shard, and its children have no rows yet."""
    for _ in range(4):
        world.step(*reach(world, epoch, "commit"))
        if world.table.rows[f"shard/{shard}"]["end"] == {"at": "END"}:
            break
    world.crash(epoch)


@story
def a_number_that_passes_without_shards() -> World:
    """The children of the only shard join the batch after the next one."""
    world = with_records()
    epoch = begin(world)
    world.work(epoch)
    shard = world.open_shards[0]
    world.split(shard)
    commits_an_end(world, epoch, shard)
    works(world, inherit(world))
    return world


@story
def children_that_have_not_begun() -> World:
    """They get their rows before anything is read of their parent, and `process` does not read them; then retention takes their first records."""
    kinds = [READ] * 12
    kinds[3] = kinds[5] = NOTHING  # batch 2 in the second epoch, batch 3 in the third
    world = with_records(habits=replace(FOLDS, processes=tuple(kinds), end_with_records=True))
    world.crash(begin(world))
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard)
    epoch = inherit(world)
    world.work(epoch, 2)
    world.crash(epoch)
    a_retention_later(world)
    for shard in world.open_shards:
        world.put(shard)
    heir = inherit(world)
    turns(world, heir, 2)
    world.work(heir, 2)
    return world


@story
def a_row_of_the_first_plan_that_is_put_too_late() -> World:
    """A driver stands still in the first start. Others finish the plan, read the shard to its end and fold it; then it goes on."""
    world = with_records(shards=2, habits=FOLDS)
    late = world.start(Orders(12))
    world.settle(late)
    frozen = reach(world, late, "put shard/")[1]
    world.freeze_epoch(late)
    epoch = inherit(world)
    world.work(epoch, 2)
    reads_a_split(world, epoch, world.open_shards[0])
    world.crash(epoch)
    a_retention_later(world)
    heir = inherit(world)
    works(world, heir)
    turns(world, heir, 2)
    assert frozen.at.removeprefix("put ") not in world.table.rows
    world.thaw(frozen, 1)
    world.crash(heir)
    works(world, inherit(world))
    return world


@story
def a_former_driver_that_folds_while_the_next_one_reads_the_rows() -> World:
    """Its supervisor is cut off. The next one has read the pages on which ids would be, and not yet the shard's. A listing still names the shard."""
    world = with_records(shards=2, habits=replace(FOLDS, page=1))
    kept, ended = world.open_shards
    epoch = begin(world)
    reads_a_split(world, epoch, ended)
    world.crash(epoch)
    a_retention_later(world)
    former = inherit(world)
    world.step(*reach(world, former, "list"), fault=LATE)
    works(world, former)
    former.audit = former.cut = True
    at = reach(world, former, "transact ['ended/")
    usurper = world.start(Orders(12, force=True))
    world.settle(usurper)
    reach(world, usurper, "fence", "list")
    second = reach(world, usurper, f"scan after shard/{kept}")
    folds_and_deletes(world, at, ended)
    world.step(*second)
    world.step(*reach(world, usurper, "list"), fault=LATE)
    world.work(usurper)
    world.advance(20)
    works(world, usurper)
    return world


@story
def a_take_over_that_sees_a_part_of_a_delete() -> World:
    """Rows of two shards go in one transaction; the next driver scans when one of them is gone. It deletes the other one once more."""
    world = with_records(shards=3, habits=FOLDS)
    first, second, _ = world.open_shards
    epoch = begin(world)
    reads_a_split(world, epoch, first)
    reads_a_split(world, epoch, second)
    world.crash(epoch)
    a_retention_later(world)
    former = inherit(world)
    works(world, former)
    former.audit = True
    world.step(*reach(world, former, "transact ['shard/"), fault=TORN)
    usurper = world.start(Orders(12, force=True))
    world.settle(usurper)
    reach(world, usurper, "list")
    assert (f"shard/{first}" in world.table.rows) != (f"shard/{second}" in world.table.rows)
    world.crash(former)
    world.step(*reach(world, usurper, "list"), fault=LATE)
    world.work(usurper)
    world.advance(20)
    works(world, usurper)
    turns(world, usurper, 3)
    assert not {f"shard/{first}", f"shard/{second}"} & world.table.rows.keys()
    return world


@story
def a_take_over_that_sees_a_part_of_a_fold() -> World:
    """The former driver dies in it. The next one scans before all of it is to be seen; then a listing still names the shard."""
    world = after_a_split()
    former = inherit(world)
    works(world, former)
    former.audit = True
    world.step(*reach(world, former, "transact ['ended/", "transact ['shard/"), fault=TORN)
    usurper = world.start(Orders(12, force=True))
    world.settle(usurper)
    at = reach(world, usurper, "list")
    world.crash(former)
    world.step(*at, fault=LATE)
    world.work(usurper)
    world.advance(20)
    works(world, usurper)
    return world


def folds_and_deletes(world: World, at: Entry, ended: str) -> None:
    """A driver that was taken over goes on: it folds, idles, and deletes at its next listing."""
    epoch, process, _ = at
    for _ in range(40):
        if process.done or f"shard/{ended}" not in world.table.rows:
            return
        if not world.ready(process):
            epoch.audit = True
            world.advance(1.1)
        if world.ready(process):
            world.step(*at)

"""Stories of retention that overtakes an open batch, and of a person who accepts that (docs/protocol.md, "Retention")."""

from __future__ import annotations

from simulation.epochs import Orders, SimulatedEpoch
from simulation.habits import Habits
from simulation.ports import LOST, RETRIED
from simulation.stories_beginnings import whole
from simulation.story import TURNS, begin, go, inherit, reach, story, with_records
from simulation.world import World

WEEK = 7 * 86_400_000


def not_working(world: World, hours: float) -> None:
    """Nobody works for so long; what is older than the stream keeps it expires."""
    world.advance(hours * 3600)
    world.stream.expire()


def dies_at_the_end_of(world: World, epoch: SimulatedEpoch, shard: str) -> None:
    """An epoch dies as soon as it has committed the end of a shard."""
    for _ in range(TURNS):
        row = world.table.rows[f"shard/{shard}"]
        if row["end"] == {"at": "END"} and row["batch"] <= world.ledger.committed:
            break
        world.work(epoch, calls=1)
    world.crash(epoch)


def overtaken(keep: int = 1, records: int = 3) -> World:
    """An epoch binds a batch of a shard and dies; retention leaves `keep` of its records."""
    world = with_records(records, habits=Habits(limit=records))
    reach(world, begin(world), "emit")
    world.overtake(keep)
    return world


def accepting(world: World, batch: int = 1, *, force: bool = False) -> SimulatedEpoch:
    """The next epoch, with a person's word about a batch."""
    epoch = world.start(Orders(accept=batch, force=force))
    world.settle(epoch)
    world.advance(40)
    return epoch


@story
def an_accepted_loss() -> World:
    """A part of an open batch has expired; the next epoch is told to go on with what is left."""
    world = overtaken()
    world.work(accepting(world))
    return world


@story
def a_loss_that_nobody_reported() -> World:
    """The epoch that commits the batch dies before it can report the loss."""
    world = overtaken()
    heir = accepting(world)
    reach(world, heir, "report")
    world.crash(heir)
    return world


@story
def a_loss_of_everything() -> World:
    """All of the open batch has expired, and what came after it."""
    world = overtaken(keep=0)
    world.work(accepting(world))
    return world


@story
def a_loss_that_nobody_accepted() -> World:
    """Two epochs find it, change nothing and end; a third one is told to go on."""
    world = overtaken()
    for _ in range(2):
        epoch = world.start(Orders())
        world.settle(epoch)
        world.advance(40)
        world.work(epoch)
    return world


@story
def a_word_about_another_batch() -> World:
    """The number is left over from an earlier loss."""
    world = overtaken()
    world.work(accepting(world, batch=2))
    return world


@story
def a_word_about_a_batch_that_is_still_there() -> World:
    """A person accepts a loss that there is not."""
    world = overtaken(keep=3)
    world.work(accepting(world))
    return world


@story
def a_crash_beside_an_accepted_loss() -> World:
    """Two shards have lost records; the epoch dies between the two writes."""
    world = with_records(3, shards=2, habits=Habits(limit=3))
    former = begin(world)
    first = reach(world, former, "emit")[1]
    go(world, next(p for _, p, attempt in world.processes() if attempt is not None and p is not first), 1)
    world.overtake(1)
    epoch = accepting(world)
    world.step(*reach(world, epoch, "forfeit"))
    world.crash(epoch)
    return world


@story
def an_accepted_loss_whose_reply_was_lost() -> World:
    """The write took effect; the first epoch ends for it, the second is answered when it asks again."""
    world = overtaken()
    world.step(*reach(world, accepting(world), "forfeit"), fault=LOST)
    world.overtake(1)
    epoch = accepting(world)
    world.work(epoch)
    return world


@story
def an_acceptance_that_is_sent_twice() -> World:
    """The reply is lost, and the client itself asks again."""
    world = overtaken()
    epoch = accepting(world)
    world.step(*reach(world, epoch, "forfeit"), fault=RETRIED)
    world.work(epoch, 2)
    return world


@story
def a_late_acceptance_beside_another() -> World:
    """An epoch stands still before it accepts one loss; more expires; another epoch has seen that, and the first one goes on before it writes."""
    world = overtaken(keep=2)
    former = accepting(world)
    late = reach(world, former, "forfeit")[1]
    world.freeze_epoch(former)
    world.overtake(1)
    heir = accepting(world)
    reach(world, heir, "forfeit")
    world.thaw(late, 1)
    world.work(heir)
    return world


@story
def a_late_acceptance_two_batches_later() -> World:
    """An epoch stands still before it accepts a loss; the next one does, and is in the middle of a later batch when the first goes on."""
    world = overtaken()
    former = accepting(world)
    late = reach(world, former, "forfeit")[1]
    world.freeze_epoch(former)
    heir = accepting(world)
    world.work(heir)
    world.put(world.open_shards[0], 2)
    reach(world, heir, "emit")
    world.thaw(late, 1)
    return world


@story
def a_sink_that_is_told_late_of_what_was_given_up() -> World:
    """An epoch stands still before it writes to its sink; its batch is given up, others come after it; then it goes on."""
    world = with_records(3, habits=Habits(limit=3, looks_first=False))
    former = begin(world)
    late = reach(world, former, "sink")[1]
    world.freeze_epoch(former)
    world.overtake(0)
    heir = accepting(world)
    world.put(world.open_shards[0], 2)
    world.work(heir, 2)
    world.thaw(late, 1)
    return world


@story
def a_day_before_the_first_range() -> World:
    """A consumer begins at LATEST and dies before it reads; what arrived then has expired when the next epoch begins."""
    world = World(1)
    epoch = world.start(Orders(start="LATEST"))
    world.settle(epoch)
    reach(world, epoch, "next batch")
    world.put(world.open_shards[0], 3)
    world.overtake(1)
    return world


@story
def a_day_between_parents_and_children() -> World:
    """A shard is read to its end; of its children, that have rows and no range yet, records have expired when the next epoch begins."""
    world = with_records()
    epoch = begin(world)
    world.work(epoch)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard, 2)
    world.work(epoch)
    reach(world, epoch, "fetch")
    world.overtake(1)
    return world


@story
def a_day_between_parents_and_children_of_an_audit() -> World:
    """Found by 1,500 examples: an audit lists children of a shard that nobody has read yet; a day passes between the two."""
    world = World(1, Habits(limit=2))
    epoch = begin(world)
    for _ in range(2):
        world.split(world.open_shards[0])
        for shard in world.open_shards[-2:]:
            world.put(shard)
    epoch.audit = True
    world.work(epoch, 2)
    reach(world, epoch, "emit")
    world.overtake(0)
    return world


@story
def a_day_between_an_empty_parent_and_its_children() -> World:
    """A shard was split, and one of its children again before a record came. Rows of all were made at the first start."""
    world = with_records()
    parent = world.open_shards[0]
    world.split(parent)
    empty = world.open_shards[0]
    world.split(empty)
    epoch = begin(world)
    for _ in range(TURNS):
        row = world.table.rows[f"shard/{empty}"]
        if row["end"] == {"at": "END"} and row["batch"] <= world.ledger.committed:
            break
        world.work(epoch, calls=1)
    world.crash(epoch)
    for shard in world.open_shards:
        world.put(shard, 2)
    world.overtake(1)
    return world


def read_late() -> tuple[World, str]:
    """A shard was split hours ago, and records came to its children. A driver reads it to the tip: it has yet to say its end."""
    world = with_records()
    parent = world.open_shards[0]
    world.split(parent)
    for shard in world.open_shards:
        world.put(shard, 2)
    world.advance(20 * 3600)
    epoch = begin(world)
    world.work(epoch)
    row = world.table.rows[f"shard/{parent}"]
    assert (row["records"], row["behind"], row["end"]["at"]) == (1, 0, "AFTER")
    world.crash(epoch)
    return world, parent


@story
def a_day_between_a_parent_that_was_read_late_and_its_children() -> World:
    """The next driver reads its end, and dies. The third one begins when the children's first records have expired."""
    world, parent = read_late()
    epoch = inherit(world)
    dies_at_the_end_of(world, epoch, parent)
    for shard in world.open_shards:
        assert world.table.rows[f"shard/{shard}"]["batch"] == 0
        world.put(shard)
    not_working(world, 10)
    world.work(inherit(world), 4)
    return world


@story
def a_day_between_a_parent_whose_end_nobody_read_and_its_children() -> World:
    """It has left the stream when the next driver begins. It was closed a retention ago at least, whenever it was read last."""
    world, _ = read_late()
    for shard in world.open_shards:
        world.put(shard)
    not_working(world, 10)
    world.work(inherit(world), 4)
    return world


@story
def children_of_a_parent_that_a_second_attempt_of_a_task_read() -> World:
    """All its records have expired when a task finds it empty. Its executor dies, and the next attempt has the same name. Then the shard is split."""
    world = with_records(1)
    epoch = begin(world)
    world.work(epoch)
    world.crash(epoch)
    not_working(world, 25)
    heir = inherit(world)
    _, _, attempt = reach(world, heir, "emit")
    assert attempt is not None
    world.kill_attempt(heir, attempt)
    world.advance(40)
    world.work(heir)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard)
    world.advance(40)
    world.work(heir, 4)
    assert all(world.table.rows[f"shard/{shard}"]["end"]["at"] == "AFTER" for shard in world.open_shards)
    assert world.ledger.broken or not any("it follows" in text for text in world.ledger.reported)
    return world


@story
def children_whose_rows_were_made_when_their_parent_was_far_behind() -> World:
    """A driver is twenty hours behind when it lists them, and catches up in five more. Nothing expired, and nothing is suspected."""
    world = with_records()
    parent = world.open_shards[0]
    epoch = begin(world)
    world.work(epoch, 2)
    world.crash(epoch)
    for _ in range(4):
        world.advance(5 * 3600)
        world.put(parent)
    world.split(parent)
    for shard in world.open_shards:
        world.put(shard)
    heir = inherit(world)
    world.work(heir)
    assert all(world.table.rows[f"shard/{shard}"]["batch"] == 0 for shard in world.open_shards)
    world.crash(heir)
    world.advance(5 * 3600)
    world.work(inherit(world), 6)
    assert world.ledger.broken or not world.ledger.reported
    return world


@story
def a_retention_that_is_raised_while_a_parent_has_yet_to_say_its_end() -> World:
    """Its row says that it was read six hours ago. Records of its children expired before the retention was raised, and the next driver dies."""
    world, _ = read_late()
    not_working(world, 6)
    world.stream.retention_millis = WEEK
    for shard in world.open_shards:
        world.put(shard)
    heir = inherit(world)
    reach(world, heir, "next batch")
    world.crash(heir)
    world.work(inherit(world), 5)
    return world


@story
def a_day_between_a_migration_and_its_first_range() -> World:
    """KCL stopped, and a day later somebody moves to Sluice: of one shard everything unread has expired, of the other a part."""
    world = with_records(3, shards=2)
    world.kcl(dict.fromkeys(world.open_shards, 1))
    world.overtake(1)
    whole(world, world.migrate())
    world.work(whole(world, world.start(Orders(migrate=True))))
    return world


@story
def a_retention_that_is_raised_after_records_expired() -> World:
    """The consumer did not work for two days, and somebody raised the retention after the first one. The next driver dies before it reads."""
    world = with_records()
    epoch = begin(world)
    world.work(epoch)
    world.crash(epoch)
    world.put(world.open_shards[0], 2)
    not_working(world, 26)
    world.stream.retention_millis = WEEK
    world.put(world.open_shards[0])
    not_working(world, 22)
    heir = inherit(world)
    reach(world, heir, "next batch")
    world.crash(heir)
    world.work(inherit(world), 2)
    return world


@story
def a_retention_that_is_raised_in_time() -> World:
    """Nothing expired, and nothing is suspected: the record is there that was read last."""
    world = with_records()
    epoch = begin(world)
    world.work(epoch)
    world.crash(epoch)
    world.put(world.open_shards[0], 2)
    not_working(world, 3)
    world.stream.retention_millis = WEEK
    not_working(world, 40)
    world.work(inherit(world), 2)
    assert not world.ledger.reported
    return world


def at_the_end_of_a_parent() -> World:
    """A shard was split before the first start, so its children have rows from then on. The driver dies when it has read the shard to its end."""
    world = with_records()
    parent = world.open_shards[0]
    world.split(parent)
    epoch = begin(world)
    dies_at_the_end_of(world, epoch, parent)
    for shard in world.open_shards:
        assert world.table.rows[f"shard/{shard}"]["batch"] == 0
        world.put(shard, 2)
    return world


@story
def a_retention_that_is_raised_after_records_of_unread_children_expired() -> World:
    """No row of an open shard says since when it is unread: only that of the parent does."""
    world = at_the_end_of_a_parent()
    not_working(world, 26)
    world.stream.retention_millis = WEEK
    for shard in world.open_shards:
        world.put(shard)
    world.work(inherit(world), 4)
    assert world.ledger.broken or len(world.ledger.reported) == 2
    return world


@story
def a_retention_that_is_raised_in_time_for_unread_children() -> World:
    """Nothing expired, and nothing is suspected: a record of their parent is still there."""
    world = at_the_end_of_a_parent()
    not_working(world, 3)
    world.stream.retention_millis = WEEK
    not_working(world, 40)
    world.work(inherit(world), 4)
    assert world.ledger.broken or not world.ledger.reported
    return world


@story
def a_retention_that_is_raised_in_time_for_children_of_an_open_shard() -> World:
    """The driver stands still when a shard is split, and the retention is raised. It has read the shard before, and its children it has not."""
    world = with_records()
    epoch = begin(world)
    world.work(epoch)
    world.crash(epoch)
    world.split(world.open_shards[0])
    for shard in world.open_shards:
        world.put(shard, 2)
    not_working(world, 3)
    world.stream.retention_millis = WEEK
    not_working(world, 40)
    world.work(inherit(world), 5)
    assert world.ledger.broken or not world.ledger.reported
    return world


@story
def a_retention_that_is_lowered_and_raised_again() -> World:
    """A driver has seen the shorter one, and died before it read."""
    world = with_records()
    world.stream.retention_millis = WEEK
    epoch = begin(world)
    world.work(epoch)
    world.crash(epoch)
    world.put(world.open_shards[0], 2)
    world.stream.retention_millis = WEEK // 7
    heir = inherit(world)
    reach(world, heir, "fetch")
    world.crash(heir)
    not_working(world, 26)
    world.stream.retention_millis = WEEK
    world.put(world.open_shards[0])
    world.work(inherit(world), 3)
    return world

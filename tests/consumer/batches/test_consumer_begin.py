"""An epoch begins: whose table and stream it is, what it fences first, and what an audit of the stream finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from consuming import S0, S1, Bench, Engine

from sluice_checkpoints.errors import Fenced, LostRace, ProtocolViolation, Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import Range, TaskAttempt
from sluice_consumer.batches import bootstrap, planner
from sluice_consumer.batches.consumer import Consumer, check_identity
from sluice_consumer.batches.planner import BatchPlan
from sluice_consumer.config import StartConfig
from sluice_lab.fakes.stream import MemoryStream


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"stream_arn": "arn:other"}, "arn:other"), ({"stream_created": 1}, "new table")],
    ids=["another stream's table", "a stream that was deleted and made again"],
)
def test_a_table_is_refused_that_is(changed: dict[str, object], message: str) -> None:
    """Positions mean nothing in another stream."""
    identity = MemoryStream("s").describe()
    row = ConsumerRow("id", identity.arn, identity.created_millis)
    check_identity(row, identity)
    with pytest.raises(Refused, match=message):
        check_identity(replace(row, **changed), identity)  # type: ignore[arg-type]  # literals of a test


@pytest.mark.parametrize(("former", "told"), [(":999999999999:", True), (":999999999999:stream/x/", False)])
def test_a_stream_of_the_same_name_in_another_account_is_told_apart(former: str, told: bool) -> None:  # noqa: FBT001 - of a parameter
    """From a name to the ARN of the same stream is no change; an account that is mistyped there is corrected in the spec."""
    identity = replace(MemoryStream("s").describe(), arn="arn:aws:kinesis:eu-west-1:111122223333:stream/s")
    row = ConsumerRow("id", identity.arn.replace(":111122223333:", former), identity.created_millis)
    with pytest.raises(Refused) as refused:
        check_identity(row, identity)
    assert ("name the account that it was" in str(refused.value)) is told


def test_an_epoch_does_not_begin_on_a_recreated_stream() -> None:
    bench = Bench()
    consumer = bench.take()
    bench.now += 1
    bench.stream.recreate()
    before = dict(bench.table.rows)
    with pytest.raises(Refused):
        consumer.begin()
    assert bench.table.rows == before


def test_an_audit_ends_an_epoch_whose_stream_was_made_again_and_gives_its_shards_no_rows() -> None:
    """Ids of shards repeat in the new stream, and positions mean nothing there."""
    bench = Bench()
    consumer = bench.begin()
    bench.now += 1
    bench.stream.recreate(shards=3)
    before = dict(bench.table.rows)
    with pytest.raises(Refused, match="give this consumer a new table") as refused:
        consumer.audit()
    assert refused.value.exit_code == 65
    assert bench.table.rows == before


def test_an_audit_ends_an_epoch_whose_stream_is_gone() -> None:
    bench = Bench()
    consumer = bench.begin()
    bench.stream.exists = False
    with pytest.raises(Refused, match="does not exist"):
        consumer.audit()


def test_an_audit_learns_of_a_new_retention() -> None:
    """Warnings are measured against it."""
    bench = Bench()
    consumer = bench.begin()
    bench.stream.retention_millis *= 7
    consumer.audit()
    assert consumer.identity == bench.stream.describe()


def test_an_epoch_fences_every_row_before_it_reads_the_rows_it_plans_from() -> None:
    """Take, then fence, then read (KAFKA-8187)."""
    bench = Bench(2)
    bench.begin()
    seen: list[str] = []
    bench.table.hook = lambda when, operation, _: seen.append(operation) if when == "before" else None
    consumer = bench.begin()
    assert seen[-3:] == ["write", "write", "scan"]
    assert {row.generation for row in consumer.view.rows.values()} == {2}


def test_an_epoch_that_lost_the_lease_before_it_began_writes_nothing() -> None:
    bench = Bench()
    late = bench.take()
    bench.begin()
    before = dict(bench.table.rows)
    with pytest.raises(Fenced):
        late.begin()
    assert bench.table.rows == before


def test_a_shard_that_stands_at_its_end_is_not_fenced() -> None:
    """Nobody can bind it, and a stream that was resharded for a year has thousands of such rows."""
    bench = Bench()
    former = bench.begin()
    bench.split(former)
    heir = bench.begin()
    rows = heir.view.rows
    assert (rows[S0].generation, rows[S1].generation) == (former.epoch.generation, heir.epoch.generation)
    assert planner.held(heir.view, heir.epoch.generation) == len(rows)


def test_a_zombie_cannot_move_a_shard_that_stands_at_its_end_though_it_was_not_fenced() -> None:
    """Whatever range it fetched starts before END."""
    bench = Bench()
    former = bench.begin()
    bench.split(former)
    bench.begin()
    before = bench.table.rows[f"shard/{S0}"]
    late = Range(S0, TRIM_HORIZON, Position.after("9"), "9", 1)
    with pytest.raises(ProtocolViolation):
        bench.store.bind(former.epoch, 2, late, TaskAttempt("k", 1))
    with pytest.raises(LostRace):
        bench.store.register(former.epoch, 2, S0, TaskAttempt("k", 1))
    assert bench.table.rows[f"shard/{S0}"] == before


def test_an_epoch_begins_with_the_possible_losses_of_committed_ranges() -> None:
    """The epoch that committed them may have ended before it reported them; a range that is still open is reported with its batch."""
    bench = Bench(2)
    former = bench.begin()
    rows = former.view.rows
    former.view = replace(former.view, committed=1, rows={S0: replace(rows[S0], batch=1, note="n"), S1: replace(rows[S1], batch=2, note="m")})
    assert former.notes == (f"{S0}: n",)


# -- the retention -----------------------------------------------------------------------------------------------------------------

DAY, WEEK = 86_400_000, 7 * 86_400_000


def kept(bench: Bench) -> int | None:
    row = bench.store.consumer()
    assert row is not None
    return row.retention


def read_up_to(bench: Bench, millis: int) -> None:
    for row in bench.store.shards().values():
        bench.table.rows[row.key] = replace(row, read_to=millis).to_item()


def test_a_shorter_retention_is_kept_at_once() -> None:
    """What is unread may expire by it from now on."""
    bench = Bench()
    bench.stream.retention_millis = WEEK
    bench.begin()
    bench.stream.retention_millis = DAY
    consumer = bench.begin()
    assert consumer.identity is not None
    assert (kept(bench), consumer.identity.shorter_millis) == (DAY, 0)


def test_a_retention_that_is_raised_is_kept_once_all_was_read() -> None:
    """Until then each epoch tells its readers of the shorter one, whoever died before."""
    bench = Bench()
    bench.begin()
    read_up_to(bench, bench.now)
    bench.now += 2 * DAY
    bench.stream.retention_millis = WEEK
    for _ in range(2):
        consumer = bench.begin()
        assert consumer.identity is not None
        assert (kept(bench), consumer.identity.shorter_millis, consumer.identify().shorter_millis) == (DAY, DAY, DAY)
    read_up_to(bench, bench.now)
    heir = bench.begin()
    assert heir.identity is not None
    assert (kept(bench), heir.identity.shorter_millis, heir.identify().shorter_millis) == (WEEK, 0, 0)


CHILD_ROWS = ["planned with their parent", "listed by an audit while it was open", "made when it had ended", "not made yet"]


@pytest.mark.parametrize("made", CHILD_ROWS)
def test_a_retention_that_is_raised_is_not_kept_while_children_are_unread(made: str) -> None:
    """Only their parent's row says since when: it was read to its end two days ago. They have not begun, and no other shard is open."""
    bench = Bench()
    if made == "planned with their parent":
        bench = _planned_with_its_children()
    consumer = bench.begin()
    if S1 not in bench.stream.shards:
        bench.stream.split(S0)
    if made == "listed by an audit while it was open":
        consumer.audit()
    _read_to_end(bench, consumer)
    if made == "made when it had ended":
        consumer.plan()
    assert (S1 in bench.store.shards()) == (made != "not made yet")
    bench.now += 2 * DAY
    bench.stream.retention_millis = WEEK
    heir = bench.take()
    if made == "not made yet":  # a machine of the service that has not heard of the split answers
        whole = bench.stream.list_shards()
        heir.catalog = _Late(bench.stream, replace(whole, shards=tuple(shard for shard in whole.shards if shard.id == S0)))
    heir.begin()
    assert kept(bench) == DAY
    assert heir.identity is not None
    assert heir.identity.shorter_millis == DAY
    heir.plan()
    read_up_to(bench, bench.now)
    bench.begin()
    assert kept(bench) == WEEK


class _Late:
    def __init__(self, stream: Any, listed: Any) -> None:
        self._stream, self._listed = stream, listed

    def describe(self) -> Any:
        return self._stream.describe()

    def list_shards(self) -> Any:
        return self._listed


def _planned_with_its_children() -> Bench:
    bench = Bench()
    bench.stream.split(S0)
    bench.table.rows.clear()
    bootstrap.prepare(bench.store, bootstrap.Seed("p", "id", bench.stream.describe(), bench.stream.list_shards()), StartConfig())
    return bench


def _read_to_end(bench: Bench, consumer: Consumer) -> None:
    """The shard is read to its end now, and that is committed; the driver dies before it plans again."""
    plan = consumer.plan()
    assert plan is not None
    children = bench.stream.list_shards().children_of(S0)
    ended = Range(S0, plan.rows[0].end, END, "1", 1, children=children, read_to=bench.now)

    def act(_plan: BatchPlan) -> None:
        bench.store.bind(consumer.epoch, plan.number, ended, TaskAttempt("k", 1))

    consumer.run(plan, Engine(act))


def test_a_table_without_a_retention_gets_the_present_one() -> None:
    """An older version made it: nothing is known of what came before."""
    bench = Bench()
    del bench.table.rows["consumer"]["retention"]
    bench.begin()
    assert kept(bench) == DAY


def test_an_epoch_that_was_taken_over_keeps_no_retention() -> None:
    bench = Bench()
    former = bench.begin()
    bench.begin()
    bench.stream.retention_millis = DAY // 2
    with pytest.raises(Fenced):
        former.audit()
    assert kept(bench) == DAY

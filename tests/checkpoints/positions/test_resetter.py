"""A reset is carried out once, whatever crashes, and by nobody who does not hold the lease (docs/protocol.md, "Positions are moved")."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from faults import Crash
from resetting.bench import FOUR, HOUR, ONE, START, TWO, ZERO, Bench

from sluice_checkpoints.errors import Fenced, LeaseHeld, ProtocolViolation, Refused, ServiceUnavailable
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.positions.resetter import Resetter
from sluice_checkpoints.protocol import reset_writes
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, take_over
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.reset_writes import StoredReset
from sluice_checkpoints.protocol.row_kinds import kind_of
from sluice_checkpoints.protocol.rows import ACTIVE, EXPORTED, RESETTING
from sluice_checkpoints.protocol.store import Epoch

DRIVER = LeaseRequest(20_000, "driver", "now")


def with_open_batch() -> Bench:
    bench = Bench()
    bench.row(replace(bench.of(FOUR), start=bench.of(FOUR).end, end=bench.after(FOUR), batch=8, first=bench.put[FOUR][-1], letter="l", excluded=1))
    bench.stream.split(TWO)
    return bench


def drives(bench: Bench) -> None:
    store = bench.store
    taken = take_over(store, DRIVER, Watcher(bench.ports().clock, bench.ports().sleep))
    reset_writes.finish(store, taken.row, taken.epoch)


def named(bench: Bench) -> None:
    """A reset whose program is gone when its plan was named."""

    def dies(_what: str) -> None:
        if bench.seen.reset:
            raise Crash

    bench.calls.visit = dies
    with pytest.raises(Crash):
        bench.resetter().run()


# -- what a reset leaves ---------------------------------------------------------------------------------------------------------------


def test_every_row_moves_and_forgets_its_last_range(bench: Bench) -> None:
    """So that no batch holds it any more, and the next one is planned from the new position."""
    bench.row(replace(bench.of(FOUR), iterator="i", note="a loss", letter="l", excluded=1, replays=2, calls={"GetRecords": 3}, behind=7))
    result = bench.resetter(bench.hour(6)).run()
    row = bench.of(FOUR)
    assert (row.start, row.end, row.batch, row.joins) == (TRIM_HORIZON, TRIM_HORIZON, 7, 8)
    assert (row.first, row.records, row.children, row.iterator, row.letter) == (None, 0, None, None, None)
    assert (row.excluded, row.replays, dict(row.calls), row.size, row.behind, dict(row.readers)) == (0, 0, {}, 0, 0, {})
    assert row.note == "a loss"  # an epoch has yet to report it
    assert bench.of(ZERO).end == END
    assert bench.of(ONE).parents == frozenset()
    assert (bench.seen.state, bench.seen.reset, bench.seen.last_reset, bench.seen.reset_after) == (ACTIVE, None, "one", 7)
    assert bench.seen.committed == 7
    assert bench.seen.released
    assert result.document["counts"] == {"back": 4, "forward": 0, "unchanged": 1}


def test_all_rows_are_of_a_known_kind(bench: Bench) -> None:
    """Other versions, `show` and migrations read the table."""
    bench.resetter().run()
    for key, item in bench.table.rows.items():
        kind = kind_of(key)
        assert kind is not None
        assert not kind.unknown(item)
        kind.read(item)


def test_a_batch_that_is_given_up_counts_as_committed_from_the_moment_the_plan_is_named() -> None:
    """Not before: a crash in between would pass over its records without moving anything."""
    bench = with_open_batch()
    bench.resetter(bench.hour(6), give_up=8).run()
    assert (bench.seen.committed, bench.seen.filled, bench.seen.letters) == (8, 8, ("l",))
    assert bench.of(FOUR).joins == 9


@pytest.mark.parametrize(
    ("letters", "where"),
    [
        ({"folder": "s3a://lake/letters", "batch": 8}, "s3a://lake/letters"),
        ({"pending": {"000000000008-3-0-rejected": "{}"}}, "row `letters` of sluice-orders"),
        ({"pending": {"000000000008-3-0-excluded": "{}", "000000000007-3-0-rejected": "{}"}}, None),
    ],
)
def test_dead_letters_that_go_with_a_batch_that_is_given_up_are_named(letters: dict[str, Any], where: str | None) -> None:
    bench = with_open_batch()
    bench.table.rows["letters"] = {"id": "letters", **letters}
    said = [text for text in bench.resetter("trimHorizon", give_up=8).run().warnings if "rejected records" in text]
    assert said == ([f"`process` rejected records of batch 8: their dead letters, in {where}, are dropped with the batch"] if where else [])


def test_shards_that_have_no_row_get_one() -> None:
    """Else an audit would begin them at their oldest record, in front of the tip that was asked for."""
    bench = with_open_batch()
    bench.resetter("latest", give_up=8).run()
    new = [bench.of(shard) for shard in bench.shards if bench.of(shard).parents == {TWO}]
    assert [row.end for row in new] == [Position.timestamp(START + 12 * HOUR - 2000)] * 2
    assert bench.of(TWO).end == END
    assert {child.id for child in bench.of(TWO).children or ()} == {row.id for row in new}


# -- ids -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"to": "latest"}, {"shards": frozenset({FOUR})}, {"give_up": 7}])
def test_an_id_stands_for_what_was_asked_first(bench: Bench, other: dict[str, Any]) -> None:
    bench.resetter().run()
    before = bench.end_state()
    for run in (bench.resetter(**other).run, bench.resetter(**other).dry_run):
        with pytest.raises(Refused, match=r"--id one: this id was carried out, to trimHorizon, .* Choose another id"):
            run()
    assert bench.end_state() == before


def test_another_target_under_the_id_of_a_plan_that_is_named_is_refused_when_that_is_complete(bench: Bench) -> None:
    """Its program died; nobody can take the plan back, and what was asked for now was not done."""
    named(bench)
    bench.calls.visit = lambda _what: None
    bench.seconds += 100
    with pytest.raises(Refused, match="this id was carried out, to trimHorizon, and not to latest"):
        bench.resetter("latest").run()
    assert (bench.seen.last_reset, bench.seen.reset, bench.seen.released) == ("one", None, True)
    assert bench.positions()[FOUR] == TRIM_HORIZON


def test_an_earlier_id_does_nothing_either(bench: Bench) -> None:
    """A field that is rolled back by GitOps names an old reset."""
    bench.resetter(reset="one").run()
    bench.resetter("latest", reset="two").run()
    before = bench.end_state()
    assert not bench.resetter(reset="one").run().document["changed"]
    assert bench.end_state() == before
    assert bench.seen.last_reset == "two"


def test_an_id_is_a_name(bench: Bench) -> None:
    """It is a part of a key."""
    with pytest.raises(Refused, match="--id 'a/b'"):
        bench.resetter(reset="a/b")


# -- crashes ---------------------------------------------------------------------------------------------------------------------------


def calls_of(make: Callable[[], Bench], run: Callable[[Bench], Resetter]) -> tuple[int, dict[str, Any]]:
    bench = make()
    run(bench).run()
    return len(bench.calls.log), bench.end_state()


CASES: list[tuple[Callable[[], Bench], Callable[[Bench], Resetter]]] = [
    (Bench, lambda bench: bench.resetter(bench.hour(6))),
    (Bench, lambda bench: bench.resetter("latest")),
    (with_open_batch, lambda bench: bench.resetter("trimHorizon", give_up=8)),
]


@pytest.mark.parametrize(("make", "run"), CASES)
def test_a_crash_at_any_call_moves_nothing_or_is_completed(make: Callable[[], Bench], run: Callable[[Bench], Resetter]) -> None:
    """By the same command, or by the driver that comes first; until the plan is named, every position stays where it was."""
    calls, whole = calls_of(make, run)
    before = make().positions()
    for at in range(calls):
        for heir in ("command", "driver"):
            bench = make()
            bench.calls.crash_at = at
            with pytest.raises(Crash):
                run(bench).run()
            bench.calls.crash_at = None
            begun = bench.seen.reset is not None or bench.seen.last_reset is not None
            if not begun:
                assert {shard: bench.positions()[shard] for shard in before} == before, f"call {at}"
            if heir == "driver":
                drives(bench)
                assert bench.seen.state == ACTIVE
            if heir == "command" or begun:
                run(bench).run()
                assert bench.end_state() == whole, f"call {at}, {heir}"


@pytest.mark.parametrize(("make", "run"), CASES)
def test_a_lost_reply_of_any_call_leads_to_the_same_end(make: Callable[[], Bench], run: Callable[[Bench], Resetter]) -> None:
    calls, whole = calls_of(make, run)
    for at in range(calls):
        bench = make()
        bench.calls.lose_at = at
        with suppress(ServiceUnavailable):
            run(bench).run()
        bench.calls.lose_at = None
        run(bench).run()
        assert bench.end_state() == whole, f"call {at}: {bench.calls.log[at]}"


def test_two_programs_that_complete_one_plan_move_each_shard_once(bench: Bench) -> None:
    """One stood still after it had named the plan; the other is done when it continues, and a batch is bound. It is refused."""
    stopped: list[Any] = []

    def stands_still(what: str) -> None:
        if what == "after transact" and not stopped:
            stopped.append(what)
            bench.seconds += 100
            drives(bench)
            bench.row(replace(bench.of(FOUR), batch=8, end=bench.after(FOUR, 0)))

    bench.calls.visit = stands_still
    with pytest.raises((Fenced, LeaseHeld)):
        bench.resetter(bench.hour(6)).run()
    assert stopped
    assert bench.of(FOUR).end == bench.after(FOUR, 0)
    assert bench.seen.last_reset == "one"


# -- who may ---------------------------------------------------------------------------------------------------------------------------


def test_a_driver_that_works_is_left_alone(bench: Bench) -> None:
    epoch = take_over(bench.store, DRIVER, Watcher()).epoch

    def beats(what: str) -> None:
        if what == "before wake":
            bench.store.beat(epoch)

    bench.calls.visit = beats
    before = bench.positions()
    with pytest.raises(LeaseHeld):
        bench.resetter().run()
    assert bench.positions() == before
    assert bench.seen.reset is None


def test_a_lease_that_is_lost_before_the_plan_is_named_moves_nothing(bench: Bench) -> None:
    def usurps(what: str) -> None:
        if what == "before transact":
            bench.calls.visit = lambda _what: None
            bench.consumer(replace(bench.seen, generation=9, token="other"))

    bench.calls.visit = usurps
    before = bench.positions()
    with pytest.raises(Fenced):
        bench.resetter().run()
    assert bench.positions() == before
    assert "reset/one/0" not in bench.table.rows


def test_a_dead_driver_is_fenced_before_its_rows_are_read(bench: Bench) -> None:
    """A task of it that binds in between would be in no plan."""
    bench.resetter(bench.hour(10)).run()
    assert {bench.of(shard).generation for shard in (TWO, FOUR)} == {4}


def test_another_reset_that_is_under_way_is_completed_first(bench: Bench) -> None:
    named(bench)
    bench.calls.visit = lambda _what: None
    bench.seconds += 100
    with pytest.raises(Refused, match="without --dry-run"):
        bench.resetter().dry_run()
    done = bench.resetter("latest", reset="two").run().document
    assert (done["changed"], done["counts"]["forward"], bench.seen.last_reset) == (True, 5, "two")
    assert bench.resetter().run().document["message"] == "the reset one was carried out before; nothing was written"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"state": EXPORTED}, "EXPORTED"),
        ({"bootstrapped": False}, "never bootstrapped"),
        ({"stream_created": 7}, "is of stream"),
    ],
)
def test_a_table_that_has_no_positions_to_move_is_refused(bench: Bench, change: dict[str, Any], why: str) -> None:
    bench.consumer(replace(bench.seen, **change))
    before = bench.end_state()
    with pytest.raises(Refused, match=why):
        bench.resetter().run()
    assert bench.end_state() == before
    assert bench.seen.generation == 3


def test_a_table_that_is_still_migrated_into_is_refused(bench: Bench) -> None:
    """There is no consumer yet: where its shards begin is the migration's to say."""
    del bench.table.rows["consumer"]
    with pytest.raises(Refused, match="its migration was not completed"):
        bench.resetter().run()


def test_the_table_of_another_owner_and_a_copy_are_refused(bench: Bench) -> None:
    bench.consumer(replace(bench.seen, owner="shop/orders", table_id="t1"))
    request = bench.resetter()._request
    with pytest.raises(Refused, match="belongs to"):
        Resetter(request, bench.ports(owner=Owner("shop/other", writes=False))).run()
    with pytest.raises(Refused, match="is a copy of t1"):
        Resetter(request, bench.ports(table_id="t2")).run()
    assert Resetter(request, bench.ports(owner=Owner("shop/orders", writes=False), table_id="t1")).run().document["changed"]


# -- conditions of the writes ----------------------------------------------------------------------------------------------------------


def mine(bench: Bench) -> Epoch:
    return take_over(bench.store, DRIVER, Watcher(bench.ports().clock, bench.ports().sleep)).epoch


def planned(bench: Bench) -> StoredReset:
    found = bench.resetter(bench.hour(10)).dry_run().plan
    assert found is not None
    return StoredReset("one", found.committed, found.moves)


def test_a_plan_is_not_named_after_another_commit(bench: Bench) -> None:
    """What it moves from is not where shards are any more."""
    epoch, seen, plan = mine(bench), bench.seen, planned(bench)
    bench.consumer(replace(seen, committed=8))
    with pytest.raises(Fenced):
        reset_writes.name(bench.store, epoch, seen, plan)


def test_a_plan_is_not_named_over_another(bench: Bench) -> None:
    """Both would move the same rows."""
    epoch, seen, plan = mine(bench), bench.seen, planned(bench)
    bench.consumer(replace(seen, reset="other"))
    with pytest.raises(Fenced):
        reset_writes.name(bench.store, epoch, seen, plan)


def test_rows_of_a_plan_are_never_written_over(bench: Bench) -> None:
    epoch, seen, plan = mine(bench), bench.seen, planned(bench)
    bench.table.rows["reset/one/0"] = {"id": "reset/one/0", "shards": []}
    with pytest.raises(Refused, match="at the same moment"):
        reset_writes.name(bench.store, epoch, seen, plan)
    assert bench.seen.reset is None


@pytest.mark.parametrize(
    ("change", "error"), [({"generation": 9}, Fenced), ({"batch": 8}, ProtocolViolation), ({"end": TRIM_HORIZON}, ProtocolViolation)]
)
def test_a_row_that_is_not_as_planned_is_not_moved(bench: Bench, change: dict[str, Any], error: type[Exception]) -> None:
    epoch = mine(bench)
    move = next(move for move in planned(bench).moves if move.shard == FOUR)
    row = replace(bench.of(FOUR), **change)
    bench.row(row)
    with pytest.raises(error):
        reset_writes.move(bench.store, epoch, 7, move)
    assert bench.of(FOUR) == row


def test_a_plan_that_is_not_whole_stops_everybody(bench: Bench) -> None:
    """In a table that was restored to the middle of a transaction, say: positions are not guessed."""
    bench.resetter().run()
    bench.consumer(replace(bench.seen, state=RESETTING, reset="two"))
    with pytest.raises(ProtocolViolation, match="there is no such plan"):
        drives(bench)
    bench.table.rows["reset/two/0"] = bench.table.rows["reset/one/0"] | {"id": "reset/two/0", "chunks": 2}
    bench.seconds += 100
    with pytest.raises(ProtocolViolation, match="reset/two/1"):
        drives(bench)


def test_a_version_that_knows_no_resets_does_not_begin_in_the_middle_of_one(bench: Bench) -> None:
    """It takes a table only if that is ACTIVE, and would plan a batch over rows of which some are moved."""
    named(bench)
    assert bench.seen.state not in {ACTIVE, EXPORTED}

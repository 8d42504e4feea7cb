"""The plan of a reset: where each shard begins, and what is refused (docs/protocol.md, "Positions are moved")."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from resetting.bench import FIVE, FOUR, HOUR, MERGED, NOW, ONE, SPLIT, START, THREE, TWO, ZERO, Bench

from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.positions.model import ResetPlan
from sluice_checkpoints.positions.target import ResetTarget
from sluice_checkpoints.protocol.reset_writes import MOST, Move, StoredReset, name
from sluice_checkpoints.protocol.store import Epoch


def made(bench: Bench, to: str = "trimHorizon", **more: Any) -> ResetPlan:
    found = bench.resetter(to, **more).dry_run().plan
    assert found is not None
    return found


def places(plan: ResetPlan) -> dict[str, Position]:
    return {shard.row.id: shard.placed.to for shard in plan.shards}


def at(hours: float) -> Position:
    return Position.timestamp(START + round(hours * HOUR))


# -- where shards begin ----------------------------------------------------------------------------------------------------------------


def test_from_the_oldest_record_every_generation_begins_anew(bench: Bench) -> None:
    """A child that kept its place would continue there once its parent is at its end."""
    assert set(places(made(bench)).values()) == {TRIM_HORIZON}


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (2, {ZERO: at(2), ONE: at(2), TWO: TRIM_HORIZON, THREE: TRIM_HORIZON, FOUR: TRIM_HORIZON}),
        (6, {ZERO: END, ONE: at(6), TWO: at(6), THREE: at(6), FOUR: TRIM_HORIZON}),
        (10, {ZERO: END, ONE: END, TWO: at(10), THREE: END, FOUR: at(10)}),
    ],
)
def test_a_time_reopens_shards_that_hold_a_record_since_then_and_all_that_follow(bench: Bench, hours: float, expected: dict[str, Position]) -> None:
    """A shard that was over by then is not read again; one that began later begins with its oldest record."""
    assert places(made(bench, bench.hour(hours))) == expected


def test_the_tip_passes_over_ended_shards_and_names_their_children(bench: Bench) -> None:
    """An end without children would be one that nobody continues after. The children are those of the listing."""
    bench.row(replace(bench.of(THREE), end=bench.after(THREE, 0), children=None))
    found = {shard.row.id: shard for shard in made(bench, "latest").shards}
    assert found[THREE].placed.to == END
    assert [child.id for child in found[THREE].placed.children or ()] == [FOUR]
    assert found[FOUR].placed.to == Position.timestamp(START + NOW - 2000)


def test_the_tip_leaves_a_shard_that_was_read_up_to_now(bench: Bench) -> None:
    """Two seconds of the clock's slack would deliver records again."""
    assert places(made(bench, "latest"))[TWO] == bench.of(TWO).end


def test_an_idle_shard_is_where_its_reader_was(bench: Bench) -> None:
    """It stands at a time, and was read beyond that: nothing up to then is passed over."""
    bench.row(
        replace(bench.of(TWO), start=Position.timestamp(START + NOW - 120_000), end=Position.timestamp(START + NOW - 120_000), read_to=START + NOW)
    )
    found = {shard.row.id: shard for shard in made(bench, "latest").shards}
    assert (found[TWO].move, found[TWO].passed) == ("unchanged", 0)


def test_an_end_whose_children_are_unknown_is_not_passed_over(bench: Bench) -> None:
    """It would be an end that nothing follows: whatever comes after would never be read."""
    bench.row(replace(bench.of(THREE), end=bench.after(THREE, 0), children=None))
    shard = bench.stream.shards[FOUR]
    shard.shard = replace(shard.shard, parents=())
    bench.row(replace(bench.of(FOUR), parents=frozenset()))
    with pytest.raises(Refused, match="nothing says which shards follow"):
        made(bench, "latest")


def test_a_shard_without_a_row_gets_one_before_it_is_moved(bench: Bench) -> None:
    """An audit would begin it at its oldest record, in front of the tip that was asked for."""
    left, right = bench.stream.split(FOUR)
    plan = made(bench, "latest")
    assert [row.id for row in plan.missing] == [left, right]
    assert places(plan)[left] == places(plan)[right] == Position.timestamp(START + NOW - 2000)
    assert left == FIVE


def test_parents_that_were_folded_are_named_and_their_children_begin(bench: Bench) -> None:
    bench.fold(ZERO)
    plan = made(bench)
    assert ZERO not in places(plan)
    assert places(plan)[TWO] == TRIM_HORIZON
    assert [w for w in plan.warnings if ZERO in w and "begins at their children" in w]
    with pytest.raises(Refused, match=f"{ZERO} was read to the end"):
        made(bench, shards=[ZERO])


def test_a_parent_that_expired_and_has_a_row_stays_at_its_end(bench: Bench) -> None:
    """It is not in the listing, so nobody could read it; reading begins at its children, and the plan says so."""
    bench.stream.expire_shard(ZERO)
    plan = made(bench)
    assert places(plan)[ZERO] == END
    assert [w for w in plan.warnings if ZERO in w]


# -- ages ------------------------------------------------------------------------------------------------------------------------------


def read_to(plan: ResetPlan) -> dict[str, float]:
    """What rows say of their age, in hours after the start."""
    return {move.shard: (move.read_to - START) / HOUR if move.read_to else 0 for move in plan.moves}


def test_a_child_is_as_old_as_its_parents_were_open_not_as_new_as_it_was_read(bench: Bench) -> None:
    """A row that kept the time up to which it was read would hide that its first records expired."""
    assert read_to(made(bench)) == {ZERO: 0, ONE: 0, TWO: 3.5, THREE: 3.5, FOUR: 7.5}


def test_a_position_in_time_goes_with_the_age(bench: Bench) -> None:
    """Back, so that an expiry is seen; and forward, so that no retention is near that is not."""
    assert read_to(made(bench, bench.hour(10))) == {TWO: 10, FOUR: 10}
    assert read_to(made(bench, "latest"))[FOUR] == (NOW - 2000) / HOUR


def test_a_child_whose_parent_was_open_when_the_stream_began_is_that_old(bench: Bench) -> None:
    """Nothing had expired by then, so all of it is owed."""
    bench.row(replace(bench.of(ZERO), read_to=START))
    assert read_to(made(bench))[TWO] == 0
    assert next(move.read_to for move in made(bench).moves if move.shard == TWO) == START


def test_what_expired_before_the_reset_makes_no_child_suspected(bench: Bench) -> None:
    """Nobody is owed it: it is the oldest record that was asked for."""
    bench.stream.retention_millis = NOW - SPLIT
    bench.stream.created_millis = START - 30 * HOUR
    bench.consumer(replace(bench.seen, stream_created=START - 30 * HOUR))
    assert read_to(made(bench)) == {ZERO: 0, ONE: 0, TWO: 0, THREE: 0, FOUR: 7.5}


def test_a_loss_before_the_reset_is_not_hidden_by_it(bench: Bench) -> None:
    """The next range would have reported it, and begins elsewhere now. So the plan does."""
    bench.stream.retention_millis = HOUR // 2
    assert [w for w in made(bench).warnings if FOUR in w and "may have expired before this reset" in w]
    assert not [w for w in made(bench).warnings if TWO in w and "may have expired before" in w]


def test_a_shard_that_was_over_by_then_never_says_that_it_was_open(bench: Bench) -> None:
    """After two resets its children would look newer than they are, and begin at their oldest record, in front of the time that is asked for."""
    bench.resetter(bench.hour(9), "first").run()
    assert bench.of(ONE).open_at == START + MERGED - HOUR // 2
    assert places(made(bench, bench.hour(8.5)))[FOUR] == at(8.5)


# -- which shards ----------------------------------------------------------------------------------------------------------------------


def test_shards_that_follow_have_to_be_moved_as_well(bench: Bench) -> None:
    with pytest.raises(Refused, match=f"--shard {FOUR}"):
        made(bench, shards=[ONE])
    assert set(places(made(bench, shards=[ONE, FOUR]))) == {ONE, FOUR}
    assert set(places(made(bench, shards=[TWO]))) == {TWO}


def test_a_parent_that_was_moved_back_still_has_its_children(bench: Bench) -> None:
    """Its row does not name them any more. A second reset of it alone would let them be read before it."""
    bench.resetter("trimHorizon", "first").run()
    assert bench.of(ONE).children is None
    with pytest.raises(Refused, match=f"--shard {FOUR}"):
        made(bench, shards=[ONE])


def test_an_unknown_shard_is_refused(bench: Bench) -> None:
    with pytest.raises(Refused, match="shardId-000000000077"):
        made(bench, shards=["shardId-000000000077"])


def test_a_listing_that_is_older_than_the_table_is_not_believed(bench: Bench) -> None:
    """A child that it lacks would keep its position while its parents are read again."""
    del bench.stream.shards[FOUR]
    with pytest.raises(ServiceUnavailable, match=f"lacks {FOUR}"):
        made(bench)


# -- what is refused -------------------------------------------------------------------------------------------------------------------


def test_a_time_past_retention_is_refused_unless_that_is_accepted(bench: Bench) -> None:
    bench.stream.retention_millis = 6 * HOUR
    with pytest.raises(Refused, match="--accept-expired"):
        made(bench, bench.hour(5))
    plan = made(bench, bench.hour(5), accept_expired=True)
    assert set(places(plan).values()) == {TRIM_HORIZON}
    assert "has expired and does not come again" in plan.warnings[0]


def test_a_time_before_the_stream_is_all_of_it(bench: Bench) -> None:
    plan = made(bench, bench.hour(-1))
    assert set(places(plan).values()) == {TRIM_HORIZON}
    assert "was created" in plan.warnings[0]


def test_a_retention_that_was_raised_lately_is_a_warning(bench: Bench) -> None:
    """What expired before that does not come back, and nothing shows it."""
    bench.consumer(replace(bench.seen, retention=6 * HOUR))
    assert "until lately" in made(bench, bench.hour(5)).warnings[0]
    assert not made(bench, bench.hour(7)).warnings


def test_a_time_in_the_future_is_refused(bench: Bench) -> None:
    with pytest.raises(Refused, match="lies in the future"):
        made(bench, bench.hour(13))


def opened(bench: Bench, records: int = 3) -> None:
    bench.row(replace(bench.of(FOUR), start=bench.of(FOUR).end, end=bench.after(FOUR), batch=8, records=records, letter="l"))


def test_an_open_batch_is_refused_unless_it_is_given_up_by_its_number(bench: Bench) -> None:
    """A row bound in it is a promise to the sink."""
    opened(bench)
    for wrong in (None, 7, 9):
        with pytest.raises(Refused, match=r"batch 8 is open.* with 3 records of 1 shard.*--give-up-batch 8"):
            made(bench, give_up=wrong)
    plan = made(bench, give_up=8)
    assert (plan.committed, plan.letters) == (8, ("l",))
    assert plan.warnings[0].startswith("batch 8 is given up: its 3 records of 1 shard")


def test_a_batch_that_is_not_open_cannot_be_given_up(bench: Bench) -> None:
    """One that was given up before may be named again: a Job that comes again does so."""
    with pytest.raises(Refused, match="--give-up-batch 9"):
        made(bench, give_up=9)
    assert made(bench, give_up=7).committed == 7


def test_an_open_batch_with_other_shards_is_not_given_up(bench: Bench) -> None:
    """Their records would be passed over, though nobody asked for that."""
    opened(bench)
    with pytest.raises(Refused, match=f"holds records of {FOUR}"):
        made(bench, give_up=8, shards=[TWO])


def test_a_plan_that_one_transaction_does_not_hold_is_refused(bench: Bench) -> None:
    moves = tuple(Move(f"s{n}", 0, TRIM_HORIZON, END) for n in range(MOST + 1))
    with pytest.raises(Refused, match="in parts"):
        name(bench.store, Epoch(3, "t"), bench.seen, StoredReset("r", 7, moves))


# -- how a target is written -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-11-27T10:00:00", "has no zone"),
        ("2026-11-27T10:00:00.1234Z", "more exact than a millisecond"),
        ("2026-11-27T10:00:00.123456789Z", "more exact than a millisecond"),
        ("TRIM_HORIZON", "must be trimHorizon, latest, or a time"),
        ("LATEST", "must be trimHorizon"),
        ("1960-01-01T00:00:00Z", "before 1970"),
        ("9999-12-31T23:59:59-12:00", "after the year 9999"),
        ("", "must be"),
    ],
)
def test_a_target_that_is_none_is_refused_by_what_is_wrong(text: str, why: str) -> None:
    """A time that is rounded would deliver a record more or less."""
    with pytest.raises(ValueError, match=re.escape(why)):
        ResetTarget.parse(text)


@pytest.mark.parametrize("text", ["trimHorizon", "latest", "2026-11-27T10:00:00.123Z"])
def test_a_target_reads_as_it_is_written(text: str) -> None:
    assert str(ResetTarget.parse(text)) == text


def test_a_time_of_any_zone_is_one_of_utc() -> None:
    assert str(ResetTarget.parse("2026-11-27T10:00:00.001000+02:00")) == "2026-11-27T08:00:00.001Z"

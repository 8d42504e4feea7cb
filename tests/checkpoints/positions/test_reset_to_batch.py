"""A reset to the first batch of a version: positions as the table keeps them (docs/protocol.md, "Versions")."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from resetting.bench import FIVE, FOUR, HOUR, ONE, START, THREE, TWO, ZERO, Bench

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.positions.resetter import Resetter
from sluice_checkpoints.positions.target import ResetRequest, ResetTarget
from sluice_checkpoints.protocol import versions
from sluice_checkpoints.protocol.rows import Child
from sluice_checkpoints.protocol.store import Epoch
from sluice_checkpoints.protocol.versions import KeptPosition, SpecName, Version

SIX = "shardId-000000000006"


@pytest.fixture
def bench() -> Bench:
    """In front of batch 4 the first split was read to its end, and the merge had not come; batches 4 to 7 are a bad version's."""
    bench = Bench()
    beginning = KeptPosition(TRIM_HORIZON)
    kept = {ZERO: KeptPosition(END), ONE: KeptPosition(bench.after(ONE, 0), START + HOUR), TWO: beginning, THREE: beginning}
    epoch, store = Epoch(bench.seen.generation, bench.seen.token), bench.store
    good = versions.keep(store, Version(SpecName("good"), 1, 2, 0), {})
    bad = versions.keep(store, Version(SpecName("bad"), 4, 3, START + HOUR, slot=1), kept)
    versions.name(store, epoch, (), good)
    versions.name(store, epoch, (good,), bad)
    return bench


def resetter(bench: Bench, batch: int = 4, **more: Any) -> Resetter:
    return Resetter(ResetRequest("undo", ResetTarget(batch=batch), **more), bench.ports())


def test_each_shard_is_where_it_was_in_front_of_the_batch(bench: Bench) -> None:
    result = resetter(bench).run()
    assert (result.document["state"], result.document["to"], result.document["batch"]) == ("RESET", "batch 4", 7)
    assert bench.positions() == {ZERO: END, ONE: bench.after(ONE, 0), TWO: TRIM_HORIZON, THREE: TRIM_HORIZON, FOUR: TRIM_HORIZON}
    assert bench.of(ONE).read_to == START + HOUR
    assert (bench.of(FOUR).joins, bench.of(FOUR).batch) == (8, 7)


def test_a_dry_run_says_why(bench: Bench) -> None:
    before = bench.end_state()
    made = resetter(bench).dry_run().plan
    assert made is not None
    assert {shard.row.id: shard.move for shard in made.shards} == {ZERO: "unchanged", ONE: "back", TWO: "back", THREE: "back", FOUR: "back"}
    assert next(shard.placed.why for shard in made.shards if shard.row.id == ONE) == "where it was in front of batch 4"
    assert bench.end_state() == before


def test_back_and_forth_is_no_reset_twice(bench: Bench) -> None:
    resetter(bench).run()
    again = Resetter(ResetRequest("again", ResetTarget(batch=4)), bench.ports()).dry_run()
    assert again.document["counts"] == {"back": 0, "forward": 0, "unchanged": 5}


def test_a_shard_that_moved_back_further_goes_forward(bench: Bench) -> None:
    bench.resetter("trimHorizon", "further").run()
    resetter(bench).run()
    assert bench.positions()[ONE] == bench.after(ONE, 0)
    assert bench.positions()[ZERO] == END


def test_after_a_reset_between_two_versions_of_one_batch_the_last_one_counts(bench: Bench) -> None:
    """A repair crashed in its first batch, positions were moved back, and the next one read from there: it shares the slot of an earlier one."""
    epoch, store = Epoch(bench.seen.generation, bench.seen.token), bench.store
    before = versions.kept(store, versions.known(store)[-1])
    assert before is not None
    for number, positions in ((4, before), (5, before | {ONE: KeptPosition(TRIM_HORIZON)})):
        former = versions.known(store)
        made = versions.next_version(former, SpecName(f"repair {number}"), 4, number, START + HOUR)
        assert made is not None
        versions.name(store, epoch, former, versions.keep(store, made, positions))
    assert [version.slot for version in versions.known(store)] == [0, 1, 2, 1]
    resetter(bench).run()
    assert bench.positions()[ONE] == TRIM_HORIZON


def test_a_version_in_front_of_a_reset_is_refused_once_batches_were_committed(bench: Bench) -> None:
    """A sink that was rolled back for that reset has some records in later batches only, which this one would take out."""
    bench.resetter("trimHorizon", "further").run()
    row, store, former = bench.table.rows["consumer"], bench.store, versions.known(bench.store)
    made = versions.next_version(former, SpecName("bad"), 8, row["generation"], START + HOUR, "further")
    assert made is not None
    versions.name(store, Epoch(row["generation"], row["token"]), former, versions.keep(store, made, {ZERO: KeptPosition(TRIM_HORIZON)}))
    row |= {"committed": 8}
    with pytest.raises(
        Refused, match=r"--to-batch 4: a reset has moved the positions since then.*it does of 8\. Name one of these, or a time with --to"
    ):
        resetter(bench).dry_run()
    assert resetter(bench, 8).dry_run().document["to"] == "batch 8"


def commits(bench: Bench) -> None:
    """A driver names its version, unless that continues, and commits a batch."""
    row, former = bench.store.consumer(), versions.known(bench.store)
    assert row is not None
    made = versions.next_version(former, SpecName("next"), row.committed + 1, row.generation, START + HOUR, row.last_reset)
    if made is not None:
        versions.name(bench.store, Epoch(row.generation, row.token), former, made)
    bench.table.rows["consumer"]["committed"] += 1


@pytest.mark.parametrize("schedule", [steps for length in (2, 3) for steps in product("rb", repeat=length)], ids="".join)
def test_a_version_is_in_reach_while_no_batch_came_after_a_reset(bench: Bench, schedule: tuple[str, ...]) -> None:
    """Resets (r) and batches (b): batch 4 is in front of all of them."""
    for number, step in enumerate(schedule):
        if step == "b":
            commits(bench)
        else:
            Resetter(ResetRequest(f"r{number}", ResetTarget("trimHorizon")), bench.ports()).run()
    if "b" in "".join(schedule).lstrip("b"):
        with pytest.raises(Refused, match=r"--to-batch 4: a reset has moved the positions since then"):
            resetter(bench).dry_run()
    else:
        assert resetter(bench).dry_run().document["to"] == "batch 4"


def test_a_repair_that_crashes_before_and_after_a_reset_counts_as_it_read_last(bench: Bench) -> None:
    """Its first name has the positions from before the reset: batches 4 to 7 are gone from the sink, and would not come again."""

    def named(reset: str | None) -> None:
        row, former = bench.store.consumer(), versions.known(bench.store)
        assert row is not None
        made = versions.next_version(former, SpecName("repair"), 8, row.generation, START + HOUR, reset)
        assert made is not None
        now = versions.places(bench.store.contents().rows, row.committed)
        versions.name(bench.store, Epoch(row.generation, row.token), former, versions.keep(bench.store, made, now))

    named(None)
    resetter(bench).run()
    moved = bench.positions()
    named("undo")
    again = Resetter(ResetRequest("again", ResetTarget(batch=8)), bench.ports())
    assert again.dry_run().document["counts"] == {"back": 0, "forward": 0, "unchanged": 5}
    again.run()
    assert bench.positions() == moved


def test_positions_that_a_busy_table_did_not_keep_are_no_matter_of_a_reset(bench: Bench) -> None:
    store, former = bench.store, versions.known(bench.store)
    row = store.consumer()
    assert row is not None
    versions.name(store, Epoch(row.generation, row.token), former, Version(SpecName("busy"), 8, 4, 0, slot=2))
    with pytest.raises(Refused, match=r"--to-batch 8: the table does not keep the positions in front of it, and it does of 1, 4\."):
        resetter(bench, 8).dry_run()


def test_a_batch_whose_positions_are_not_kept_is_refused_with_those_that_are(bench: Bench) -> None:
    with pytest.raises(Refused, match=r"--to-batch 5: .*it does of 1, 4\. Name one of these, or a time with --to"):
        resetter(bench, 5).dry_run()
    for key in ("version/0/0", "version/1/0"):
        bench.table.rows[key]["generation"] = 9
    with pytest.raises(Refused, match="it does of none"):
        resetter(bench).dry_run()


def test_a_position_that_retention_has_passed_is_refused_by_its_shard(bench: Bench) -> None:
    bench.stream.now = lambda: START + 26 * HOUR
    with pytest.raises(Refused, match=rf"--to-batch 4: records of {ONE}.* that arrived .* may have expired since batch 4\. Add --accept-expired"):
        resetter(bench).dry_run()
    assert f"records of {ONE}" in str(resetter(bench, accept_expired=True).dry_run().warnings)


@pytest.mark.parametrize(
    "kept",
    [
        KeptPosition(Position.timestamp(START + HOUR)),
        KeptPosition(Position.timestamp(START + HOUR), START + HOUR),
        KeptPosition(TRIM_HORIZON),
        KeptPosition(Position.after("5")),
    ],
    ids=["a time", "a time, read up to it", "a child that had not begun", "a range of an open batch"],
)
def test_any_kind_of_position_that_retention_has_passed_is_refused(bench: Bench, kept: KeptPosition) -> None:
    """If its age is not known, that of its version counts: records that were unread when it began."""
    bench.table.rows["version/1/0"]["shards"] = [{"id": ZERO, "at": "END"}, {"id": TWO, **kept.to_map()}]
    resetter(bench).dry_run()
    bench.stream.retention_millis = 6 * HOUR
    with pytest.raises(Refused, match=rf"--to-batch 4: records of {TWO} that arrived .* may have expired"):
        resetter(bench).dry_run()
    assert resetter(bench, shards=frozenset({FOUR})).dry_run().warnings == ()


def test_a_shard_that_came_later_comes_again_though_its_ancestors_were_folded(bench: Bench) -> None:
    """It is at END, and follows none that the table still has: that it was over in front of the batch is not to be taken from that."""
    bench.row(replace(bench.of(FOUR), end=END, children=(Child(FIVE, frozenset({FOUR})),)))
    bench.stream.split(FOUR)
    for shard in (ONE, THREE):
        bench.fold(shard)
    resetter(bench, accept_expired=True).run()
    assert bench.positions() == {ZERO: END, TWO: TRIM_HORIZON, FOUR: TRIM_HORIZON, FIVE: TRIM_HORIZON, SIX: TRIM_HORIZON}


@pytest.mark.parametrize("folded", [True, False])
def test_a_shard_that_was_not_over_and_has_left_the_stream_is_refused(bench: Bench, *, folded: bool) -> None:
    """What the version read of it does not come again, whether its row is there or not."""
    if folded:
        bench.fold(ONE)
    else:
        bench.stream.expire_shard(ONE)
    with pytest.raises(Refused, match=rf"--to-batch 4: records of {ONE} that arrived .* may have expired since batch 4\. Add --accept-expired"):
        resetter(bench).dry_run()
    assert f"records of {ONE}" in str(resetter(bench, accept_expired=True).dry_run().warnings)
    resetter(bench, shards=frozenset({TWO})).dry_run()


@pytest.mark.parametrize(("later", "refused"), [(1, True), (0, False)], ids=["folded since then", "folded before"])
def test_a_shard_that_came_later_and_was_folded_is_refused(bench: Bench, later: int, *, refused: bool) -> None:
    """The table kept no position of it, and has no row. One that was folded before had been read to its end in front of the batch."""
    bench.row(replace(bench.of(FOUR), end=END, children=(Child(FIVE, frozenset({FOUR})),)))
    bench.stream.split(FOUR)
    bench.table.rows["version/1/0"]["shards"] = [{"id": shard, "at": "END"} for shard in (ZERO, ONE, THREE)]
    for shard in (ONE, THREE, FOUR):
        bench.fold(shard, START + HOUR + later)
    if refused:
        with pytest.raises(Refused, match=rf"--to-batch 4: records of {FOUR} that arrived .* may have expired since batch 4\. Add --accept-expired"):
            resetter(bench).dry_run()
    made = resetter(bench, accept_expired=refused).dry_run()
    assert (f"records of {FOUR}" in str(made.warnings)) == refused


def test_a_shard_that_came_later_and_has_left_the_stream_is_refused(bench: Bench) -> None:
    """Its row is at its end, as in any table that is too small to be folded. The version in front of it was named by a listing that lacked it."""
    bench.row(replace(bench.of(FOUR), end=END, children=(Child(FIVE, frozenset({FOUR})),)))
    bench.stream.split(FOUR)
    bench.table.rows["version/1/0"]["shards"] = [{"id": shard, "at": "END"} for shard in (ZERO, ONE, THREE)]
    for shard in (ZERO, ONE, THREE, FOUR):
        bench.stream.expire_shard(shard)
    with pytest.raises(Refused, match=rf"--to-batch 4: records of {FOUR} that arrived .* may have expired since batch 4\. Add --accept-expired"):
        resetter(bench).dry_run()
    assert f"records of {FOUR}" in str(resetter(bench, accept_expired=True).dry_run().warnings)


def test_a_batch_is_no_time() -> None:
    assert str(ResetTarget(batch=4)) == "batch 4"

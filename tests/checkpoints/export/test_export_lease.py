"""An export holds the consumer's lease while it works, and the other system's table has to be at rest."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import pytest
from exporting.bench import OLD, ONE, PLACES, Bench
from exporting.lease import RUNS, split, untouched

from sluice_checkpoints.errors import LeaseHeld, Refused, SourceActive
from sluice_checkpoints.export.exporter import EXPORTED
from sluice_checkpoints.formats.snapshot import TableKey
from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol import reset_writes
from sluice_checkpoints.protocol.lease import Watcher, take_over
from sluice_checkpoints.protocol.reset_writes import Move, StoredReset
from sluice_checkpoints.protocol.rows import RESETTING, ConsumerRow, ShardRow
from sluice_checkpoints.protocol.store import Epoch

# -- the lease ---------------------------------------------------------------------------------------------------------------------


def test_a_table_whose_positions_are_being_moved_is_refused(bench: Bench) -> None:
    """Some of its rows are moved and others not; whoever completes the reset makes it a whole again."""
    bench.consumer.update(state=RESETTING, reset="r1")
    before = copy.deepcopy(bench.rows)
    with pytest.raises(Refused, match="the reset r1 is not complete"):
        bench.exporter().run()
    assert bench.rows == before
    assert bench.consumer["released"]


@pytest.mark.parametrize("at", range(1, 9))
def test_a_reset_that_dies_half_way_while_its_lease_is_waited_for_is_refused(bench: Bench, at: int) -> None:
    """Whatever the export had read by then: rows that were moved and rows that were not would be handed over."""
    taken, calls = take_over(bench.store, RUNS, Watcher()), iter(range(1, at + 1))

    def named(_what: str) -> None:
        if next(calls, None) == at:
            bench.calls.visit = lambda _what: None
            rows, seen = bench.store.contents().rows.values(), bench.store.consumer()
            assert seen is not None
            moves = tuple(Move(row.id, row.batch, row.end, TRIM_HORIZON) for row in rows)
            reset_writes.name(bench.store, taken.epoch, seen, StoredReset("r1", seen.committed, moves))
            reset_writes.move(bench.store, taken.epoch, seen.committed, moves[0])

    bench.calls.visit = named
    with pytest.raises(Refused, match="the reset r1 is not complete"):
        bench.exporter(quiet_seconds=0).run()
    assert (bench.consumer["state"], bench.consumer["reset"]) == (RESETTING, "r1")


def test_a_table_with_a_reset_under_way_is_not_marked_as_exported(bench: Bench) -> None:
    taken = take_over(bench.store, RUNS, Watcher())
    bench.consumer.update(state=RESETTING, reset="r1")
    assert not bench.store.export(taken.epoch, "other")
    assert bench.consumer["state"] == RESETTING


def test_a_lease_whose_holder_is_silent_is_waited_out_in_full(bench: Bench) -> None:
    del bench.consumer["released"]
    bench.exporter(quiet_seconds=0).run()
    assert bench.seconds >= 20
    assert bench.consumer["state"] == EXPORTED


def test_the_lease_is_beaten_while_the_other_table_is_watched(each: Bench) -> None:
    beats: list[float] = []
    each.calls.visit = lambda what: beats.append(each.seconds) if what == "after write" else None
    each.exporter(lease_millis=9_000).run()
    assert max(b - a for a, b in pairwise(beats)) <= 3
    assert beats[-1] >= each.writer.reader.quiet_seconds(each.snapshot())


def test_the_lease_is_beaten_while_rows_are_written(bench: Bench) -> None:
    """Three transactions of 25 seconds each, under a lease of 60."""
    beats: list[float] = []

    def visit(what: str) -> None:
        bench.seconds += 25 if what == "before write target" else 0
        beats.extend([bench.seconds] if what == "after write" else [])

    split(bench, 120)
    bench.calls.visit = visit
    bench.exporter().run()
    assert max(b - a for a, b in pairwise(beats)) < 60


@pytest.mark.parametrize(
    ("moment", "passed", "wrote"),
    [
        ("before wake", 100, False),  # paused while it watched: the next beat is refused
        ("after write target", 100, True),  # paused while it wrote
        ("after write target", 0, True),  # at once after a beat: only the last write can tell
    ],
)
def test_an_export_whose_lease_was_taken_ends_without_closing_the_table(bench: Bench, moment: str, passed: float, *, wrote: bool) -> None:
    before = copy.deepcopy(bench.rows)
    bench.calls.visit = lambda what: come(bench, passed) if what == moment else None
    with pytest.raises(LeaseHeld, match="another epoch"):
        bench.exporter().run()
    assert (bench.consumer["state"], bench.consumer["token"]) == ("ACTIVE", "driver")
    assert "released" not in bench.consumer
    assert (bench.rows != before) is wrote


def come(bench: Bench, passed: float) -> None:
    bench.calls.visit = lambda _what: None
    bench.seconds += passed
    seen = bench.store.consumer()
    assert seen is not None
    assert bench.store.take(seen, ConsumerRow("", "", 0, token="driver"))


def test_what_the_consumer_did_until_its_lease_was_taken_counts(bench: Bench) -> None:
    """A driver that stops while its lease is waited out commits its last batch: the plan is made again after the take."""
    del bench.consumer["released"]
    third = bench.stream.put_in(ONE, b"c")

    def commit(what: str) -> None:
        if what == "before wake":
            bench.put(ShardRow(ONE, Position.after(bench.second), Position.after(third), generation=3, batch=8))
            bench.consumer.update(committed=8, released=True)

    bench.calls.visit = commit
    bench.exporter().run()
    assert bench.says()[ONE] == Position.after(third)


def test_the_last_write_asks_for_the_lease(bench: Bench) -> None:
    taken = take_over(bench.store, RUNS, Watcher())
    before = dict(bench.consumer)
    assert not bench.store.export(Epoch(taken.epoch.generation, "another"), OLD)
    assert not bench.store.export(Epoch(taken.epoch.generation - 1, taken.epoch.token), OLD)
    assert bench.consumer == before
    assert bench.store.export(taken.epoch, OLD)
    assert bench.store.export(taken.epoch, OLD)  # a reply that was lost


# -- at rest -----------------------------------------------------------------------------------------------------------------------


def test_a_table_that_moves_is_in_use(each: Bench) -> None:
    where = each.rows[-1]
    name = (
        "lastUpdateTimestamp" if "lastUpdateTimestamp" in where else next(n for n, t in where.items() if n not in {k.name for k in each.writer.keys})
    )
    each.calls.visit = lambda what: where.update({name: {next(iter(where[name])): "8"}}) if what == "before wake" else None
    with pytest.raises(SourceActive, match="is in use"):
        each.exporter().run()
    where = each.rows[-1]
    untouched(each, each.rows)
    assert "before write target" not in each.calls.log


def test_a_table_of_another_stream_is_not_written(each: Bench) -> None:
    """Its shards have the same ids, and its numbers fit into open shards; Kinesis knows that they are not its own."""
    name = PLACES[each.writer.name]
    row = next(row for row in each.rows if row.get(name, {}).get("S") == each.two)
    row[name] = {"S": str(int(each.two) + 10**9)}
    before = [dict(row) for row in each.rows]
    with pytest.raises(Refused, match=rf"--to {each.request.to} is not of stream orders: .*{name}"):
        each.exporter().run()
    untouched(each, before)
    assert "before write target" not in each.calls.log


def test_a_lease_of_kcl_with_other_hash_keys_is_another_applications() -> None:
    """A table name that was mistyped would lose a third party's places."""
    bench = Bench("kcl")
    bench.rows[-1] |= {"startingHashKey": {"S": "0"}, "endingHashKey": {"S": "5"}}
    with pytest.raises(Refused, match=r"--to .* is not of stream orders: .*endingHashKey 5"):
        bench.exporter().run()
    assert "before write target" not in bench.calls.log


def test_an_idle_kinsumer_is_noticed_by_its_clients() -> None:
    """It writes nowhere else; where that table is not found, a person is asked to look. A table that was made just now has no consumer."""
    bench = Bench("kinsumer")
    clients = {"ID": {"S": "i"}, "LastUpdate": {"N": "1"}}
    bench.old.tables["orders_clients"] = ((TableKey("ID", "HASH", "S"),), [clients])
    bench.calls.visit = lambda what: clients.update(LastUpdate={"N": str(bench.seconds)}) if what == "before wake" else None
    with pytest.raises(SourceActive, match="LastUpdate"):
        bench.exporter().run()
    del bench.old.tables["orders_clients"]
    assert any("_clients" in warning for warning in bench.exporter().dry_run().warnings)
    assert not any("_clients" in warning for warning in bench.exporter(to="new_checkpoints").dry_run().warnings)


def test_a_table_is_watched_as_long_as_its_format_needs(each: Bench) -> None:
    each.exporter().run()
    assert each.seconds >= each.writer.reader.quiet_seconds(each.snapshot())
    other = Bench(each.writer.name)
    other.exporter(quiet_seconds=7).run()
    assert 7 <= other.seconds < 30


def test_a_row_that_moves_between_reading_and_writing_is_not_lowered(each: Bench) -> None:
    after: list[Any] = []

    def visit(what: str) -> None:
        if what == "before write target":
            each.advance(ONE)
            after.append(copy.deepcopy(each.rows))

    each.calls.visit = visit
    with pytest.raises(SourceActive, match=ONE):
        each.exporter().run()
    untouched(each, after[0])


def test_a_row_that_moves_after_it_was_written_stops_the_end(bench: Bench) -> None:
    bench.calls.visit = lambda what: bench.row(ONE).update(leaseOwner={"S": "w"}) if what == "after write target" else None
    with pytest.raises(SourceActive, match=ONE):
        bench.exporter().run()
    assert bench.consumer["state"] == "ACTIVE"
    assert bench.consumer["released"]

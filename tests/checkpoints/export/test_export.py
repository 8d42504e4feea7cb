from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from exporting.bench import FOUR, OLD, ONE, PLACES, TABLE, THREE, TWO, ZERO, Bench
from exporting.lease import RUNS, untouched

from sluice_checkpoints.errors import Refused, SourceActive
from sluice_checkpoints.export.exporter import EXPORTED, Exporter
from sluice_checkpoints.formats.detect import WRITERS
from sluice_checkpoints.formats.snapshot import Snapshot, TableKey
from sluice_checkpoints.migrate.store import MigrationClaim
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.lease import Watcher, take_over
from sluice_checkpoints.protocol.rows import MIGRATION, MigrationRow, ShardRow
from sluice_checkpoints.stream.model import ShardPlace


def stands(bench: Bench) -> dict[str, Position | None]:
    unstarted = TRIM_HORIZON if bench.writer.unstarted is None else None
    last = bench.stream.shards[ZERO].shard.ending_sequence
    ended = END if bench.writer.supports_shard_end else Position.after(str(last))
    after = {ONE: bench.second, TWO: bench.two, THREE: bench.three}
    return {ZERO: ended, FOUR: unstarted} | {shard: Position.after(sequence) for shard, sequence in after.items()}


# -- the whole way -----------------------------------------------------------------------------------------------------------------


def test_the_other_system_goes_on_where_the_consumer_stands(each: Bench) -> None:
    result = each.exporter().run()
    assert each.says() == stands(each)
    assert result.state == EXPORTED


def test_sluices_table_is_closed_for_good(each: Bench) -> None:
    """No driver takes its lease again; the row says where the positions went."""
    each.exporter().run()
    assert (each.consumer["state"], each.consumer["exportedTo"]) == (EXPORTED, OLD)
    assert "released" not in each.consumer
    with pytest.raises(Refused, match=EXPORTED):
        take_over(each.store, RUNS, Watcher(sleep=lambda _seconds: None))


@pytest.mark.parametrize(("name", "label"), [("kcl", "Leader"), ("nifi", "__node__#1"), ("nifi", "others")])
def test_rows_that_are_no_shards_of_the_stream_stay_as_they_are(name: str, label: str) -> None:
    bench = Bench(name)
    before = [copy.deepcopy(row) for row in bench.rows if {"S": label} in row.values()]
    bench.exporter().run()
    assert [row for row in bench.rows if {"S": label} in row.values()] == before != []


def test_a_table_that_is_not_there_is_made_with_the_formats_key(each: Bench) -> None:
    each.old.tables.clear()
    each.exporter().run()
    assert each.old.tables[OLD][0] == each.writer.keys
    assert each.says() == stands(each)
    assert each.seconds == 0


def migrated(bench: Bench, **choices: Any) -> None:
    claim = MigrationClaim.wanted(MigrationRow(OLD, bench.writer.name, 0), bench.stream.describe(), choices)
    bench.table.rows[MIGRATION] = claim.to_item()


def test_what_a_migration_was_told_to_leave_out_of_account_hinders_no_way_back(each: Bench) -> None:
    for row in each.rows:
        row["ttl"] = {"N": "7"}
    with pytest.raises(Refused, match="ttl"):
        each.exporter().run()
    migrated(each, **{"ignore-attribute": ["ttl"]})
    each.exporter().run()
    assert [row["ttl"] for row in each.rows if each.row(TWO) is row] == [{"N": "7"}]
    for row in each.rows:
        row.pop("ttl", None)
    assert each.says() == stands(each)


@pytest.mark.parametrize("said", ["7" * 60, "nonsense"], ids=["another stream's", "no number"])
def test_a_row_whose_shard_the_user_placed_is_written_on_the_way_back(each: Bench, said: str) -> None:
    """Whatever it says; that it is refused was known when the table was migrated. A row that is further is kept, as any other."""
    each.row(TWO)[PLACES[each.writer.name]] = {"S": said}
    with pytest.raises(Refused, match=TWO):
        each.exporter().run()
    migrated(each, place=[f"{TWO}={each.two}"])
    each.exporter().run()
    assert each.says() == stands(each)


@pytest.mark.parametrize("said", [{"S": "nonsense"}, {"N": "-1"}, {"BOOL": True}, {"SS": ["shardId-000000000099"]}], ids=str)
@pytest.mark.parametrize(
    ("name", "attribute"),
    [(name, one) for name, writer in WRITERS.items() for one in (*writer.types, "theirs") if one not in {key.name for key in writer.keys}],
)
def test_a_row_that_was_refused_and_placed_is_one_that_its_reader_reads_in_the_end(name: str, attribute: str, said: dict[str, Any]) -> None:
    bench = Bench(name)
    bench.row(TWO)[attribute] = said
    migrated(bench, place=[f"{TWO}={bench.two}"])
    assert bench.exporter().run().state == EXPORTED
    written = Snapshot(OLD, {OLD: bench.writer.keys}, {OLD: tuple(bench.rows)}).without(frozenset({"theirs"}))
    assert bench.writer.reader.read(written, bench.stream.describe()).problems == ()
    assert attribute != "theirs" or bench.row(TWO)["theirs"] == said


def test_what_was_said_of_another_table_does_not_count() -> None:
    bench = Bench()
    bench.row(TWO)["ttl"] = {"N": "7"}
    migrated(bench, **{"ignore-attribute": ["ttl"]})
    bench.table.rows[MIGRATION]["source"] = "another"
    with pytest.raises(Refused, match="ttl"):
        bench.exporter().run()


# -- refusals ----------------------------------------------------------------------------------------------------------------------


def test_a_table_with_rows_that_are_not_understood_is_refused(each: Bench) -> None:
    """An unknown attribute may be the one that holds the place."""
    each.rows[-1]["newThing"] = {"S": "x"}
    before = copy.deepcopy(each.rows)
    with pytest.raises(Refused, match="newThing"):
        each.exporter().run()
    untouched(each, before)
    assert each.consumer["generation"] == 3


def test_rows_that_are_not_understood_are_refused_even_where_no_other_is_there(each: Bench) -> None:
    each.rows[:] = [each.row(ONE) | {"newThing": {"S": "x"}}]
    with pytest.raises(Refused, match="newThing"):
        each.exporter().run()


def test_a_table_of_another_key_is_refused(each: Bench) -> None:
    each.old.tables[OLD] = ((TableKey("other", "HASH", "S"),), [])
    with pytest.raises(Refused, match="other HASH S"):
        each.exporter().run()


def test_a_table_of_several_streams_is_refused(bench: Bench) -> None:
    bench.row(ONE)["leaseKey"] = {"S": f"000000000000:orders:1700000000:{ONE}"}
    with pytest.raises(Refused, match="several streams"):
        bench.exporter().run()


def test_a_workers_name_in_the_table_beside_it_makes_a_table_none_of_several_streams(bench: Bench) -> None:
    """That of KCL 3.4; tests/checkpoints/formats/test_kcl.py has one in the lease table."""
    bench.old.tables[f"{OLD}-WorkerMetricStats"] = ((TableKey("wid", "HASH", "S"),), [{"wid": {"S": "1:web:8080:77f0"}}])
    assert bench.exporter().run().state == EXPORTED


class Passed:
    def __init__(self, *, gone: bool) -> None:
        self.gone, self.asked = gone, list[ShardPlace]()

    def passed(self, places: Iterable[ShardPlace]) -> frozenset[ShardPlace]:
        self.asked += places
        return frozenset(self.asked) if self.gone else frozenset()


@pytest.mark.parametrize("name", [name for name, writer in WRITERS.items() if not writer.supports_subsequence])
def test_a_place_inside_a_record_that_is_gone_is_the_place_behind_it(name: str) -> None:
    """Nothing is left that the consumer could finish: a quiet shard, migrated from NiFi, whose checkpoint has expired."""
    for gone in (False, True):
        bench, passed = Bench(name), Passed(gone=gone)
        place = Position.after(bench.two, 0)
        bench.put(ShardRow(TWO, place, place, generation=3, batch=7))
        bench.rows.remove(bench.row(TWO))
        exporter = Exporter(bench.request, replace(bench.world(), records=passed))
        if gone:
            warnings = exporter.run().warnings
            assert [warning for warning in warnings if "no longer in the stream" in warning]
            assert bench.says()[TWO] == Position.after(bench.two)
        else:
            with pytest.raises(Refused, match="inside an aggregate"):
                exporter.run()
        assert set(passed.asked) == {(TWO, bench.two)}


def test_a_table_without_rows_of_this_stream_is_filled(each: Bench) -> None:
    each.rows[:] = [row for row in each.rows if {"S": "others"} in row.values() or {"S": "Leader"} in row.values()]
    each.exporter().run()
    assert each.says() == stands(each)


def test_nifis_half_made_table_is_refused() -> None:
    """NiFi's next start would copy it over what was written."""
    bench = Bench("nifi")
    bench.old.tables[OLD + "_migration"] = bench.old.tables[OLD]
    with pytest.raises(Refused, match=f"{OLD}_migration"):
        bench.exporter().run()


def test_a_table_that_kinsumer_would_not_find_is_not_made() -> None:
    """Its name ends with `_checkpoints`."""
    bench = Bench("kinsumer")
    with pytest.raises(Refused, match="orders_checkpoints"):
        bench.exporter(to="orders").run()


@pytest.mark.parametrize(("to", "said"), [("x", "--to 'x'"), (TABLE, "own table")])
def test_a_name_that_cannot_be_is_refused(bench: Bench, to: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        bench.exporter(to=to)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda b: (setattr(b, "seconds", 1), b.stream.recreate(3)), "is of stream"),
        (lambda b: b.consumer.update(bootstrapped=False), "bootstrapped"),
        (lambda b: b.consumer.update(letters=["letters/8"]), r"dead letters that are not published \(letters/8\)"),
        (lambda b: b.table.rows.pop("consumer"), "no consumer row"),
        (lambda b: b.put(ShardRow(ONE, Position.after("1", 2), Position.after(b.second, 2), batch=7)), ONE),
    ],
)
def test_what_is_not_the_consumers_is_refused_before_the_lease_is_taken(spoil: Any, said: str) -> None:
    bench = Bench("nifi")
    spoil(bench)
    before = copy.deepcopy(bench.rows)
    with pytest.raises(Refused, match=said):
        bench.exporter().run()
    assert bench.rows == before
    assert bench.table.rows.get("consumer", {"generation": 3})["generation"] == 3


def test_a_stream_that_was_made_again_during_the_export_stops_it(bench: Bench) -> None:
    """Its shards have the same names."""
    bench.calls.visit = lambda what: bench.stream.recreate(3) if what == "before wake" else None
    before = copy.deepcopy(bench.rows)
    with pytest.raises(Refused, match="created again"):
        bench.exporter().run()
    untouched(bench, before)


def test_a_stream_that_is_being_deleted_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shards cannot be told."""
    identity = replace(bench.stream.describe(), status="DELETING")
    monkeypatch.setattr(bench.stream, "describe", lambda: identity)
    with pytest.raises(Refused, match="DELETING"):
        bench.exporter().run()


# -- again, and without writing ----------------------------------------------------------------------------------------------------


def test_an_export_that_is_done_says_so(bench: Bench) -> None:
    bench.exporter().run()
    bench.advance(ONE)
    before, mark = copy.deepcopy(bench.rows), len(bench.calls.log)
    result = bench.exporter().run()
    assert (result.state, result.plan) == (EXPORTED, None)
    assert bench.rows == before
    assert not any("write" in call for call in bench.calls.log[mark:])


def test_an_export_to_a_second_table_is_refused(bench: Bench) -> None:
    """The first one's consumers may have gone on; the message names it."""
    bench.exporter().run()
    with pytest.raises(Refused, match=OLD):
        bench.exporter(to="elsewhere").run()


@pytest.mark.parametrize("quiet", [None, 60])
def test_a_dry_run_writes_nothing(each: Bench, quiet: float | None) -> None:
    before, consumer = copy.deepcopy(each.rows), dict(each.consumer)
    dry = each.exporter(quiet_seconds=quiet).dry_run()
    assert (each.rows, each.consumer) == (before, consumer)
    assert each.seconds == (quiet or 0)
    assert dry.plan is not None
    assert dry.plan.counts == (each.exporter().run().plan or dry.plan).counts
    assert dry.state == "PLANNED"


def test_a_dry_run_may_look_whether_the_other_table_is_at_rest(bench: Bench) -> None:
    bench.calls.visit = lambda what: bench.row(ONE).update(leaseCounter={"N": "9"}) if what == "before wake" else None
    with pytest.raises(SourceActive, match="leaseCounter"):
        bench.exporter(quiet_seconds=60).dry_run()

"""A row that is refused is no dead end: an attribute may be ignored, and a shard may be placed by hand (docs/migration.md)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from migrating.bench import Bench
from migrating.cases import CASES
from migrating.stage import Case

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.detect import choose
from sluice_checkpoints.migrate.migrator import MigrationResult
from sluice_checkpoints.migrate.overrides import PLACES
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import MIGRATION

EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=str)
# Written by DynamoDB itself into every row of a global table of 2017.
REPLICATED = {
    "aws:rep:deleting": {"BOOL": False},
    "aws:rep:updatetime": {"N": "1512105600.123001"},
    "aws:rep:updateregion": {"S": "eu-west-1"},
}


def every_row(bench: Bench) -> list[Any]:
    return [row for _, rows in bench.sources.tables.values() for row in rows]


def row_of(bench: Bench, shard: str) -> Any:
    return next(row for row in every_row(bench) if any(str(v.get("S", "")).endswith(shard) for v in row.values()) and "payments" not in str(row))


def refusal(run: Callable[[], Any]) -> str:
    with pytest.raises(Refused) as refused:
        run()
    return str(refused.value)


@EVERY_CASE
def test_what_replication_puts_into_every_row_is_no_obstacle(case: Case) -> None:
    plain, replicated = Bench(case), Bench(case)
    for row in every_row(replicated):
        row.update(REPLICATED)
    plain.migrator().run()
    assert replicated.migrator().run().state == "COMPLETE"
    assert replicated.places() == plain.places()


@EVERY_CASE
def test_an_attribute_that_nobody_reads_can_be_ignored_by_name(case: Case) -> None:
    plain, bench = Bench(case), Bench(case)
    row_of(bench, bench.one)["ttl"] = {"N": "1700000000"}
    message = refusal(bench.migrator().run)
    assert "--ignore-attribute ttl (in the resource: spec.migrateFrom.ignoreAttributes)" in message
    assert not bench.targets.tables
    result = bench.migrator(ignored=("ttl",)).run()
    plain.migrator().run()
    assert bench.places() == plain.places()
    assert "attribute ttl of 1 row was ignored (--ignore-attribute)" in result.warnings
    assert bench.table.rows[MIGRATION]["choices"] == {"ignore-attribute": ["ttl"]}


@EVERY_CASE
def test_an_attribute_that_the_format_reads_cannot_be_ignored(case: Case) -> None:
    """Whichever it is: it may decide where a shard starts."""
    schemas = {name: keys for name, (keys, _) in Bench(case).sources.tables.items()}
    known = choose("auto", case.table, schemas).attributes
    assert len(known) > 4
    stored = {name for row in every_row(Bench(case)) for name in row} & known
    for name in sorted(stored):
        assert f"--ignore-attribute {name}: format" in refusal(Bench(case).migrator(ignored=(name,)).run)


Spoilt = Callable[[Bench], Any]


def followed(bench: Bench) -> MigrationResult:
    """The migration, with whatever its refusals advise, three times at most."""
    ignored, rows, places = list[str](), list[str](), dict[str, Position]()
    for _ in range(3):
        try:
            return bench.migrator(ignored=tuple(ignored), rows=tuple(rows), places=places).run()
        except Refused as refused:
            message = str(refused).replace(PLACES, "=trim-horizon")
        given = re.findall(r"run the same command again with (.*?) \(in the resource", message)
        assert given, message
        words = shlex.split(" ".join(given))
        for option, value in zip(words[::2], words[1::2], strict=True):
            shard, _, place = value.partition("=")
            match option:
                case "--ignore-attribute":
                    ignored.append(value)
                case "--ignore-row":
                    rows.append(value)
                case "--place":
                    places[shard] = END if place == "END" else TRIM_HORIZON
    raise AssertionError("it leads in a circle")


def lease(bench: Bench, **change: Any) -> dict[str, Any]:
    return {**row_of(bench, bench.one), **change}


LATER = "shardId-000000000099"
SPOILT: dict[str, tuple[str, Spoilt]] = {
    "a shard of a wider stream of the name": ("KCL 2", lambda b: b.rows.append(lease(b, leaseKey={"S": LATER}))),
    "an attribute of another row kind": ("KCL 2", lambda b: b.rows[1].update(streamName={"S": "orders"})),
    "a note": ("KCL 2", lambda b: b.rows.append({"leaseKey": {"S": "README of Bob's"}, "text": {"S": "do not delete"}})),
    "a key with a shard in it": ("KCL 2", lambda b: b.rows.append({"leaseKey": {"S": f"old/{b.one}"}, "checkpoint": {"S": "1"}})),
    "a kind that is no text": ("KCL 2", lambda b: b.rows.append({"leaseKey": {"S": "lock"}, "entityType": {"N": "1"}})),
    "a quote in a name": ("KCL 2", lambda b: b.rows[1].update({"bob's": {"S": "x"}})),
    "a lease until no time": ("vmware-go-kcl 2", lambda b: row_of(b, b.one).update(AssignedTo={"S": "w"}, LeaseTimeout={"S": "30 February"})),
    "a lease for ever": ("vmware-go-kcl 2", lambda b: row_of(b, b.one).update(AssignedTo={"S": "w"}, LeaseTimeout={"S": "9999-01-01T00:00:00Z"})),
}


@pytest.mark.parametrize(("name", "spoil"), SPOILT.values(), ids=SPOILT)
def test_advice_leads_on(name: str, spoil: Spoilt) -> None:
    case = next(case for case in CASES if case.name == name)
    plain, bench = Bench(case), Bench(case)
    plain.migrator().run()
    spoil(bench)
    assert followed(bench).state == "COMPLETE"
    expected = plain.places()
    assert {shard: place for shard, place in bench.places().items() if shard != bench.one} == {s: p for s, p in expected.items() if s != bench.one}


def test_a_row_that_names_a_child_that_cannot_be_is_placed() -> None:
    bench = Bench()
    third = bench.stream.put_in(bench.three, b"x")
    bench.rows.append({**bench.rows[1], "leaseKey": {"S": bench.three}, "checkpoint": {"S": third}})
    bench.rows[1]["childShardIds"] = {"SS": [LATER]}
    assert followed(bench).state == "COMPLETE"
    assert (bench.places()[bench.one], LATER in bench.places()) == ({"at": "TRIM_HORIZON"}, False)


def test_the_row_of_a_shard_of_the_stream_cannot_be_ignored() -> None:
    """Its shard would start as if nobody had read it."""
    bench = Bench()
    assert f"--ignore-row {bench.one}: it is the row of a shard that stream" in refusal(bench.migrator(rows=(bench.one,)).run)


def test_an_ignored_row_is_told_and_kept_with_the_choices() -> None:
    bench = Bench()
    bench.rows.append({"leaseKey": {"S": "note"}})
    result = bench.migrator(rows=("note", "nota")).run()
    assert {"row note was ignored (--ignore-row)", "--ignore-row nota: there is no such row"} <= {*result.warnings}
    assert bench.table.rows[MIGRATION]["choices"] == {"ignore-row": ["nota", "note"]}


def test_a_name_that_no_row_has_is_told() -> None:
    assert "--ignore-attribute tll: no row has it" in Bench().migrator(ignored=("tll",)).run().warnings


@EVERY_CASE
@pytest.mark.parametrize("word", ["trim-horizon", "a number"])
def test_a_shard_whose_row_is_refused_can_be_placed(case: Case, word: str) -> None:
    plain, bench = Bench(case), Bench(case)
    plain.migrator().run()
    row = row_of(bench, bench.one)
    name = next(n for n, v in row.items() if v == {"S": bench.reached}) if case.name != "Sluice" else "end"
    row[name] = {"S": "SOMEWHERE"}
    message = refusal(bench.migrator().run)
    assert f"--place {bench.one}=trim-horizon (or =END, or =SEQUENCE" in message
    assert "spec.migrateFrom.places" in message
    place = TRIM_HORIZON if word == "trim-horizon" else Position.after(bench.reached)
    result = bench.migrator(places={bench.one: place}).run()
    assert bench.places() == plain.places() | {bench.one: place.to_map()}
    assert [w for w in result.warnings if w.startswith(f"{bench.one}: starts at {place}, as --place says; the source says what was refused")]
    assert bench.table.rows[MIGRATION]["choices"] == {"place": [f"{bench.one}={place.sequence or 'trim-horizon'}"]}


def test_one_number_of_another_shard_among_rows_that_agree_is_told_as_such() -> None:
    """A KCL 2.0 worker wrote one shard's checkpoint into another's row: it is not the table of another stream."""
    bench = Bench()
    low = str(int(bench.stream.shards[bench.one].shard.starting_sequence) - 1)
    third = bench.stream.put_in(bench.three, b"x")
    bench.rows.append({**bench.rows[1], "leaseKey": {"S": bench.three}, "checkpoint": {"S": third}})
    bench.rows[1]["checkpoint"] = {"S": low}
    message = refusal(bench.migrator().run)
    assert (
        f". 1 other row has a position that fits this stream. To set yourself where a shard starts, run the same command again "
        f"with --place {bench.one}=" in message
    )
    assert bench.migrator(places={bench.one: TRIM_HORIZON}).run().state == "COMPLETE"
    alone = Bench()
    alone.rows[1]["checkpoint"] = {"S": low}
    assert "No other row has a position that fits this stream" in refusal(alone.migrator().run)


def test_a_number_that_kinesis_does_not_know_is_placed_by_hand() -> None:
    """In an open shard only Kinesis can tell."""
    bench = Bench()
    third = bench.stream.put_in(bench.three, b"x")
    bench.rows.append({**bench.rows[1], "leaseKey": {"S": bench.three}, "checkpoint": {"S": third}})
    bench.rows[1]["checkpoint"] = {"S": str(int(bench.reached) + 10**9)}
    assert f"--place {bench.one}=" in refusal(bench.migrator().run)
    assert bench.migrator(places={bench.one: Position.after(bench.reached)}).run().state == "COMPLETE"


@pytest.mark.parametrize(
    ("place", "word"),
    [
        (lambda _: {"shardId-000000000099": END}, "with a row a later one of this id would not be read"),
        (lambda b: {b.one: END}, "the stream's shard is open"),
        (lambda b: {b.zero: Position.after(b.stream.put_in(b.one, b"x"))}, "outside the shard's range"),
        (lambda b: {b.one: Position.after(str(int(b.reached) + 10**9))}, "Kinesis does not accept this number in this shard"),
    ],
)
def test_a_place_that_cannot_be_is_refused(place: Callable[[Bench], dict[str, Position]], word: str) -> None:
    bench = Bench()
    message = refusal(bench.migrator(places=place(bench)).run)
    assert message.startswith("--place shardId-")
    assert word in message
    assert not bench.targets.tables


def test_a_shard_without_a_row_can_be_placed() -> None:
    bench = Bench()
    bench.rows[:] = [bench.rows[1]]
    assert "has no row" in refusal(bench.migrator().run)
    places = {bench.zero: END, bench.two: TRIM_HORIZON, bench.three: TRIM_HORIZON}
    assert bench.migrator(places=places).run().state == "COMPLETE"
    assert bench.places()[bench.zero] == {"at": "END"}


def test_a_place_counts_more_than_the_row() -> None:
    bench = Bench()
    result = bench.migrator(places={bench.one: TRIM_HORIZON}).run()
    assert bench.places()[bench.one] == {"at": "TRIM_HORIZON"}
    assert f"{bench.one}: starts at TRIM_HORIZON, as --place says; the source says {bench.reached}/3" in result.warnings


def test_options_that_come_after_the_end_are_told() -> None:
    bench = Bench()
    bench.migrator().run()
    warnings = bench.migrator(ignored=("ttl",), places={bench.one: END}).run().warnings
    assert [warning.partition(" has")[0] for warning in warnings] == ["--ignore-attribute (ttl)", f"--place ({bench.one}=END)"]


def test_a_dry_run_takes_them_too() -> None:
    bench = Bench()
    bench.rows[1]["checkpoint"] = {"S": "SOMEWHERE"}
    made = bench.migrator(places={bench.one: TRIM_HORIZON}).dry_run().plan
    assert made
    line = next(line for line in made.shards if line.id == bench.one)
    assert (line.verdict.why, line.verdict.again) == ("--place says so", True)
    assert replace(bench.request, places={}).choices == {}

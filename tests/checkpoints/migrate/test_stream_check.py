"""The table of another stream is refused before anything is made: by hash keys, by the youngest shard, and by Kinesis itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from migrating.bench import Bench
from migrating.cases import CASES
from migrating.stage import Case

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats import detect
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.migrate import migrator
from sluice_checkpoints.migrate.migrator import Migrator
from sluice_checkpoints.migrate.ports import MigrationProgress
from sluice_checkpoints.migrate.stream_check import Compared

UNBORN = "shardId-000000000009"
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=str)
FOREIGN = [case for case in CASES if case.name not in {"Sluice", "KCL multi-stream"}]  # both store which stream they are of
EVERY_FOREIGN_CASE = pytest.mark.parametrize("case", FOREIGN, ids=str)
NAMES = {"KCL": "checkpoint", "NiFi": "sequenceNumber", "vmware-go-kcl": "Checkpoint", "kinsumer": "SequenceNumber"}


def refused(bench: Bench) -> str:
    messages = []
    for run in (bench.migrator().dry_run, bench.migrator().run):
        with pytest.raises(Refused) as why:
            run()
        messages.append(str(why.value))
    assert not bench.targets.tables
    assert messages[0] == messages[1]
    return messages[0]


@EVERY_CASE
def test_a_table_of_this_stream_is_not_contradicted(case: Case) -> None:
    bench = Bench(case)
    chosen, snapshot = detect.take_snapshot(bench.sources, case.table)
    stream = bench.stream.describe()
    compared = Compared(chosen.parse(snapshot, stream), snapshot, stream, bench.stream.list_shards())
    assert compared.contradictions() == []
    assert (bench.one in dict(compared.places())) is True
    assert bench.stream.disowned(compared.places()) == {}


@pytest.mark.parametrize("case", [case for case in CASES if case.table == "orders-kcl"], ids=str)
def test_hash_keys_are_compared_in_every_version_of_kcl(case: Case) -> None:
    """Also behind the long keys of a table of several streams, and there only in the rows of this one."""
    bench = Bench(case)
    for row in bench.rows:
        if bench.one in row["leaseKey"]["S"]:
            row |= {"startingHashKey": {"S": "1"}, "endingHashKey": {"S": "2"}}
    message = refused(bench)
    assert "startingHashKey 1, not " in message
    assert "endingHashKey 2, not " in message
    assert "this is the table of another stream" in message
    assert message.count("table orders-kcl, row") == 1


def rename(tables: Any, old: str, new: str) -> None:
    for _, rows in tables.values():
        for row in rows:
            row |= {name: {"S": value["S"].replace(old, new)} for name, value in row.items() if old in str(value.get("S"))}


@EVERY_FOREIGN_CASE
def test_a_row_for_a_shard_younger_than_the_youngest_is_refused(case: Case) -> None:
    """The youngest shard is open, so a younger one has not expired: it never was one of this stream."""
    bench = Bench(case)
    rename(bench.sources.tables, bench.one, UNBORN)
    message = refused(bench)
    assert f"is of {UNBORN}, and the newest shard of stream orders is {bench.three}" in message


def test_a_child_younger_than_the_youngest_shard_is_refused() -> None:
    bench = Bench()
    bench.rows[0]["childShardIds"] = {"SS": [UNBORN]}
    assert f"row {bench.zero}: names the child {UNBORN}" in refused(bench)


@EVERY_FOREIGN_CASE
def test_a_number_that_kinesis_does_not_accept_is_refused(case: Case) -> None:
    """A newer stream's numbers fit into the range of every open shard; only the service knows its own."""
    bench = Bench(case)
    newer = str(int(bench.reached) + 10**45)
    case.checkpoint(bench.sources.tables, case, newer)
    message = refused(bench)
    name = "checkpoint" if case.name.endswith("KCL table whole") else NAMES[case.name.split()[0]]
    assert f"{bench.one}: {name} {newer}: {newer} is not of {bench.one}: this is the table of another stream" in message


def test_a_number_of_another_shard_is_refused() -> None:
    bench = Bench()
    bench.rows[2]["checkpoint"] = bench.rows[1]["checkpoint"] = {"S": bench.stream.put_in(bench.three, b"x")}
    message = refused(bench)
    assert f"row {bench.one}: checkpoint" in message
    assert f"row {bench.two}: checkpoint" in message


def test_each_place_is_asked_about_once() -> None:
    bench = Bench()
    bench.migrator().run()
    assert bench.calls.log.count("before ask about places") == 1


def test_a_place_that_the_source_reached_later_is_asked_about_before_it_is_written() -> None:
    bench = Bench()
    scans = 0

    def visit(number: int) -> None:
        nonlocal scans
        if bench.calls.log[number] == "before scan source":
            scans += 1
            if scans == 3:
                bench.case.checkpoint(bench.sources.tables, bench.case, str(int(bench.reached) + 10**45))

    bench.calls.visit = visit
    with pytest.raises(Refused, match="is not of"):
        bench.migrator().run()
    assert "consumer" not in bench.table.rows


def test_a_place_that_retention_has_passed_is_accepted() -> None:
    bench = Bench()
    bench.stream.trim(bench.one, 2)
    assert bench.migrator().run().state == "COMPLETE"


def test_a_shard_that_expires_between_listing_and_asking_is_no_contradiction() -> None:
    bench = Bench()
    bench.rows[0]["checkpoint"] = {"S": bench.stream.shards[bench.zero].records[0].sequence}

    def visit(number: int) -> None:
        if bench.calls.log[number] == "before ask about places" and bench.zero in bench.stream.shards:
            bench.stream.expire_shard(bench.zero)

    bench.calls.visit = visit
    result = bench.migrator().run()
    assert result.plan
    assert result.plan.risks["possiblyLost"] == 1


def test_the_wrong_stream_is_named_before_the_holes_in_its_table() -> None:
    """A table of another stream leaves shards without a row as well; the advice for those would be wrong."""
    bench = Bench(CASES[1])
    bench.rows[:] = bench.rows[1:2]
    bench.rows[0]["startingHashKey"] = {"S": "1"}
    assert "--unstarted" not in refused(bench)


@pytest.mark.parametrize("run", [Migrator.dry_run, Migrator.run])
def test_who_asks_kinesis_says_so(run: Callable[[Migrator], Any]) -> None:
    """A table of thousands of shards takes a while."""
    bench, steps = Bench(), list[str]()

    class Told(MigrationProgress):
        def step(self, text: str) -> None:
            steps.append(text)

    run(Migrator(bench.request, replace(bench.world(), progress=Told())))
    assert steps.count("asking Kinesis about 1 of 1 checkpoints") == 1


def test_many_checkpoints_are_asked_about_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that progress is seen, and a table of another stream is refused after the first part."""
    monkeypatch.setattr(migrator, "ASKED_AT_ONCE", 1)
    bench = Bench()
    bench.rows[2]["checkpoint"] = {"S": bench.stream.put_in(bench.two, b"x")}
    bench.migrator().dry_run()
    assert bench.calls.log.count("before ask about places") == 2
    bench.rows[1]["checkpoint"] = {"S": str(int(bench.reached) + 10**45)}
    bench.calls.log.clear()
    assert bench.one in refused(bench)
    assert bench.calls.log.count("before ask about places") == 2  # once by the dry run, once by the migration


def test_a_snapshot_without_such_a_row_names_the_shard() -> None:
    """What a format's key looks like is known here for all of today's formats; an unknown one is named by its shard."""
    bench = Bench()
    chosen, snapshot = detect.take_snapshot(bench.sources, bench.case.table)
    stream = bench.stream.describe()
    empty = Snapshot(snapshot.table, snapshot.keys, {})
    (problem,) = Compared(chosen.parse(snapshot, stream), empty, stream, bench.stream.list_shards()).disowned({(bench.one, "5"): "no"})
    assert (problem.table, problem.row) == ("orders-kcl", bench.one)
    assert str(problem.why).startswith("position 5: no: ")

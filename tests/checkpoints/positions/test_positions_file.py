"""Positions as a file: printed, edited, and moved to; refused by the name of the field (docs/interfaces.md, "Reset")."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from resetting.bench import FIVE, FOUR, HOUR, NOW, ONE, START, TABLE, THREE, TWO, ZERO, Bench

from sluice_checkpoints.cli import reset
from sluice_checkpoints.cli.main import main
from sluice_checkpoints.cli.table_document import document
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.positions.resetter import Resetter
from sluice_checkpoints.positions.target import FILE, PositionsFile, ResetRequest, ResetTarget

Document = dict[str, Any]


def printed(bench: Bench, **shards: Any) -> Document:
    """What `show --json` prints, with some shards edited; their short names are the last digits of their ids."""
    found: Document = copy.deepcopy(json.loads(json.dumps(document(bench.table))))
    for name, position in shards.items():
        shard = f"shardId-{int(name.removeprefix('s')):012d}"
        kept = {key: value for key, value in found["shards"].get(shard, {}).items() if key in {"lineage", "range"}}
        found["shards"][shard] = position | kept
    return found


def resetter(bench: Bench, found: Document, **more: Any) -> Resetter:
    return Resetter(ResetRequest("file", ResetTarget(FILE), file=PositionsFile.parse(json.dumps(found)), **more), bench.ports())


def at(hours: float) -> Document:
    return {"at": "TIMESTAMP", "millis": START + round(hours * HOUR)}


# -- what is moved ---------------------------------------------------------------------------------------------------------------------


def test_a_file_that_was_not_edited_moves_nothing(bench: Bench) -> None:
    before = bench.positions()
    result = resetter(bench, printed(bench)).run()
    assert result.document["counts"] == {"back": 0, "forward": 0, "unchanged": 0}
    assert bench.positions() == before


def test_what_was_edited_is_moved_and_the_rest_stays(bench: Bench) -> None:
    """To a record, a time, the oldest record; the age of a record is not known, so a reader looks whether it is still there."""
    before = bench.positions()
    sequence = bench.put[TWO][0]
    result = resetter(bench, printed(bench, s2={"at": "AFTER", "sequence": sequence}, s4=at(10))).run()
    assert result.document["to"] == "file"
    assert bench.positions() == before | {TWO: Position.after(sequence), FOUR: Position.timestamp(START + 10 * HOUR)}
    assert (bench.of(TWO).read_to, bench.of(FOUR).read_to) == (0, START + 10 * HOUR)


def test_a_shard_without_a_row_may_be_named(bench: Bench) -> None:
    bench.stream.split(FOUR)
    resetter(bench, printed(bench, s4={"at": "END"}, s5=at(11))).run()
    assert bench.positions()[FOUR] == END
    assert [child.id for child in bench.of(FOUR).children or ()] == [FIVE, "shardId-000000000006"]
    assert bench.positions()[FIVE] == Position.timestamp(START + 11 * HOUR)


def test_a_time_in_a_shard_that_was_over_is_its_end(bench: Bench) -> None:
    """As with --to: nothing says that it was open then."""
    resetter(bench, printed(bench, s3=at(9), s4=at(9))).run()
    assert bench.of(THREE).end == END
    assert bench.positions()[FOUR] == Position.timestamp(START + 9 * HOUR)


@pytest.mark.parametrize(("sub", "move"), [(1, "back"), (2, "unchanged"), (3, "forward"), (None, "forward")])
def test_a_move_inside_an_aggregate_has_its_direction(bench: Bench, sub: int | None, move: str) -> None:
    """Without an index it is behind all of the aggregate."""
    bench.row(replace(bench.of(TWO), end=Position.after(bench.put[TWO][-1], 2)))
    to = Position.after(bench.put[TWO][-1], sub).to_map()
    made = resetter(bench, printed(bench, s2=to)).dry_run()
    assert made.document["counts"] == {"back": 0, "forward": 0, "unchanged": 0} | ({move: 1} if move != "unchanged" else {})
    assert made.document["recordsPassedOver"] == (None if move == "forward" else 0)


def test_an_open_batch_is_given_up_by_a_file_that_was_not_edited(bench: Bench) -> None:
    """Each shard stays where the file has it: in front of the batch, whose records come again. One that the file leaves out would not."""
    bench.row(replace(bench.of(TWO), start=bench.after(TWO, -2), batch=8, records=1))
    found, before = printed(bench), bench.positions()
    with pytest.raises(Refused, match=r"holds records of .*, which the file leaves behind it; give them a position in front of it"):
        resetter(bench, found | {"shards": {}}, give_up=8).run()
    assert resetter(bench, found, give_up=8).run().document["counts"]["back"] == 1
    assert bench.positions() == before


# -- what is refused -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"committed": 8}, {"last_reset": "other"}, {"consumer_id": "d"}])
def test_a_file_from_before_something_moved_is_refused(bench: Bench, change: Document) -> None:
    found = printed(bench, s2={"at": "TRIM_HORIZON"}) | {"lastReset": "one"}
    bench.consumer(replace(bench.seen, last_reset="one"))
    bench.consumer(replace(bench.seen, **change))
    with pytest.raises(Refused, match=r"(committed|lastReset): positions have moved|consumerId"):
        resetter(bench, found).run()
    assert bench.seen.generation == 3


@pytest.mark.parametrize("last", [{"lastReset": None}, {}], ids=["null", "left out"])
def test_a_file_from_before_the_first_reset_is_refused(bench: Bench, last: Document) -> None:
    """No batch was committed since, and the file knows of no reset: what that one moved back would be passed over again."""
    found = {name: value for name, value in printed(bench).items() if name != "lastReset"} | last
    bench.resetter("trimHorizon", "one").run()
    with pytest.raises(Refused, match="positions have moved since the file was printed"):
        resetter(bench, found).run()


def test_the_number_of_a_record_of_another_shard_is_refused(bench: Bench) -> None:
    """Kinesis would not accept it, and every batch would fail."""
    with pytest.raises(Refused, match=rf"shards\.{TWO}\.sequence: Kinesis does not accept"):
        resetter(bench, printed(bench, s2={"at": "AFTER", "sequence": bench.put[FOUR][0]})).run()
    assert bench.seen.reset is None


@pytest.mark.parametrize(
    ("shards", "why"),
    [
        ({"s1": {"at": "TRIM_HORIZON"}}, rf"shards\.{FOUR}: it would continue before {ONE}"),
        ({"s3": {"at": "TRIM_HORIZON"}, "s4": at(11)}, rf"shards\.{FOUR}: it would continue before {THREE}"),
        ({"s3": at(6), "s4": at(11)}, rf"shards\.{FOUR}: it would continue before {THREE}"),
        ({"s0": {"at": "TRIM_HORIZON"}, "s2": {"at": "TRIM_HORIZON"}}, rf"shards\.{THREE}: it would continue before {ZERO}"),
        ({"s77": {"at": "TRIM_HORIZON"}}, "neither the table nor the stream has shardId-000000000077"),
        ({"s2": {"at": "END"}}, rf"shards\.{TWO}\.at: the shard is open"),
        ({"s2": at(13)}, rf"shards\.{TWO}\.millis: .* lies in the future"),
    ],
)
def test_positions_that_cannot_be_are_refused(bench: Bench, shards: Document, why: str) -> None:
    with pytest.raises(Refused, match=why):
        resetter(bench, printed(bench, **shards)).run()
    assert bench.seen.generation == 3


def test_a_time_before_the_stream_was_created_is_its_oldest_record(bench: Bench) -> None:
    """As with --to: nobody was asked which closed shards hold a record since, and all do."""
    assert bench.stream.describe().created_millis == START
    resetter(bench, printed(bench, s0=at(-1), s1=at(-1), s2={"at": "TRIM_HORIZON"}, s3={"at": "TRIM_HORIZON"}, s4={"at": "TRIM_HORIZON"})).run()
    assert set(bench.positions().values()) == {TRIM_HORIZON}


def test_a_time_past_retention_and_a_shard_that_is_gone_are_refused(bench: Bench) -> None:
    bench.stream.retention_millis = NOW // 2
    found = printed(bench, s2=at(1))
    with pytest.raises(Refused, match=rf"shards\.{TWO}\.millis: .*--accept-expired"):
        resetter(bench, found).run()
    resetter(bench, found, accept_expired=True).run()
    assert bench.positions()[TWO] == TRIM_HORIZON
    bench.stream.expire_shard(ZERO)
    with pytest.raises(Refused, match=f"{ZERO} has left the stream"):
        Resetter(replace(resetter(bench, printed(bench, s0=at(11)))._request, id="two"), bench.ports()).run()


@pytest.mark.parametrize(
    ("position", "field"),
    [
        ({"at": "TIMESTAMP", "millis": 1_700_000_000_000.5}, "millis"),
        ({"at": "TIMESTAMP", "millis": True}, "millis"),
        ({"at": "AFTER", "sequence": "49", "sub": 10**40}, "sub"),
        ({"at": "TIMESTAMP", "millis": 10**15}, "millis"),
        ({"at": "TIMESTAMP", "millis": 10**30}, "millis"),
        ({"at": "TIMESTAMP", "milliseconds": 5}, "milliseconds"),
        ({"at": "TIMESTAMP"}, "millis"),
        ({"at": "AFTER", "sequence": 5}, "sequence"),
        ({"at": "AFTER", "sequence": "x"}, "sequence"),
        ({"at": "AFTER", "sequence": "5", "sub": -1}, "sub"),
        ({"at": "TRIM_HORIZON", "millis": 5}, "millis"),
        ({"at": "LATEST"}, "at"),
        ({"position": "END"}, "at"),
    ],
)
def test_a_bad_field_is_refused_by_its_name(bench: Bench, position: Document, field: str) -> None:
    with pytest.raises(Refused, match=rf"shards\.{TWO}\.{field}:"):
        PositionsFile.parse(json.dumps(printed(bench, s2=position)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no JSON"),
        ("[]", "must be the document"),
        ("[" * 20_000, "is no JSON"),
        ('{"consumerId": "c", "committed": 7, "shards": {"s": {"at": "END"}, "s": {"at": "TRIM_HORIZON"}}}', "s: .* twice"),
        ('{"consumerId": "c", "committed": 7, "shards": {"s": {"at": "END", "at": "TRIM_HORIZON"}}}', "at: .* twice"),
        ('{"consumerId": "c", "committed": 7, "shard": {}}', "shards: None"),
        ('{"consumerId": "c", "committed": "7", "shards": {}}', "committed: '7' must be a whole number"),
        ('{"consumerId": 1, "committed": 7, "shards": {}}', "consumerId: 1 must be a text"),
        ('{"consumerId": "c", "committed": 7, "shards": {"s": []}}', "shards.s: "),
        ('{"consumerId": "c", "committed": 7, "shards": {}, "consistent": false}', "consistent: "),
        ('{"consumerId": "c", "committed": 7, "shards": {}, "lastReset": 5}', "lastReset: "),
    ],
)
def test_what_is_no_positions_file_is_refused(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        PositionsFile.parse(text)


# -- the command -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def call(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setattr(reset, "_ports", lambda *_: bench.ports())
    return lambda *arguments: CliRunner().invoke(main, ["reset", "--table", TABLE, "--stream", "orders", "--region", "us-east-1", *arguments])


def test_the_command_moves_to_the_positions_of_a_file(call: Callable[..., Result], bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "positions.json"
    file.write_text(json.dumps(printed(bench, s2={"at": "TRIM_HORIZON"})))
    done = call("--from-file", str(file), "--yes", "--json")
    assert (done.exit_code, json.loads(done.stdout)["to"]) == (0, "file")
    assert bench.positions()[TWO] == TRIM_HORIZON


def test_a_file_that_cannot_be_read_ends_with_65(call: Callable[..., Result], tmp_path: Path) -> None:
    gone = call("--from-file", str(tmp_path / "absent"), "--yes")
    assert gone.exit_code == 65
    assert "--from-file" in gone.output

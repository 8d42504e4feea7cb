from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.export.plan import KEPT, UNCHANGED, WRITTEN, ExportPlan, PlannedShard, SluiceSide, TargetSide, as_document, plan
from sluice_checkpoints.formats.detect import WRITERS
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.stream.model import Shard, ShardList, StreamIdentity

ID, GONE = "shardId-000000000003", "shardId-000000000001"
STREAM = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:000000000000:stream/orders", 1_000, 86_400_000, "ACTIVE")
OPEN = Shard(ID, (), 5, 9, "100")
CLOSED = replace(OPEN, ending_sequence="900")
# Emulators give a closed shard an end below its beginning.
STRANGE = replace(OPEN, ending_sequence="9")
FORMATS = list(WRITERS)
NO_WORD = [name for name in FORMATS if WRITERS[name].unstarted]


def after(sequence: int, sub: int | None = None) -> Position:
    return Position.after(str(sequence), sub)


def row(start: Position, end: Position, batch: int = 7) -> ShardRow:
    return ShardRow(ID, start, end, batch=batch)


def made(name: str, *rows: ShardRow, shard: Shard = OPEN, old: Any = None) -> ExportPlan:
    """The plan, when batch 7 is the last that was committed and `old` is the one row of the other table."""
    writer = WRITERS[name]
    snapshot = Snapshot("t", {"t": writer.keys}, {"t": (old,) if old else ()})
    shards = {r.id: r for r in writer.reader.parse(snapshot, STREAM).shards} if old else {}
    ours = SluiceSide({r.id: r for r in rows}, 7)
    return plan(ours, TargetSide(writer, snapshot, shards), STREAM, ShardList((shard,), 1_700_000_000_000))


def one(name: str, *rows: ShardRow, shard: Shard = OPEN, old: Any = None) -> PlannedShard:
    (entry,) = made(name, *rows, shard=shard, old=old).entries
    return entry


def stored(name: str, position: Position | None, shard: Shard = CLOSED) -> Any:
    start = position or TRIM_HORIZON
    change = one(name, row(start, start), shard=shard).change
    return change.after if change else None


@pytest.mark.parametrize("name", FORMATS)
def test_a_shard_is_exported_where_it_stands(name: str) -> None:
    entry = one(name, row(after(150), after(200)))
    assert (entry.expressible.position, entry.outcome, entry.was) == (after(200), WRITTEN, None)
    assert made(name, row(after(150), after(200))).warnings == ()


@pytest.mark.parametrize("name", FORMATS)
def test_an_open_batch_is_exported_from_its_start_and_comes_again(name: str) -> None:
    found = made(name, row(after(150), after(200), batch=8))
    assert found.entries[0].expressible.position == after(150)
    assert found.entries[0].expressible.again
    assert found.warnings == (f"{ID}: batch 8 is open: its records come again",)


def test_an_open_batch_that_is_empty_says_nothing() -> None:
    found = made("kcl", row(after(150), after(150), batch=8))
    assert (found.entries[0].expressible.again, found.warnings) == (False, ())


@pytest.mark.parametrize("name", FORMATS)
def test_a_time_is_the_beginning_with_a_warning(name: str) -> None:
    """No format stores one; records before it come too, none is left out."""
    time = Position.timestamp(1_700_000_000_000)
    found = made(name, row(time, time))
    assert found.entries[0].expressible.position == (None if name in NO_WORD else TRIM_HORIZON)
    assert "reads earlier records as well" in found.warnings[0]


@pytest.mark.parametrize("name", NO_WORD)
@pytest.mark.parametrize("rows", [(row(TRIM_HORIZON, TRIM_HORIZON),), ()])
def test_a_shard_that_was_not_started_says_what_has_to_be_set(name: str, rows: tuple[ShardRow, ...]) -> None:
    """Also one that the consumer has not met yet: the configured start applies to both."""
    found = made(name, *rows)
    assert found.entries[0].expressible.position is None
    (warning,) = found.warnings
    assert "TRIM_HORIZON" in warning
    assert warning.startswith(ID)


def test_kcl_can_say_that_a_shard_was_not_started() -> None:
    assert made("kcl").warnings == ()
    assert one("kcl").expressible.position == TRIM_HORIZON


@pytest.mark.parametrize("name", NO_WORD)
def test_a_place_inside_an_aggregate_is_refused_where_it_cannot_be_said(name: str) -> None:
    """The row is named, and what to do; saying less would lose records, saying more is not ours to decide."""
    with pytest.raises(Refused, match=rf"{ID}.*inside an aggregate.*let the consumer finish"):
        made(name, row(after(150, 2), after(150, 2)))


def test_kcl_can_say_a_place_inside_an_aggregate() -> None:
    for sub in (0, 2):
        assert one("kcl", row(after(150, sub), after(150, sub))).expressible.position == after(150, sub)


# -- ends --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in FORMATS if WRITERS[name].supports_shard_end])
def test_a_finished_shard_is_finished(name: str) -> None:
    """Beside the end goes its number, where a consumer would read on from another one."""
    found = one(name, row(after(150), END), shard=CLOSED).expressible
    assert (found.position, found.last) == (END, "900" if name == "kinsumer" else None)


def test_nifi_gets_the_last_sequence_number_of_a_finished_shard() -> None:
    found = made("nifi", row(after(150), END), shard=CLOSED)
    assert found.entries[0].expressible.position == after(900)
    assert found.warnings == ()


@pytest.mark.parametrize("shard", [STRANGE, OPEN])
def test_nifi_gets_the_last_known_place_if_a_finished_shard_has_no_real_end(shard: Shard) -> None:
    found = made("nifi", row(after(150), END), shard=shard)
    assert found.entries[0].expressible.position == after(150)
    assert "records after 150 come again" in found.warnings[0]


@pytest.mark.parametrize("start", [END, TRIM_HORIZON, after(150, 2)])
def test_nifi_gets_no_place_of_a_finished_shard_of_which_none_is_known(start: Position) -> None:
    """All of it comes again, and the warning says so and what has to be set; a place inside an aggregate cannot be said either."""
    found = made("nifi", row(start, END), shard=STRANGE)
    assert found.entries[0].expressible.position is None
    assert "all its records come again" in found.warnings[0]
    assert "TRIM_HORIZON" in found.warnings[0]


def test_shards_that_the_stream_no_longer_knows_are_left_out() -> None:
    finished, unfinished = ShardRow(GONE, after(1), END, batch=1), ShardRow(GONE, after(1), after(2), batch=1)
    here = row(after(150), after(200))
    assert made("kcl", here, finished).warnings == ()
    assert [entry.shard for entry in made("kcl", here, unfinished).entries] == [ID]
    assert made("kcl", here, unfinished).warnings == (f"{GONE}: is no longer in the stream, so it is left out; what came after AFTER 2 is lost",)


# -- never lower -------------------------------------------------------------------------------------------------------------------

FURTHER = [(after(150), after(200)), (TRIM_HORIZON, after(150)), (Position.timestamp(5), after(150))]
ENDED = [(name, after(150), END) for name in FORMATS if WRITERS[name].supports_shard_end]


@pytest.mark.parametrize(("name", "ours", "theirs"), [*((name, *pair) for name in FORMATS for pair in FURTHER), *ENDED])
def test_a_row_that_stands_further_is_kept(name: str, ours: Position, theirs: Position) -> None:
    old = stored(name, theirs)
    found = made(name, row(ours, ours), shard=CLOSED, old=old)
    assert (found.entries[0].outcome, found.entries[0].change, found.changes) == (KEPT, None, ())
    (warning,) = found.warnings
    assert str(ours) in warning
    assert str(found.entries[0].was) in warning


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("theirs", "ours"), [(after(150), after(200)), (None, after(150)), (None, TRIM_HORIZON)])
def test_a_row_that_stands_behind_is_moved(name: str, theirs: Position | None, ours: Position) -> None:
    old = stored(name, theirs)
    entry = one(name, row(ours, ours), shard=CLOSED, old=old)
    assert entry.outcome == (UNCHANGED if ours == TRIM_HORIZON else WRITTEN)


@pytest.mark.parametrize(("ours", "theirs", "outcome"), [(99, 150, KEPT), (1000, 150, WRITTEN)])
def test_places_are_compared_as_numbers(ours: int, theirs: int, outcome: str) -> None:
    """As texts 99 would be further than 150, and 1000 behind it."""
    shard = replace(OPEN, starting_sequence="1")
    assert one("nifi", row(after(ours), after(ours)), shard=shard, old=stored("nifi", after(theirs), shard)).outcome == outcome


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    [
        (after(150), after(150, 3), WRITTEN),
        (after(150, 3), after(150), KEPT),
        (after(150, 3), after(150, 2), WRITTEN),
        (after(150, 2), after(150, 3), KEPT),
    ],
)
def test_inside_a_record_is_before_its_end(ours: Position, theirs: Position, outcome: str) -> None:
    assert one("kcl", row(ours, ours), old=stored("kcl", theirs, OPEN)).outcome == outcome


@pytest.mark.parametrize("word", ["LATEST", "AT_TIMESTAMP"])
def test_words_that_hold_no_place_are_replaced_by_the_beginning(word: str) -> None:
    """Left as they are they would leave out what arrived since."""
    old = stored("kcl", after(150), OPEN) | {"checkpoint": {"S": word}, "checkpointSubSequenceNumber": {"N": "0"}}
    change = one("kcl", old=old).change
    assert change is not None
    assert change.after["checkpoint"] == {"S": "TRIM_HORIZON"}


def test_a_place_inside_an_aggregate_needs_no_word_where_the_other_table_is_further() -> None:
    """NiFi has done all of the record: its row is kept, and nothing is refused."""
    assert one("nifi", row(after(150, 2), after(150, 2)), old=stored("nifi", after(150), OPEN)).outcome == KEPT


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_of_another_stream_is_refused(name: str) -> None:
    """A number that its shard cannot hold would be kept as further; one that says finished of an open shard too."""
    with pytest.raises(Refused, match="outside"):
        made(name, row(after(150), after(150)), shard=CLOSED, old=stored(name, after(5000), OPEN))
    if WRITERS[name].supports_shard_end:
        with pytest.raises(Refused, match="is open"):
            made(name, row(after(150), after(150)), old=stored(name, END))


# -- what is told ------------------------------------------------------------------------------------------------------------------


def test_the_counts_say_what_is_done() -> None:
    open_batch = row(after(150), after(200), batch=8)
    assert made("kcl", open_batch).counts == {"written": 1, "unchanged": 0, "kept": 0, "readAgain": 1}
    assert made("kcl", open_batch, old=stored("kcl", after(180), OPEN)).counts == {"written": 0, "unchanged": 0, "kept": 1, "readAgain": 0}
    assert made("kcl", open_batch, old=stored("kcl", after(150), OPEN)).counts == {"written": 0, "unchanged": 1, "kept": 0, "readAgain": 1}


def test_a_line_of_the_document_names_both_sides() -> None:
    document = as_document(one("nifi", row(after(150), END), shard=CLOSED, old=stored("nifi", after(120), CLOSED)))
    assert document == {
        "shard": ID,
        "stands": {"at": "END"},
        "said": "AFTER 900",
        "was": "120",
        "outcome": "written",
        "why": "finished: its last sequence number",
        "readAgain": False,
    }
    assert as_document(one("nifi"))["said"] == "not started"

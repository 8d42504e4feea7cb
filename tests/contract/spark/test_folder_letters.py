"""Pending and final letters of a folder, over Hadoop's file systems (docs/dead-letters.md, "What is in a dead letter")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import page_blocks
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.folder import DiskFolder, letters, pending_letters
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.letters.pending import REJECTED, PendingName
from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer import pipelines
from sluice_consumer.batches.batch_letters import BatchLetters, Letters
from sluice_consumer.letters.stores import FolderLetters
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.redrive import redrive
from sluice_consumer.sinks import json_rows
from sluice_consumer.spark.engine import without

pytestmark = pytest.mark.spark
LETTER = DeadLetter("c", "s", "shardId-1", "9", 0, 0, "k", b"one", 7, 1, "no: é")
OTHER = replace(LETTER, sequence="10", data=b"two")
NAME = PendingName(7, 1, 1, REJECTED)


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> FolderLetters:
    return FolderLetters(spark, f"{tmp_path.as_uri()}/letters/", "c")


def test_letters_are_pending_and_then_final_and_programs_that_read_letters_see_only_these(folder: FolderLetters, tmp_path: Path) -> None:
    assert folder.held() == {}
    entry, reader = folder.hold(NAME, (LETTER, OTHER)), DiskFolder(tmp_path / "letters")
    assert folder.hold(NAME, (LETTER, OTHER)) == entry
    assert folder.held() == {entry: (NAME, (LETTER, OTHER))}
    assert (dict(letters(reader)), pending_letters(reader)) == ({}, {LETTER.path: LETTER, OTHER.path: OTHER})
    assert folder.publish(entry)
    assert folder.publish(entry)
    assert folder.drop([entry]) == {entry}
    assert (list(letters(reader)), pending_letters(reader)) == ([(LETTER.path, LETTER), (OTHER.path, OTHER)], {})


def test_letters_of_other_consumers_and_places_are_left_alone(folder: FolderLetters, spark: SparkSession, tmp_path: Path) -> None:
    other = FolderLetters(spark, f"{tmp_path.as_uri()}/others", "c").hold(NAME, (LETTER,))
    FolderLetters(spark, f"{tmp_path.as_uri()}/letters", "d").hold(NAME, (replace(LETTER, consumer="d"),))
    assert (folder.held(), folder.publish(other), folder.publish(f"letters/{NAME}")) == ({}, False, False)


def test_a_folder_stays_named_for_what_a_shortened_batch_lets_go(spark: SparkSession, tmp_path: Path) -> None:
    """It is held under the next number before the batch is committed, and so are others of this one afterwards, in this epoch or its heir's."""
    named: list[int] = []

    def letters_of(generation: int) -> BatchLetters:
        folder = FolderLetters(spark, f"{tmp_path.as_uri()}/letters", "c", lambda _folder, batch: named.append(batch))
        return BatchLetters(folder, generation)

    dead = letters_of(1)
    dead.reject([replace(LETTER, sequence="3"), replace(LETTER, sequence="8")])
    dead.final(7, [ShardRow("shardId-1", TRIM_HORIZON, Position.after("5"), batch=7, records=5)])
    letters_of(2).reject([replace(LETTER, sequence="4")])
    assert named == [7, 8, 8, 8]


def test_a_folder_that_takes_no_letter_may_be_left_for_another(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits there, and nothing ever can: such as in a bucket in which the account may read and not write."""
    named: list[int] = []
    folder = FolderLetters(spark, f"{tmp_path.as_uri()}/letters", "c", lambda _folder, batch: named.append(batch))
    folder.hold(PendingName(6, 1, 1, REJECTED), (LETTER,))

    def refused(*_: object) -> bool:
        raise Refused("onError.deadLetter.path: s3:PutObject is denied")

    monkeypatch.setattr(folder._store, "create", refused)
    with pytest.raises(Refused, match="denied"):
        folder.hold(NAME, (LETTER,))
    assert named == [6, 7, 6]


def test_a_batch_comes_again_without_the_records_that_were_rejected(spark: SparkSession) -> None:
    others = [replace(LETTER, sub=1), replace(LETTER, shard="shardId-2"), OTHER]
    batch = redrive.frame(spark, [LETTER, *others])
    left = {(row.shardId, row.sequenceNumber, row.subSequenceNumber) for row in without(batch, frozenset({LETTER.place})).collect()}
    assert left == {letter.place for letter in others}
    assert without(batch, frozenset()).count() == 4


def test_a_process_rejects_nothing_into_the_letters_of_another_consumer(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two run in one process: nobody's commit would make the letters final."""
    monkeypatch.setattr(pipelines, "LETTERS", pipelines.DriverLetters({"another": BatchLetters(Nowhere(), 1)}))
    with pytest.raises(Refused, match=r"onError\.deadLetter is not set"):
        BatchInfo("c", 1, False, "s", ("shardId-1",)).reject(redrive.frame(spark, [LETTER]), "no")  # noqa: FBT003 - replay
    pipelines.LETTERS.raised("c")


LINES = [replace(LETTER, data=b'{"customer": "a"}\n{"customer": "b"}\nbad\nbad'), replace(OTHER, data=b'{"customer": "c"}')]


@pytest.fixture
def info(folder: FolderLetters, monkeypatch: pytest.MonkeyPatch) -> BatchInfo:
    monkeypatch.setattr(pipelines, "LETTERS", pipelines.DriverLetters({"c": BatchLetters(folder, 1)}))
    return BatchInfo("c", 7, False, "s", ("shardId-1",))  # noqa: FBT003 - replay


def test_a_record_of_several_rows_is_in_its_letter_or_in_the_sink(spark: SparkSession, folder: FolderLetters, info: BatchInfo) -> None:
    stored: list[str] = []
    names: dict[str, Any] = {"json_rows": json_rows, "write": lambda rows, _info: stored.extend(row.customer for row in rows.collect())}
    exec(page_blocks.beginning("docs/dead-letters.md", "PLACE = ["), names)  # noqa: S102 - the page's
    names["process"](redrive.frame(spark, LINES), info)
    ((_, letters_of_it),) = folder.held().values()
    assert (stored, [letter.data for letter in letters_of_it]) == (["c"], [LINES[0].data])
    names["process"](redrive.frame(spark, letters_of_it), info)
    assert stored == ["c"]


def test_rows_that_are_parts_of_records_are_not_rejected(spark: SparkSession, info: BatchInfo, folder: FolderLetters) -> None:
    """A redrive would store the other rows again."""
    lines = f.explode(f.split(f.col("data").cast("string"), "\n"))
    with pytest.raises(Refused, match="a dead letter is a whole record"):
        info.reject(redrive.frame(spark, LINES).withColumn("line", lines).where("line = 'bad'"), "bad")
    assert folder.held() == {}


def test_a_line_does_not_have_what_a_dead_letter_is_made_of(spark: SparkSession) -> None:
    """One bad line of a record, alone, would look like the record."""
    with pytest.raises(Refused, match="keep: data cannot be kept with lines=True"):
        json_rows(redrive.frame(spark, LINES), "customer STRING", keep=["shardId", "data"], lines=True)


class Nowhere:
    def hold(self, name: PendingName, letters: Letters) -> str:
        raise AssertionError(f"{name} {letters}")

    def held(self) -> dict[str, tuple[PendingName, Letters]]:
        return {}

    def publish(self, entry: str) -> bool:
        raise AssertionError(entry)

    def drop(self, entries: Iterable[str]) -> frozenset[str]:
        raise AssertionError(list(entries))


def test_pending_letters_that_somebody_deleted_stop_no_driver(folder: FolderLetters, caplog: pytest.LogCaptureFixture) -> None:
    entry = folder.hold(NAME, (LETTER,))
    folder.drop([entry])
    assert folder.publish(entry)
    assert f"{entry}: pending dead letters of a committed batch are gone" in caplog.text

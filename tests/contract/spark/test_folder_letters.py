"""Pending and final letters of a folder, over Hadoop's file systems (docs/dead-letters.md, "What is in a letter")."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sluice_checkpoints.letters.folder import DiskFolder, letters, pending_letters
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.letters.pending import REJECTED, PendingName
from sluice_consumer.process.dead_letters import FolderLetters

pytestmark = pytest.mark.spark
LETTER = DeadLetter("c", "s", "shardId-1", "9", 0, 0, "k", b"one", 7, 1, "no: é")
OTHER = replace(LETTER, sequence="10", data=b"two")
NAME = PendingName(7, 1, 1, REJECTED)


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> FolderLetters:
    """Of a driver that begins; nothing is there yet."""
    return FolderLetters(spark, f"{tmp_path.as_uri()}/letters/", "c")


def test_letters_are_pending_and_then_final_and_programs_that_read_letters_see_only_these(folder: FolderLetters, tmp_path: Path) -> None:
    """Each twice, as after a lost reply."""
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
    """A consumer reads its own; an entry of another folder is left to be published."""
    other = FolderLetters(spark, f"{tmp_path.as_uri()}/others", "c").hold(NAME, (LETTER,))
    FolderLetters(spark, f"{tmp_path.as_uri()}/letters", "d").hold(NAME, (replace(LETTER, consumer="d"),))
    assert (folder.held(), folder.publish(other), folder.publish(f"letters/{NAME}")) == ({}, False, False)


def test_pending_letters_that_somebody_deleted_stop_no_driver(folder: FolderLetters, caplog: pytest.LogCaptureFixture) -> None:
    """The log names the file."""
    entry = folder.hold(NAME, (LETTER,))
    folder.drop([entry])
    assert folder.publish(entry)
    assert f"{entry}: pending letters of a committed batch are gone" in caplog.text

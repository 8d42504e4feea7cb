"""`foreach` into a real PostgreSQL while a poison record is looked for: the whole program, emulated Kinesis and DynamoDB."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest_process import ConsumerProcess, Consuming

pytestmark = [pytest.mark.spark, pytest.mark.slow]
RECORDS = range(20)  # even ones are in one shard, odd ones in the other
LIVES = 6
LEASE = 8  # seconds: each try after the first one waits for it, and a busy machine delays heartbeats


def consumer(consuming: Consuming, folder: Path, database: str, poison: int, **args: Any) -> ConsumerProcess:
    told = {"database": database, "poison": poison, "folder": str(folder), **args}
    made = consuming(RECORDS, "postgres_pipelines:upserts", told, {}, lease=LEASE)
    made.written["onError"] = {"attempts": 3, "deadLetter": {"path": (folder / "letters").as_uri()}}
    return made


def check(folder: Path, database: str, left_out: set[int]) -> None:
    with psycopg.connect(database) as reader:
        stored: dict[str, int] = dict(reader.execute("SELECT id, changes FROM orders").fetchall())
    assert stored == {f"k{number}": 1 for number in RECORDS if number not in left_out}
    letters = [json.loads(path.read_text()) for path in (folder / "letters").glob("*/*/*.json")]
    assert sorted(json.loads(base64.b64decode(letter["data"]))["id"] for letter in letters) == sorted(left_out)


@pytest.mark.parametrize("poison", [4, pytest.param(15, marks=pytest.mark.lake)], ids=["in the first shard", "in the second"])
def test_records_beside_a_poison_record_are_stored_once(consuming: Consuming, tmp_path: Path, database: str, poison: int) -> None:
    """The other shard is stored long before the poison is found, and comes again under other numbers.

    The record is tried alone for a minute; in the second shard for five, as nothing of the first is left to pass beside it.
    """
    ended = consumer(consuming, tmp_path, database, poison).run(seconds=900.0)
    assert ended.code == 0, ended.said
    check(tmp_path, database, {poison})


@pytest.mark.lake
def test_records_beside_a_poison_record_are_stored_once_through_kills_and_rejects(consuming: Consuming, tmp_path: Path, database: str) -> None:
    made = consumer(consuming, tmp_path, database, 9, rejected=2, kills=True)
    codes = [made.run().code]
    while codes[-1] != 0 and len(codes) < LIVES:
        codes.append(made.run().code)
    assert codes[-1] == 0, codes
    assert -9 in codes
    check(tmp_path, database, {2, 9})

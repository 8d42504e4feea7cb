"""Batches that do not end (`batch.maxSeconds`): the whole program, real Spark, emulated AWS."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from poison_program import Put, last_words, letters, run, stored

pytestmark = [pytest.mark.spark, pytest.mark.slow]
LIMIT = 20
LEASE = 4  # seconds: a search waits for many of them
LONG = 45  # where the first tasks of a cold Spark come first: half a minute on a busy machine
STARTING = 60.0  # seconds that Spark and the first batch's begin may take on a busy machine


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words, state = (process / "environ").read_bytes(), (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state == "T" and str(tmp_path).encode() in words:
            os.kill(int(process.name), signal.SIGKILL)


@pytest.mark.parametrize(
    ("pipeline", "named"),
    [
        ("in_python", "in in_python"),
        ("in_jvm", "java.lang.Thread.sleep"),
        ("in_socket", "in in_socket"),
        ("in_stopped_worker", "waits for its Python worker"),
    ],
)
def test_a_batch_that_does_not_end_ends_its_driver_and_says_where_it_hangs(stream: Put, folder: Path, pipeline: str, named: str) -> None:
    ended = run(stream(80, {}), folder, f"hanging_pipelines:{pipeline}", batch={"maxSeconds": LIMIT})
    assert ended.returncode == 1, ended.stderr[-4000:]
    words = last_words(folder)
    assert words["reason"] == "BatchOverdue"
    assert "batch 1 of 8 shards has not ended after" in words["message"]
    assert "hanging_pipelines.py" in words["message"]
    assert named in words["message"]
    took = float(words["message"].partition("after ")[2].partition(" s")[0])
    assert LIMIT <= took <= LIMIT + 12  # it looks once a second
    assert ended.seconds < STARTING + LIMIT + 10


def test_a_job_that_hangs_beside_a_failure_is_cancelled_and_the_record_is_found(stream: Put, tmp_path: Path) -> None:
    ended = run(stream(2, {0: [0]}), tmp_path, "hanging_pipelines:beside_a_failure", lease=LEASE, attempts=1)
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert "it comes again when no task of it can be working" in ended.stderr
    assert "which reads a batch that failed" in ended.stderr
    (letter,) = letters(tmp_path)
    assert base64.b64decode(letter["data"]) == b"poison 0/0"
    assert sum(map(len, stored(tmp_path).values())) == 1


def test_a_process_that_exits_with_0_has_not_drained(stream: Put, tmp_path: Path) -> None:
    """Its batch is open: a backfill is not done, and the lease is not released."""
    ended = run(stream(2, {}), tmp_path, "hanging_pipelines:leaving")
    assert ended.returncode == 1, ended.stderr[-4000:]
    assert last_words(tmp_path)["reason"] == "DriverExited"
    assert "exit status 0 before its work was done" in last_words(tmp_path)["message"]


def test_a_batch_of_which_something_moves_is_warned_about_until_the_second_limit(stream: Put, tmp_path: Path) -> None:
    how = {"maxSeconds": LONG}
    ended = run(stream(80, {}), tmp_path, "hanging_pipelines:moving", batch=how, args={"jobs": LONG + 2})
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert ended.stderr.count("BatchSlow: batch 1 has taken") == 1
    assert sum(map(len, stored(tmp_path).values())) == 80


def test_a_record_on_which_process_hangs_is_found_by_one_driver_after_the_other(stream: Put, tmp_path: Path) -> None:
    there = stream(2, {0: [0]})
    for drivers in range(20):  # noqa: B007 - told below
        ended = run(there, tmp_path, "hanging_pipelines:on_poison", batch={"maxSeconds": LONG}, lease=LEASE, attempts=1)
        if ended.returncode == 0:
            break
        assert last_words(tmp_path)["reason"] == "BatchOverdue", ended.stderr[-4000:]
    (letter,) = letters(tmp_path)
    assert base64.b64decode(letter["data"]) == b"poison 0/0"
    assert "BatchOverdue" in letter["error"]
    assert "in on_poison" in letter["error"]
    assert sum(map(len, stored(tmp_path).values())) == 1
    assert drivers >= 3

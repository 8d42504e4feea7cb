"""Records that `process` cannot deal with: the whole program, real Spark, emulated AWS (docs/protocol.md, "Poison")."""

from __future__ import annotations

import base64
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from poison_pipelines import KILLS, QUOTES, SURROGATE
from poison_program import ATTEMPTS, SHARDS, Put, environment, letters, record, run, stored

from sluice_checkpoints.letters.letter import DeadLetter

pytestmark = [pytest.mark.spark, pytest.mark.slow]
MANY = int(os.environ.get("SLUICE_POISON_RECORDS", "20000"))


def test_poison_records_go_to_the_dead_letters_and_all_others_to_the_sink_once_and_in_order(stream: Put, tmp_path: Path) -> None:
    poison = {1: [0], 4: [100, 101], 6: [7, MANY // SHARDS - 1]}
    ended = run(stream(MANY, poison), tmp_path, "in_driver")
    assert ended.returncode == 0, ended.stderr[-4000:]
    expected = {s: [record(s + SHARDS * n, poison)["Data"].decode() for n in range(MANY // SHARDS)] for s in range(SHARDS)}
    good = [[data for data in datas if not data.startswith("poison")] for datas in expected.values()]
    assert sorted(stored(tmp_path).values()) == sorted(good)
    found = letters(tmp_path)
    assert sorted(base64.b64decode(letter["data"]).decode() for letter in found) == sorted(f"poison {s}/{n}" for s in poison for n in poison[s])
    assert all("ValueError: cannot deal with poison" in letter["error"] and letter["partitionKey"] == "k" for letter in found)
    runs = [json.loads(line)[1] for line in (tmp_path / "sink" / "runs").read_text().splitlines()]
    for letter in found:
        data = base64.b64decode(letter["data"]).decode()
        alone_or_first = sum(run[:1] == [data] or run == [data] for run in runs)
        assert alone_or_first <= ATTEMPTS + 2 * math.log2(1000 * SHARDS), f"{data}: {alone_or_first} runs"


def test_a_record_that_fails_in_a_task_is_found_too(stream: Put, tmp_path: Path) -> None:
    ended = run(stream(800, {3: [50]}), tmp_path, "in_tasks")
    assert ended.returncode == 0, ended.stderr[-4000:]
    (letter,) = letters(tmp_path)
    assert base64.b64decode(letter["data"]) == b"poison 3/50"
    assert "poison_pipelines.py" in letter["error"]
    assert "in _checked" in letter["error"]
    assert sum(map(len, stored(tmp_path).values())) == 799


def test_a_record_is_found_whatever_it_does_to_its_worker_and_whatever_it_says(stream: Put, tmp_path: Path) -> None:
    ended = run(stream(16, {int(KILLS): [1], int(SURROGATE): [0], int(QUOTES): [1]}), tmp_path, "in_workers", attempts=1)
    assert ended.returncode == 0, ended.stderr[-4000:]
    found = {base64.b64decode(letter["data"]).decode(): letter["error"] for letter in letters(tmp_path)}
    assert found.keys() == {f"poison {KILLS}/1", f"poison {SURROGATE}/0", f"poison {QUOTES}/1"}
    assert "Python worker exited unexpectedly" in found[f"poison {KILLS}/1"]
    assert "\\ud800" in found[f"poison {SURROGATE}/0"]
    assert "Connection refused" in found[f"poison {QUOTES}/1"]
    assert sum(map(len, stored(tmp_path).values())) == 13


def test_a_sink_that_is_down_for_some_calls_excludes_nothing(stream: Put, tmp_path: Path) -> None:
    there = stream(800, {})
    (tmp_path / "sink").mkdir()
    (tmp_path / "sink" / "down").write_text("9")
    ended = run(there, tmp_path, "while_down")
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert letters(tmp_path) == []
    assert sum(map(len, stored(tmp_path).values())) == 800


def test_rows_that_process_rejects_are_letters_once(stream: Put, tmp_path: Path) -> None:
    there = stream(800, {2: [5, 6], 7: [99]})
    ended = run(there, tmp_path, "rejecting", isolate=False)
    assert ended.returncode == 1, ended.stderr[-4000:]
    assert letters(tmp_path) == []
    ended = run(there, tmp_path, "rejecting", isolate=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    found = letters(tmp_path)
    assert sorted((base64.b64decode(letter["data"]).decode(), letter["error"]) for letter in found) == [
        ("poison 2/5", "looks poisonous"),
        ("poison 2/6", "looks poisonous"),
        ("poison 7/99", "looks poisonous"),
    ]
    assert sum(map(len, stored(tmp_path).values())) == 797


def redriven(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "sluice_consumer", "redrive", "--config", str(folder / "consumer.json"), "--json"]
    done = subprocess.run(command, env=environment(folder), stdout=subprocess.PIPE, text=True, timeout=560, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_rows_that_a_process_rejected_before_it_raised_are_stored_by_the_repaired_one_and_no_letters(stream: Put, tmp_path: Path) -> None:
    """A rollout of the fix while the batch is open: a redrive finds nothing."""
    there = stream(16, {0: [0], 3: [1]})
    ended = run(there, tmp_path, "rejecting_while_down", isolate=False)
    assert ended.returncode == 1, ended.stderr[-4000:]
    ended = run(there, tmp_path, "storing", isolate=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert letters(tmp_path) == []
    assert redriven(tmp_path)["redriven"] == 0
    assert sum(map(len, stored(tmp_path).values())) == 16


def test_rows_that_a_driver_rejected_before_it_died_stay_rejected_and_are_redriven_once(stream: Put, tmp_path: Path) -> None:
    """Its sink had the others: the repaired `process` cannot store them in this batch any more."""
    there = stream(16, {0: [0], 3: [1]})
    assert run(there, tmp_path, "rejecting_and_dying", isolate=False).returncode != 0
    assert letters(tmp_path) == []
    ended = run(there, tmp_path, "storing", isolate=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    assert sorted(base64.b64decode(letter["data"]).decode() for letter in letters(tmp_path)) == ["poison 0/0", "poison 3/1"]
    assert (redriven(tmp_path)["redriven"], redriven(tmp_path)["redriven"]) == (2, 0)
    found = [data for datas in stored(tmp_path).values() for data in datas]
    assert (len(found), len(set(found))) == (16, 16)


def test_more_poison_than_is_allowed_ends_the_driver(stream: Put, tmp_path: Path) -> None:
    ended = run(stream(800, {0: [3], 5: [9]}), tmp_path, "in_driver", maxExcludedPerHour=1)
    assert ended.returncode == 65, ended.stderr[-4000:]
    assert "TooMuchPoison: onError.maxExcludedPerHour: 1" in ended.stderr
    assert len(letters(tmp_path)) == 1


@pytest.fixture
def queue(moto_endpoint: str) -> tuple[Any, str]:
    client = boto3.client("sqs", endpoint_url=moto_endpoint, region_name="us-east-1")
    return client, client.create_queue(QueueName=f"poison-{uuid4()}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]


def test_a_poison_record_goes_to_a_queue(stream: Put, tmp_path: Path, queue: tuple[Any, str]) -> None:
    client, url = queue
    there = stream(16, {0: [0]})
    ended = run(there, tmp_path, "in_driver", attempts=1, deadLetter={"sqs": url})
    assert ended.returncode == 0, ended.stderr[-4000:]
    (message,) = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    letter = DeadLetter.from_json(message["Body"], "message")
    assert (letter.data, letter.partition_key, letter.stream) == (b"poison 0/0", "k", there.name)
    assert sum(map(len, stored(tmp_path).values())) == 15


def test_a_queue_that_is_not_there_is_refused_before_a_record_is_read(stream: Put, tmp_path: Path, queue: tuple[Any, str]) -> None:
    ended = run(stream(80, {}), tmp_path, "in_driver", deadLetter={"sqs": queue[1].replace("poison-", "none-")})
    assert ended.returncode == 65, ended.stderr[-4000:]
    assert "Refused: onError.deadLetter.sqs: " in ended.stderr
    assert stored(tmp_path) == {}

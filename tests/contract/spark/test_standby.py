"""A second driver stands by while the first one works, and continues at once when it ends. Real programs, real Spark."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import boto3
import pytest
from conftest_spark import stream_document

from sluice_consumer.config import StreamConfig
from sluice_lab.machine import processes

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
LEASE, INTERVAL, SECONDS = 15.0, 0.2, 180.0
READY = "standing by: Spark and the pipeline are ready"
PIPELINE = """
import os, time
from sluice_consumer.pipelines import standby_safe

def process(batch, info):
    rows = sorted(int(row.data) for row in batch.select("data").collect())
    with open("seen", "a") as seen:
        print(time.monotonic(), os.getpid(), info.batch, *rows, file=seen)

@standby_safe
def prepare(spark, args):
    with open("prepared", "a") as prepared:
        print(os.getpid(), file=prepared)

process.prepare = prepare
"""


@dataclass
class Program:
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def said(self, words: str) -> bool:
        return any(words in line for line in self.lines)


@dataclass
class Setting:
    folder: Path
    stream: StreamConfig
    put: int = 0

    @contextlib.contextmanager
    def driver(self, *more: str) -> Iterator[Program]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "consumer"), str(self.folder)])}
        command = [sys.executable, "-m", "sluice_consumer", "--config", "consumer.json", "--master", "local[2]", *more]
        with subprocess.Popen(command, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
            program = Program(process)
            assert process.stderr is not None
            reader = threading.Thread(target=program.lines.extend, args=(process.stderr,))
            reader.start()
            try:
                yield program
            finally:
                process.kill()
                reader.join()

    @property
    def batches(self) -> list[tuple[float, int, int, list[int]]]:
        """Time, process, number and records of each call of `process`."""
        path = self.folder / "seen"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(float(at), int(pid), int(number), [int(row) for row in rows]) for at, pid, number, *rows in lines]

    @property
    def rows(self) -> list[int]:
        """The records, once for each batch: one that comes again has the same."""
        return [row for rows in {number: rows for _, _, number, rows in self.batches}.values() for row in rows]

    @property
    def pids(self) -> list[int]:
        return list(dict.fromkeys(pid for _, pid, *_ in self.batches))

    def feed(self) -> None:
        client = boto3.client("kinesis", endpoint_url=self.stream.kinesis_endpoint, region_name=self.stream.region)
        client.put_record(StreamName=self.stream.name, Data=str(self.put).encode(), PartitionKey="k")
        self.put += 1

    def until(self, what: str, condition: Callable[[], object], *programs: Program) -> None:
        def there() -> bool:
            self.feed()
            assert programs[-1].process.poll() is None, f"{what}: {programs[-1].lines}"
            return bool(condition())

        assert processes.poll(there, SECONDS), f"{what}: {[''.join(program.lines) for program in programs]}"

    def gap(self) -> float:
        """The time between the last batch of the last driver but one, and the first of the last one."""
        return next(after - before for (before, one, *_), (after, other, *_) in pairwise(self.batches) if one != other and other == self.pids[-1])


@pytest.fixture
def setting(aws: StreamConfig, tmp_path: Path) -> Setting:
    stream = StreamConfig(f"standby-{uuid4()}", aws.region, aws.kinesis_endpoint, aws.dynamodb_endpoint)
    client = boto3.client("kinesis", endpoint_url=aws.kinesis_endpoint, region_name=aws.region)
    client.create_stream(StreamName=stream.name, ShardCount=1)
    client.get_waiter("stream_exists").wait(StreamName=stream.name, WaiterConfig={"Delay": 1})
    (tmp_path / "numbers_seen.py").write_text(PIPELINE)
    document = {
        "stream": stream_document(stream),
        "checkpoints": {"table": stream.name},
        "pipeline": {"entrypoint": "numbers_seen:process"},
        "batch": {"intervalSeconds": INTERVAL},
        "leaseDurationSeconds": LEASE,
        "sparkConf": {"spark.log.level": "OFF", "spark.ui.enabled": "false"},
    }
    (tmp_path / "consumer.json").write_text(json.dumps(document))
    return Setting(tmp_path, stream)


def test_a_driver_that_stands_by_continues_when_the_first_one_drains(setting: Setting) -> None:
    """It has Spark and the code by then, and takes the released lease. What becomes of a lease that runs out, the simulation shows."""
    with setting.driver() as first, contextlib.ExitStack() as later:
        setting.until("the first driver works", lambda: setting.batches, first)
        second = later.enter_context(setting.driver("--standby"))
        setting.until("the standby is ready", lambda: second.said(READY), first, second)
        assert second.said("holds the lease and is alive")
        assert len(setting.pids) == 1
        first.process.send_signal(signal.SIGTERM)
        setting.until("the standby works", lambda: len(setting.pids) == 2, second)
        assert first.process.wait(SECONDS) == 0
        fed = setting.put
        setting.until("all is there", lambda: set(range(fed)) <= set(setting.rows), second)
        second.process.send_signal(signal.SIGTERM)
        assert second.process.wait(SECONDS) == 0
    print(f"gap: {setting.gap():.1f} s")  # noqa: T201 - for people; it says little on a machine that is busy
    assert len(setting.rows) == len(set(setting.rows))
    assert second.said("the lease is taken (released)")
    prepared = (setting.folder / "prepared").read_text().split()
    assert [prepared.count(str(pid)) for pid in setting.pids] == [1, 2]

"""A streaming query whose every process is killed, at each moment of a batch. Real Spark, file systems and services.

A death costs a start of Spark. `make test-deep` has all moments; else those after which Spark's log, the sink and the table disagree most.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest_spark import SLOW_RECORDS as RECORDS
from conftest_spark import SLOW_SHARDS as SHARDS
from conftest_spark import stream_document
from pyspark.sql import SparkSession
from streaming_app import ORDER

from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.process import wiring
from sluice_consumer.spark import spark_home

pytestmark = [pytest.mark.spark, pytest.mark.slow]
DEEP = os.environ.get("SLUICE_SIM") == "deep"
FILES = ("latest", "bound", "sink", "committing", "committed") if DEEP else ("bound", "committing")
COUNTS = ("bound", "wrote", "committing") if DEEP else ("wrote",)


@dataclass
class Story:
    directory: Path
    config: dict[str, Any]
    sink: str
    moments: tuple[str, ...]

    def tell(self) -> Story:
        """Runs it, epoch by epoch. An epoch may also end because this machine was too slow for its lease: then the next tries again."""
        for moment in (*self.moments, None):
            for _ in range(4):
                code, said = self.live(moment)
                if code == 0 or (moment and (self.directory / f"died-{moment}").exists()):
                    break
            else:
                raise AssertionError(f"{self.sink}, {moment}: {said[-3000:]}")
            assert moment is None or code != 0, f"{self.sink}: it ended before {moment}"
        return self

    def live(self, moment: str | None) -> tuple[int, str]:
        order = {"config": self.config, "directory": str(self.directory), "sink": self.sink, "die": moment}
        here = Path(__file__)
        paths = [str(here.parents[3] / "consumer"), str(here.parent)]
        given = {ORDER: json.dumps(order), "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
        environment = os.environ | spark_home.lean(os.environ) | given
        log = self.directory / "log"
        with log.open("w") as file:
            child = subprocess.Popen(
                [sys.executable, str(here.with_name("streaming_app.py"))], env=environment, stdout=file, stderr=file, start_new_session=True
            )
            code = child.wait(400)
        return code, log.read_text()

    def commits(self) -> list[dict[str, Any]]:
        logs = sorted((path for path in (self.directory / "checkpoint" / "offsets").glob("[0-9]*")), key=lambda path: int(path.name))
        return [json.loads(path.read_text().splitlines()[-1]) for path in logs]


@pytest.fixture(scope="module")
def stories(slow_stream: StreamConfig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Story]]]:
    """Both stories are told side by side: much of a story is waiting for the lease of the dead."""

    def story(sink: str, moments: tuple[str, ...]) -> Story:
        stream = slow_stream
        config = {
            "stream": stream_document(stream),
            "checkpoints": {"table": f"deaths-{uuid4()}"},
            "pipeline": {"entrypoint": "unused:unused"},
            "batch": {"maxRecordsPerShard": 3},
            "leaseDurationSeconds": 10,
        }
        return Story(tmp_path_factory.mktemp(sink), config, sink, moments)

    with ThreadPoolExecutor(2) as threads:
        yield {sink: threads.submit(story(sink, moments).tell) for sink, moments in (("files", FILES), ("counts", COUNTS))}


def test_a_file_sink_holds_every_record_once_after_deaths(stories: dict[str, Future[Story]], spark: SparkSession) -> None:
    story = stories["files"].result()
    rows = spark.read.parquet(str(story.directory / "sink")).collect()
    assert Counter(int(row.data) for row in rows) == Counter(range(RECORDS))
    assert len({(row.shardId, row.sequenceNumber) for row in rows}) == RECORDS


def test_the_state_of_a_query_is_right_after_deaths(stories: dict[str, Future[Story]]) -> None:
    story = stories["counts"].result()
    written = sorted(map(int, (path.name for path in (story.directory / "sink").glob("[0-9]*") if path.suffix != ".part")))
    assert written == list(range(len(written)))
    last = json.loads((story.directory / "sink" / str(written[-1])).read_text())
    halves = [[n for n in range(RECORDS) if n % SHARDS == shard] for shard in range(SHARDS)]
    assert sorted((count, total) for _, count, total in last) == sorted((len(half), sum(half)) for half in halves)
    assert not (story.directory / "another-content").exists()


@pytest.mark.parametrize("sink", ["files", "counts"])
def test_spark_and_the_table_agree_in_the_end_and_the_lease_is_released(stories: dict[str, Future[Story]], sink: str) -> None:
    story = stories[sink].result()
    batches = [offset["batch"] for offset in story.commits()]
    assert batches == sorted(set(batches))
    stream = story.config["stream"]
    where = StreamConfig(stream["name"], stream["region"], stream["kinesisEndpoint"], stream["dynamodbEndpoint"])
    row = wiring.store(Config(where, CheckpointsConfig(story.config["checkpoints"]["table"]), PipelineConfig("a:b"))).consumer()
    assert row is not None
    assert (row.committed, row.released) == (batches[-1], True)
    assert row.generation >= len(story.moments) + 1

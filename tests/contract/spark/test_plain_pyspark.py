"""`python -m sluice_consumer` outside Kubernetes. Real Spark, emulated AWS."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from conftest_spark import configuration, stream_document
from pipelines_of_tests import seen
from pyspark.sql import SparkSession

from sluice_consumer.config import Config, StreamConfig
from sluice_consumer.process import wiring
from sluice_consumer.sinks import committed_files

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PAUSE = threading.Event()  # never set: waiting on it lets other threads and processes work
LEASE = 9.0  # seconds; in one process with a busy Spark, heartbeats of a shorter one may come late


@pytest.fixture(autouse=True)
def clean() -> None:
    seen.clear()


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def producing(stream: StreamConfig) -> Iterator[None]:
    client = boto3.client("kinesis", endpoint_url=stream.kinesis_endpoint, region_name=stream.region)
    stop = threading.Event()

    def produce() -> None:
        while not stop.wait(0.05):
            client.put_record(StreamName=stream.name, Data=b"late", PartitionKey=str(uuid4()))

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def busy(kinesis_local_endpoint: str, dynamodb_endpoint: str, aws: StreamConfig) -> Iterator[StreamConfig]:
    assert aws
    client = boto3.client("kinesis", endpoint_url=kinesis_local_endpoint)
    stream = StreamConfig(f"busy-{uuid4()}", "us-east-1", kinesis_local_endpoint, dynamodb_endpoint)
    client.create_stream(StreamName=stream.name, ShardCount=2)
    client.get_waiter("stream_exists").wait(StreamName=stream.name, WaiterConfig={"Delay": 1})
    client.put_records(StreamName=stream.name, Records=[{"Data": b"early", "PartitionKey": str(n)} for n in range(10)])
    with producing(stream):
        yield stream


def document(config: Config, tmp_path: Path, **more: Any) -> Path:
    stream = config.stream
    path = tmp_path / "consumer.json"
    written = {
        "stream": stream_document(stream),
        "checkpoints": {"table": config.checkpoints.table},
        "pipeline": {"entrypoint": "sluice_consumer.sinks:parquet", "args": {"path": (tmp_path / "sink").as_uri()}},
        "batch": {"intervalSeconds": 0.2},
        "leaseDurationSeconds": 30,
    }
    path.write_text(json.dumps(written | more))
    return path


def scrape(port: int, stop: Callable[[], bool]) -> list[str]:
    """Every page that Prometheus would have got, until told to stop. What the end of the process cuts is none."""
    pages: list[str] = []
    while not stop():
        with contextlib.suppress(OSError, HTTPException), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
            pages.append(reply.read().decode())
        PAUSE.wait(0.2)
    return [page for page in pages if page]


def figure(page: str, name: str) -> float:
    return next((float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(name)), 0.0)


def test_a_backfill_ends_with_code_0_while_records_keep_coming_and_serves_its_metrics(
    busy: StreamConfig, tmp_path: Path, spark: SparkSession, unused_port: int
) -> None:
    config = configuration(busy, "unused:unused")
    path = document(config, tmp_path, metrics={"port": unused_port})
    command = [sys.executable, "-m", "sluice_consumer", "--config", str(path), "--master", "local[2]", "--until", "tip"]
    root = Path(__file__).parents[3]
    last = tmp_path / "last"
    environment = os.environ | {"PYTHONPATH": str(root / "consumer"), "SLUICE_LOG": "json", "SLUICE_TERMINATION_LOG": str(last)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as child:
        said: list[str] = []
        assert child.stderr is not None
        lines = child.stderr
        reader = threading.Thread(target=lambda: said.extend(lines))
        reader.start()
        pages = scrape(unused_port, lambda: child.poll() is not None)
        reader.join()
    assert child.returncode == 0, "".join(said)
    words = json.loads(last.read_text())
    assert words["reason"] == "EndReached"
    assert re.search(r" in \d+ batch(es)? of 2 shards, up to batch \d", words["message"])
    row = wiring.store(config).consumer()
    assert row is not None
    assert row.released
    sink = spark.read.parquet(*committed_files(str(tmp_path / "sink"), row.consumer_id))
    assert sink.filter("decode(data, 'UTF-8') = 'early'").count() == 10
    page = pages[-1]
    assert figure(page, "sluice_generation") == 1
    assert figure(page, 'sluice_takeovers_total{how="new"}') == 1
    assert figure(page, 'sluice_shards{state="held"}') == 2
    assert figure(page, 'sluice_calls_total{operation="UpdateItem",process="driver",service="dynamodb"}') >= 3  # two fences and the bootstrap
    batches = figure(page, "sluice_batches_total")
    assert batches
    assert figure(page, 'sluice_calls_total{operation="UpdateItem",process="tasks",service="dynamodb"}') - 2 * batches in {0, 2}  # a bind a shard
    assert figure(page, 'sluice_calls_total{operation="BatchGetItem",process="tasks",service="dynamodb"}') >= batches
    assert figure(page, 'sluice_calls_total{operation="GetRecords",process="tasks",service="kinesis"}') >= 2 * batches
    assert figure(page, "sluice_records_total") <= sink.count()
    assert any("2 of 2 shards done" in line for line in said)


def test_an_interrupt_while_spark_starts_ends_without_a_stack_and_releases_the_lease(busy: StreamConfig, tmp_path: Path) -> None:
    config = configuration(busy, "unused:unused")
    command = [sys.executable, "-m", "sluice_consumer", "--config", str(document(config, tmp_path)), "--master", "local[2]"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "consumer"), "SLUICE_TERMINATION_LOG": str(tmp_path / "last")}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
        assert child.stderr is not None
        said = [next(line for line in child.stderr if "starting Spark on" in line)]
        os.killpg(child.pid, signal.SIGINT)
        said += child.stderr
    assert child.returncode == 0, "".join(said)
    assert "Traceback" not in "".join(said)
    row = wiring.store(config).consumer()
    assert row is None or row.released


def test_a_backfill_that_is_told_to_stop_ends_with_code_75_and_releases_its_lease(busy: StreamConfig, tmp_path: Path) -> None:
    """0 would say that the tip was reached. The open batch was finished, and the next run goes on at once."""
    config = configuration(busy, "unused:unused")
    path = document(config, tmp_path, batch={"maxRecordsPerShard": 1})  # the first batch is far from the tip
    command = [sys.executable, "-m", "sluice_consumer", "--config", str(path), "--master", "local[2]", "--until", "tip"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "consumer"), "SLUICE_TERMINATION_LOG": str(tmp_path / "last")}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        said = [next(line for line in child.stderr if "batch 1:" in line)]
        child.terminate()
        said += child.stderr
    assert child.returncode == 75, "".join(said)
    assert json.loads((tmp_path / "last").read_text())["reason"] == "Interrupted"
    store = wiring.store(config)
    row = store.consumer()
    assert row is not None
    assert row.released
    assert max(shard.batch for shard in store.shards().values()) == row.committed

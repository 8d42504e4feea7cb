"""Code of the documents' pages, run as it stands on emulated AWS.

Only what a page cannot know is put in: where the emulators are, tables, folders.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import page_blocks
import pytest
import yaml
from conftest_spark import RECORDS, stream_document
from pyspark.sql import SparkSession

from sluice_consumer.config import StreamConfig

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NOTEBOOK, STREAMING, LETTERS, TESTING = "docs/plain-pyspark.md", "docs/structured-streaming.md", "docs/dead-letters.md", "docs/testing.md"
ADDRESS = '{"name": "orders", "region": "eu-west-1"}'  # of the stream, on all pages
GOOD, BAD = 30, 5
Run = Callable[[str], dict[str, Any]]


def here(text: str, stream: StreamConfig, folder: Path) -> str:
    assert ADDRESS in text
    placed = text.replace(ADDRESS, json.dumps(stream_document(stream))).replace('"table": "orders', f'"table": "{uuid4()}-orders')
    return placed.replace("/data/", f"{folder}/")


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs code as a notebook does, whose `__main__` it is and whose session is there; returns its names."""

    def cell(code: str) -> dict[str, Any]:
        module = types.ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", module)
        vars(module)["spark"] = spark
        exec(code, vars(module))  # noqa: S102 - the page's own code is what is tried
        return vars(module)

    return cell


def test_the_notebook_of_the_page_stores_each_record(run: Run, spark: SparkSession, aws: StreamConfig, tmp_path: Path) -> None:
    run(here(page_blocks.beginning(NOTEBOOK, "from sluice_consumer import embedded"), aws, tmp_path))
    stored = spark.read.parquet(*map(str, (tmp_path / "orders").glob("*/*")))
    assert (stored.count(), stored.select("data").distinct().count()) == (RECORDS, RECORDS)


def test_the_query_of_the_page_reads_the_stream(run: Run, spark: SparkSession, aws: StreamConfig, tmp_path: Path) -> None:
    code = here(page_blocks.beginning(STREAMING, "from pyspark.sql.functions import window"), aws, tmp_path)
    assert "`trigger(availableNow=True)` ends the query" in (page_blocks.ROOT / STREAMING).read_text()
    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", "2")  # 200 files of state are for larger streams
    try:
        names = run(code.replace("counts.writeStream", "counts.writeStream.trigger(availableNow=True)"))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    progress = names["query"].recentProgress
    assert sum(each["numInputRows"] for each in progress) == RECORDS
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] >= 1
    assert (tmp_path / "orders-checkpoint" / "commits" / "0").is_file()


@pytest.fixture
def customers(aws: StreamConfig) -> StreamConfig:
    client = boto3.client("kinesis", endpoint_url=aws.kinesis_endpoint, region_name=aws.region)
    stream = StreamConfig(f"customers-{uuid4()}", aws.region, aws.kinesis_endpoint, aws.dynamodb_endpoint)
    client.create_stream(StreamName=stream.name, ShardCount=2)
    client.get_waiter("stream_exists").wait(StreamName=stream.name, WaiterConfig={"Delay": 1})
    orders = [{"id": n, "customer": f"c{n}"} for n in range(GOOD)] + [{"id": n} for n in range(GOOD, GOOD + BAD)]
    payloads = [*(json.dumps(order).encode() for order in orders), gzip.compress(b"{}")]
    client.put_records(StreamName=stream.name, Records=[{"Data": data, "PartitionKey": str(n)} for n, data in enumerate(payloads)])
    return stream


def typed(folder: Path, line: str) -> str:
    ours = [str(page_blocks.ROOT / part) for part in ("consumer", "operator")]
    environment = os.environ | {"PATH": page_blocks.path_with_sluice(folder), "PYTHONPATH": os.pathsep.join(ours)}
    done = subprocess.run(["bash", "-euc", line], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ids(spark: SparkSession, folder: Path) -> list[int]:
    stored = spark.read.parquet(*map(str, folder.glob("*/[0-9]*")))
    orders = stored.selectExpr("CAST(get_json_object(CAST(data AS STRING), '$.id') AS INT) AS id").where("id IS NOT NULL")
    return sorted(row.id for row in orders.collect())


def test_a_process_of_its_own_rejects_rows_and_redrives_them(spark: SparkSession, customers: StreamConfig, tmp_path: Path) -> None:
    config = json.loads(here(page_blocks.beginning(NOTEBOOK, '{"stream"'), customers, tmp_path))
    letters = tmp_path / "letters"
    config |= yaml.safe_load(page_blocks.beginning(LETTERS, "spec:\n").replace("s3a://lake/dead-letters", letters.as_uri()))["spec"]
    (tmp_path / "consumer.json").write_text(json.dumps(config))
    stores = page_blocks.beginning(TESTING, "# my_pipeline.py")
    rejects = page_blocks.beginning(LETTERS, "from sluice_consumer.sinks import json_rows")
    (tmp_path / "my_pipeline.py").write_text(stores.replace("process(", "write(") + rejects)
    typed(tmp_path, page_blocks.beginning(NOTEBOOK, "sluice run --config"))
    assert ids(spark, tmp_path / "orders") == list(range(GOOD))
    assert len(list(letters.rglob("shardId-*/*.json"))) == BAD + 1
    (tmp_path / "my_pipeline.py").write_text(stores)
    all_of_them, _ = page_blocks.beginning(LETTERS, "sluice dead-letters redrive").splitlines()
    assert f"{BAD + 1} letters redriven" in typed(tmp_path, all_of_them)
    assert ids(spark, tmp_path / "orders") == list(range(GOOD + BAD))

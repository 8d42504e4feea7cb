"""The examples as their users take them: those without code on the cluster, with drivers that are killed; the others' images are built.

What a lake holds is counted by readers that are not Spark.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from cluster_bench import Bench
from rules_world import LEASE_SECONDS, Subject, table

from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.migrate.store import MigrationStore
from sluice_consumer.sinks import committed_files
from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.lake import catalog, readers
from sluice_lab.lake.storage import Storage
from sluice_lab.machine import cluster as clusters
from sluice_lab.machine import docker, images, processes
from sluice_lab.scenario import environment
from sluice_lab.scenario.topology import Stream

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

EXAMPLES = places.REPO / "examples"
TABLE = "shop.payments"
COLUMNS = pa.schema([("id", pa.int64()), ("customer", pa.string()), ("amount", pa.decimal128(12, 2)), ("paid", pa.timestamp("us", tz="UTC"))])
WITH_CODE = sorted(path.parent.name for path in EXAMPLES.glob("*/Dockerfile"))
HALF, SHARDS = 200, 2
TIMES = ("paid", "placed")  # of a payment, and of an order
Numbers = list[int]


@dataclass(frozen=True)
class Filled:
    subject: Subject
    stream: str
    ids: Callable[[], Numbers]

    def put(self, numbers: Sequence[int]) -> None:
        kinesis = self.subject.bench.aws.kinesis
        entries = [{"PartitionKey": str(n), "Data": json.dumps(document(n)).encode()} for n in numbers]
        assert kinesis.put_records(StreamName=self.stream, Records=entries)["FailedRecordCount"] == 0

    def until_stored(self, count: int) -> None:
        self.subject.bench.until(f"{count} rows of {self.subject.name}", lambda: len(self.ids()) >= count)

    def in_a_batch(self) -> bool:
        """Whether the content of a batch is written down that is not committed."""
        store = MigrationStore(DynamoTable(table(self.subject.name), self.subject.bench.aws.dynamodb))
        consumer = store.consumer()
        return consumer is not None and any(row.batch > consumer.committed for row in store.shards().values())

    def kill_in_a_batch(self) -> None:
        assert processes.poll(self.in_a_batch, 60, pause=0.05), f"{self.subject.name} began no batch"
        (pod,) = self.subject.uids("driver")
        self.subject.bench.kubectl("delete", "pod", pod, "--grace-period=0", "--force")


def document(n: int) -> dict[str, Any]:
    return {"id": n, "customer": f"c{n % 7}", "amount": n / 4} | dict.fromkeys(TIMES, "2026-11-24T10:00:00Z")


def manifest(bench: Bench, example: str, spark: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / example / "consumer.yaml").read_text())
    del found["metadata"]["namespace"]
    spec = found["spec"]
    spec["stream"] |= {"kinesisEndpoint": bench.aws.kinesis_endpoint, "dynamodbEndpoint": bench.aws.dynamodb_endpoint}
    spec["batch"]["intervalSeconds"] = 1
    credentials = [{"name": name, "value": value} for name, value in environment.CREDENTIALS.items()]
    for role, memory in (("driver", "1536Mi"), ("executor", "1Gi")):
        template = {"spec": {"containers": [{"name": role, "env": credentials}]}}
        spec[role] = {"resources": {"requests": {"cpu": "50m", "memory": memory}}, "podTemplate": template}
    spec |= {"replicas": 1, "start": {"position": "TRIM_HORIZON"}, "leaseDurationSeconds": LEASE_SECONDS}
    spec["restart"] = {"backoffSeconds": 1, "maxBackoffSeconds": 4}
    spec["sparkConf"] = spec.get("sparkConf", {}) | {"spark.driver.memory": "768m"} | spark
    return found


@pytest.fixture(scope="module")
def filled(bench: Bench) -> Iterator[list[Filled]]:
    work, listen = places.work(), clusters.host_address(bench.cluster).listen
    with emulators.s3(work, listen) as s3:
        storage = Storage(s3, "lake").create()
        with catalog.iceberg_catalog(work, storage, listen) as uri:
            tables = readers.catalog(uri, storage)
            tables.create_namespace("shop")
            tables.create_table(TABLE, schema=COLUMNS)
            lake, files = catalog.spark("lake", uri, storage), storage.hadoop()
            with (
                filling(bench, "json-to-iceberg", lake, lambda: ids(readers.iceberg(tables, TABLE, ["id"]))) as iceberg,
                filling(bench, "json-to-parquet-s3", files, lambda: in_files(storage)) as parquet,
            ):
                for each in (iceberg, parquet):
                    bench.until(f"{each.subject.name} Ready", lambda each=each: each.subject.settled(1))
                yield [iceberg, parquet]


@contextmanager
def filling(bench: Bench, example: str, spark: dict[str, str], stored: Callable[[], Numbers]) -> Iterator[Filled]:
    found = manifest(bench, example, spark)
    with Stream(bench.aws.kinesis, found["spec"]["stream"]["name"]).existing(SHARDS) as stream:
        bench.apply(found)
        filled = Filled(Subject(bench, found["metadata"]["name"]), stream.name, stored)
        yield filled
        filled.subject.delete()


def in_files(storage: Storage) -> Numbers:
    """Without a committed file there is no column to read, either."""
    written = committed_files(f"{storage.bucket}/orders", filesystem=storage.files())
    return ids(readers.parquet(storage, "orders", ["id"])) if written else []


def ids(rows: pa.Table) -> Numbers:
    return sorted(rows.column("id").to_pylist())


def test_examples_fill_a_lake_without_code(filled: list[Filled]) -> None:
    for each in filled:
        each.put(range(HALF))
    for each in filled:
        each.until_stored(HALF)
        assert each.ids() == list(range(HALF))


def test_drivers_that_are_killed_in_a_batch_leave_each_document_once(filled: list[Filled]) -> None:
    for each in filled:
        each.put(range(HALF, 2 * HALF))
        each.kill_in_a_batch()
    for each in filled:
        each.subject.bench.until("the next driver", lambda each=each: each.subject.attempts() > 1 and each.subject.settled(1))
        each.put(range(2 * HALF, 2 * HALF + 1))
        each.until_stored(2 * HALF + 1)
        assert each.ids() == list(range(2 * HALF + 1))


@contextmanager
def named(image: str, name: str, folder: Path) -> Iterator[None]:
    """The consumer's image under the name that a Dockerfile says, while the block lasts. In it pip trusts the authority of the local network."""
    (folder / "Dockerfile").write_text(f"FROM {image}\n")
    if bundle := images.own_authority():
        shutil.copy(bundle, folder / "ca.crt")
        (folder / "Dockerfile").write_text(f"FROM {image}\nCOPY ca.crt /ca.crt\nENV PIP_CERT=/ca.crt\n")
    build(folder, name)
    try:
        yield
    finally:
        processes.run("docker", "rmi", name)


def build(folder: Path, tag: str) -> None:
    processes.run("docker", "build", "--network=host", f"--tag={tag}", str(folder), env=docker.build_environment(), seconds=600)


@pytest.mark.parametrize("example", WITH_CODE)
def test_the_image_of_an_example_is_built_on_the_consumers_and_holds_its_code(bench: Bench, example: str, tmp_path: Path) -> None:
    text = (EXAMPLES / example / "Dockerfile").read_text()
    (base,), (module,) = re.findall(r"(?m)^FROM (\S+)$", text), re.findall(r"(?m)^COPY (\w+)\.py /opt/sluice/app/$", text)
    tag = f"sluice-example-{example}"
    with named(bench.consumer_image(), base, tmp_path):
        build(EXAMPLES / example, tag)
    try:
        found = processes.run("docker", "run", "--rm", "--network=none", tag, "python", "-c", f"import {module}; print({module}.__file__)")
        assert found.strip() == f"/opt/sluice/app/{module}.py"
    finally:
        processes.run("docker", "rmi", tag)

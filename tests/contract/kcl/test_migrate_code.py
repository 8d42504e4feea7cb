"""docs/migrate/code.md: each record processor of the page under the real KCL, and the pipeline that replaces it, on one stream."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import page_blocks
import pytest
from kcl_worker import REGION, kcl
from tip_run import dead_letters, to_the_tip

from sluice_lab.machine import pypi

pytestmark = [pytest.mark.usefixtures("credentials"), pytest.mark.slow]

HERE, PAGE = Path(__file__).parent, "docs/migrate/code.md"
ORDERS = [{"id": n, "customer": f"c{n % 5}", "cents": 100 * (n % 4)} for n in range(40)]
WRONG = "no JSON"


class Stream:
    def __init__(self, kinesis: str, dynamodb: str, jars: Path, folder: Path) -> None:
        self.endpoints, self.jars, self.folder = {"KINESIS": kinesis, "DYNAMODB": dynamodb}, jars, folder
        self.client: Any = boto3.client("kinesis", endpoint_url=kinesis, region_name=REGION)
        self.name = f"orders-{uuid.uuid4()}"
        self.client.create_stream(StreamName=self.name, ShardCount=2)
        self.client.get_waiter("stream_exists").wait(StreamName=self.name, WaiterConfig={"Delay": 1})

    def put(self, *payloads: str) -> set[str]:
        for payload in payloads:
            key = json.loads(payload)["customer"] if payload != WRONG else "c0"
            self.client.put_record(StreamName=self.name, Data=payload.encode(), PartitionKey=key)
        return set(payloads)

    def before(self, processor: str, payloads: set[str], classes: Path, more: Mapping[str, str]) -> None:
        log = self.folder / "kcl.log"
        environment = {**self.endpoints, "PROCESSOR": processor, "FOLDER": str(self.folder), **more}
        with kcl(self.jars, self.name, f"kcl-{uuid.uuid4()}", environment, log, str(classes)) as until:
            until(payloads)

    def after(self, config: dict[str, Any]) -> None:
        to_the_tip(self.folder, self.name, self.endpoints, **config)


@pytest.fixture
def stream(dynamodb_endpoint: str, kinesis_local_endpoint: str, jars: Path, tmp_path: Path) -> Stream:
    return Stream(kinesis_local_endpoint, dynamodb_endpoint, jars, tmp_path)


def compiled(jars: Path, folder: Path, source: Path) -> Path:
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(folder / "classes"), str(source)], check=True)
    return folder / "classes"


def lines(folder: Path) -> list[str]:
    return sorted(line for path in folder.rglob("*.csv") for line in path.read_text().splitlines())


def test_the_processor_in_java_and_its_pipeline_store_the_same_orders(stream: Stream, jars: Path, tmp_path: Path) -> None:
    source = tmp_path / "OrdersProcessor.java"
    source.write_text(page_blocks.beginning(PAGE, "// OrdersProcessor.java"))
    (tmp_path / "orders_of_java.py").write_text(page_blocks.beginning(PAGE, "# orders_of_java.py"))
    classes = compiled(jars, tmp_path, source)
    payloads = stream.put(*map(json.dumps, ORDERS), WRONG)
    stream.before("OrdersProcessor", payloads, classes, {})
    wanted = sorted(f"{order['id']},{order['cents']}" for order in ORDERS if order["cents"])
    assert lines(tmp_path) == wanted
    config = page_blocks.beginning(PAGE, '{"stream": {"name": "orders"').replace("/data/orders", str(tmp_path / "sluice"))
    config = config.replace("/data", str(tmp_path))
    stream.after({**json.loads(config), "checkpoints": {"table": f"sluice-{uuid.uuid4()}"}})
    assert lines(tmp_path / "sluice") == wanted
    (letter,) = dead_letters(tmp_path)
    assert letter["error"].startswith(WRONG)


def test_the_processor_of_multilang_and_its_pipeline_store_the_same_customers(stream: Stream, jars: Path, tmp_path: Path) -> None:
    program, classes = tmp_path / "customers_kcl.py", compiled(jars, tmp_path, HERE / "MultiLang.java")
    program.write_text(page_blocks.beginning(PAGE, "# customers_kcl.py"))
    (tmp_path / "customers.py").write_text(page_blocks.beginning(PAGE, "# customers.py"))
    payloads = stream.put(*map(json.dumps, ORDERS))
    more = {"CHILD": f"{sys.executable} {program}", "PYTHONPATH": str(pypi.kcl_library()), "CUSTOMERS": str(tmp_path / "kcl.db")}
    stream.before("MultiLang", payloads, classes, more)
    args = {"function": "customers:upsert", "path": str(tmp_path / "sluice.db")}
    stream.after({"pipeline": {"entrypoint": "sluice_consumer.sinks:foreach", "args": args}})
    last = {order["customer"]: order["cents"] for order in ORDERS}
    for name in ("kcl.db", "sluice.db"):
        with sqlite3.connect(tmp_path / name) as database:
            assert dict(database.execute("SELECT customer, cents FROM last")) == last, name

"""docs/how-to/decode.md: its pipeline reads what Amazon's own serializer wrote."""

from __future__ import annotations

import base64
import json
import subprocess
import uuid
from pathlib import Path
from typing import Any

import boto3
import page_blocks
import pyarrow.parquet as pq
import pytest
from kcl_worker import REGION
from tip_run import dead_letters, to_the_tip

from sluice_lab.machine import spark_jars

pytestmark = [pytest.mark.usefixtures("credentials"), pytest.mark.slow]

HERE = Path(__file__).parent
PLAIN, ZIPPED, UNKNOWN = (str(uuid.UUID(int=n)) for n in (1 << 127, 2, 3))
OLD: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "name", "type": "string", "default": "nobody"}]}


def written(jars: Path, version: str, schema: dict[str, Any], orders: list[dict[str, Any]], *compression: str) -> list[bytes]:
    command = ["java", "-cp", f"{jars}/*", str(HERE / "GlueRecords.java"), version, json.dumps(schema), *compression]
    done = subprocess.run(command, input="\n".join(map(json.dumps, orders)), capture_output=True, text=True, check=True)
    return [base64.b64decode(line) for line in done.stdout.split()]


def test_records_of_a_schema_registry_are_read_as_the_newest_schema(
    dynamodb_endpoint: str, kinesis_local_endpoint: str, jars: Path, tmp_path: Path
) -> None:
    client: Any = boto3.client("kinesis", endpoint_url=kinesis_local_endpoint, region_name=REGION)
    name = f"avro-{uuid.uuid4()}"
    client.create_stream(StreamName=name, ShardCount=1)
    client.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1})
    new = [{"id": n, "name": f"n{n}"} for n in range(3, 6)]
    payloads = [
        *written(jars, PLAIN, OLD, [{"id": n} for n in range(3)]),
        *written(jars, ZIPPED, NEW, new, "zlib"),
        *written(jars, UNKNOWN, NEW, [{"id": 9, "name": "later"}]),
    ]
    for payload in payloads:
        client.put_record(StreamName=name, Data=payload, PartitionKey="k")
    (tmp_path / "orders_avro.py").write_text(page_blocks.beginning("docs/how-to/decode.md", "# orders_avro.py"))
    (tmp_path / "schemas.json").write_text(json.dumps({PLAIN: OLD, ZIPPED: NEW}))
    to_the_tip(
        tmp_path,
        name,
        {"KINESIS": kinesis_local_endpoint, "DYNAMODB": dynamodb_endpoint},
        pipeline={"entrypoint": "orders_avro:process", "args": {"path": str(tmp_path / "orders")}},
        sparkConf={"spark.jars": str(spark_jars.avro())},
        onError={"deadLetter": {"path": (tmp_path / "letters").as_uri()}},
    )
    stored = sorted((row["id"], row["name"]) for path in (tmp_path / "orders").rglob("*.parquet") for row in pq.read_table(path).to_pylist())
    assert stored == [(0, "nobody"), (1, "nobody"), (2, "nobody"), (3, "n3"), (4, "n4"), (5, "n5")]
    assert [base64.b64decode(letter["data"]) for letter in dead_letters(tmp_path)] == payloads[-1:]

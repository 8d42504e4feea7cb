"""Several consumers in one Spark, of streams of two accounts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest
from conftest_accounts import RECORDS, REGION, SHARDS, Theirs

from sluice_lab import places
from sluice_lab.aws.accounts import OTHER_ACCOUNT, OWN_ACCOUNT, READ

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PIPELINE = """
def store(batch, info):
    with open(f"{info.args['to']}-{info.batch}", "w") as file:
        file.write("\\n".join(row.data.decode() for row in batch.select("data").collect()))
"""


def own_stream(theirs: Theirs) -> None:
    """A stream of the same name in the account of the pods, with other records. moto knows whose it is by the key."""
    kinesis = boto3.session.Session().client("kinesis", endpoint_url=theirs.endpoint, region_name=REGION)
    kinesis.create_stream(StreamName=theirs.name, ShardCount=SHARDS)
    entries = [{"Data": f"own {n}".encode(), "PartitionKey": str(n)} for n in range(RECORDS)]
    kinesis.put_records(StreamName=theirs.name, Records=entries)


def document(theirs: Theirs, folder: Path, name: str, stream: dict[str, Any]) -> Path:
    (folder / name).mkdir()
    written = theirs.document(**stream) | {
        "name": name,
        "checkpoints": {"table": f"sluice_{theirs.name}_{name}"},
        "pipeline": {"entrypoint": "two_accounts:store", "args": {"to": str(folder / name / "batch")}},
        "batch": {"intervalSeconds": 0.2},
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(written))
    return path


def test_two_streams_of_one_name_in_two_accounts_are_read_in_one_driver(theirs: Theirs, tmp_path: Path) -> None:
    theirs.accounts.own_may, theirs.accounts.seconds = READ, 1.5
    own_stream(theirs)
    theirs.accounts.calls.clear()
    (tmp_path / "two_accounts.py").write_text(PIPELINE)
    without_role = {"arn": None, "roleArn": None, "externalId": None, "name": theirs.name, "region": REGION}
    paths = [document(theirs, tmp_path, "theirs", {}), document(theirs, tmp_path, "own", without_role)]
    command = [
        sys.executable,
        "-m",
        "sluice_consumer",
        "--master",
        "local[2,4]",
        "--until",
        "tip",
        *(word for p in paths for word in ("--config", str(p))),
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(places.REPO / "consumer"), str(tmp_path)])}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    read = {name: sorted(line for file in (tmp_path / name).iterdir() for line in file.read_text().splitlines()) for name in ("theirs", "own")}
    assert read == {"theirs": sorted(map(str, range(RECORDS))), "own": sorted(f"own {n}" for n in range(RECORDS))}
    dynamodb = boto3.session.Session().client("dynamodb", endpoint_url=theirs.endpoint, region_name=REGION)
    rows = [dynamodb.get_item(TableName=f"sluice_{theirs.name}_{name}", Key={"id": {"S": "consumer"}})["Item"] for name in ("theirs", "own")]
    assert [row["streamArn"]["S"] for row in rows] == [theirs.arn, theirs.arn.replace(OTHER_ACCOUNT, OWN_ACCOUNT)]
    kinds = {(call.service, call.account, call.named) for call in theirs.accounts.calls}
    named, by_arn, neither = frozenset({"StreamName"}), frozenset({"StreamARN"}), frozenset[str]()
    of_kinesis = {("kinesis", OTHER_ACCOUNT, by_arn), ("kinesis", OWN_ACCOUNT, named), ("kinesis", OWN_ACCOUNT, neither)}
    assert kinds == of_kinesis | {("sts", OWN_ACCOUNT, neither), ("dynamodb", OWN_ACCOUNT, neither)}

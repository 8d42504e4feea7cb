"""docs/migrate: the programs of each page, from the diagnosis to the way back, in its order, with the tables of its system.

What `kubectl` does there is tried by tests/operator/helm/test_kubectl_of_pages.py. The operator's Job is the page's own dry run without `--dry-run`.
Added are the emulators' addresses, and that nothing has to be waited for: the other system is not there. Each call has to be allowed by the policy
that the page links for its program.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import page_blocks
import pytest
import yaml
from allowed_calls import denied, recorded
from click.testing import CliRunner

from sluice_checkpoints.cli.report import short
from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.dynamodb.target_tables import DynamoTargetTables
from sluice_checkpoints.formats.detect import WRITERS
from sluice_checkpoints.formats.writer import FormatWriter, RowContent, write_rows
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_kubectl.cli.group import program

REGION, STREAM, TARGET = "eu-west-1", "orders", "sluice_default_orders"


@dataclass(frozen=True)
class Place:
    """Emulated AWS with the stream of the pages.

    Attributes:
        done: the sequence number up to which the other system has come; another record follows it.
    """

    tables: Any
    dynamodb: str
    kinesis: str
    done: str

    def run(self, words: list[str], *more: str) -> str:
        addresses = ["--dynamodb-endpoint", self.dynamodb]
        addresses += ["--kinesis-endpoint", self.kinesis] if words[0] != "show" else []
        with recorded() as made:
            ran = CliRunner().invoke(program, [*words, *addresses, *more])
        assert ran.exit_code == 0, ran.output
        assert made, "no call was seen"
        assert denied(made, "export" if words[0] == "export" else "migration", TARGET, theirs_of(words)) == set()
        return ran.output

    def names(self) -> set[str]:
        return {name for page in self.tables.get_paginator("list_tables").paginate() for name in page["TableNames"]}


@pytest.fixture(scope="module")
def place(dynamodb_api: Any, dynamodb_endpoint: str, kinesis_local_endpoint: str) -> Iterator[Place]:
    kinesis = boto3.client("kinesis", region_name=REGION, endpoint_url=kinesis_local_endpoint)
    kinesis.create_stream(StreamName=STREAM, ShardCount=1)
    kinesis.get_waiter("stream_exists").wait(StreamName=STREAM, WaiterConfig={"Delay": 1})
    done, _ = (kinesis.put_record(StreamName=STREAM, PartitionKey="k", Data=data)["SequenceNumber"] for data in (b"1", b"2"))
    yield Place(dynamodb_api, dynamodb_endpoint, kinesis_local_endpoint, done)
    kinesis.delete_stream(StreamName=STREAM)


def theirs_of(words: list[str]) -> str:
    """What names of the other system's tables begin with, as its page says; `show` asks for none of theirs."""
    option = next(each for each in ("--source", "--to", "--table") if each in words)
    return words[words.index(option) + 1].removesuffix("checkpoints")  # kinsumer's three tables share only `orders_`


def commands(page: str) -> list[list[str]]:
    lines = [line for each in page_blocks.of(page) if each.language == "sh" for line in each.text.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("sluice ")]


def consumer(page: str) -> dict[str, Any]:
    (text,) = (each.text for each in page_blocks.of(page) if each.language == "yaml")
    found: dict[str, Any] = yaml.safe_load(text)["spec"]
    return found


@pytest.fixture
def theirs(place: Place, writer: FormatWriter) -> Iterator[str]:
    """The other system's table as its page calls it: the first record is done."""
    name = consumer(f"docs/migrate/{writer.name}.md")["migrateFrom"]["table"]
    (shard,) = BotoStreamCatalog(StreamAddress(STREAM, REGION, place.kinesis)).list_shards().shards
    change = writer.change(RowContent(shard, (), Position.after(place.done), STREAM, 1_764_000_000_000), None)
    assert change
    before = place.names()
    tables = DynamoTargetTables(place.tables)
    tables.create(name, writer.keys)
    write_rows(tables, name, [change])
    yield name
    for made in place.names() - before:
        place.tables.update_table(TableName=made, DeletionProtectionEnabled=False)
        place.tables.delete_table(TableName=made)


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS.values(), ids=list(WRITERS))
def test_the_programs_of_a_page_lead_there_and_back(place: Place, theirs: str, writer: FormatWriter) -> None:
    page = f"docs/migrate/{writer.name}.md"
    diagnose, dry_run, show, planned, export = commands(page)
    assert [words[0] for words in (diagnose, dry_run, show, planned, export)] == ["diagnose", "migrate", "show", "export", "export"]
    assert planned == [*export, "--dry-run"]
    source = consumer(page)["migrateFrom"]
    place.run(diagnose)
    assert f"AFTER {short(place.done)}" in place.run(dry_run)
    assert TARGET not in place.names()
    rows = place.tables.scan(TableName=theirs)["Items"]
    place.run(dry_run[:-1], "--quiet-seconds=0", f"--format={writer.name}")
    assert place.tables.scan(TableName=theirs)["Items"] == rows
    assert short(place.done) in place.run(show)
    place.run(planned)
    store = CheckpointStore(DynamoTable(TARGET, place.tables))
    assert state(store) == "ACTIVE"
    place.run(export, "--quiet-seconds=0")
    assert state(store) == "EXPORTED"
    assert place.done in str(place.tables.scan(TableName=theirs)["Items"])
    assert source["format"].lower() == writer.name.replace("-", "")


def state(store: CheckpointStore) -> str:
    row = store.consumer()
    assert row is not None
    return str(row.state)

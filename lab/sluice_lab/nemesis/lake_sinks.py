"""The sinks of Sluice's as the nemesis tries them: on a real S3 server, behind a proxy, and counted by readers that are not Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sluice_checkpoints.names import counted
from sluice_consumer import sinks
from sluice_lab.aws import emulators, refusals
from sluice_lab.aws.proxy import Proxy, Upstream, proxy
from sluice_lab.errors import LabError
from sluice_lab.lake import catalog, maintenance, readers
from sluice_lab.lake.storage import Storage
from sluice_lab.nemesis.schedule import ProxiedService, SinkKind
from sluice_lab.nemesis.sink import COLUMNS
from sluice_lab.scenario.account import Delivered, Record, RecordPosition

BUCKET, FOLDER, TABLE = "lake", "nemesis", "db.nemesis"
CATALOG = "lake"
READ = (*COLUMNS, "batch")
SCHEMA = pa.schema(
    [
        ("data", pa.binary()),
        ("shardId", pa.string()),
        ("sequenceNumber", pa.string()),
        ("subSequenceNumber", pa.int32()),
        ("batch", pa.int64()),
    ]
)


@dataclass
class LakeSink:
    """A sink under test.

    Attributes:
        direct: the bucket, past the proxy.
        proxies: of the S3 server and the catalog; pods reach them through these.
        others: rows that another writer has added.
    """

    kind: SinkKind
    direct: Storage
    catalog: str
    proxies: Mapping[ProxiedService, Proxy]
    others: int = 0

    @property
    def args(self) -> dict[str, Any]:
        """Arguments of the pipeline."""
        into: dict[str, Any] = {"table": f"{CATALOG}.{TABLE}"} if self.kind is SinkKind.ICEBERG else {"path": f"s3a://{BUCKET}/{FOLDER}"}
        create = {"create": True} if self.kind is SinkKind.DELTA else {}
        return {"sink": str(self.kind), "into": into | create}

    @property
    def spark_conf(self) -> dict[str, str]:
        """Settings of Spark, through the proxies."""
        storage = self.direct.at(self.proxies[ProxiedService.S3].endpoint)
        match self.kind:
            case SinkKind.ICEBERG:
                return catalog.spark(CATALOG, self.proxies[ProxiedService.CATALOG].endpoint, storage)
            case SinkKind.DELTA:
                return storage.hadoop() | sinks.delta.settings({})
            case _:
                return storage.hadoop()

    def create(self) -> None:
        """Create what the sink does not create itself."""
        self.direct.create()
        if self.kind is SinkKind.ICEBERG:
            found = readers.catalog(self.catalog, self.direct)
            found.create_namespace(TABLE.partition(".")[0])
            found.create_table(TABLE, schema=SCHEMA)

    def maintain(self) -> str:
        """Do to the table what its owners do: expire snapshots, and append."""
        expired = maintenance.expire(readers.catalog(self.catalog, self.direct).load_table(TABLE))
        maintenance.append(readers.catalog(self.catalog, self.direct).load_table(TABLE), SCHEMA)
        self.others += 1
        return f"{counted(expired, 'snapshot')} expired"

    def read(self) -> list[Delivered]:
        """Every delivery, by batch; within a batch by shard and position, since a table keeps no order of rows.

        Raises:
            LabError: a row of another writer is missing, or there twice.
        """
        rows = self._rows()
        ours = [row for row in rows if row["shardId"] != maintenance.WRITER]
        if (found := len(rows) - len(ours)) != self.others:
            raise LabError(f"another writer added {counted(self.others, 'row')}, and the table holds {found} of them")
        return sorted(map(_delivered, ours), key=lambda each: (each.batch, each.record.shard, each.record.position))

    def _rows(self) -> list[dict[str, Any]]:
        match self.kind:
            case SinkKind.ICEBERG:
                found = readers.iceberg(readers.catalog(self.catalog, self.direct), TABLE, READ)
            case SinkKind.DELTA:
                found = readers.delta(self.direct, FOLDER, READ)
            case _:
                found = readers.parquet(self.direct, FOLDER, READ)
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows


@contextmanager
def running(kind: SinkKind, work: Path, host: str, seed: int) -> Iterator[LakeSink]:
    """Run the servers of a sink while the block lasts, each behind a proxy; what they hold goes with them."""
    with ExitStack() as stack:
        direct = Storage(stack.enter_context(emulators.s3(work, host)), BUCKET)
        proxies = {ProxiedService.S3: stack.enter_context(proxy(Upstream(direct.endpoint, refusals.s3), host, seed))}
        endpoint = ""
        if kind is SinkKind.ICEBERG:
            endpoint = stack.enter_context(catalog.iceberg_catalog(work, direct, host))
            proxies[ProxiedService.CATALOG] = stack.enter_context(proxy(Upstream(endpoint, refusals.iceberg_rest), host, seed))
        found = LakeSink(kind, direct, endpoint, proxies)
        found.create()
        yield found


def _delivered(row: Mapping[str, Any]) -> Delivered:
    position = RecordPosition(int(row["sequenceNumber"]), row["subSequenceNumber"])
    return Delivered(Record(json.loads(row["data"])["n"], row["shardId"], position), row["batch"])

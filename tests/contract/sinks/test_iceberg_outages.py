"""The sink `iceberg` while the catalog or S3 fails, with Iceberg's REST catalog and a real S3 server; counted by pyiceberg."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from conftest_sinks import Batch, has_class, info
from pyspark.sql import SparkSession
from sink_pipelines import JSON

from sluice_consumer.sinks import iceberg
from sluice_lab import places
from sluice_lab.aws import refusals
from sluice_lab.aws.proxy import NORMAL, Behaviour, CallOutcome, ProxiedCall, ProxiedReply, Proxy, Upstream, proxy
from sluice_lab.lake import catalog, readers
from sluice_lab.lake.storage import Storage

IMPATIENT = {"commit.status-check.min-wait-ms": "10", "commit.status-check.max-wait-ms": "50", "commit.retry.min-wait-ms": "10"}
LIVES = 40  # a driver is restarted until its batch is done; so many restarts mean that it never will be
pytestmark = pytest.mark.spark
COMMITS = 7
"""The first snapshot of a table, the first mark, the branch, and twice staging and publication."""
REPLIES = ["408", "429", "429 Retry-After", "500", "502", "503", "503 Retry-After", "504", "cut"]
SENT_AGAIN = ("429", "429 Retry-After", "503 Retry-After")
"""Iceberg's client sends a call again by itself, and is refused for what it has done (apache/iceberg#12818)."""
ANSWERS = [
    pytest.param(number, reply, done, marks=[] if done and reply in SENT_AGAIN else pytest.mark.lake)
    for number in range(1, COMMITS + 1)
    for reply in REPLIES
    for done in (False, True)
]


@dataclass(frozen=True)
class Lake:
    storage: Storage
    endpoint: str
    proxies: dict[str, Proxy]

    def create(self) -> str:
        name = f"db.t{uuid4().hex}"
        self.catalog().create_table(name, schema=catalog_schema(), properties=IMPATIENT)
        return name

    def catalog(self) -> readers.Catalog:
        return readers.catalog(self.endpoint, self.storage)

    def ids(self, table: str) -> list[int]:
        return sorted(readers.iceberg(self.catalog(), table, ["id"])["id"].to_pylist())


def catalog_schema() -> readers.pa.Schema:
    return readers.pa.schema([("id", readers.pa.int64()), ("name", readers.pa.string())])


@pytest.fixture(scope="module")
def lake(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Lake]:
    if not has_class(spark, "org.apache.iceberg.spark.SparkCatalog"):
        pytest.skip("not run: this Spark has no Iceberg")
    s3_endpoint, bucket = request.getfixturevalue("s3_endpoint"), request.getfixturevalue("bucket")
    direct = Storage(s3_endpoint, bucket)
    with (
        catalog.iceberg_catalog(places.work(), direct) as endpoint,
        proxy(Upstream(endpoint, refusals.iceberg_rest), "127.0.0.1", 7) as before_catalog,
        proxy(Upstream(s3_endpoint, refusals.s3), "127.0.0.1", 7) as before_s3,
    ):
        for name, value in catalog.spark("rest", before_catalog.endpoint, direct.at(before_s3.endpoint)).items():
            spark.conf.set(name, value)
        found = Lake(direct, endpoint, {"catalog": before_catalog, "S3": before_s3})
        found.catalog().create_namespace("db")
        yield found


@pytest.mark.parametrize(("number", "reply", "done"), ANSWERS)
def test_a_commit_that_is_answered_by_an_error_destroys_nothing(lake: Lake, batch: Batch, number: int, reply: str, *, done: bool) -> None:
    table = lake.create()
    commits = itertools.count(1)

    def around(call: ProxiedCall, forward: Callable[[], ProxiedReply]) -> ProxiedReply:
        if call.method != "POST" or not call.path.endswith(table.replace("db.", "/tables/")) or next(commits) != number:
            return forward()
        if done:
            forward()
        if reply == "cut":
            raise ConnectionAbortedError
        status, _, header = reply.partition(" ")
        return int(status), [("Content-Type", "text/plain"), *([(header, "1")] if header else [])], b"no"

    lake.proxies["catalog"].around = around
    for each in (1, 2):
        until_stored(lambda n=each: iceberg(batch([n]), info(n), table=f"rest.{table}", **JSON))  # type: ignore[misc]
    assert next(commits) > COMMITS
    assert lake.ids(table) == [1, 2]


@pytest.mark.lake
@pytest.mark.parametrize(
    ("service", "behaviour"),
    [
        ("catalog", Behaviour(CallOutcome.LOST, 0.4)),
        ("catalog", Behaviour(CallOutcome.FAILED, 0.4)),
        ("catalog", Behaviour(CallOutcome.CUT, 0.4)),
        ("S3", Behaviour(CallOutcome.LOST, 0.1)),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.outcome}",
)
def test_each_record_is_there_once_after_an_outage(lake: Lake, batch: Batch, service: str, behaviour: Behaviour) -> None:
    """A commit whose reply is lost has happened: the batch that comes again finds its mark."""
    table = lake.create()
    lake.proxies[service].behaviour = behaviour
    try:
        lives = sum(
            until_stored(lambda n=number: iceberg(batch(range(5 * n, 5 * n + 5)), info(n), table=f"rest.{table}", **JSON)) for number in range(1, 5)
        )
    finally:
        lake.proxies[service].behaviour = NORMAL
    assert lake.ids(table) == list(range(5, 25))
    assert lives >= 4


def until_stored(store: Callable[[], None]) -> int:
    """Stores a batch as drivers do, one after the other, until one of them is done; how many it took."""
    for life in range(1, LIVES):
        try:
            store()
        except Exception:  # noqa: BLE001, S112 - a driver ends with whatever it is, and the next one stores the batch again
            continue
        return life
    store()
    return LIVES

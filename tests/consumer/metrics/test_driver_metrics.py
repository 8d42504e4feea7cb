"""The metrics are those that docs/metrics.md lists, and their figures are what happened."""

from __future__ import annotations

import re
import socket
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import Epoch
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.planner import TableView
from sluice_consumer.config import MetricsConfig
from sluice_consumer.driver_report import DriverWarning, WarningReason
from sluice_consumer.metrics.driver import FAMILIES, DriverMetrics, Family
from sluice_consumer.metrics.rows import RequestFigures, RowFigures
from sluice_lab.fakes.stream import DAY_MILLIS, MemoryStream

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(?P<name>sluice_\w+)` \| (?P<kind>\w+) \|(?P<labels>[^|]*)\| (?P<help>[^|]+) \|", re.MULTILINE)
NOW = 1_700_000_000
HERE = Position.after("7")
ROWS = (
    ShardRow("a", TRIM_HORIZON, HERE, generation=3, batch=9, read_to=NOW * 1000 - DAY_MILLIS // 2, behind=700),
    ShardRow("b", TRIM_HORIZON, END, generation=3, batch=9, behind=0),
    ShardRow("c", TRIM_HORIZON, END, generation=2, batch=10),
)


class Bench:
    def __init__(self, *rows: ShardRow) -> None:
        self.now = 0.0
        self.metrics = DriverMetrics(lambda: self.now)
        self.calls = RequestFigures()
        view, identity = TableView({row.id: row for row in rows}, 9, frozenset()), MemoryStream("s").describe()
        self.consumer = SimpleNamespace(view=view, identity=identity, epoch=Epoch(3, "t"))
        for collector in (self.calls, RowFigures(cast("Consumer", self.consumer), lambda: NOW)):
            self.metrics.registry.register(collector)

    def batch(self, committed: Committed, **seconds: float) -> None:
        for phase, spent in seconds.items():
            self.metrics.phase(phase)
            self.now += spent
        self.metrics.phase("rest")
        self.now += 1000
        self.metrics.batch(committed)

    def scraped(self) -> dict[str, Metric]:
        return {_name(family): family for family in text_string_to_metric_families(generate_latest(self.metrics.registry).decode())}

    def values(self, name: str) -> dict[tuple[str, ...], float]:
        (labels,) = (family.labels for family in FAMILIES if family.name == name)
        samples = [sample for sample in self.scraped()[name].samples if "le" not in sample.labels]
        return {(*(s.labels[label] for label in labels), *([s.name[-5:]] if s.name != name else [])): s.value for s in samples}


def _name(family: Metric) -> str:
    return family.name + ("_total" if family.type == "counter" else "")


def everything() -> Bench:
    bench = Bench(*ROWS)
    bench.batch(Committed(1, ROWS), plan=0.5, process=2.0, close=0.25, commit=0.125)
    bench.metrics.took("released")
    bench.metrics.warned(DriverWarning(WarningReason.DATA_LOSS_SUSPECTED, "a: …"))
    table = bench.calls.requests.listener("dynamodb")
    table.called("GetItem")
    table.again("GetItem", "ThrottlingException")
    return bench


# -- the table ---------------------------------------------------------------------------------------------------------------------


def test_the_page_lists_exactly_the_metrics_that_there_are() -> None:
    listed = [
        Family(found["name"], found["kind"], found["help"].strip(), tuple(re.findall(r"`(\w+)`", found["labels"])))
        for found in ROW.finditer(PAGE.read_text(encoding="utf-8").partition("\n## ")[0])
    ]
    assert listed == list(FAMILIES)


def test_what_is_scraped_is_exactly_what_is_listed() -> None:
    found = set()
    for name, family in everything().scraped().items():
        labels = {tuple(sorted(label for label in sample.labels if label != "le")) for sample in family.samples}
        assert len(labels) == 1, name
        found.add(Family(name, family.type, family.documentation, labels.pop()))
    assert found == {replace(family, labels=tuple(sorted(family.labels))) for family in FAMILIES}


# -- figures -----------------------------------------------------------------------------------------------------------------------


def test_a_batch_counts_its_records_and_bytes_and_waits() -> None:
    bench = Bench()
    for replay in (True, False, False):
        rows = (ShardRow("a", HERE, HERE, records=3, size=70), ShardRow("b", HERE, HERE, records=2, size=30))
        bench.batch(Committed(1, rows, replay=replay, waits=2 if replay else 0))
    names = ("sluice_records_total", "sluice_bytes_total", "sluice_waits_total", "sluice_batches_total")
    assert [bench.values(name) for name in names] == [{(): 15.0}, {(): 300.0}, {(): 2.0}, {("replay",): 1.0, ("new",): 2.0}]


def test_the_phases_of_a_batch_are_timed_and_nothing_else_is() -> None:
    bench = Bench()
    bench.metrics.phase("plan")
    bench.now += 77
    bench.batch(Committed(1, ()), plan=0.5, process=2.0, close=0.25, commit=0.125)
    bench.batch(Committed(2, ()), plan=0.5, process=4.0, close=0.25, commit=0.125)
    sums = {phase: value for (phase, what), value in bench.values("sluice_batch_seconds").items() if what == "s_sum"}
    assert sums == {"plan": 1.0, "process": 6.0, "close": 0.5, "commit": 0.25}


def test_shards_are_told_as_their_rows_stand() -> None:
    bench = Bench(*ROWS)
    assert bench.values("sluice_shards") == {("open",): 2.0, ("ended",): 1.0, ("held",): 2.0}
    assert bench.values("sluice_shard_millis_behind_latest") == {("a",): 700.0, ("c",): 0.0}
    moved = Bench(*(replace(row, joins=10) if row.id == "a" else row for row in ROWS))
    assert moved.values("sluice_shard_millis_behind_latest") == {("c",): 0.0}
    assert (bench.values("sluice_generation"), bench.values("sluice_committed_batch")) == ({(): 3.0}, {(): 9.0})


def test_the_used_part_of_the_retention_grows_while_nothing_is_read() -> None:
    """It is a matter of the clock; a shard that was never read has used nothing."""
    bench = Bench(*ROWS)
    assert bench.values("sluice_shard_retention_used_ratio") == {("a",): 0.5, ("c",): 0.0}
    assert bench.values("sluice_retention_seconds") == {(): 86_400.0}


def test_before_the_stream_was_asked_nothing_is_said_of_its_retention() -> None:
    """A driver serves its metrics from its first second."""
    bench = Bench(*ROWS)
    bench.consumer.identity = None
    assert bench.values("sluice_retention_seconds") == {}
    assert bench.values("sluice_shard_retention_used_ratio") == {}


def test_the_drivers_calls_are_counted_by_service_and_operation_and_its_retries_by_cause() -> None:
    bench = Bench()
    table, stream = (bench.calls.requests.listener(service) for service in ("dynamodb", "kinesis"))
    for operation in ("GetItem", "GetItem", "UpdateItem"):
        table.called(operation)
    stream.called("ListShards")
    stream.again("ListShards", "LimitExceededException")
    stream.again("GetRecords", "LimitExceededException")
    assert bench.values("sluice_calls_total") == {
        ("driver", "dynamodb", "GetItem"): 2.0,
        ("driver", "dynamodb", "UpdateItem"): 1.0,
        ("driver", "kinesis", "ListShards"): 1.0,
    }
    assert bench.values("sluice_retries_total") == {("driver", "kinesis", "LimitExceededException"): 2.0}


def test_calls_of_tasks_are_counted_when_their_batch_is_committed() -> None:
    bench = Bench()
    for _ in range(2):
        rows = (
            replace(ROWS[0], calls={"kinesis/GetRecords": 3, "kinesis/GetRecords/HTTP 5/3": 1}),
            replace(ROWS[1], calls={"kinesis/GetRecords": 2}),
        )
        bench.calls.carried(rows)
    assert bench.values("sluice_calls_total") == {("tasks", "kinesis", "GetRecords"): 10.0}
    assert bench.values("sluice_retries_total") == {("tasks", "kinesis", "HTTP 5/3"): 2.0}


def test_take_overs_and_warnings_are_counted_by_their_reason() -> None:
    bench = everything()
    assert bench.values("sluice_takeovers_total") == {("released",): 1.0}
    assert bench.values("sluice_warnings_total") == {("DataLossSuspected",): 1.0}


# -- serving -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.fixture
def serve() -> Iterator[Callable[..., int | None]]:
    served: list[DriverMetrics] = []

    def start(metrics: DriverMetrics, port: int = 0, *, everywhere: bool = False) -> int | None:
        served.append(metrics)
        return metrics.serve(MetricsConfig(port), everywhere)

    yield start
    for metrics in served:
        metrics.close()


def fetch(port: int) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as reply:
        return reply.headers["Content-Type"], reply.read().decode()


def test_the_metrics_are_served_over_http(serve: Callable[..., int | None]) -> None:
    port = serve(everything().metrics)
    assert port is not None
    kind, text = fetch(port)
    assert kind.startswith("text/plain; version=")
    assert "sluice_records_total 0.0" in text


def test_a_server_that_was_closed_gives_its_port_back(serve: Callable[..., int | None]) -> None:
    """A notebook runs a consumer again in the same process."""
    first = DriverMetrics()
    port = first.serve(MetricsConfig(0), everywhere=False)
    first.close()
    assert serve(DriverMetrics(), port) == port


def test_in_a_pod_the_metrics_are_served_on_every_address(serve: Callable[..., int | None]) -> None:
    """Prometheus and `kubectl port-forward` come by different ones."""
    port = serve(DriverMetrics(), everywhere=True)
    addresses = ["127.0.0.1", "127.0.0.2", *(["[::1]"] if socket.has_dualstack_ipv6() else [])]
    assert all(b"sluice_records_total" in urllib.request.urlopen(f"http://{address}:{port}/metrics").read() for address in addresses)


def test_a_port_that_is_taken_is_a_warning_and_no_end_of_an_epoch(taken: int, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of the protocol depends on metrics."""
    assert DriverMetrics().serve(MetricsConfig(taken), everywhere=False) is None
    assert f"metrics are not served on 127.0.0.1, port {taken}" in caplog.text


def test_rows_may_change_while_they_are_scraped() -> None:
    """The view is replaced as a whole, never changed."""
    bench = Bench(*ROWS)
    rows = RowFigures(cast("Consumer", bench.consumer), lambda: NOW).collect()
    first = next(iter(rows))
    bench.consumer.view = replace(bench.consumer.view, rows={}, committed=10)
    assert first.samples[0].value == 3
    assert sum(len(metric.samples) for metric in rows) == 9


def test_the_retention_of_a_shard_of_which_a_run_owes_nothing_more_has_no_series() -> None:
    """It would fire an alert about records that nobody is to read."""
    bench = Bench(*ROWS)
    rows = RowFigures(cast("Consumer", bench.consumer), lambda: NOW, lambda _view: frozenset({"a"})).collect()
    used = next(metric for metric in rows if metric.name == "sluice_shard_retention_used_ratio")
    assert {sample.labels["shard"] for sample in used.samples} == {"c"}

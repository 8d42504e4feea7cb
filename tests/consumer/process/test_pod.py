from __future__ import annotations

import json
import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.versions import SpecName
from sluice_consumer.driver_report import ReportPhase
from sluice_consumer.process import pod
from sluice_consumer.process.pod import ReportDraft, Reporter
from sluice_consumer.spark.conf import PodAddress

HERE = PodAddress("driver-1", "space", "10.0.0.7", "uid-1")
STARTING, RUNNING, IDLE = ReportPhase.STARTING, ReportPhase.RUNNING, ReportPhase.IDLE


def said(**values: Any) -> pod.ReportChange:
    return lambda report: replace(report, **values)


@dataclass
class Annotations:
    values: dict[str, str] = field(default_factory=dict)
    reports: list[dict[str, Any]] = field(default_factory=list)
    broken: bool = False

    def read(self) -> dict[str, str]:
        if self.broken:
            raise ConnectionError
        return self.values

    def write(self, annotations: Mapping[str, str | None]) -> None:
        if self.broken:
            raise ConnectionError
        assert annotations.keys() == {pod.REPORT}
        self.reports.append(json.loads(annotations[pod.REPORT] or ""))


def test_outside_kubernetes_there_is_no_pod() -> None:
    assert pod.from_environment({}) is None


def test_the_pod_is_read_from_its_environment() -> None:
    """The downward API writes it there."""
    environment = {"SLUICE_POD_NAME": "driver-1", "SLUICE_POD_NAMESPACE": "space", "SLUICE_POD_IP": "10.0.0.7", "SLUICE_POD_UID": "uid-1"}
    assert pod.from_environment(environment) == HERE


@pytest.mark.parametrize(("environment", "made"), [({}, False), ({"SLUICE_TABLE_MADE": "true"}, True), ({"SLUICE_TABLE_MADE": ""}, False)])
def test_only_the_operator_says_that_there_was_a_table(environment: dict[str, str], made: bool) -> None:  # noqa: FBT001
    """On a laptop the table is made when it is not there."""
    assert pod.table_made(environment) == made


@pytest.mark.parametrize(
    ("environment", "owner"),
    [
        pytest.param({}, Owner(writes=False), id="sluice run, on a laptop"),
        pytest.param({"SLUICE_CLUSTER": "c1"}, Owner("", ("c1",), writes=False), id="a cluster alone is no owner"),
        pytest.param(
            {"SLUICE_OWNER": "shop/orders", "SLUICE_CLUSTER": "c1"}, Owner("shop/orders", ("c1",), writes=False), id="a person runs as the owner"
        ),
        pytest.param(
            {"SLUICE_POD_NAME": "old-driver-1", "SLUICE_POD_NAMESPACE": "elsewhere", "SLUICE_OWNER": "shop/orders"}, Owner("shop/orders"), id="a pod"
        ),
        pytest.param({"SLUICE_POD_NAME": "small-pool-1", "SLUICE_POD_NAMESPACE": "shop"}, Owner("shop/orders"), id="a pool's pod"),
        pytest.param({"SLUICE_OWNER": "", "SLUICE_CLUSTER": ""}, Owner(writes=False), id="empty variables say nothing"),
    ],
)
def test_whose_driver_a_process_is(environment: dict[str, str], owner: Owner) -> None:
    """docs/protocol.md, "The owner"."""
    assert pod.owner("orders", environment) == owner


@pytest.mark.parametrize(
    ("environment", "spec"),
    [
        ({}, SpecName()),
        ({"SLUICE_SPEC_HASH": "", "SLUICE_IMAGE": "orders:2"}, SpecName(None, "orders:2")),
        ({"SLUICE_SPEC_HASH": "x" * 400}, SpecName("x" * 300)),
    ],
    ids=["on a laptop", "an image alone", "no more than a row has room for"],
)
def test_which_version_a_driver_is_of(environment: dict[str, str], spec: SpecName) -> None:
    """docs/protocol.md, "Versions"."""
    assert pod.spec(environment) == spec


class Bench:
    def __init__(self, number: int = 0) -> None:
        self.report, self.texts = ReportDraft(number), list[dict[str, Any]]()

    def at(self, now: float, **values: Any) -> int:
        """How many reports were written after an update at a time."""
        self.report.change(said(**values))
        if not self.report.wait(now):
            self.texts.append(json.loads(self.report.begin(now)))
        return len(self.texts)


def test_a_report_is_written_on_change_and_not_more_often_than_every_five_seconds() -> None:
    bench = Bench()
    assert [bench.at(t, phase=RUNNING, batch=b) for t, b in [(0, 1), (0, 1), (4.9, 2), (5, 3), (10, 3)]] == [1, 1, 1, 2, 2]
    assert [report["batch"] for report in bench.texts] == [1, 3]


def test_a_report_says_now_and_then_that_the_driver_lives() -> None:
    bench = Bench()
    assert [bench.at(t, phase=IDLE) for t in (0, pod.ALIVE_SECONDS - 1, pod.ALIVE_SECONDS)] == [1, 1, 2]


def test_a_change_of_phase_is_written_at_once() -> None:
    """The operator waits for it."""
    bench = Bench()
    assert [bench.at(0, phase=STARTING), bench.at(0.1, phase=RUNNING), bench.at(0.2, batch=1)] == [1, 2, 2]


def test_the_first_executor_and_none_any_more_are_written_at_once() -> None:
    bench = Bench()
    assert [bench.at(t, executors=n) for t, n in [(0, 0), (0.1, 2), (0.2, 3), (0.3, 0)]] == [1, 2, 2, 3]


def test_what_was_held_back_is_written_when_it_is_time() -> None:
    bench = Bench()
    bench.at(0, phase=RUNNING)
    bench.at(1, batch=1)
    assert bench.report.wait(1) == 4
    bench.at(5)
    assert [report["number"] for report in bench.texts] == [1, 2]


def test_before_anything_was_said_nothing_is_written() -> None:
    """An operator that read an empty report would take it for one without shards."""
    assert ReportDraft().wait(1e9) > 0


def test_the_number_of_a_report_goes_on_where_the_supervisor_stopped() -> None:
    bench = Bench(number=7)
    bench.at(0, phase=RUNNING)
    assert bench.texts[0]["number"] == 8


def test_a_report_that_fails_is_tried_again_under_another_number() -> None:
    """Five seconds later, also if the phase had changed. It may have arrived although the answer was lost."""
    bench = Bench()
    bench.at(0, phase=RUNNING)
    bench.report.fail()
    assert [bench.at(t, phase=IDLE) for t in (0, 4.9, 5)] == [1, 1, 2]
    assert bench.texts[1] == {"number": 2, "phase": "Idle"}


# -- the thread --------------------------------------------------------------------------------------------------------------------


class Silent:
    def __init__(self) -> None:
        self.asked, self.answer = queue.SimpleQueue[dict[str, Any]](), threading.Semaphore(0)

    def read(self) -> dict[str, str]:
        raise NotImplementedError

    def write(self, annotations: Mapping[str, str | None]) -> None:
        self.asked.put(json.loads(annotations[pod.REPORT] or ""))
        assert self.answer.acquire(timeout=60)


def test_an_api_server_that_does_not_answer_holds_nobody_up() -> None:
    server = Silent()
    reporter = Reporter(server)
    reporter.update(said(phase=STARTING))
    assert server.asked.get(timeout=60) == {"number": 1, "phase": "Starting"}
    for batch in range(100):
        reporter.update(said(phase=RUNNING, batch=batch))
    server.answer.release()
    assert server.asked.get(timeout=60) == {"number": 2, "phase": "Running", "batch": 99}
    server.answer.release(100)  # those of a thread that lives on, too


def test_a_report_that_fails_stops_nothing() -> None:
    annotations, failed = Annotations(broken=True), threading.Event()
    reporter = Reporter(annotations)
    reporter._report.fail = failed.set  # type: ignore[method-assign]  # so that the next one is written at once
    reporter.update(said(phase=STARTING))
    assert failed.wait(60)
    annotations.broken = False
    written = threading.Event()
    annotations.reports = cast("Any", type("Seen", (list,), {"append": lambda self, value: (list.append(self, value), written.set())})())
    reporter.update(said(phase=RUNNING))
    assert written.wait(60)
    assert annotations.reports == [{"number": 2, "phase": "Running"}]


def test_a_supervisor_that_hands_over_reports_once_more_and_under_the_number_that_it_keeps_for_that() -> None:
    """Its driver reports from then on, and the operator takes no number twice. The taking of a lease does not wait for that report."""
    server = Silent()
    reporter = Reporter(server)
    reporter.update(said(phase=ReportPhase.WAITING_OUT_LEASE))
    assert server.asked.get(timeout=60)["number"] == 1
    number = reporter.hand_over(said(phase=STARTING, generation=4))
    server.answer.release()
    assert server.asked.get(timeout=60) == {"number": number, "phase": "Starting", "generation": 4}
    server.answer.release(100)
    assert number == 2
    assert reporter._next() is None


def test_without_a_pod_nothing_is_reported() -> None:
    Reporter(None).update(said(phase=RUNNING))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (Annotations({pod.TARGET: "3"}), 3),
        (Annotations({pod.TARGET: "0"}), 0),
        (Annotations(), None),
        (Annotations({pod.TARGET: "-1"}), None),
        (Annotations({pod.TARGET: "many"}), None),
        (Annotations({pod.TARGET: "²"}), None),
        (Annotations({pod.TARGET: "3"}, broken=True), None),
    ],
    ids=["a number", "none at all", "nothing said", "negative", "words", "a digit that is no number", "no answer"],
)
def test_the_wanted_executors_are(annotations: Annotations, expected: int | None) -> None:
    """None: what is there stays as it is."""
    assert pod.wanted_executors(annotations) == expected

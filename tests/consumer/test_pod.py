from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from sluice_consumer import pod
from sluice_consumer.pod import PodAnnotations, Reporter
from sluice_consumer.spark_conf import Pod

HERE = Pod("driver-1", "space", "10.0.0.7", "uid-1")


@dataclass
class Annotations:
    """The annotations of a pod; `broken` makes every call fail."""

    values: dict[str, str] = field(default_factory=dict)
    reports: list[dict[str, Any]] = field(default_factory=list)
    broken: bool = False

    def read(self) -> dict[str, str]:
        """See `pod.Annotations`."""
        if self.broken:
            raise ConnectionError
        return self.values

    def write(self, name: str, value: str) -> None:
        """See `pod.Annotations`."""
        if self.broken:
            raise ConnectionError
        assert name == pod.REPORT
        self.reports.append(json.loads(value))


def test_outside_kubernetes_there_is_no_pod() -> None:
    """The variable of its name decides."""
    assert pod.from_environment({}) is None


def test_the_pod_is_read_from_its_environment() -> None:
    """The downward API writes it there."""
    environment = {"SLUICE_POD_NAME": "driver-1", "SLUICE_POD_NAMESPACE": "space", "SLUICE_POD_IP": "10.0.0.7", "SLUICE_POD_UID": "uid-1"}
    assert pod.from_environment(environment) == HERE


def test_a_patch_carries_the_uid_of_the_pod() -> None:
    """It can never touch a later pod of the same name."""
    calls: list[tuple[Any, ...]] = []
    annotations = object.__new__(PodAnnotations)
    annotations._pod = HERE
    annotations._api = SimpleNamespace(patch_namespaced_pod=lambda *args, **_: calls.append(args))
    annotations.write("sluice.dev/report", "{}")
    assert calls == [("driver-1", "space", {"metadata": {"uid": "uid-1", "annotations": {"sluice.dev/report": "{}"}}})]


def test_a_pod_without_annotations_has_none() -> None:
    """The API says null."""
    annotations = object.__new__(PodAnnotations)
    annotations._pod = HERE
    annotations._api = SimpleNamespace(read_namespaced_pod=lambda *_, **__: SimpleNamespace(metadata=SimpleNamespace(annotations=None)))
    assert annotations.read() == {}


class Bench:
    """A reporter in virtual time."""

    def __init__(self, number: int = 0) -> None:
        self.now = 0.0
        self.annotations = Annotations()
        self.reporter = Reporter(self.annotations, number, clock=lambda: self.now)

    def at(self, now: float, **values: object) -> int:
        """How many reports were written after an update at a time."""
        self.now = now
        self.reporter.update(**values)
        return len(self.annotations.reports)


def test_a_report_is_written_on_change_and_not_more_often_than_every_five_seconds() -> None:
    """Held back changes travel with the next one."""
    bench = Bench()
    assert [bench.at(t, phase="Running", batch=b) for t, b in [(0, 1), (0, 1), (4.9, 2), (5, 3), (10, 3)]] == [1, 1, 1, 2, 2]
    assert [report["batch"] for report in bench.annotations.reports] == [1, 3]


def test_a_report_says_now_and_then_that_the_driver_lives() -> None:
    """Even when nothing changed."""
    bench = Bench()
    assert [bench.at(t, phase="Idle") for t in (0, pod.ALIVE_SECONDS - 1, pod.ALIVE_SECONDS)] == [1, 1, 2]


def test_a_change_of_phase_is_written_at_once() -> None:
    """The operator waits for it."""
    bench = Bench()
    assert [bench.at(0, phase="Starting"), bench.at(0.1, phase="Running"), bench.at(0.2, batch=1)] == [1, 2, 2]


def test_what_was_held_back_is_written_when_it_is_time() -> None:
    """Nobody has to change anything for it."""
    bench = Bench()
    bench.at(0, phase="Running")
    bench.at(1, batch=1)
    bench.now = 5
    bench.reporter.update()
    assert [report["number"] for report in bench.annotations.reports] == [1, 2]


def test_the_number_of_a_report_goes_on_where_the_supervisor_stopped() -> None:
    """The operator sees that a report is newer."""
    bench = Bench(number=7)
    bench.at(0, phase="Running")
    assert bench.annotations.reports[0]["number"] == 8


def test_a_report_that_fails_stops_nothing_and_is_tried_again() -> None:
    """Nothing of the protocol depends on it."""
    bench = Bench()
    bench.annotations.broken = True
    assert bench.at(0, phase="Running") == 0
    bench.annotations.broken = False
    assert bench.at(5, phase="Running") == 1
    assert bench.annotations.reports[0]["number"] == 1


def test_without_a_pod_nothing_is_reported() -> None:
    """A laptop has a log."""
    Reporter(None).update(phase="Running")


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

"""Words of strangers in a status and in events: what `kubectl get -w`, Argo CD and a log show is one printable line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from plan.views import driver
from scenarios import started
from simulated_cluster import SPEC, SimulatedCluster

from sluice_operator.cluster.port import Rejected
from sluice_operator.names import printable
from sluice_operator.plan import known_words
from sluice_operator.plan.finalizers import taken_off_by
from sluice_operator.state.serialization import load_report

Json = dict[str, Any]
SAID = "\x1b[2J\x1b[31mdone\r\nnext   force orders\u2028\u202egnp.exe \x9b2J\x07\x00"


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key != "lastGoodSpec":
                yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


def assert_printable(world: SimulatedCluster, said: str = "gnp.exe") -> None:
    events = [event["message"] for event in world.memory.all("Event")]
    found = [*texts(world.status), *events]
    assert [text for text in found if not text.isprintable()] == []
    assert any(said in text for text in found)


def test_a_refusal_of_the_api_server_is_one_printable_line() -> None:
    world = SimulatedCluster()

    def refuse(body: Json) -> None:
        if body["kind"] == "Pod":
            raise Rejected("Invalid", SAID)

    world.memory.admission = refuse
    world.apply(SPEC)
    assert world.run(60, until=lambda: any("gnp.exe" in text for text in texts(world.status)))
    assert_printable(world)


def test_a_spec_that_is_refused_is_quoted_in_one_printable_line() -> None:
    world = started()
    world.apply({**SPEC, "sparkConf": {SAID: "1", f"spark.{SAID}": SAID}, "batch": {"intervalSeconds": SAID}})
    assert world.run(30, until=lambda: world.condition("SpecValid").get("status") == "False")
    assert_printable(world, "")


@given(st.text())
def test_a_report_has_printable_words(said: str) -> None:
    report = load_report(json.dumps({"number": 1, "phase": said, "warnings": [said], "draining": [{"pod": said}]}))
    if report is not None:
        assert all(text.isprintable() for text in (report.phase, *report.warnings, *(drain.pod for drain in report.draining)))


@given(st.text(), st.text())
def test_last_words_of_a_program_are_one_printable_line(reason: str, said: str) -> None:
    """`process` may raise with text out of a record."""
    assert known_words.message(reason, said).isprintable()


def test_names_of_finalizers_are_a_short_printable_line() -> None:
    """Those of a pod may be anything."""
    said = taken_off_by("shop", "pod", driver(finalizers=[f"\x1b[31m{'x' * 250}/{number}" for number in range(9)]))
    assert said.isprintable()
    assert len(said) < 400


@given(st.text(st.characters(codec=None)))
def test_a_printable_text_is_as_long_as_before_and_one_line(said: str) -> None:
    line = printable(said)
    assert len(line) == len(said)
    assert line.isprintable()
    assert line == said or not said.isprintable()

"""The real Prometheus scrapes an operator and a driver, and has an answer to every query of the dashboards."""

from __future__ import annotations

import json
import math
import os
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from html import escape
from pathlib import Path
from typing import Any

import pytest
from served import NAME, NAMESPACE, Driver, Operator

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import processes, prometheus
from sluice_lab.machine.listening import LOOPBACK, free_port
from sluice_lab.pictures.drawing import Series, picture
from sluice_lab.pictures.panels import DrawnPanel, legend, panels

Json = dict[str, Any]

FOLDER = places.REPO / "charts" / "sluice" / "files" / "dashboards"
FILES = sorted(FOLDER.glob("*.json"))
WINDOW = "20s"
SECONDS = 25


class Answers:
    """Prometheus' HTTP API, and those that it scrapes."""

    def __init__(self, address: str, operator: Operator, driver: Driver) -> None:
        self._address, self._operator, self._driver = address, operator, driver

    def live(self) -> None:
        """Something happens in the cluster and in the driver."""
        self._operator.live()
        self._driver.live()

    def live_on(self, seconds: float) -> None:
        """Something happens every two seconds."""
        deadline = time.monotonic() + seconds
        processes.poll(lambda: bool(self.live()) or time.monotonic() > deadline, seconds + 1, pause=2)

    def ask(self, path: str, **asked: str) -> Any:
        """The data of an answer; an error of Prometheus' is one of the test."""
        with urllib.request.urlopen(f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(asked)}", timeout=5) as reply:
            return json.load(reply)["data"]

    def has(self, expression: str) -> bool:
        """Whether a query has a value that is a number."""
        return any(not math.isnan(float(one["value"][1])) for one in self.ask("query", query=expression)["result"])

    def choices(self, selector: str, label: str) -> list[str]:
        """The values of a label in some series, as soon as there are any."""
        found: list[str] = []
        processes.poll(lambda: bool(found.extend(self.ask(f"label/{label}/values", **{"match[]": selector})) or found), SECONDS)
        return found

    def eventually(self, expressions: set[str]) -> set[str]:
        """Lives on until each has a value; returns those that never had one."""
        missing = set(expressions)

        def found() -> bool:
            self.live()
            missing.difference_update({each for each in missing if self.has(each)})
            return not missing

        processes.poll(found, SECONDS, pause=0.3)
        return missing


def config(operator: int, driver: int) -> Json:
    """Labels are those that the chart's PodMonitors give (tests/operator/helm/test_monitors.py)."""
    of_operator = {"targets": [f"{LOOPBACK}:{operator}"], "labels": {"namespace": "sluice-system", "pod": "sluice-a"}}
    labels = {"namespace": NAMESPACE, "pod": f"{NAME}-driver-1", "sluice_dev_consumer": NAME}
    return {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
        "scrape_configs": [
            {"job_name": "operator", "honor_labels": True, "static_configs": [of_operator]},
            {"job_name": "drivers", "static_configs": [{"targets": [f"{LOOPBACK}:{driver}"], "labels": labels}]},
        ],
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """A Prometheus on loopback, for this module."""
    try:
        program = prometheus.program(places.work(), "prometheus")
    except LabError as error:
        pytest.skip(f"dashboards cannot be tried on this machine: {error}")
    folder, operator, driver = tmp_path_factory.mktemp("prometheus"), Operator(), Driver()
    with ExitStack() as stack:
        (folder / "config.json").write_text(json.dumps(config(stack.enter_context(operator.serving()), stack.enter_context(driver.serving()))))
        port = free_port(LOOPBACK)
        running = processes.start(places.work(), processes.Program(f"prometheus-{os.getpid()}", (program, *_arguments(folder, port))))
        stack.callback(running.stop)
        found = Answers(f"{LOOPBACK}:{port}", operator, driver)
        assert processes.poll(lambda: _ready(running, port), SECONDS), processes.tail(running.log.read_text())
        yield found


def _arguments(folder: Path, port: int) -> tuple[str, ...]:
    stored = ("--storage.tsdb.path", str(folder / "data"))
    return ("--config.file", str(folder / "config.json"), *stored, f"--web.listen-address={LOOPBACK}:{port}", "--log.level=warn")


def _ready(running: processes.Running, port: int) -> bool:
    assert running.alive(), processes.tail(running.log.read_text())
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/-/ready", timeout=1) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def filled(text: str, chosen: dict[str, str]) -> str:
    """With values for variables, as Grafana puts them in."""
    return re.sub(r"\$(\w+)", lambda found: chosen[found[1]], text)


def choose(answers: Answers, board: Json) -> dict[str, str]:
    """A value for each variable: the only one there is, or the first. "All" where several may be chosen."""
    chosen = {"__rate_interval": WINDOW}
    for variable in board["templating"]["list"][1:]:
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert asked is not None
        values = answers.choices(filled(asked[1], chosen), asked[2])
        assert values, variable["name"]
        chosen[variable["name"]] = variable.get("allValue") or values[0]
    return chosen


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_query_of_a_dashboard_returns_data(answers: Answers, path: Path) -> None:
    """For values of its variables that Prometheus itself gives; a value that is no number draws nothing."""
    board = json.loads(path.read_text(encoding="utf-8"))
    chosen = choose(answers, board)
    assert {chosen.get("namespace"), chosen.get("name", NAME)} in ({NAMESPACE, NAME}, {".+", NAME})
    queries = {filled(target["expr"], chosen) for panel in board["panels"] for target in panel.get("targets", ())}
    assert queries
    assert answers.eventually(queries) == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_dashboard_is_drawn_from_prometheus_answers(answers: Answers, path: Path) -> None:
    """Every panel; one without data is refused. `SLUICE_PICTURES` names a folder that the pictures go to: those of docs/monitoring.md are made so."""
    board = json.loads(path.read_text(encoding="utf-8"))
    chosen = choose(answers, board)
    found = panels(board)
    assert answers.eventually({filled(target.expr, chosen) for panel in found for target in panel.targets}) == set()
    if folder := os.environ.get("SLUICE_PICTURES"):
        answers.live_on(3 * SECONDS)
    drawn = picture(found, lambda panel: history(answers, panel, chosen))
    assert all(escape(panel.title) in drawn for panel in found)
    if folder:
        (Path(folder) / f"{path.stem}.svg").write_text(drawn)


def history(answers: Answers, panel: DrawnPanel, chosen: dict[str, str]) -> list[Series]:
    """The series of a panel over the last seconds; values that are no number are left out."""
    end = time.time()
    found = []
    for target in panel.targets:
        asked = {"query": filled(target.expr, chosen), "start": str(end - 2 * SECONDS), "end": str(end), "step": "1"}
        for one in answers.ask("query_range", **asked)["result"]:
            points = tuple((float(at), float(value)) for at, value in one["values"] if not math.isnan(float(value)))
            if panel.kind == "table":
                found.append(Series(legend("{{namespace}}/{{name}}", one["metric"]), points, target.legend))
            else:
                found.append(Series(legend(target.legend, one["metric"]), points))
    return found


def test_prometheus_has_no_answer_to_what_nobody_serves(answers: Answers) -> None:
    """No such metric, another consumer's, or no number."""
    assert not answers.has("sluice_nothing")
    assert not answers.has('sluice_consumer_ready{name="another"}')
    assert not answers.has("vector(0) / vector(0)")
    assert answers.has("vector(0)")

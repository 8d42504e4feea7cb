"""The real Prometheus scrapes an operator and a driver, and has an answer to every query of the dashboards."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from served import NAME, NAMESPACE, Driver, Operator

from sluice_lab import places
from sluice_lab.demo.incidents import DASHBOARD, PANELS
from sluice_lab.machine import processes, prometheus
from sluice_lab.machine.listening import LOOPBACK, free_port
from sluice_lab.pictures.answers import Prometheus, choose, filled, queries
from sluice_lab.pictures.panels import panels

Json = dict[str, Any]

FOLDER = places.REPO / "charts" / "sluice" / "files" / "dashboards"
FILES = sorted(FOLDER.glob("*.json"))
WINDOW = "20s"
SECONDS = 25


class Scraped:
    def __init__(self, address: str, operator: Operator, driver: Driver) -> None:
        self._address, self._operator, self._driver = address, operator, driver
        self.prometheus = Prometheus(self._get)

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self._address}/api/v1/{path}", timeout=5) as reply:
            return str(reply.read().decode())

    def live(self) -> None:
        self._operator.live()
        self._driver.live()

    def choices(self, selector: str, label: str) -> list[str]:
        found: list[str] = []
        processes.poll(lambda: bool(found.extend(self.prometheus.values(selector, label)) or found), SECONDS)
        return found

    def eventually(self, expressions: set[str]) -> set[str]:
        """Lives on until each has a value; returns those that never had one."""
        missing = set(expressions)

        def found() -> bool:
            self.live()
            missing.difference_update({each for each in missing if self.prometheus.has(each)})
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
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    program = prometheus.program("prometheus")
    folder, operator, driver = tmp_path_factory.mktemp("prometheus"), Operator(), Driver()
    with ExitStack() as stack:
        (folder / "config.json").write_text(json.dumps(config(stack.enter_context(operator.serving()), stack.enter_context(driver.serving()))))
        port = free_port(LOOPBACK)
        running = processes.start(places.work(), processes.Program(f"prometheus-{os.getpid()}", (program, *_arguments(folder, port))))
        stack.callback(running.stop)
        found = Scraped(f"{LOOPBACK}:{port}", operator, driver)
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_query_of_a_dashboard_returns_data(scraped: Scraped, path: Path) -> None:
    """For values of its variables that Prometheus itself gives; a value that is no number draws nothing."""
    board = json.loads(path.read_text(encoding="utf-8"))
    chosen = choose(board, scraped.choices, WINDOW)
    assert {chosen.get("namespace"), chosen.get("name", NAME)} in ({NAMESPACE, NAME}, {".+", NAME})
    assert queries(board, chosen)
    assert scraped.eventually(queries(board, chosen)) == set()


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_that_an_incident_is_drawn_from_has_a_history(scraped: Scraped, name: str) -> None:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    chosen = choose(board, scraped.choices, WINDOW)
    found = {panel.title: panel for panel in panels(board)}
    wanted = {filled(target.expr, chosen) for title in PANELS[name] for target in found[title].targets}
    assert scraped.eventually(wanted) == set()
    end = time.time()
    for title in PANELS[name]:
        series = scraped.prometheus.history(found[title], chosen, end - SECONDS, end)
        assert any(each.name and each.points for each in series), title


def test_prometheus_has_no_answer_to_what_nobody_serves(scraped: Scraped) -> None:
    asked = scraped.prometheus
    assert not asked.has("sluice_nothing")
    assert not asked.has('sluice_consumer_ready{name="another"}')
    assert not asked.has("vector(0) / vector(0)")
    assert asked.has("vector(0)")

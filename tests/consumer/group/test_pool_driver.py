"""The driver of a pool: its configuration, what a session gets for a sink, and reports on their way to the supervisor."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException

from sluice_checkpoints.errors import Refused
from sluice_consumer import sinks
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.driver_report import ReportPhase
from sluice_consumer.group import consumer_run, group_executors, pool_config, report_files
from sluice_consumer.group.group_executors import GroupExecutors
from sluice_consumer.group.report_files import POOL, ReportFile
from sluice_consumer.spark.conf import EXTENSIONS


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "name: missing"),
        ({"name": "small", "stream": {}}, "stream: unknown setting"),
        ({"name": "small", "format": 2}, "format: 2 is not known"),
        ({"name": "small", "slotShare": 0}, "slotShare: must be from 0.01 to 1, not 0"),
        ({"name": "small", "leaseDurationSeconds": 2}, "leaseDurationSeconds: must be at least 3, not 2"),
        ({"name": "small", "executors": -1}, "executors: must be at least 0, not -1"),
    ],
)
def test_a_wrong_configuration_of_a_pool_is_refused_by_the_name_of_its_key(given: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=f"^{said}"):
        pool_config.parse(json.dumps(given))


def test_spark_starts_with_the_settings_of_the_pool_and_divides_its_slots_fairly() -> None:
    whole = pool_config.parse(json.dumps({"name": "small", "executors": 2, "sparkConf": {"spark.ui.enabled": "true"}})).whole
    assert (whole.name, whole.executors, whole.stream, whole.batch.max_seconds) == ("small", 2, StreamConfig(), 600.0)
    assert whole.spark_conf == {"spark.scheduler.mode": "FAIR", "spark.python.task.killTimeout": "500ms", "spark.ui.enabled": "true"}


# -- what a sink asks for ----------------------------------------------------------------------------------------------------------

SINK = Config(StreamConfig("s", "r"), CheckpointsConfig("table"), PipelineConfig("sluice_consumer.sinks:delta"))


@dataclass
class Conf:
    values: dict[str, str] = field(default_factory=dict)

    def get(self, key: str, default: str | None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        if key.startswith("spark.executor"):
            raise AnalysisException("cannot be modified")
        self.values[key] = value


def given(monkeypatch: pytest.MonkeyPatch, asked: dict[str, str], has: dict[str, str]) -> dict[str, str]:
    monkeypatch.setattr(sinks, "settings", lambda *_: asked)
    conf = Conf(dict(has))
    consumer_run.give_settings(cast("Any", SimpleNamespace(conf=conf)), SINK)
    return conf.values


def test_a_session_gets_what_its_sink_asks_for_and_keeps_what_the_pool_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"spark.sql.catalog.a": "A", "spark.sql.b": "sink's", EXTENSIONS: "x.Y"}
    assert given(monkeypatch, asked, {"spark.sql.b": "pool's", EXTENSIONS: "v.W,x.Y"}) == {
        "spark.sql.catalog.a": "A",
        "spark.sql.b": "pool's",
        EXTENSIONS: "v.W,x.Y",
    }


@pytest.mark.parametrize("key", [EXTENSIONS, "spark.executor.plugin"])
def test_a_sink_that_asks_for_what_spark_takes_only_at_its_start_is_refused_with_the_line_to_add(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """Without it the batches would fail, one after the other."""
    with pytest.raises(Refused, match=rf"its sink needs {key}=x\.Y, and Spark was started without it; add it to sparkConf of the pool"):
        given(monkeypatch, {key: "x.Y"}, {})


# -- reports -----------------------------------------------------------------------------------------------------------------------


def test_the_last_report_of_a_run_is_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.1"
    file = ReportFile(path)
    assert report_files.words(path) == {}
    for batch in (1, 2):
        file.update(lambda report, batch=batch: replace(report, phase=ReportPhase.RUNNING, batch=batch))  # type: ignore[misc]
    assert report_files.words(path) == {"phase": "Running", "batch": 2}
    path.write_text("{")
    assert report_files.words(path) == {}


def test_a_report_that_cannot_be_written_ends_no_run(tmp_path: Path) -> None:
    """The volume may be full."""
    ReportFile(tmp_path / "gone" / "a.1").update(lambda report: replace(report, batch=1))


class Run:
    def __init__(self, *, broken: bool = False) -> None:
        self.executors, self.broken = -1, broken

    def report(self, executors: int) -> None:
        if self.broken:
            raise ValueError
        self.executors = executors


class Target:
    def __init__(self) -> None:
        self.total = self.live = 1
        self.draining: dict[str, Any] = {}

    def apply(self, target: int) -> None:
        self.total = self.live = target


def test_the_executors_follow_the_operator_and_every_consumer_reports_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_executors, "target_of", lambda *_: Target())
    runs = {name: SimpleNamespace(run=Run(broken=name == "a")) for name in "ab"}
    driver = SimpleNamespace(spark=SimpleNamespace(conf=Conf()), wanted=None, runs=runs)
    executors = GroupExecutors(cast("Any", driver), SINK, ReportFile(tmp_path / POOL))
    executors.step()
    driver.wanted = 3
    executors.step()
    assert [one.run.executors for one in runs.values()] == [-1, 3]
    zero = {"openShards": 0, "endedShards": 0, "heldShards": 0}
    assert report_files.words(tmp_path / POOL) == {"phase": "Running", "executors": 3, "draining": [], **zero}


def test_a_pool_without_consumers_notices_that_spark_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else would. While it is stopped on purpose, it is not asked."""
    monkeypatch.setattr(group_executors, "target_of", lambda *_: Target())
    monkeypatch.setattr(group_executors, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(group_executors.threads, "can_work", lambda *_: False)
    gone = threading.Event()
    driver = SimpleNamespace(spark=SimpleNamespace(conf=Conf()), wanted=None, runs={})
    executors = GroupExecutors(cast("Any", driver), SINK, ReportFile(tmp_path / POOL))
    driver.gone = lambda: (gone.set(), executors.over.set())
    executors.follow()
    assert gone.is_set()

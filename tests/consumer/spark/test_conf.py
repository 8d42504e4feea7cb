from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from sluice_consumer import sinks
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.spark.conf import CLASS_PATH, LATE_COMPILER, NO_BOUNDS_CHECKS, SHARED_CLASSES, PodAddress, settings
from sluice_consumer.watchdog.batch_watch import STILL_SECONDS, BatchLimits

CONFIG = Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig("m:f"), name="orders")
POD = PodAddress("driver-1", "space", "10.0.0.7", "uid")


@pytest.mark.parametrize("lease", [3, 7.7, 20, 600])
def test_an_executor_that_is_cut_off_exits_within_a_third_of_the_lease(lease: float) -> None:
    """HeartbeatInterval x (maxFailures + 1) <= lease / 3."""
    conf = settings(replace(CONFIG, lease_duration_seconds=lease), None, "k8s://api")
    interval = int(conf["spark.executor.heartbeatInterval"].removesuffix("ms"))
    failures = int(conf["spark.executor.heartbeat.maxFailures"])
    assert 0 < interval * (failures + 1) <= lease * 1000 / 3
    timeout = int(conf["spark.network.timeout"].removesuffix("ms"))
    assert interval < timeout
    assert int(conf["spark.network.timeoutInterval"].removesuffix("ms")) <= timeout


def test_in_local_mode_nobody_can_be_cut_off_and_heartbeats_only_bring_figures() -> None:
    """Executor and driver are one process there. The watch of a batch knows what moves by heartbeats: often enough for its ten seconds."""
    heartbeats = {key: value for key, value in settings(CONFIG, None).items() if "heartbeat" in key}
    assert heartbeats == {"spark.executor.heartbeatInterval": "2s"}
    assert BatchLimits.window_of(2) == STILL_SECONDS
    mine = replace(CONFIG, spark_conf={"spark.executor.heartbeatInterval": "5s"})
    assert settings(mine, None)["spark.executor.heartbeatInterval"] == "5s"


@pytest.mark.parametrize(("limit", "interval"), [(None, "1800"), (60, "30"), (0, None)])
def test_workers_say_where_they_stand_before_a_batch_is_overdue(limit: float | None, interval: str | None) -> None:
    config = replace(CONFIG, batch=replace(CONFIG.batch, max_seconds=limit))
    assert settings(config, None).get("spark.python.worker.tracebackDumpIntervalSeconds") == interval


@pytest.mark.parametrize(
    ("master", "given", "workers"),
    [
        ("local[4,4]", {}, "16"),
        ("k8s://api", {}, "4"),
        ("k8s://api", {"spark.executor.cores": "3"}, "12"),
        ("k8s://api", {"spark.python.factory.idleWorkerMaxPoolSize": "9"}, "9"),
    ],
)
def test_a_jvm_keeps_a_few_idle_python_workers_for_each_slot(master: str, given: dict[str, str], workers: str) -> None:
    """Otherwise it keeps as many as ever worked at a time, which are many after the start of a pool."""
    assert settings(replace(CONFIG, spark_conf=given), None, master)["spark.python.factory.idleWorkerMaxPoolSize"] == workers


def test_on_all_cores_of_a_machine_as_many_python_workers_stay_as_worked_at_a_time() -> None:
    assert "spark.python.factory.idleWorkerMaxPoolSize" not in settings(CONFIG, None, "local[*]")


def test_in_local_mode_a_pod_is_like_any_machine() -> None:
    conf = settings(replace(CONFIG, executors=1, spark_conf={"spark.master": "local[1,4]"}), POD)
    assert not [key for key in conf if key.startswith(("spark.kubernetes.", "spark.executor.instances", "spark.driver.host"))]
    assert conf["spark.driver.extraClassPath"] == CLASS_PATH


def test_the_command_line_decides_on_the_master() -> None:
    mine = replace(CONFIG, spark_conf={"spark.master": "spark://here"})
    assert settings(mine, None, "local[4]")["spark.master"] == "local[4]"
    assert settings(mine, None)["spark.master"] == "spark://here"
    assert settings(CONFIG, None)["spark.master"] == "local[2]"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.speculation", "false"),
        ("spark.executor.heartbeat.maxFailures", "2"),
        ("spark.decommission.enabled", "true"),
        ("spark.executor.decommission.signal", "TERM"),
        ("spark.ui.retainedJobs", "10000"),
        ("spark.ui.retainedDeadExecutors", "1000"),
        ("spark.sql.ui.retainedExecutions", "1000"),
        ("spark.ui.dagGraph.retainedRootRDDs", "2147483647"),
        ("spark.scheduler.listenerbus.eventqueue.appStatus.capacity", "100000"),
    ],
)
def test_what_the_protocol_needs_wins_over_the_user(key: str, value: str) -> None:
    assert settings(replace(CONFIG, spark_conf={key: "9"}), POD, "k8s://api")[key] == value


def test_the_user_wins_over_the_defaults() -> None:
    conf = settings(replace(CONFIG, spark_conf={"spark.log.level": "INFO", "spark.x": "y"}), None)
    assert (conf["spark.log.level"], conf["spark.x"], conf["spark.app.name"]) == ("INFO", "y", "orders")


def test_the_first_batch_is_planned_while_executors_start() -> None:
    """Spark on Kubernetes waits for executors before it lets the driver do anything, unless it is told not to."""
    assert settings(CONFIG, POD, "k8s://api")["spark.scheduler.minRegisteredResourcesRatio"] == "0"


def test_a_laptop_gets_no_setting_of_kubernetes() -> None:
    conf = settings(replace(CONFIG, executors=3), None)
    assert not [key for key in conf if "kubernetes" in key or key in {"spark.driver.host", "spark.executor.instances"}]


@pytest.mark.parametrize(("ip", "host"), [("10.0.0.7", "10.0.0.7"), ("fd00::7", "[fd00::7]")])
def test_a_pod_is_its_executors_owner_and_address(ip: str, host: str) -> None:
    """They are collected with it, and dial its own IP: 0.0.0.0 would make each of them die. Spark takes an address of IPv6 in brackets only."""
    conf = settings(replace(CONFIG, executors=3), replace(POD, ip=ip), "k8s://api")
    assert conf["spark.kubernetes.driver.pod.name"] == "driver-1"
    assert conf["spark.driver.bindAddress"] == conf["spark.driver.host"] == host
    assert conf["spark.kubernetes.namespace"] == "space"
    assert conf["spark.executor.instances"] == "3"


def test_without_a_number_the_users_own_number_of_executors_stands() -> None:
    conf = settings(replace(CONFIG, spark_conf={"spark.executor.instances": "5"}), POD)
    assert conf["spark.executor.instances"] == "5"


def test_a_pod_starts_from_the_images_archive_of_classes_unless_the_user_says_otherwise() -> None:
    """The archive fits only this class path; somebody else's comes first if it is given. A laptop has neither."""
    conf = settings(CONFIG, POD)
    assert conf["spark.driver.extraClassPath"] == CLASS_PATH
    assert conf["spark.driver.defaultJavaOptions"].startswith(SHARED_CLASSES)
    theirs = {"spark.driver.extraClassPath": "/mine.jar", "spark.driver.extraJavaOptions": "-Dx=y"}
    conf = settings(replace(CONFIG, spark_conf=theirs), POD)
    assert theirs.items() <= conf.items()
    laptop = settings(CONFIG, None)
    assert "spark.driver.extraClassPath" not in laptop
    assert SHARED_CLASSES not in laptop["spark.driver.defaultJavaOptions"]


@pytest.mark.parametrize("process", ["driver", "executor"])
@pytest.mark.parametrize("pod", [None, POD])
def test_every_jvm_reads_arrow_without_looking_at_bounds_unless_the_user_says_otherwise(process: str, pod: PodAddress | None) -> None:
    key = f"spark.{process}.defaultJavaOptions"
    assert NO_BOUNDS_CHECKS in settings(CONFIG, pod)[key].split()
    assert settings(replace(CONFIG, spark_conf={key: "-Dx=y"}), pod)[key] == "-Dx=y"


@pytest.mark.parametrize("process", ["driver", "executor"])
@pytest.mark.parametrize("pod", [None, POD])
def test_every_jvm_is_told_to_leave_javas_second_compiler_for_later(process: str, pod: PodAddress | None) -> None:
    """A third of the CPU until the first batch was its work."""
    assert LATE_COMPILER in settings(CONFIG, pod)[f"spark.{process}.defaultJavaOptions"]


def test_java_knows_the_options_of_its_second_compiler() -> None:
    """An option that it does not know would end every driver."""
    said = subprocess.run(["java", *LATE_COMPILER.split(), "-XX:+PrintFlagsFinal", "-version"], check=True, capture_output=True, text=True).stdout
    for option in LATE_COMPILER.split():
        name, _, value = option.removeprefix("-XX:").partition("=")
        assert [line.split()[3] for line in said.splitlines() if line.split()[1:2] == [name]] == [value]


SINK = {"spark.sql.extensions": "its.Extension", "spark.sql.catalog.spark_catalog": "its.Catalog"}


@pytest.mark.parametrize(
    ("given", "extensions", "catalog"),
    [
        ({}, "its.Extension", "its.Catalog"),
        ({"spark.sql.extensions": "mine"}, "mine,its.Extension", "its.Catalog"),
        ({"spark.sql.extensions": "its.Extension,mine"}, "its.Extension,mine", "its.Catalog"),
        ({"spark.sql.catalog.spark_catalog": "mine"}, "its.Extension", "mine"),
    ],
)
def test_a_sink_is_given_what_it_asks_of_the_session(given: dict[str, str], extensions: str, catalog: str) -> None:
    conf = settings(replace(CONFIG, spark_conf=given), None, sink=SINK)
    assert (conf["spark.sql.extensions"], conf["spark.sql.catalog.spark_catalog"]) == (extensions, catalog)


def test_only_a_sink_of_sluices_own_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's is not imported before there is a session."""
    monkeypatch.delitem(sys.modules, "this", raising=False)
    assert sinks.settings("sluice_consumer.sinks:delta", {})["spark.sql.catalog.spark_catalog"].endswith("DeltaCatalog")
    assert sinks.settings("sluice_consumer.sinks:parquet", {}) == {}
    assert sinks.settings("this:delta", {}) == {}
    assert "this" not in sys.modules

"""What the driver's settings make of a JVM that starts with them. In a process of its own: this one's JVM may have started with others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest_spark import configuration
from pyspark.sql import SparkSession
from rendered_executor import DRIVER, RESOURCE, SPEC

from sluice_consumer import config as configs
from sluice_consumer.config import StreamConfig
from sluice_consumer.spark import conf, spark_home
from sluice_operator.apply.manifests import driver_config
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse
from sluice_operator.settings import Settings

pytestmark = pytest.mark.spark

LOOK = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.config(map=json.loads(sys.argv[1])).getOrCreate()
memory, vector = spark._jvm.org.apache.arrow.memory, spark._jvm.org.apache.arrow.vector
print("FOUND", memory.BoundsChecking.BOUNDS_CHECKING_ENABLED, vector.NullCheckingForGet.NULL_CHECKING_ENABLED)
print("GIVEN", *spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
print("CHECKED", spark._jvm.java.lang.Runtime.getRuntime().maxMemory() >> 20)
print("COUNTED", spark.range(3).mapInArrow(lambda batches: batches, "id long").count())
spark.stop()
"""


def said_by(settings: dict[str, str]) -> str:
    paths = {"PYTHONPATH": str(Path(__file__).parents[3] / "consumer"), "PYSPARK_PYTHON": sys.executable}
    environment = {**os.environ, **spark_home.lean(os.environ), **paths}
    return subprocess.run([sys.executable, "-c", LOOK, json.dumps(settings)], env=environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("executors", [1, 2, 20])
def test_no_limit_of_sparks_counts_over_a_drivers_life(spark: SparkSession, executors: int) -> None:
    """Spark's own class says at which failed executor it ends the JVM: the 4th, of one, unless it is told otherwise. A spot node a week is enough."""
    pod = conf.PodAddress("orders-driver-1", "shop", "10.0.0.1", "uid")
    asked = replace(configuration(StreamConfig("s", "us-east-1"), "a:b"), executors=executors)
    jvm: Any = spark._jvm
    java, untold = (jvm.org.apache.spark.SparkConf(False) for _ in range(2))  # noqa: FBT003 - py4j has no keyword arguments
    for name, value in conf.settings(asked, pod, "k8s://https://kubernetes.default.svc").items():
        java.set(name, value)
    tracker = jvm.org.apache.spark.deploy.ExecutorFailureTracker
    assert tracker.maxNumExecutorFailures(java) == 2**31 - 1
    assert tracker.maxNumExecutorFailures(untold) == 3, "Spark's own default is no longer what this guards against"
    package = jvm.org.apache.spark.internal.config.__getattr__("package$").__getattr__("MODULE$")
    assert not java.get(package.DRIVER_TIMEOUT()), "minutes after which Spark ends a driver"


@pytest.mark.slow
def test_pythons_sockets_have_a_path_that_linux_takes_whatever_javas_temporary_folder_is(tmp_path: Path) -> None:
    """YARN gives each container one whose path is longer than a socket's may be."""
    folder = tmp_path / "a-container-of-an-application-of-yarns" / "tmp"
    folder.mkdir(parents=True)
    assert len(str(folder)) + len("/.00000000-0000-0000-0000-000000000000.sock") > 107, "the folder is too short for this test"
    settings = conf.settings(configuration(StreamConfig("s", "us-east-1"), "a:b"), None, "local[1]")
    assert "COUNTED 3" in said_by({**settings, "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}"})


@pytest.mark.slow
def test_arrow_reads_without_looking_at_bounds_and_still_looks_for_null() -> None:
    """The property is read once, by a JVM that starts: a session's setting would come too late."""
    settings = conf.settings(configuration(StreamConfig("s", "us-east-1"), "a:b"), None)
    assert "FOUND False True" in said_by(settings)


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "heap"), [("1Gi", "512m"), ("8Gi", "4916m")])
def test_the_drivers_jvm_has_the_heap_that_its_pods_memory_gives(memory: str, heap: str) -> None:
    """The least of them starts Spark, with the collector whose heap is reckoned the smallest, too: that of pods with one core."""
    raw = {**SPEC, "driver": {"resources": {"limits": {"memory": memory}}}}
    told = configs.parse(json.dumps(driver_config(RESOURCE, DesiredSpec(parse(raw), raw), DRIVER, Settings())))
    serial = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}
    said = said_by({**conf.settings(told, None, "local[1]"), **serial})
    given = next(line for line in said.splitlines() if line.startswith("GIVEN"))
    assert f"-Xmx{heap}" in given.split()
    checked = next(int(line.split()[1]) for line in said.splitlines() if line.startswith("CHECKED"))
    assert 450 <= checked < int(heap.removesuffix("m"))

"""The resource as people meet it: what `explain` and `get` show, a small stream in one pod, and code out of a ConfigMap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_bench import Bench
from rules_world import MODULE, Subject, World, world

from sluice_lab.scenario.installing import NAMESPACE

pytestmark = pytest.mark.cluster

SMALL, LOST, CODE = "small", "lost", "code-of-small"
FIRST, SECOND = 20, 12


@pytest.fixture(scope="module")
def stream(bench: Bench) -> Iterator[World]:
    with world(bench, "resource", shards=2) as found:
        code(bench, "one")
        yield found
        bench.kubectl("delete", "configmap", CODE)


def code(bench: Bench, label: str) -> None:
    """The pipeline of the other tests, with a label on whatever it keeps."""
    text = (Path(__file__).parent / f"{MODULE}.py").read_text()
    assert '"label": info.args.get("label")' in text
    labelled = text.replace('info.args.get("label")', f'"{label}"')
    bench.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CODE}, "data": {"small_code.py": labelled}})


def one_pod(found: World, name: str, config_map: str = CODE) -> dict[str, Any]:
    """A consumer whose driver runs the tasks, and whose code is in a ConfigMap."""
    manifest = found.manifest(name)
    pipeline = {"entrypoint": "small_code:keep", "args": found.args(), "source": {"configMap": config_map}}
    container = manifest["spec"]["driver"]["podTemplate"]["spec"]["containers"][0]
    driver = {"resources": {"requests": {"cpu": "50m", "memory": "512Mi"}}}
    manifest["spec"] |= {"pipeline": pipeline | {"env": container["env"]}, "driver": driver, "executor": {"inDriver": True}}
    return manifest


@pytest.fixture(scope="module")
def small(stream: World) -> Subject:
    stream.bench.apply(one_pod(stream, SMALL))
    stream.bench.until("Ready", lambda: stream.subject(SMALL).settled(1))
    stream.put(FIRST)
    stream.bench.until("the first records", lambda: stream.missing(SMALL) == [])
    return stream.subject(SMALL)


def test_explain_says_what_a_field_does(bench: Bench) -> None:
    for path, words in {
        "spec.batch.intervalSeconds": "Time from the start of one batch to the start of the next",
        "spec.replicas": "Number of executors",
        "status.stream.lag": "behind",
    }.items():
        assert words in bench.kubectl("explain", f"kinesisconsumers.{path}")


def test_a_small_stream_is_one_pod(stream: World, small: Subject) -> None:
    assert "tasks in the driver" in small.condition("Ready")["message"]
    assert len(small.uids("driver")) == 1
    assert small.pods("executor") == []
    assert (stream.missing(SMALL), stream.twice(SMALL), stream.skipped(SMALL)) == ([], [], [])


def test_get_shows_stream_rate_lag_and_defaults(bench: Bench, small: Subject) -> None:
    bench.until("the lag", lambda: small.status.get("stream", {}).get("lag"))
    head, row, *_ = bench.kubectl("get", "kc", SMALL).splitlines()
    shown = dict(zip(head.split(), row.split(), strict=False))
    assert {"PHASE", "READY", "STREAM", "RATE", "LAG"} <= set(shown)
    assert shown["STREAM"] == "resource"
    stored = yaml.safe_load(bench.kubectl("get", "kc", SMALL, "--output=yaml"))["spec"]
    assert stored["batch"] == {"intervalSeconds": 1, "maxRecordsPerShard": 10_000, "maxBytesPerShard": 8_388_608, "shardsPerTask": 8}
    assert stored["drainTimeoutSeconds"] == 120


def test_changed_code_works_from_the_next_driver_on(stream: World, small: Subject) -> None:
    code(stream.bench, "two")
    small.annotate("restart=code-two")
    stream.bench.until("the next driver is Ready", lambda: small.attempts() == 2 and small.settled(1))
    stream.put(SECOND)
    stream.bench.until("the second records", lambda: stream.missing(SMALL) == [])
    labels = {row["by"]: row["label"] for row in stream.kept(SMALL)}
    assert labels == {f"{SMALL}-driver-1": "one", f"{SMALL}-driver-2": "two"}
    assert (stream.twice(SMALL), stream.skipped(SMALL)) == ([], [])


def test_a_driver_that_is_killed_with_its_tasks_loses_and_repeats_nothing(stream: World, small: Subject) -> None:
    (pod,) = small.uids("driver")
    stream.put(SECOND)
    stream.bench.kubectl("delete", "pod", pod, "--grace-period=0", "--force")
    stream.bench.until("the next driver is Ready", lambda: small.attempts() == 3 and small.settled(1))
    stream.bench.until("the last records", lambda: stream.missing(SMALL) == [])
    assert (stream.twice(SMALL), stream.skipped(SMALL)) == ([], [])


def test_a_configmap_that_is_not_there_is_named(stream: World) -> None:
    stream.bench.apply(one_pod(stream, LOST, config_map="nowhere"))
    subject = stream.subject(LOST)
    said = "pipeline.source.configMap: nowhere does not exist in the consumer's namespace"
    stream.bench.until("the refusal, as a condition and an event", lambda: said in subject.condition("Stalled").get("message", ""))
    assert any(said in event for event in stream.bench.events(LOST))
    assert f"sluice_{NAMESPACE}_{LOST}" not in stream.bench.aws.dynamodb.list_tables()["TableNames"]
    subject.delete()

"""The last release made it; the new one takes it over: no pod and no Job is touched, and nobody waits."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest
from cluster_bench import Bench, consumer
from operating import IN, helm, holder, ready

from sluice_lab import cluster as clusters
from sluice_lab import docker, places
from sluice_lab.demo import before
from sluice_lab.demo.installing import RELEASE
from sluice_lab.demo.topology import Stream
from sluice_lab.processes import run

pytestmark = pytest.mark.cluster

LAST = "5f89269"  # 0.1, as in tests/operator/released
NAME, TAG = "inherited", "sluice-operator:released-0.1"
CODE = "/opt/venv/lib/python3.11/site-packages/sluice_operator"


@pytest.fixture(scope="module")
def released(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last release's source; its operator as an image on the cluster: today's, with that code in it."""
    folder = tmp_path_factory.mktemp("released")
    archive = folder / "source.tar"
    known = subprocess.run(["git", "-C", str(places.REPO), "archive", f"--output={archive}", LAST], check=False, capture_output=True, text=True)
    if known.returncode:
        pytest.skip(f"the last release is not in this clone: {known.stderr.strip()}")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    today = bench.cluster.kubectl(IN, "get", f"deployment/{RELEASE}", "--output=jsonpath={.spec.template.spec.containers[0].image}")
    (folder / "Dockerfile").write_text(f"FROM {today}\nCOPY operator/sluice_operator {CODE}\n")
    run("docker", "build", "--quiet", f"--tag={TAG}", str(folder), env=docker.build_environment())
    clusters.load_image(bench.cluster, TAG)
    return folder


def uids(bench: Bench) -> set[str]:
    """Every pod and Job of the consumer."""
    found = [*bench.get("pods", f"--selector=sluice.dev/consumer={NAME}"), *bench.get("jobs", f"--selector=sluice.dev/consumer={NAME}")]
    return {body["metadata"]["uid"] for body in found}


def test_an_upgrade_touches_no_consumer(bench: Bench, released: Path) -> None:
    """Back to the last release by its own chart; a consumer is started by it; then today's chart and operator."""
    if before.STREAM not in bench.aws.kinesis.list_streams()["StreamNames"]:
        Stream(bench.aws.kinesis, before.STREAM).create(4)
    repository, _, tag = TAG.partition(":")
    helm(bench, released / "charts" / "sluice", image={"repository": repository, "tag": tag})
    bench.apply(consumer(bench, NAME, replicas=2))
    bench.until("Ready, by the last release", lambda: bench.condition(NAME, "Ready").get("status") == "True" and len(uids(bench)) == 3)
    had, resource = uids(bench), bench.resource(NAME)
    helm(bench)
    bench.until("two replicas of today's operator, one of which leads", lambda: ready(bench, 2) and holder(bench))
    bench.kubectl("annotate", "kinesisconsumer", NAME, "upgraded=yes")  # whatever wakes it
    bench.until("a report seen by the new one", lambda: reported(bench) > reported_in(resource))
    after = bench.resource(NAME)
    assert uids(bench) == had
    assert after["status"]["driver"] == resource["status"]["driver"]
    assert after["status"]["restarts"] == resource["status"]["restarts"]
    assert bench.condition(NAME, "Ready")["status"] == "True"
    bench.kubectl("scale", "kinesisconsumer", NAME, "--replicas=1")
    bench.until("one executor fewer, by the same driver", lambda: len(uids(bench)) == 2 and bench.resource(NAME)["status"]["replicas"] == 1)
    assert uids(bench) < had
    bench.kubectl("delete", "kinesisconsumer", NAME, "--timeout=300s")


def reported(bench: Bench) -> str:
    """When figures moved last."""
    return reported_in(bench.resource(NAME))


def reported_in(resource: dict[str, dict[str, dict[str, str]]]) -> str:
    """The same, of a resource as it was."""
    return resource["status"]["stream"]["reportedAt"]

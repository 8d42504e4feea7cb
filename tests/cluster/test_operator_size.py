"""What the operator costs. Printed; only the promise of the README is asserted."""

from __future__ import annotations

import re

import pytest
from cluster_bench import Bench, consumer

from sluice_lab.machine import processes
from sluice_lab.scenario.installing import OPERATOR_NAMESPACE, RELEASE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
RESOURCES = 10
IMAGE_MB, IDLE_MIB = 250, 120


def test_nothing_can_be_installed_into_the_operator(bench: Bench) -> None:
    asked = ("python", "-c", "from importlib.util import find_spec; print(find_spec('pip'))")
    said = bench.cluster.kubectl(f"--namespace={OPERATOR_NAMESPACE}", "exec", f"deployment/{RELEASE}", "--", *asked)
    assert said.strip() == "None"


def test_an_idle_operator_with_ten_resources_is_small(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"idle-{i}" for i in range(RESOURCES)]
    bench.apply(*(consumer(bench, name, suspend=True) for name in names))
    bench.until("all suspended", lambda: all(bench.resource(n).get("status", {}).get("phase") == "Suspended" for n in names))
    where = f"--namespace={OPERATOR_NAMESPACE}"
    status = bench.cluster.kubectl(where, "exec", f"deployment/{RELEASE}", "--", "cat", "/proc/1/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    image = bench.cluster.kubectl(where, "get", f"deployment/{RELEASE}", "--output=jsonpath={.spec.template.spec.containers[0].image}")
    size = int(processes.run("docker", "image", "inspect", "--format", "{{.Size}}", image))
    assert found is not None
    rss = int(found[1]) / 1024
    with capsys.disabled():
        print(f"\noperator: image {size / 1e6:.0f} MB, {rss:.0f} MiB resident with {RESOURCES} resources")  # noqa: T201 - a figure for people
    bench.kubectl("delete", "kinesisconsumers", "--all", "--timeout=300s")
    assert size / 1e6 <= IMAGE_MB
    assert rss <= IDLE_MIB

"""What a test does to the operator itself."""

from __future__ import annotations

import json
from typing import Any

from cluster_bench import Bench
from patience import PATIENCE

from sluice_lab.machine import processes
from sluice_lab.scenario import installing
from sluice_lab.scenario.installing import CHART, OPERATOR_NAMESPACE, RELEASE

IN = f"--namespace={OPERATOR_NAMESPACE}"
# The operator's process in a pod, as the node sees it, ended by a signal that it cannot answer.
KILL = """for each in /proc/[0-9]*; do
  if tr '\\0' '\\n' <"$each/environ" 2>/dev/null | grep -qx "POD_NAME=$1"; then kill -9 "${each#/proc/}"; echo "${each#/proc/}"; fi
done"""


def pods(bench: Bench) -> list[dict[str, Any]]:
    """The operator's, those on their way out left out."""
    said = bench.cluster.kubectl(IN, "get", "pods", "--selector=app.kubernetes.io/name=sluice", "--output=json")
    found: list[dict[str, Any]] = json.loads(said)["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def ready(bench: Bench, replicas: int) -> bool:
    found = pods(bench)
    return len(found) == replicas and all(all(c["ready"] for c in pod["status"].get("containerStatuses", [{"ready": False}])) for pod in found)


def lease(bench: Bench) -> dict[str, Any]:
    found = json.loads(bench.cluster.kubectl(IN, "get", "lease", RELEASE, "--ignore-not-found", "--output=json") or "{}")
    return dict(found.get("spec") or {})


def holder(bench: Bench) -> str:
    """Who leads: the pod's name and the process's number."""
    return str(lease(bench).get("holderIdentity") or "")


def leader(bench: Bench) -> str:
    return holder(bench).rpartition("_")[0]


def is_led(bench: Bench) -> bool:
    """A living pod holds the Lease. One that an earlier installation left keeps the name of a pod that is gone, until it expires."""
    return leader(bench) in {pod["metadata"]["name"] for pod in pods(bench)}


def kill(bench: Bench) -> str:
    """SIGKILL to the leader, while another replica stands by; who it was."""
    bench.until("a leader and a follower", lambda: ready(bench, 2) and is_led(bench))
    before = holder(bench)
    killed = processes.run("docker", "exec", bench.cluster.node, "sh", "-c", KILL, "kill", leader(bench)).split()
    assert killed, f"no process of {before} was found"
    return before


def taken_over(bench: Bench, before: str, seconds: float = PATIENCE) -> None:
    bench.until(f"another leader than {before}", lambda: holder(bench) not in {before, ""}, seconds)


def get(bench: Bench, pod: str, path: str) -> str:
    return bench.cluster.kubectl("get", "--raw", f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{pod}:8080/proxy/{path}")


def helm(bench: Bench, chart: object = CHART, *options: str, **values: Any) -> None:
    """Upgrades the release, or installs it, with the tests' values and these; None leaves one out, for a chart that does not know it."""
    path = bench.cluster.kubeconfig.with_suffix(".more.json")
    merged = json.loads(installing.values(bench.cluster).read_text()) | values
    path.write_text(json.dumps({key: value for key, value in merged.items() if value is not None}))
    how = (IN, "--create-namespace", "--take-ownership", f"--values={path}", "--wait", "--timeout=3m")
    bench.cluster.helm("upgrade", "--install", RELEASE, str(chart), *options, *how)

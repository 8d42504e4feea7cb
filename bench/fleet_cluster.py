"""The pool of `pool_fleet` and consumers with a driver each: their manifests, what they write, and what their pods take."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from fleet_streams import FleetStream

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import processes
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.nemesis.injector import SIGNAL
from sluice_lab.scenario import environment, installing
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.environment import Aws
from sluice_lab.site.bench_fleet import ALONE, POOL

MODULE, NAME = "fleet_code", "fleet"
HOME, FOLDER = "/data", "/var/local/sluice-fleet"  # of what is written: in pods, and on the node
HANG = f"{HOME}/hang"
RESTART = {"resetAfterSeconds": 60}  # a driver that has run for longer is followed without a pause, as one is by default after ten minutes
CPU = "50m"  # request of a pod
MIB = 2**20
Json = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """What pods ask for.

    Attributes:
        executors: of the pool.
        driver: memory of a driver's pod.
        executor: memory of an executor's pod.
        cpu: request of the pool's driver.
        lease: `leaseDurationSeconds` of the pool's members.
    """

    executors: int
    driver: str
    executor: str
    cpu: str = CPU
    lease: int = 20


@dataclass(frozen=True)
class Line:
    """A call of `process`: of which batch, when (seconds since 1970), by which pod, with which records."""

    batch: int
    at: float
    by: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Usage:
    """What the kubelet says of a pod. `cpu`: seconds since it began. Memory in MiB. `at`: when it was measured, seconds since 1970."""

    role: str
    owner: str
    cpu: float
    working: float
    rss: float
    at: float


@dataclass(frozen=True)
class FleetCluster:
    cluster: KindCluster
    aws: Aws
    sizes: Sizes

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(f"--namespace={installing.NAMESPACE}", *arguments)

    def on_node(self, script: str) -> str:
        return processes.run("docker", "exec", self.cluster.node, "sh", "-c", script)

    def prepare(self) -> None:
        self.on_node(f"rm -rf {FOLDER} && install --directory --mode=0777 {FOLDER} {FOLDER}/letters")
        code = (Path(__file__).parent / f"{MODULE}.py").read_text()
        self.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {f"{MODULE}.py": code}}])

    def apply(self, documents: Iterable[Json]) -> None:
        path = places.made(places.work() / "tests") / "fleet.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}))
        self.kubectl("apply", f"--filename={path}")

    def get(self, kind: str, *arguments: str) -> list[Json]:
        found: list[Json] = json.loads(self.kubectl("get", kind, *arguments, "--output=json"))["items"]
        return found

    def until(self, what: str, ready: Callable[[], Any], seconds: float = 600.0, pause: float = 1.0) -> Any:
        """Waits for something.

        Raises:
            LabError: it does not come about in time.
        """
        deadline = time.monotonic() + seconds
        while not (found := ready()):
            if time.monotonic() > deadline:
                raise LabError(f"not within {seconds:.0f} s: {what}\n{self.kubectl('get', 'kcp,kc,pods', '--output=wide')}")
            time.sleep(pause)
        return found

    # -- manifests -----------------------------------------------------------------------------------------------------------------

    def pool(self) -> Json:
        spec = {"replicas": self.sizes.executors, "restart": RESTART, "pipeline": self._pipeline(), **self._pods(self.sizes.cpu)}
        return {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumerPool", "metadata": {"name": NAME}, "spec": spec}

    def member(self, stream: FleetStream, name: str, **spec: Any) -> Json:
        return self._consumer(stream, name, {"pool": NAME, "leaseDurationSeconds": self.sizes.lease, "pipeline": {}} | spec)

    def alone(self, stream: FleetStream, name: str) -> Json:
        return self._consumer(stream, name, {"replicas": 1, "pipeline": self._pipeline(), **self._pods()})

    def _consumer(self, stream: FleetStream, name: str, spec: Json) -> Json:
        endpoints = {"kinesisEndpoint": self.aws.kinesis_endpoint, "dynamodbEndpoint": self.aws.dynamodb_endpoint}
        address = {"name": stream.name, "region": environment.REGION, **endpoints}
        found: Json = {"stream": address, "start": {"position": "TRIM_HORIZON"}, "restart": RESTART} | spec
        args = {"file": f"{HOME}/{name}.jsonl"} | found["pipeline"].get("args", {})
        found["pipeline"] = {**found["pipeline"], "entrypoint": f"{MODULE}:keep", "args": args}
        return {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": {"name": name}, "spec": found}

    def _pods(self, driver_cpu: str = CPU) -> Json:
        asked = {"driver": (driver_cpu, self.sizes.driver), "executor": (CPU, self.sizes.executor)}
        limits = {role: {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}} for role, (cpu, memory) in asked.items()}
        return {role: {"resources": resources} for role, resources in limits.items()}

    @staticmethod
    def _pipeline() -> Json:
        return {
            "source": {"configMap": NAME},
            "env": [{"name": key, "value": value} for key, value in environment.CREDENTIALS.items()],
            "volumes": [{"name": "sink", "hostPath": {"path": FOLDER, "type": "Directory"}}],
            "volumeMounts": [{"name": "sink", "mountPath": HOME}],
        }

    # -- what is seen --------------------------------------------------------------------------------------------------------------

    def not_ready(self) -> list[str]:
        return [one["metadata"]["name"] for one in self.get("kinesisconsumers") if not _is_ready(one)]

    def lines(self) -> dict[str, list[Line]]:
        found: dict[str, list[Line]] = {}
        said = self.on_node(f"cd {FOLDER} && grep -H . *.jsonl || true")
        for text in said.splitlines():
            file, _, line = text.partition(":")
            words = json.loads(line)
            name = file.removesuffix(".jsonl")
            found.setdefault(name, []).append(Line(words["batch"], words["at"], words["by"], tuple(words["numbers"])))
        return found

    def letters(self) -> int:
        return len(self.on_node(f"find {FOLDER}/letters -name '*.json'").split())

    def usage(self) -> dict[str, Usage]:
        labels = {pod["metadata"]["name"]: pod["metadata"].get("labels", {}) for pod in self.get("pods")}
        path = f"/api/v1/nodes/{self.cluster.node}/proxy/stats/summary?only_cpu_and_memory=true"
        pods = json.loads(self.cluster.kubectl("get", "--raw", path))["pods"]
        return {
            pod["podRef"]["name"]: _usage(pod, labels[pod["podRef"]["name"]])
            for pod in pods
            if pod["podRef"]["namespace"] == installing.NAMESPACE and pod["podRef"]["name"] in labels and pod.get("cpu") and pod.get("memory")
        }

    def generation(self, name: str) -> int:
        found = Checkpoints(self.aws.dynamodb, f"sluice_{installing.NAMESPACE}_{name}").committed()
        return found[0] if found else 0

    def host(self) -> str:
        pods = [pod["metadata"] for pod in self.get("pods", "--selector=sluice.dev/role=pool")]
        return str(max(pods, key=lambda pod: pod["creationTimestamp"])["name"])

    def kill(self, pod: str) -> None:
        """SIGKILL to all processes of a driver's container at once."""
        processes.run("docker", "exec", self.cluster.node, "sh", "-c", SIGNAL, "kill", f"SLUICE_POD_NAME={pod}", "KILL")

    def delete(self) -> None:
        self.kubectl("delete", "kinesisconsumers", "--all", "--timeout=300s")
        self.kubectl("delete", "kinesisconsumerpools", "--all", "--timeout=300s")
        self.on_node(f"rm -rf {FOLDER}")


def _usage(pod: Mapping[str, Any], labels: Mapping[str, str]) -> Usage:
    role = "executor" if labels["sluice.dev/role"] == "executor" else "driver"
    owner = POOL if labels.get("sluice.dev/pool") else ALONE
    memory, at = pod["memory"], datetime.fromisoformat(pod["cpu"]["time"]).timestamp()
    return Usage(role, owner, pod["cpu"]["usageCoreNanoSeconds"] / 1e9, memory["workingSetBytes"] / MIB, memory["rssBytes"] / MIB, at)


def _is_ready(found: Mapping[str, Any]) -> bool:
    ready: Mapping[str, Any] = next((each for each in found.get("status", {}).get("conditions", []) if each["type"] == "Ready"), {})
    return ready.get("status") == "True" and ready.get("observedGeneration") == found["metadata"]["generation"]

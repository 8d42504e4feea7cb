"""What a test does with a real cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from patience import PATIENCE

from sluice_lab import places
from sluice_lab.machine import cluster as clusters
from sluice_lab.scenario import environment, installing
from sluice_lab.scenario.environment import Aws


def condition(found: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """One condition of a resource as it was read; empty while it is not there. What is claimed together has to be read together."""
    return next((c for c in found.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def is_ready(found: Mapping[str, Any]) -> bool:
    """Ready, for the generation of the spec that was read with it."""
    ready = condition(found, "Ready")
    return ready.get("status") == "True" and bool(ready["observedGeneration"] == found["metadata"]["generation"])


@dataclass
class Bench:
    cluster: clusters.KindCluster
    aws: Aws

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(f"--namespace={installing.NAMESPACE}", *arguments)

    def apply(self, *documents: Mapping[str, Any]) -> str:
        return self.apply_in(installing.NAMESPACE, *documents)

    def apply_in(self, namespace: str, *documents: Mapping[str, Any]) -> str:
        path = places.made(places.work() / "tests") / f"{uuid4()}.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}))
        return self.cluster.kubectl(f"--namespace={namespace}", "apply", f"--filename={path}")

    def get(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, *arguments, "--output=json"))["items"]
        return found

    def resource(self, name: str) -> dict[str, Any]:
        return next(r for r in self.get("kinesisconsumers") if r["metadata"]["name"] == name)

    def until(self, what: str, ready: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        """Waits for something in the cluster; returns it. Other `seconds` than the usual are part of what a test claims."""
        deadline = time.monotonic() + seconds
        while not (found := ready()):
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}. Now:\n{self.state()}"
            time.sleep(0.5)
        return found

    def state(self) -> str:
        return self.kubectl("get", "kinesisconsumers,pods", "--output=wide") + self.kubectl("get", "events", "--sort-by=.lastTimestamp")[-4000:]

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        return condition(self.resource(name), kind)

    def consumer_image(self) -> str:
        words = '--output=jsonpath={.spec.template.spec.containers[0].env[?(@.name=="SLUICE_CONSUMER_IMAGE")].value}'
        return self.cluster.kubectl(f"--namespace={installing.OPERATOR_NAMESPACE}", "get", "deployment", installing.RELEASE, words)

    def events(self, name: str) -> list[str]:
        return [f"{e['reason']}: {e['message']}" for e in self.get("events") if e["involvedObject"]["name"] == name]


def consumer(bench: Bench, name: str, **spec: Any) -> dict[str, Any]:
    credentials = [{"name": key, "value": value} for key, value in environment.CREDENTIALS.items()]
    small = {"requests": {"cpu": "50m", "memory": "256Mi"}}
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "KinesisConsumer",
        "metadata": {"name": name},
        "spec": {
            "stream": {
                "name": environment.STREAM,
                "region": environment.REGION,
                "kinesisEndpoint": bench.aws.kinesis_endpoint,
                "dynamodbEndpoint": bench.aws.dynamodb_endpoint,
            },
            "replicas": 1,
            "pipeline": {"entrypoint": "sluice_consumer.pipelines:console"},
            "driver": {"resources": small, "podTemplate": {"spec": {"containers": [{"name": "driver", "env": credentials}]}}},
            "executor": {
                "resources": {"requests": {"cpu": "50m", "memory": "1Gi"}},
                "podTemplate": {"spec": {"containers": [{"name": "executor", "env": credentials}]}},
            },
        }
        | spec,
    }

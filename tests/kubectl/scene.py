"""A cluster in memory with consumers in it, and the program over it as a person runs it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner
from rich.console import Console

from sluice_kubectl.api.kubeconfig import Target
from sluice_kubectl.api.person import Person
from sluice_kubectl.api.streams import LogRequest
from sluice_kubectl.cli.edge import Terminal
from sluice_kubectl.cli.group import program
from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND, Conflict

Json = dict[str, Any]
NOW = datetime(2026, 11, 21, 10, 10, 30, tzinfo=UTC)
DATA = Path(__file__).parents[2] / "charts" / "sluice" / "argocd" / "sluice.dev" / "KinesisConsumer"
WIDTH = 130


def resource(case: str, **meta: str) -> Json:
    """A KinesisConsumer out of the test data of the chart's Argo CD scripts, which the operator's rules wrote."""
    file = next(path for path in (DATA / "testdata" / f"{case}.yaml", DATA / "actions" / "testdata" / f"{case}.yaml") if path.exists())
    body = deepcopy(_parsed(file.read_text().replace("orders", meta.get("name", "orders"))))
    body["metadata"] |= meta
    return body


@cache
def _parsed(text: str) -> Json:
    """Tests ask for the same case hundreds of times."""
    return dict(yaml.safe_load(text))


@dataclass
class Texts:
    logs: dict[str, list[str]] = field(default_factory=dict)
    scrapes: dict[str, str] = field(default_factory=dict)
    asked: list[LogRequest] = field(default_factory=list)

    def log(self, _namespace: str, pod: str, request: LogRequest) -> Iterator[str]:
        self.asked.append(request)
        if pod not in self.logs:
            raise Conflict(f'pods "{pod}" not found')
        yield from self.logs[pod][-request.tail if request.tail else 0 :]

    def metrics(self, _namespace: str, pod: str, port: int) -> str:
        if pod not in self.scrapes:
            raise Conflict(f'pods "{pod}:{port}" not found')
        return self.scrapes[pod]


@dataclass(frozen=True)
class Answer:
    exit_code: int
    said: str
    told: str


class Scene:
    def __init__(self, cluster: MemoryCluster | None = None, now: datetime = NOW, width: int = WIDTH) -> None:
        self.cluster, self.now, self.width = cluster or MemoryCluster(lambda: NOW), now, width
        self.texts = Texts()
        self.ask: Any = None

    def put(self, body: Json) -> Json:
        """Creates a resource with its status; a resource that is being deleted has a finalizer."""
        status, deleting = body.get("status"), "deletionTimestamp" in body["metadata"]
        made = self.cluster.create(body)
        name = (body["metadata"]["namespace"], body["metadata"]["name"])
        if status:
            self.cluster.set_status(CONSUMER_KIND, *name, status | {"observedGeneration": 1} if "observedGeneration" in status else status)
        if deleting:
            self.cluster.delete(CONSUMER_KIND, *name, made["metadata"]["uid"])
        return self.get(*name)

    def get(self, namespace: str = "default", name: str = "orders") -> Json:
        found = self.cluster.get(CONSUMER_KIND, namespace, name)
        assert found is not None
        return found

    def pod(self, name: str, consumer: str, role: str, **status: Any) -> Json:
        labels = {"sluice.dev/consumer": consumer, "sluice.dev/role": role}
        ports = [{"name": "metrics", "containerPort": 9404}] if role in {"driver", "pool"} else []
        spec = {"nodeName": "node-1", "containers": [{"name": "driver" if role == "pool" else role, "ports": ports}]}
        made = self.cluster.create({"kind": "Pod", "metadata": {"namespace": "default", "name": name, "labels": labels}, "spec": spec})
        running = {"phase": "Running", "containerStatuses": [{"ready": True, "restartCount": 0, "state": {"running": {}}}]}
        self.cluster.set_status("Pod", "default", name, running | status)
        return made

    def driver(self, consumer: str) -> None:
        """Its driver and two executors; the status names the driver's uid."""
        made = self.pod(f"{consumer}-driver-1", consumer, "driver")
        for number in (1, 2):
            self.pod(f"{consumer}-1-exec-{number}", consumer, "executor")
        status = self.get(name=consumer)["status"]
        renamed = json.loads(json.dumps(status).replace(status["driver"]["uid"], made["metadata"]["uid"]))
        self.cluster.set_status(CONSUMER_KIND, "default", consumer, renamed)

    def event(self, reason: str, message: str, at: str, *, warning: bool = False, name: str = "orders") -> None:
        about = {"kind": CONSUMER_KIND, "namespace": "default", "name": name, "uid": self.get(name=name)["metadata"]["uid"]}
        meta = {"namespace": "default", "name": f"{name}.{reason}.{at}"}
        told = {"reason": reason, "message": message, "type": "Warning" if warning else "Normal", "lastTimestamp": at, "count": 1}
        self.cluster.create({"kind": "Event", "metadata": meta, "involvedObject": about, **told})

    def run(self, *arguments: str, cluster: Any = None, recorder: Console | None = None) -> Answer:
        """The program's answer; with a recorder, its screen is recorded and not answered."""
        out, log = io.StringIO(), io.StringIO()

        def connect(target: Target) -> Person:
            return Person(cluster or self.cluster, self.texts, "" if target.all_namespaces else target.namespace or "default")

        consoles = (recorder or Console(file=out, width=self.width, highlight=False), Console(file=log, width=self.width, highlight=False))
        result = CliRunner().invoke(program, arguments, obj=Terminal(connect, lambda: self.now, *consoles, self.ask))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, out.getvalue() + result.stdout, log.getvalue() + result.stderr)


class Elsewhere:
    def __init__(self, cluster: MemoryCluster, **calls: Any) -> None:
        self._cluster, self._calls = cluster, calls

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._cluster, name)
        if name not in self._calls:
            return real

        def call(*arguments: Any) -> Any:
            self._calls[name](*arguments)
            return real(*arguments)

        return call

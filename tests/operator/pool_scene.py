"""Pools and consumers on the in-memory API server: the product's sinks and reconciles, and the models of `pools.programs` in the pods."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pools.programs import DRAIN, OwnDriver, PoolDriver

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND, Cluster
from sluice_operator.observe import parse
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.watch_health import Freshness
from sluice_operator.observe.watch_state import WatchEvent
from sluice_operator.run.handlers import EventSink
from sluice_operator.run.pool_events import PoolSink
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.shared import ReconcileContext, of_pools
from sluice_operator.settings import Settings
from sluice_operator.telemetry.metrics import OperatorMetrics

Json = dict[str, Any]
SPACE, STEP = "shop", timedelta(seconds=4)
MEMBER: Json = {"stream": {"name": "orders", "region": "eu-west-1"}, "pool": "small", "pipeline": {"entrypoint": "shop.orders:process"}}
POOL: Json = {"replicas": 1, "pipeline": {"image": "shop/streams:7"}, "serviceAccountName": "streams"}


@dataclass
class Bells:
    """Stands for the loops of one kind: which resources were woken, and when each looks next by itself."""

    rung: set[ResourceKey] = field(default_factory=set)
    due: dict[ResourceKey, datetime] = field(default_factory=dict)

    def wake(self, key: ResourceKey, *, matters: bool = True) -> None:
        if matters:
            self.rung.add(key)


class Scene:
    def __init__(self, connect: Callable[[MemoryCluster], Cluster] = lambda memory: memory, space: str = SPACE) -> None:
        """`connect`: how the operator speaks to the API server. `space`: the namespace of all."""
        self.space = space
        self.now = datetime(2026, 11, 27, 12, tzinfo=UTC)
        self.memory = MemoryCluster(lambda: self.now)
        settings, self.metrics = Settings(image="sluice-consumer:test"), OperatorMetrics()
        self.context = ReconcileContext(connect(self.memory), Cache(), settings, on_status_written=self.metrics.on_status_written)
        self.of_pools = of_pools(self.context)
        self.bells, self.pool_bells = Bells(), Bells()
        consumers = EventSink(self.context.cache, self.bells, Freshness(), self.metrics)  # type: ignore[arg-type]  # rung, not run
        self.sink = PoolSink(self.context.cache, self.context.pools, self.context.hosts, self.bells, self.pool_bells, consumers)  # type: ignore[arg-type]
        self.cursor = 0
        self.running: dict[str, PoolDriver | OwnDriver] = {}

    def make(self, kind: str, name: str, spec: Json) -> None:
        self.memory.create({"kind": kind, "metadata": {"namespace": self.space, "name": name}, "spec": spec})

    def edit(self, kind: str, name: str, **spec: Any) -> None:
        body = self.get(kind, name)
        self.memory.edit(body, {"spec": spec})

    def get(self, kind: str, name: str) -> Json:
        found = self.memory.get(kind, self.space, name)
        assert found is not None, (kind, name)
        return found

    def ready(self, kind: str, name: str) -> tuple[str, str, str]:
        item = next(item for item in self.get(kind, name)["status"]["conditions"] if item["type"] == "Ready")
        return item["status"], item["reason"], item["message"]

    def pods(self, role: str = "") -> list[str]:
        return sorted(raw["metadata"]["name"] for raw in self.memory.all("Pod") if role in {"", raw["metadata"]["labels"][parse.ROLE]})

    def on(self, steps: int = 12) -> None:
        for _ in range(steps):
            self.now += STEP
            for raw in list(self.memory.all("Pod")):
                self._pod(raw)
            for _ in range(4):
                self.feed()
                self._passes(self.of_pools, self.pool_bells)
                self._passes(self.context, self.bells)

    def feed(self) -> None:
        """What the watches show. That of pods selects by labels."""
        since, self.cursor = self.cursor, self.memory.version
        for kind in (CONSUMER_KIND, POOL_KIND, "Pod", "Job"):
            for change in self.memory.watch(kind, since):
                labels = change.body["metadata"].get("labels") or {}
                if kind in {CONSUMER_KIND, POOL_KIND} or parse.CONSUMER in labels:
                    self.sink.see(kind, WatchEvent(change.body, gone=change.verb == "DELETED"))

    def _passes(self, context: ReconcileContext, bells: Bells) -> None:
        due = {key for key, when in bells.due.items() if when <= self.now}
        rung, bells.rung = bells.rung | due, set()
        for key in sorted(rung):
            outcome = reconcile(context, key, self.now, force_refresh=key in due)
            bells.due.pop(key, None)
            if outcome.wake is not None:
                bells.due[key] = outcome.wake

    def _pod(self, raw: Json) -> None:
        meta = raw["metadata"]
        term, uid, role = "deletionTimestamp" in meta, meta["uid"], meta["labels"][parse.ROLE]
        if role == "executor" or raw.get("status", {}).get("phase") in {"Failed", "Succeeded"}:
            if term:
                self.memory.finish_deletion(raw)
            return
        if (program := self.running.get(uid)) is None:
            owner = meta["ownerReferences"][0]["uid"]
            program = self.running[uid] = PoolDriver(uid) if role == "pool" else OwnDriver(uid, owner, meta["annotations"][parse.SPEC_HASH])
            self.memory.edit(raw, {"spec": {"nodeName": "a"}})
            self._phase(raw, "Running", {"running": {"startedAt": self.now.isoformat()}})
            if role == "pool":
                self._executor(raw)
        if isinstance(program, PoolDriver):
            said = program.tick(meta["annotations"], self.now, term=term)
            words = {"number": int(self.now.timestamp()) // 15, "phase": "Draining" if term else "Running", "executors": 1}
            said |= {parse.REPORT: json.dumps(words)}
            over = term and not program.runs
        else:
            said = program.tick(self.now, term=term)
            over = program.draining is not None and self.now - program.draining >= DRAIN
        self.memory.edit(raw, {"metadata": {"annotations": said}})
        if over:
            self.end(raw["metadata"]["name"], 0)
            self.memory.collect_garbage()

    def _executor(self, host: Json) -> None:
        meta = host["metadata"]
        ref = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
        labels = {parse.MANAGED: "sluice", parse.CONSUMER: "", parse.POOL: meta["labels"][parse.POOL], parse.ROLE: "executor"}
        about = {"namespace": self.space, "name": f"{meta['name'].replace('-pool-', '-pool')}-exec-1", "labels": labels, "ownerReferences": [ref]}
        body = self.memory.create({"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {}})
        self._phase(body, "Running", {"running": {}})

    def _phase(self, raw: Json, phase: str, state: Json) -> None:
        containers = [{"name": "driver", "state": state}]
        self.memory.set_status("Pod", self.space, raw["metadata"]["name"], {"phase": phase, "containerStatuses": containers})

    def end(self, name: str, code: int, said: Json | None = None) -> None:
        """The process in this pod ends, with this exit message. Its executors stay until the garbage collector comes."""
        raw = self.get("Pod", name)
        self.running.pop(raw["metadata"]["uid"], None)
        reasons = {0: "Completed", 137: "OOMKilled"}
        words = {"exitCode": code, "reason": reasons.get(code, "Error"), "finishedAt": self.now.isoformat()}
        words |= {"message": json.dumps(said)} if said else {}
        self._phase(raw, "Failed" if code else "Succeeded", {"terminated": words})
        if "deletionTimestamp" in raw["metadata"]:
            self.memory.finish_deletion(raw)


def pooled(scene: Scene | None = None) -> Scene:
    scene = scene or Scene()
    scene.make(POOL_KIND, "small", POOL)
    for name in ("orders", "clicks"):
        scene.make(CONSUMER_KIND, name, {**MEMBER, "checkpoints": {"table": name}})
    scene.on()
    return scene

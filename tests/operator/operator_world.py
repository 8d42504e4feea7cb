"""A cluster in virtual time: the in-memory fake, a kubelet, a Job controller, drivers, and the real operator, one second a tick.

What may never happen is checked after every tick, and a hot loop fails the tick it happens in.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sluice_operator.cluster.memory import MemoryCluster, datetime_text
from sluice_operator.cluster.port import CONSUMER_KIND, ApiError, Unavailable
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.parse import instant
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

KEY = ResourceKey("default", "orders")
BEGIN = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
SPEC: Json = {
    "stream": {"name": "orders", "region": "eu-west-1"},
    "replicas": 2,
    "pipeline": {"entrypoint": "orders.pipeline:process"},
}
MIGRATING: Json = {**SPEC, "migrateFrom": {"table": "orders-kcl"}}
PASSES_A_TICK = 12
DRAINING = timedelta(seconds=3)


class Crash(BaseException):
    """The operator's process died right after a write; nothing in it may catch this."""


class World:
    """One resource and everything around it."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.twin = MemoryCluster(lambda: self.now)
        self.job_exits: list[int] = []
        self.job_warnings = 2
        self.driver_exits: list[int] = []
        self.lost_nodes = False
        self.writes = self.passes = self.crashes = 0
        self.crash_at: set[int] = set()
        self.lose_reply_at: set[int] = set()
        self.twin.after_write = self._after_write
        self.wake: datetime | None = self.now
        self.report_number = 0
        self.warnings: list[str] = []
        self.lag = 0
        self.calls: set[tuple[str, str]] = set()
        self.restart()

    # what a user does

    def apply(self, spec: Json, annotations: Json | None = None) -> None:
        """`kubectl apply`: create, or replace the spec."""
        meta: Json = {"namespace": KEY.namespace, "name": KEY.name}
        if annotations:
            meta["annotations"] = annotations
        if self.resource() is None:
            self._as_user(lambda: self.twin.create({"kind": CONSUMER_KIND, "metadata": meta, "spec": spec}))
        else:
            nulls = {key: None for key in self.must()["spec"] if key not in spec}
            changes: Json = {"spec": {**nulls, **spec}}
            if annotations:
                changes["metadata"] = {"annotations": annotations}
            self._as_user(lambda: self.twin.patch(CONSUMER_KIND, *KEY, changes))

    def annotate(self, **notes: str) -> None:
        """`kubectl annotate`, names without their prefix."""
        changes = {"metadata": {"annotations": {f"sluice.dev/{key}": value for key, value in notes.items()}}}
        self._as_user(lambda: self.twin.patch(CONSUMER_KIND, *KEY, changes))

    def delete(self) -> None:
        """`kubectl delete`."""
        self._as_user(lambda: self.twin.delete(CONSUMER_KIND, *KEY, self.must()["metadata"]["uid"]))

    def delete_pod(self, name: str) -> None:
        """`kubectl delete pod`."""
        pod = self.twin.get("Pod", KEY.namespace, name) or {}
        self._as_user(lambda: self.twin.delete("Pod", KEY.namespace, name, pod["metadata"]["uid"]))

    # what a test looks at

    def resource(self) -> Json | None:
        """The resource, if it exists."""
        return self.twin.get(CONSUMER_KIND, *KEY)

    def must(self) -> Json:
        """The resource, which exists."""
        body = self.resource()
        assert body is not None
        return body

    @property
    def status(self) -> Json:
        """Its status."""
        status: Json = self.must().get("status", {})
        return status

    def condition(self, kind: str) -> Json:
        """One condition, or {}."""
        found: Json = next((c for c in self.status.get("conditions", []) if c["type"] == kind), {})
        return found

    def drivers(self) -> list[Json]:
        """Driver pods that exist."""
        return self._pods("driver")

    def executors(self) -> list[Json]:
        """Executor pods that exist."""
        return self._pods("executor")

    def reasons(self) -> list[str]:
        """Reasons of the events so far, oldest first."""
        return [event["reason"] for event in sorted(self.twin.all("Event"), key=lambda e: int(e["metadata"]["resourceVersion"]))]

    def _pods(self, role: str) -> list[Json]:
        return [pod for pod in self.twin.all("Pod") if pod["metadata"]["labels"]["sluice.dev/role"] == role]

    def _uids(self, role: str) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self._pods(role)}

    # time

    def restart(self) -> None:
        """A new operator process with an empty cache."""
        self.context = ReconcileContext(self.twin, Cache(), Settings(image="sluice-consumer:test"))
        self._fed: dict[str, tuple[str, Json]] = {}
        self.wake = self.now

    def run(self, seconds: int, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; True as soon as `until` holds."""
        for _ in range(seconds):
            if until is not None and until():
                return True
            self._tick()
        return until is None or until()

    def _tick(self) -> None:
        self.now += timedelta(seconds=1)
        self._kubelet()
        self._jobs()
        self._simulate(self.twin.collect_garbage)
        self._operate()
        self._check()

    def _operate(self) -> None:
        for _ in range(PASSES_A_TICK):
            changed = self._feed()
            if not changed and (self.wake is None or self.wake > self.now):
                return
            self.passes += 1
            try:
                self.wake = reconcile(self.context, KEY, self.now).wake
            except Crash:
                self.crashes += 1
                self.restart()
            except ApiError:
                self.wake = self.now + timedelta(seconds=1)
        raise AssertionError(f"hot loop: {self.status}")

    def _feed(self) -> bool:
        """The watches: every object that changed since, and every one that is gone."""
        if self.lag and self._fed and self.now.second % self.lag:
            return False
        kinds = (CONSUMER_KIND, "Pod", "Job") if self._fed else (CONSUMER_KIND,)  # three watches never start together
        present = {body["metadata"]["uid"]: body for kind in kinds for body in self.twin.all(kind)}
        changed = False
        for uid, body in present.items():
            version = body["metadata"]["resourceVersion"]
            if self._fed.get(uid, ("", {}))[0] != version:
                self._fed[uid] = (version, json.loads(json.dumps(body)))
                self.context.cache.see(body["kind"], self._fed[uid][1], self.now)
                changed = True
        for uid in [uid for uid in self._fed if uid not in present]:
            _, body = self._fed.pop(uid)
            self.context.cache.see(body["kind"], body, self.now, gone=True)
            changed = True
        return changed

    def _after_write(self, verb: str, kind: str) -> None:
        self.calls.add((verb, kind))
        if kind == "Event":
            return
        self.writes += 1
        if self.writes in self.crash_at:
            raise Crash
        if self.writes in self.lose_reply_at:
            raise Unavailable("the reply was lost")

    def _as_user(self, call: Callable[[], Any]) -> None:
        self._simulate(call)
        self.wake = self.now

    def _simulate(self, call: Callable[[], Any]) -> Any:
        told, self.twin.after_write = self.twin.after_write, lambda _verb, _kind: None
        try:
            return call()
        finally:
            self.twin.after_write = told

    # what may never happen

    def _check(self) -> None:
        alive = [pod for pod in self.drivers() if pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}]
        assert len(alive) <= 1, f"two drivers: {[pod['metadata']['name'] for pod in alive]}"
        orphans = [pod for pod in self.executors() if pod["metadata"]["ownerReferences"][0]["uid"] not in self._uids("driver")]
        assert not (alive and orphans), "a driver beside executors of another"
        running = [pod for pod in self._pods("migration") if pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}]
        assert len(running) <= 1, "two migrations at a time"
        body = self.resource()
        if body is None:
            return
        gated = self.status.get("lastGoodSpec", {}).get("migrateFrom") and self.status.get("migration", {}).get("state") != "Complete"
        assert not (gated and alive), "a driver before its migration"
        if self.condition("Ready").get("status") == "True":
            good = self.status["lastGoodSpec"]
            assert alive or self.lag or good.get("suspend") or good["replicas"] == 0, "Ready without a driver"
        assert self.status.get("observedGeneration", 0) <= body["metadata"]["generation"]

    # the cluster

    def _kubelet(self) -> None:
        if self.lost_nodes:
            return
        for pod in [json.loads(json.dumps(pod)) for pod in self.twin.all("Pod")]:
            phase, meta = pod.get("status", {}).get("phase", "Pending"), pod["metadata"]
            if phase in {"Succeeded", "Failed"}:
                if "deletionTimestamp" in meta:
                    self.twin.finish_deletion(pod)
            elif phase == "Pending":
                self._started(pod)
            elif (ended := pod["status"]["containerStatuses"][0]["state"].get("terminated")) is not None:
                final = {"phase": "Failed" if ended["exitCode"] else "Succeeded"}
                self.twin.set_status("Pod", KEY.namespace, meta["name"], final)
            elif meta["labels"]["sluice.dev/role"] == "driver":
                self._driver(pod)
            elif meta["labels"]["sluice.dev/role"] == "migration":
                self._migration(pod)
            if meta["labels"]["sluice.dev/role"] == "executor" and "deletionTimestamp" in meta:
                self.twin.finish_deletion(pod)

    def _started(self, pod: Json) -> None:
        self.twin.edit(pod, {"spec": {"nodeName": "node"}})
        if "deletionTimestamp" in pod["metadata"]:
            self.twin.finish_deletion(pod)
            return
        self._container(pod, "Running", {"running": {"startedAt": datetime_text(self.now)}})

    def _container(self, pod: Json, phase: str, state: Json) -> None:
        name = {"driver": "driver", "migration": "migrate"}.get(pod["metadata"]["labels"]["sluice.dev/role"], "executor")
        status = {"phase": phase, "containerStatuses": [{"name": name, "state": state}]}
        self.twin.set_status("Pod", KEY.namespace, pod["metadata"]["name"], status)

    def _end(self, pod: Json, code: int, words: Json) -> None:
        ended = {"exitCode": code, "message": json.dumps(words), "startedAt": datetime_text(BEGIN)}
        ended["finishedAt"] = datetime_text(self.now)
        self._container(pod, "Running", {"terminated": ended})  # the phase follows a moment later, as with a real kubelet

    def _driver(self, pod: Json) -> None:
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            asked = instant(meta["deletionTimestamp"])
            assert asked is not None
            left = pod["spec"]["terminationGracePeriodSeconds"]
            if self.now >= asked - timedelta(seconds=left) + DRAINING:
                self._drop_executors(pod, 0)
                self._end(pod, 0, {"reason": "Drained", "message": "drained"})
            return
        if self.driver_exits:
            code = self.driver_exits.pop(0)
            self._end(pod, code, {"message": f"exit {code}"})
            return
        self._drop_executors(pod, int(meta["annotations"]["sluice.dev/executors"]))
        self._report(pod)

    def _report(self, pod: Json) -> None:
        self.report_number += 1
        report = {"number": self.report_number, "phase": "Running", "generation": 1, "batch": self.report_number}
        report |= {"openShards": 4, "endedShards": 0, "heldShards": 4, "executors": len(self.executors()), "warnings": self.warnings}
        changes = {"metadata": {"annotations": {"sluice.dev/report": json.dumps(report)}}}
        self._simulate(lambda: self.twin.patch("Pod", KEY.namespace, pod["metadata"]["name"], changes))

    def _drop_executors(self, driver: Json, target: int) -> None:
        meta = driver["metadata"]
        have = [p for p in self.executors() if p["metadata"]["ownerReferences"][0]["uid"] == meta["uid"]]
        for pod in have[target:]:
            self.twin.finish_deletion(pod)
        for number in range(len(have), target):
            self._simulate(lambda number=number: self.twin.create(self._executor(meta, number)))

    def _executor(self, owner: Json, number: int) -> Json:
        labels = {"app.kubernetes.io/managed-by": "sluice", "sluice.dev/consumer": KEY.name, "sluice.dev/role": "executor"}
        name = f"{KEY.name}-{owner['labels']['sluice.dev/attempt']}-exec-{number}-{self.report_number}"
        refs = [{"apiVersion": "v1", "kind": "Pod", "name": owner["name"], "uid": owner["uid"], "controller": True}]
        return {"kind": "Pod", "metadata": {"namespace": KEY.namespace, "name": name, "labels": labels, "ownerReferences": refs}}

    def _jobs(self) -> None:
        for job in list(self.twin.all("Job")):
            meta = job["metadata"]
            pods = [p for p in self._pods("migration") if p["metadata"]["ownerReferences"][0]["uid"] == meta["uid"]]
            if not pods and not job.get("status"):
                self._simulate(lambda job=job: self.twin.create(self._job_pod(job)))
            elif pods and (phase := pods[0].get("status", {}).get("phase")) in {"Succeeded", "Failed"}:
                kind = "Complete" if phase == "Succeeded" else "Failed"
                if not job.get("status"):
                    status = {"conditions": [{"type": kind, "status": "True", "message": "the Job's controller says so"}]}
                    self.twin.set_status("Job", KEY.namespace, meta["name"], status)

    def _job_pod(self, job: Json) -> Json:
        template, meta = job["spec"]["template"], job["metadata"]
        refs = [{"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}]
        head = {**template["metadata"], "namespace": KEY.namespace, "name": f"{meta['name']}-x", "ownerReferences": refs}
        return {"kind": "Pod", "metadata": head, "spec": template["spec"]}

    def _migration(self, pod: Json) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            self._end(pod, 143, {})
            return
        code = self.job_exits.pop(0) if self.job_exits else 0
        words: dict[int, Json] = {
            0: {"message": "7 shards", "shards": 7, "warnings": self.job_warnings},
            75: {"message": "SourceActive: lease moved"},
        }
        self._end(pod, code, words.get(code, {"message": "row 'x' is unknown"}))


def ready(world: World) -> bool:
    """Ready for the present generation."""
    current = world.status.get("observedGeneration") == world.must()["metadata"]["generation"]
    return current and world.condition("Ready").get("status") == "True" and not world.condition("Reconciling")


def assert_nothing_left(world: World) -> None:
    """No pod, no Job, no resource, and the operator's loop has ended."""
    assert world.resource() is None
    assert [pod["metadata"]["name"] for pod in world.twin.all("Pod")] == []
    assert list(world.twin.all("Job")) == []
    assert world.wake is None

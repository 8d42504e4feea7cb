"""Consumers that move in and out of pools: an API server, nodes, operators of which one is late, strangers. Planned by the product's own rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pools.programs import DRAIN, OwnDriver, PoolDriver

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import Conflict, Exists
from sluice_operator.names import FINALIZER
from sluice_operator.observe import parse, seats
from sluice_operator.observe.ownership import own
from sluice_operator.plan import seats as planned
from sluice_operator.plan.rules import plan
from sluice_operator.resource import fields
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.state.actions import AddFinalizer, CreateDriver, DeletePod, RemoveFinalizer
from sluice_operator.state.objects import Observed, Pod, Resource, Trouble
from sluice_operator.state.seats import ClearSeat, EndSeat, Place, PutSeat, Seating
from sluice_operator.state.serialization import load_report
from sluice_operator.state.status import DriverStatus, Status
from sluice_operator.state.view import View

Json = dict[str, Any]
SPACE = "shop"
START = datetime(2026, 11, 27, 12, tzinfo=UTC)
STEP = timedelta(seconds=4)
ROLE = {parse.ROLE: "pool"}
CONFIG: Json = {"stream": {"name": "s", "region": "r"}, "checkpoints": {"table": "table"}, "pipeline": {"entrypoint": "m:f"}}


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass
class Object:
    """A consumer or a pool, as stored: `version` counts writes of its status. `out`: it was put out of its pool."""

    name: str
    uid: str
    pool: str | None = None
    edits: int = 0
    suspend: bool = False
    out: bool = False
    restart: str | None = None
    deleting: bool = False
    gone: bool = False
    finalizers: tuple[str, ...] = ()
    status: Status = field(default_factory=Status)
    version: int = 0

    @property
    def resource(self) -> Resource:
        about: Json = {"namespace": SPACE, "name": self.name, "uid": self.uid, "version": str(self.version), "generation": self.edits + 1}
        return Resource(**about, deleting=self.deleting, finalizers=self.finalizers, restart=self.restart)

    @property
    def wanted(self) -> DesiredSpec:
        """Its spec. Where it runs is a part of it, as `spec.pool` is."""
        env = [{"name": "EDIT", "value": str(self.edits)}, {"name": "POOL", "value": self.pool or ""}]
        raw: Json = {"stream": {"name": "orders", "region": "eu-west-1"}, "suspend": self.suspend, "executor": {"inDriver": True}}
        raw |= {"pipeline": {"entrypoint": "a:b", "env": env}}
        return DesiredSpec(fields.parse(raw), raw)


@dataclass
class Late:
    """What an operator has decided and not yet done: it was paused."""

    of: Object
    driver: DriverStatus
    actions: tuple[Any, ...]


class World:
    def __init__(self) -> None:
        self.now = START
        self.memory = MemoryCluster(lambda: self.now)
        self.consumers = {name: Object(name, f"uid-of-{name}") for name in ("orders", "clicks", "carts")}
        self.pools = {name: Object(name, f"uid-of-{name}") for name in ("small", "large")}
        self.running: dict[str, PoolDriver | OwnDriver] = {}
        self.late: list[Late] = []
        self.made_late: set[tuple[str, int]] = set()
        self.strangers: set[str] = set()
        self.asked_to_leave: list[str] = []

    # what an operator sees

    def hosts(self) -> list[Json]:
        """Pods of pools: those with the label, and those that a pool's status names, whatever their labels are."""
        found = {raw["metadata"]["name"]: raw for raw in self.memory.list("Pod", SPACE, ROLE)}
        for pool in self.pools.values():
            driver = pool.status.driver
            for name in (driver.pod, driver.leaving.pod if driver.leaving else None):
                if name and name not in found and (raw := self.memory.get("Pod", SPACE, name)):
                    found[name] = raw
        return list(found.values())

    def seats_of(self, one: Object) -> seats.SeatsFound:
        return seats.of(one.uid, ((host, seats.seats(raw, host)) for raw in self.hosts() for host in [parse.pod(raw)]))

    def view_of(self, one: Object) -> tuple[View, seats.SeatsFound]:
        found = self.seats_of(one)
        raws = self.memory.list("Pod", SPACE, {parse.CONSUMER: one.name})
        pods = [replace(parse.pod(raw), report=load_report(parse.report(raw))) for raw in raws]
        about = Observed(drivers=(*(pod for pod in pods if pod.role == "driver"), *found.drivers), exits=found.exits)
        seen = own(one.resource, one.status, about)
        return View(resource=one.resource, asked=one.wanted, problem=None, status=one.status, observed=seen, now=self.now), found

    def place_of(self, one: Object) -> Place | None:
        if one.pool is None:
            return None
        pool = self.pools[one.pool]
        if pool.gone or pool.deleting:
            return Place(pool.name, None, Trouble("PoolMissing", "there is none"))
        if pool.suspend:
            return Place(pool.name, None, Trouble("PoolSuspended", "it is suspended"))
        if one.out:
            return None
        named = pool.status.driver.pod
        raw = self.memory.get("Pod", SPACE, named) if named else None
        host = parse.pod(raw) if raw else None
        return Place(pool.name, host if host and host.owner == pool.uid and planned.takes_seats(host) else None)

    # what operators do

    def decide(self, one: Object) -> tuple[Any, ...]:
        """Observe, plan, and write the status down: the actions, which are yet to be done."""
        one.gone = one.gone or (one.deleting and not one.finalizers)
        if one.gone:
            return ()
        if one.name in self.pools:
            mine = (self._driver(raw) for raw in self.hosts())
            about = Observed(drivers=tuple(pod for pod in mine if pod.owner == one.uid))
            intent = plan(View(resource=one.resource, asked=one.wanted, problem=None, status=one.status, observed=about, now=self.now))
            actions: tuple[Any, ...] = intent.actions
        else:
            view, found = self.view_of(one)
            intent = planned.plan_member(replace(view, seating=Seating(self.place_of(one), found.hosts, found.over)))
            actions = intent.actions
        one.status, one.version = intent.status, one.version + 1
        return actions

    @staticmethod
    def _driver(raw: Json) -> Pod:
        return replace(parse.pod(raw), role="driver", owner_kind="KinesisConsumer")

    def act(self, one: Object, actions: tuple[Any, ...], driver: DriverStatus | None = None) -> None:
        """Do what was decided, with the driver that the status named then. A conflict ends it, as in the product."""
        for action in actions:
            try:
                self._act(one, action, driver or one.status.driver)
            except (Conflict, Exists):
                return

    def _act(self, one: Object, action: Any, driver: DriverStatus) -> None:
        if isinstance(action, AddFinalizer):
            one.finalizers = (FINALIZER,)
        elif isinstance(action, RemoveFinalizer):
            one.gone = True
        elif isinstance(action, CreateDriver):
            self._create(one, driver)
        elif isinstance(action, PutSeat):
            self._patch(action, seats.put(action.seat, action.uid, CONFIG))
        elif isinstance(action, EndSeat):
            self._stops_only_what_changed(one, action)
            self._patch(action, seats.leave(action.seat))
        elif isinstance(action, ClearSeat):
            self._patch(action, seats.cleared(action.seat))
        elif isinstance(action, DeletePod):
            self.memory.delete("Pod", SPACE, action.name, action.uid, action.grace)

    def _patch(self, action: PutSeat | EndSeat | ClearSeat, notes: Mapping[str, str | None]) -> None:
        if action.uid in self.strangers:
            raise Broken(f"tenants: a seat is written into a stranger's pod: {action}")
        self.memory.patch("Pod", SPACE, action.host, {"metadata": {"uid": action.uid, "annotations": {**notes}}})

    def _create(self, one: Object, driver: DriverStatus) -> None:
        is_pool = one.name in self.pools
        kind = "KinesisConsumerPool" if is_pool else "KinesisConsumer"
        ref = {"apiVersion": "sluice.dev/v1alpha1", "kind": kind, "name": one.name, "uid": one.uid, "controller": True}
        meta: Json = {"namespace": SPACE, "name": driver.pod, "ownerReferences": [ref], "annotations": {parse.SPEC_HASH: driver.spec_hash}}
        meta["labels"] = {parse.MANAGED: "sluice", **(ROLE if is_pool else {parse.ROLE: "driver", parse.CONSUMER: one.name})}
        self.memory.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"nodeName": "a", "terminationGracePeriodSeconds": 150}})

    def pass_all(self) -> None:
        for one in (*self.pools.values(), *self.consumers.values()):
            self.act(one, self.decide(one))

    def pause(self, one: Object) -> None:
        """An operator decides, and is paused before it acts."""
        if actions := self.decide(one):
            self.late.append(Late(one, one.status.driver, actions))

    def strike(self) -> None:
        """The paused one acts. What it makes so late is left to the lease, as a late pod is; what it ends has its uid as a condition."""
        for late in self.late:
            for action in late.actions:
                if isinstance(action, PutSeat) and not self._knows(action):
                    self.made_late.add((action.seat.consumer, action.seat.attempt))
                elif isinstance(action, CreateDriver):
                    self.made_late.add((late.of.uid, late.driver.attempt))
            if not late.of.gone:
                self.act(late.of, late.actions, late.driver)
        self.late = []

    def _knows(self, action: PutSeat) -> bool:
        """Whether the driver has begun this attempt, or a later one: it never does again."""
        program = self.running.get(action.uid)
        return isinstance(program, PoolDriver) and program.begun.get(action.seat.consumer, 0) >= action.seat.attempt

    # nodes

    def tick(self) -> None:
        """One step of time in every pod, then the claims."""
        self.now += STEP
        for raw in list(self.memory.all("Pod")):
            self._pod(raw)
        self.one_driver()

    def _pod(self, raw: Json) -> None:
        meta = raw["metadata"]
        term, uid = "deletionTimestamp" in meta, meta["uid"]
        if uid in self.strangers:
            return
        program = self.running.get(uid)
        if raw.get("status", {}).get("phase") in {"Failed", "Succeeded"}:
            if term:
                self.memory.finish_deletion(raw)
            return
        if program is None:
            program = self.running[uid] = self._begun(raw)
            self._phase(raw, "Running", {"running": {"startedAt": self.now.isoformat()}})
        if isinstance(program, PoolDriver):
            said = program.tick(meta.get("annotations", {}), self.now, term=term)
            over = term and not program.runs
        else:
            said = program.tick(self.now, term=term)
            over = program.draining is not None and self.now - program.draining >= DRAIN
        self.memory.edit(raw, {"metadata": {"annotations": said}})
        if over:
            self.end(uid, 0)

    def _begun(self, raw: Json) -> PoolDriver | OwnDriver:
        meta = raw["metadata"]
        ref = meta["ownerReferences"][0]
        return (
            PoolDriver(meta["uid"])
            if ref["kind"] == "KinesisConsumerPool"
            else OwnDriver(meta["uid"], ref["uid"], meta["annotations"][parse.SPEC_HASH])
        )

    def _phase(self, raw: Json, phase: str, state: Json) -> None:
        self.memory.set_status("Pod", SPACE, raw["metadata"]["name"], {"phase": phase, "containerStatuses": [{"name": "driver", "state": state}]})

    def end(self, uid: str, code: int) -> None:
        raw = next((raw for raw in self.memory.all("Pod") if raw["metadata"]["uid"] == uid), None)
        if self.running.pop(uid, None) is None or raw is None:
            return
        words = {"exitCode": code, "reason": "OOMKilled" if code else "Completed", "finishedAt": self.now.isoformat()}
        self._phase(raw, "Failed" if code else "Succeeded", {"terminated": words})
        if "deletionTimestamp" in raw["metadata"]:
            self.memory.finish_deletion(raw)

    def kill(self) -> None:
        for uid in [uid for uid, program in self.running.items() if isinstance(program, PoolDriver)]:
            self.end(uid, 137)

    def put_out(self, one: Object) -> None:
        """It is the cause of that, too often. A seat in a pod that has not begun is none that died."""
        self.kill()
        there = self.seats_of(one).drivers
        one.out = one.out or (one.pool is not None and all(pod.exit for pod in there))

    def returns(self, one: Object) -> None:
        if one.out:
            one.out, one.restart = False, str(self.memory.version)

    def forgotten(self, one: Object) -> None:
        """Somebody restores a pool from a copy, which does not know that this member is out."""
        one.out = False

    # strangers

    def copied(self, *, owned: bool = False) -> None:
        """Somebody copies a pod of a pool with its annotations and labels, and without its controller, or with it."""
        for raw in self.hosts()[-1:]:
            kept = ("namespace", "labels", "annotations", *(("ownerReferences",) if owned else ()))
            self._stranger("copy", {key: raw["metadata"][key] for key in kept if key in raw["metadata"]})

    def copied_whole(self) -> None:
        """With it: the pool takes the copy for a stray of its own."""
        self.copied(owned=True)

    def forged(self) -> None:
        """Somebody makes a pod of a kind that only sounds like a pool, and writes seats into it, and nonsense."""
        ref = {"apiVersion": "example.org/v1", "kind": "KinesisConsumerPool", "name": "small", "uid": "uid-of-theirs", "controller": True}
        body = self._stranger("forged", {"namespace": SPACE, "labels": ROLE, "ownerReferences": [ref]})
        notes: dict[str, str] = {f"{seats.SEAT}..": "[", f"{seats.SEAT}a.1": "7", f"{seats.LEAVE}a.1": "?"}
        for one in self.consumers.values():
            notes[f"{seats.SEAT}{one.uid}.{one.status.driver.attempt + 1}"] = json.dumps({"name": one.name, "pod": body["metadata"]["uid"]})
        self.memory.edit(body, {"metadata": {"annotations": notes}})

    def _stranger(self, name: str, meta: Json) -> Json:
        body = self.memory.create({"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": f"{name}-{self.memory.version}"}, "spec": {}})
        self.strangers.add(body["metadata"]["uid"])
        return body

    def unlabelled(self) -> None:
        """Somebody takes the labels off the pod of a pool."""
        for raw in self.hosts()[:1]:
            self.memory.edit(raw, {"metadata": {"labels": {parse.ROLE: None}}})

    # claims

    def working(self, uid: str) -> list[tuple[str, int, str]]:
        """What works for a consumer: pod, attempt, spec."""
        found = list[tuple[str, int, str]]()
        for program in self.running.values():
            if isinstance(program, PoolDriver) and (run := program.runs.get(uid)):
                found.append((program.uid, run.attempt, run.spec))
            elif isinstance(program, OwnDriver) and program.consumer == uid:
                name = next(raw["metadata"]["name"] for raw in self.memory.all("Pod") if raw["metadata"]["uid"] == program.uid)
                found.append((program.uid, int(name.rpartition("-")[2]), program.spec))
        return found

    def one_driver(self) -> None:
        """Of a consumer there works one pod of its own, or one seat, or nothing."""
        for one in self.consumers.values():
            there = [each for each in self.working(one.uid) if (one.uid, each[1]) not in self.made_late]
            if len(there) > 1:
                raise Broken(f"one_driver: {one.name}: {there}")

    def _stops_only_what_changed(self, one: Object, action: EndSeat) -> None:
        """Nobody else stops: a seat that works is asked to leave only because of its own consumer."""
        seat, driver = action.seat, one.status.driver
        works = any(each[:2] == (action.uid, seat.attempt) for each in self.working(seat.consumer))
        changed = one.suspend or one.deleting or not one.wanted.is_hash(seat.spec_hash) or one.restart or driver.attempt != seat.attempt
        if one.uid != seat.consumer or (works and not changed and not self.late):
            raise Broken(f"nobody_else_stops: {one.name} ends {seat}")

    def calm(self, steps: int = 200) -> None:
        """Nothing happens any more: everybody gets what the spec says."""
        self.strike()
        for _ in range(steps):
            self.pass_all()
            self.tick()
        for one in self.consumers.values():
            self._reached(one)

    def _reached(self, one: Object) -> None:
        there, place = self.working(one.uid), self.place_of(one)
        if one.deleting or one.suspend or (place is not None and place.host is None):
            if there or (one.deleting and not one.gone):
                raise Broken(f"spec_reached: {one.name} shall not run: {there}")
            return
        hosts = [pod for pod, _, spec in there if one.wanted.is_hash(spec)]
        right = len(hosts) == 1 and (hosts == [place.host.uid] if place and place.host else isinstance(self.running[hosts[0]], OwnDriver))
        ready = one.status.condition("Ready")
        if not right or ready is None or ready.status != "True":
            raise Broken(f"spec_reached: {one.name} of {one.pool}: {there}, {one.status.driver}, {ready}")

"""What a person who sees everything would say of the resource, held against what kstatus and Argo CD read in it: the invariant `health_is_true`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from argo_lua import argo_health
from kstatus import CURRENT, FAILED, IN_PROGRESS, kstatus
from steering.ledger import BELIEVED, SILENT, claim
from steering.programs import STANDS

from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import InvalidSpec, parse

if TYPE_CHECKING:
    from steering.world import World

Json = dict[str, Any]
SAME = {CURRENT: {"Healthy", "Suspended"}, FAILED: {"Degraded"}, IN_PROGRESS: {"Progressing"}}
HANGS = "a batch does not end"  # which is none of the driver's troubles before that batch
PERIODS = timedelta(seconds=400)  # drains, leases and pauses that have an end of their own


class Person:
    """Looks every second, and says after a while that kstatus is wrong."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.about: object = None
        self.since: datetime = world.now
        self.version = ""
        self.read: tuple[Json, DesiredSpec | InvalidSpec] | None = None

    def tick(self) -> None:
        """Done is Current, soon. What is not done is never Current for long, and Failed when nothing has come of it within the deadline."""
        world, body = self.world, self.world.resource()
        if body is None or "deletionTimestamp" in body["metadata"]:
            self.about = None
            return
        notes = body["metadata"].get("annotations") or {}
        problem, paused = undone(world, body, self._wanted(body["spec"])), "sluice.dev/paused" in notes
        meta, asked = body["metadata"], [notes.get(f"sluice.dev/{name}") for name in ("retry", "restart", "force")]
        causes = world.habits.no_account, world.habits.executors  # who takes one away gives it a deadline of its own
        about = (meta["uid"], meta["generation"], paused, asked, problem if problem in {None, HANGS} else "", self._migrated(), causes)
        if about != self.about:
            self.about, self.since = about, world.now
        lasted, says = world.now - max(self.since, world.ledger.calm_since), kstatus(body)
        if lasted < BELIEVED:
            return
        self._argo(body, says, paused=paused)
        if problem is None:
            claim("health_is_true", says == CURRENT, f"{says}, and all is as it should be for {lasted}: {world.status}")
            return
        claim("health_is_true", says != CURRENT, f"{says} for {lasted}, but {problem}: {world.status}")
        limit = timedelta(seconds=body["spec"].get("progressDeadlineSeconds", 600)) + PERIODS
        claim("health_is_true", paused or lasted < limit or says == FAILED, f"{says} for {lasted}, and {problem}: {world.status}")

    def _argo(self, body: Json, says: str, *, paused: bool) -> None:
        """The same as kstatus, in other words. What somebody holds is Suspended, whether it waits or not."""
        version = body["metadata"]["resourceVersion"]
        if version != self.version:
            self.version, shown = version, argo_health(body)
            allowed = SAME[says] | ({"Suspended"} if paused else set())
            claim("health_is_true", shown in allowed, f"Argo CD says {shown}, kstatus {says}: {body.get('status')}")

    def _wanted(self, spec: Json) -> DesiredSpec | InvalidSpec:
        """A stored spec is replaced, never changed: each is read once."""
        if self.read is None or self.read[0] is not spec:
            try:
                self.read = spec, DesiredSpec(parse(spec), spec)
            except InvalidSpec as error:
                self.read = spec, error
        return self.read[1]

    def _migrated(self) -> int:
        return sum(table.migrated for table in self.world.tables.values())


def undone(world: World, body: Json, wanted: DesiredSpec | InvalidSpec) -> str | None:
    """What is not as the spec asks; None if nothing."""
    spec, status = body["spec"], body.get("status") or {}
    if isinstance(wanted, InvalidSpec):
        return str(wanted)
    if spec.get("migrateFrom") and (status.get("driver") or {}).get("attempt") and not status.get("migration"):
        return "a source is added too late"
    if not wanted.spec.suspend and (waits := _gated(status, wanted)):
        return waits
    if wanted.spec.suspend or not wanted.spec.replicas or _has_ended(status, wanted):
        return "something runs" if any(not world.ledger.only_held(pod) for pod in (*world.drivers(), *world.executors())) else None
    drivers = [pod for pod in world.drivers() if not world.ledger.only_held(pod) and not _stays_behind(pod, status, wanted)]
    if len(drivers) != 1 or "deletionTimestamp" in drivers[0]["metadata"]:
        return f"{len(drivers)} drivers, or one that leaves"
    return _working(world, drivers[0], wanted)


def _stays_behind(pod: Json, status: Json, wanted: DesiredSpec) -> bool:
    """Whether this is the standby for failover, which changes nothing about what is done: the driver works."""
    rollout = wanted.spec.rollout
    meta = pod["metadata"]
    named = meta["name"] == (status.get("standby") or {}).get("pod") and meta["annotations"]["sluice.dev/spec-hash"] == wanted.driver_hash
    return rollout is not None and rollout.for_good and named


def _of_standby(world: World, executor: Json) -> bool:
    uid = (world.status.get("standby") or {}).get("uid")
    return uid is not None and uid in {one["uid"] for one in executor["metadata"].get("ownerReferences") or ()}


def _gated(status: Json, wanted: DesiredSpec) -> str | None:
    if wanted.spec.migrate_from and (status.get("migration") or {}).get("state") != "Complete":
        return "the source is not taken over"
    position, asked = status.get("position") or {}, wanted.spec.position
    if asked is None or asked.id in position.get("earlier", ()):
        return None
    over = position.get("id") == asked.id and position.get("state") in {"Complete", "Refused"}
    return None if over else f"the positions are not moved: {asked.id}"


def _has_ended(status: Json, wanted: DesiredSpec) -> bool:
    """It says so; whether it is true, the ledger knows."""
    same = (status.get("driver") or {}).get("specHash") == wanted.driver_hash
    return wanted.spec.until is not None and same and status.get("phase") == "Completed"


def _working(world: World, driver: Json, wanted: DesiredSpec) -> str | None:
    meta = driver["metadata"]
    said_at, report = world.ledger.reports.get(meta["uid"], (None, {}))
    if meta["annotations"]["sluice.dev/spec-hash"] != wanted.driver_hash:
        return "the driver has another spec"
    if world.restart_asked_at and datetime.fromisoformat(meta["creationTimestamp"]) < world.restart_asked_at:
        return "the driver is older than the restart that was asked for"
    if said_at is None or world.now - said_at >= SILENT or not world.ledger.runs(meta["uid"]):
        return "the driver is silent"
    if report["phase"] not in {"Running", "Idle"} or report["heldShards"] < report["openShards"] or report["draining"]:
        return f"the driver is {report['phase']}"
    staying = [
        pod
        for pod in world.executors()
        if "deletionTimestamp" not in pod["metadata"] and not world.ledger.only_held(pod) and not _of_standby(world, pod)
    ]  # others may be on a lost node
    number = world.number(wanted.spec)
    if report["executors"] != number or len(staying) != number:
        return f"{report['executors']} executors have registered"
    return HANGS if world.habits.hangs or world.habits.fault(driver) in STANDS else None

"""The end of every example: faults end, the user wants something possible, and gets it; then deletes it, and nothing is left."""

from __future__ import annotations

from typing import Any

from kstatus import CURRENT, kstatus
from steering.ledger import claim
from steering.stranger import HOLD
from steering.world import KEY, World

from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse

Json = dict[str, Any]
PATIENCE = 900  # seconds: the longest backoff, drains and leases included
QUIET = 60
FOREVER = 10**9
BELIEVED = 130  # a status may stand for so long after its driver fell silent


def finish(world: World) -> None:
    """Heals the world and checks what must be true in the end."""
    _heal(world)
    if world.resource() is not None:
        _mend_spec(world)
        if "deletionTimestamp" not in world.must()["metadata"]:
            world.run(BELIEVED)
            if (world.status.get("trial") or {}).get("state") == "RolledBack":
                world.annotate(restart="in the end")
            reached = world.run(PATIENCE, until=lambda: _reached(world) is None)
            claim("spec_reached", reached, f"{_reached(world)}; {world.status}")
            _quiet(world)
            claim("spec_reached", _reached(world) is None, f"not for long: {_reached(world)}; {world.status}")
            claim("health_is_true", kstatus(world.must()) == CURRENT, world.status)
        world.delete()
    claim("nothing_leaks", world.run(PATIENCE, until=lambda: not left(world)), f"{left(world)}; {world.status}")


def _heal(world: World) -> None:
    world.disturb()
    for leader in world.leaders:
        leader.faults.end()
        leader.lag = leader.down = 0
        leader.deaf.clear()
    for former in world.leaders[:-1]:  # an election ends it: two whose watches missed different things would write against each other for ever
        former.stop(FOREVER)
    for node in list(world.nodes.lost):
        world.nodes.restore(node)
    world.nodes.silence()
    for pod in [pod for pod in world.memory.all("Pod") if HOLD in (pod["metadata"].get("finalizers") or ())]:
        world.memory.edit(pod, {"metadata": {"finalizers": []}})
    for body in [body for kind in ("Pod", "Job") for body in world.memory.all(kind) if body["metadata"]["uid"] in world.ledger.orphans]:
        world.memory.remove(body["kind"], body["metadata"]["namespace"], body["metadata"]["name"], body["metadata"]["uid"])
    world.habits.exits.clear()
    world.habits.words = {}
    world.admission.policies.clear()
    world.habits.source, world.habits.drain, world.habits.executors = "ok", 3, "ok"
    world.habits.hangs = world.habits.no_account = False
    world.habits.run = 10
    world.habits.position = "ok"
    world.habits.demand = None
    world.habits.standby = "ok"
    world.habits.bad.clear()


def _mend_spec(world: World) -> None:
    world.annotate(paused=None, retry="in the end")
    if not ((loss := world.noted("accept-loss") or "").isdecimal() or not loss.strip()):
        world.annotate(**{"accept-loss": None})
    spec = dict(world.must()["spec"])
    spec.pop("pipelin", None)
    if "autoscale" in spec:
        spec["replicas"] = 1
    spec["pipeline"] = {key: value for key, value in spec["pipeline"].items() if value != "missing"}
    status = world.status
    if status.get("driver", {}).get("attempt") and not status.get("migration"):
        spec.pop("migrateFrom", None)
    world.apply(spec)


def _reached(world: World) -> str | None:
    """What differs from what the spec says; None if nothing does."""
    body = world.must()
    if world.status.get("observedGeneration") != body["metadata"]["generation"]:
        return "the operator has not seen it"
    if world.condition("Stalled") or world.condition("Reconciling") or world.condition("Draining").get("status") == "True":
        return "conditions say that it is under way"
    spec = body["spec"]
    if problem := _jobs(world) or _moved(world, spec):
        return problem
    if spec.get("suspend") or spec["replicas"] == 0:
        return "something runs" if world.drivers() or world.executors() else None
    if "until" in spec:
        return _ended(world, DesiredSpec(parse(spec), spec))
    return _driver(world, DesiredSpec(parse(spec), spec)) if world.condition("Ready").get("status") == "True" else "not Ready"


def _jobs(world: World) -> str | None:
    jobs, named = {job["metadata"]["name"] for job in world.ours("Job")}, [world.status.get(one, {}).get("job") for one in ("migration", "position")]
    return None if jobs <= set(named) else f"Jobs {jobs}, the status names {named}"


def _moved(world: World, spec: Json) -> str | None:
    position, id_ = world.status.get("position", {}), (spec.get("position") or {}).get("id")
    if id_ is None or spec.get("suspend"):
        return None
    refused = position.get("id") == id_ and position.get("state") == "Refused"
    if refused != bool(world.condition("PositionRefused")):
        return f"{position}, and the condition is {world.condition('PositionRefused')}"
    return None if refused or any(id_ in table.moved for table in world.tables.values()) else f"the move {id_} was not carried out"


def _ended(world: World, wanted: DesiredSpec) -> str | None:
    if world.status["phase"] != "Completed" or world.status["driver"]["specHash"] != wanted.driver_hash:
        return f"the run has not ended: {world.status['phase']}"
    if left := [table.moving for table in world.tables.values() if table.moving]:
        return f"Completed, and the plans of {left} are not carried out"
    if world.condition("Ready").get("status") != "True" or "7 records" not in world.condition("Ready")["message"]:
        return "not Ready, or without counts"
    return "something runs" if world.drivers() or world.executors() else None


def _driver(world: World, wanted: DesiredSpec) -> str | None:
    driver, pods = world.status["driver"], [pod["metadata"] for pod in world.drivers()]
    behind = _standby(world, wanted)
    if isinstance(behind, str):
        return behind
    if [pod["name"] for pod in pods] != [driver["pod"], *behind]:
        return f"drivers: {[pod['name'] for pod in pods]}, the status names {driver['pod']} and {behind}"
    if pods[0]["annotations"]["sluice.dev/spec-hash"] != wanted.driver_hash:
        return "the driver has another spec"
    if len(world.executors()) != world.number(wanted.spec) * len(pods):
        return f"{len(world.executors())} executors, {world.number(wanted.spec)} wanted for each of {len(pods)}"
    return None if driver.get("uid") == pods[0]["uid"] else "the status names another pod of that name"


def _standby(world: World, wanted: DesiredSpec) -> list[str] | str:
    """The pod that stands behind the driver for failover, if the spec asks for one; or why it is not ready."""
    said = world.condition("StandbyReady")
    if wanted.spec.rollout is None or not wanted.spec.rollout.for_good:
        return []
    return [world.status["standby"]["pod"]] if said.get("status") == "True" else f"the standby is not ready: {said}"


def _quiet(world: World) -> None:
    """Nothing happens for a while but reports: a status write every ten seconds, no pass that does nothing else, no event."""
    world.run(15)
    writes, events = sum(leader.faults.writes for leader in world.leaders), len(world.reasons())
    calls = sum(leader.faults.calls for leader in world.leaders)
    world.run(QUIET)
    written = sum(leader.faults.writes for leader in world.leaders) - writes
    called = sum(leader.faults.calls for leader in world.leaders) - calls
    claim("no_hot_loop", written <= (QUIET // 10 + 1) * len(world.leaders), f"{written} writes in {QUIET} quiet seconds")
    claim("no_hot_loop", called <= written + 6 * len(world.leaders), f"{called} calls in {QUIET} quiet seconds, {written} of them writes")
    claim("no_hot_loop", len(world.reasons()) == events, f"events in quiet seconds: {world.reasons()[events - len(world.reasons()) :]}")


def left(world: World) -> list[str]:
    kinds = ("KinesisConsumer", "Pod", "Job", "ConfigMap")
    left = [f"{kind} {body['metadata']['name']}" for kind in kinds for body in world.ours(kind)]
    looked_after = [f"a loop that wakes at {leader.wake}" for leader in world.leaders if leader.wake is not None]
    return left + looked_after if world.memory.get("KinesisConsumer", *KEY) is None else [*left, "the resource"]

"""A cluster in virtual time, a second a tick: the in-memory fake, its controllers and nodes, programs in pods, operators, and a user.

Everything is drawn or told from outside; nothing here is left to chance.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from steering import controllers
from steering.admission import Admission
from steering.leader import Leader
from steering.ledger import Ledger, condition_of
from steering.line import Guards
from steering.nodes import Nodes, Program
from steering.person import Person
from steering.programs import PROGRAMS, Habits, Idle, Place, Table
from steering.register import is_standby

from sluice_lab.fakes.cluster import MemoryCluster, copied
from sluice_operator.cluster.port import CONSUMER_KIND, Rejected
from sluice_operator.observe.cache import ResourceKey
from sluice_operator.resource.fields import Spec
from sluice_operator.run.shared import ReconcileContext

Json = dict[str, Any]
KEY = ResourceKey("default", "orders")
BEGIN = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
SPEC: Json = {
    "stream": {"name": "orders", "region": "eu-west-1"},
    "replicas": 2,
    "pipeline": {"entrypoint": "orders.pipeline:process"},
}
MIGRATING: Json = {**SPEC, "migrateFrom": {"table": "orders-kcl"}}


class World:
    def __init__(self, leaders: int = 1) -> None:
        self.now = BEGIN
        self.ahead = timedelta(0)
        self.memory = MemoryCluster(lambda: self.now)
        self.tables: dict[str, Table] = {}
        self.ledger = Ledger(self.memory, self.tables)
        self.ledger.now = self.ledger.calm_since = BEGIN
        self.habits = Habits()
        self.place = Place(self.memory, self.tables, self.habits, self.ledger, self.now)
        self.nodes = Nodes(self.memory, lambda: self.now, self._program)
        self.ledger.nodes = self.nodes
        self.nodes.full = self._is_full
        self.memory.admission = self._admit
        self.person = Person(self)
        self.admission = Admission(self.memory, lambda: self.now)
        guards = Guards(self.ledger.judge, self.admission, lambda: self.now)
        self.leaders = [Leader(self.memory, KEY, self.here, guards, self.equipped) for _ in range(leaders)]
        self.stalled: Leader | None = None
        self.listens = False  # the stalled one only waits for an answer; its watches go on
        self.restart_asked_at: datetime | None = None

    def _program(self, pod: Json) -> Program:
        uid, role = pod["metadata"]["uid"], self.ledger.role(pod)
        if uid in self.ledger.foreign:
            return Idle()
        if self.habits.sidecar and role != "executor":
            self.nodes.sidecars.add(uid)
        made: Program = PROGRAMS[role](self.place, pod)
        return made

    def _is_full(self, pod: Json) -> bool:
        lacks = self.habits.executors == "pending" and self.ledger.role(pod) == "executor"
        return lacks or (self.habits.standby == "pending" and is_standby(pod))

    def _admit(self, body: Json) -> None:
        role = (body["metadata"].get("labels") or {}).get("sluice.dev/role")
        if self.habits.no_account and body["kind"] == "Pod" and role in {"driver", "migration"} and "serviceAccountName" in body["spec"]:
            raise Rejected("Forbidden", "error looking up service account: serviceaccount 'sluice-consumer' not found")

    def here(self) -> datetime:
        """The time by the clock of the operator's machine."""
        return self.now + self.ahead

    def equipped(self, context: ReconcileContext) -> ReconcileContext:
        """What a process of the operator begins with; a test may give it other settings, or another client."""
        return context

    # what a user does

    def apply(self, spec: Json, annotations: Json | None = None) -> None:
        present = self.resource()
        notes = {"annotations": annotations} if annotations else {}
        if present is None:
            meta = {"namespace": KEY.namespace, "name": KEY.name, **notes}
            self.memory.create({"apiVersion": "sluice.dev/v1alpha1", "kind": CONSUMER_KIND, "metadata": meta, "spec": copied(spec)})
        else:
            self.memory.edit(present, {"spec": _replacing(present["spec"], spec), "metadata": notes})

    def annotate(self, **notes: str | None) -> None:
        """`kubectl annotate`, names without their prefix."""
        if (present := self.resource()) is not None:
            self.memory.edit(present, {"metadata": {"annotations": {f"sluice.dev/{key}": value for key, value in notes.items()}}})
            self.ledger.given_up |= {notes["force"] or ""} if "force" in notes else set()

    def noted(self, name: str) -> str | None:
        """The value of an annotation of the resource, name without its prefix."""
        found: str | None = ((self.resource() or {"metadata": {}})["metadata"].get("annotations") or {}).get(f"sluice.dev/{name}")
        return found

    def ask_restart(self) -> None:
        """`kubectl sluice restart`: a value that was never there before."""
        self.restart_asked_at = self.now
        self.annotate(restart=self.now.isoformat())

    def delete(self, *, cascade: str = "background") -> None:
        if (present := self.resource()) is None:
            return
        meta = present["metadata"]
        if cascade in controllers.FINALIZERS and "deletionTimestamp" not in meta:
            self.memory.edit(present, {"metadata": {"finalizers": [*meta.get("finalizers", ()), controllers.FINALIZERS[cascade]]}})
        self.memory.remove(CONSUMER_KIND, *KEY, meta["uid"])

    def delete_pod(self, name: str, grace: int | None = None) -> None:
        """`kubectl delete pod`; grace 0 is `--force`."""
        if pod := self.memory.get("Pod", KEY.namespace, name):
            self.ledger.taken_away.add(pod["metadata"]["uid"])
            self.memory.remove("Pod", KEY.namespace, name, pod["metadata"]["uid"], grace)

    # what one looks at

    def resource(self) -> Json | None:
        """The resource, if it exists; not to be changed."""
        return self.memory.stored(CONSUMER_KIND, *KEY)

    def must(self) -> Json:
        body = self.resource()
        assert body is not None
        return body

    @property
    def status(self) -> Json:
        status: Json = (self.resource() or {}).get("status", {})
        return status

    def condition(self, kind: str) -> Json:
        return condition_of(self.status, kind)

    def number(self, spec: Spec) -> int:
        """How many executors are wanted. With `spec.autoscale` it is the operator's word: the ledger judges that."""
        chosen = self.status.get("autoscale") or {}
        return chosen.get("replicas", spec.autoscale.min) if spec.autoscale else spec.replicas

    def pods(self, role: str) -> list[Json]:
        return [pod for pod in self.ours("Pod") if self.ledger.role(pod) == role]

    def ours(self, kind: str) -> list[Json]:
        return [body for body in self.memory.all(kind) if not self.ledger.is_foreign(body)]

    def drivers(self) -> list[Json]:
        return self.pods("driver")

    def executors(self) -> list[Json]:
        return self.pods("executor")

    def reasons(self) -> list[str]:
        return [event["reason"] for event in sorted(self.memory.all("Event"), key=lambda e: int(e["metadata"]["resourceVersion"]))]

    # time

    def run(self, seconds: int, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; True as soon as `until` holds."""
        for _ in range(seconds):
            if until is not None and until():
                return True
            self.tick()
        return until is None or until()

    def tick(self) -> None:
        self.now += timedelta(seconds=1)
        self.place.now = self.ledger.now = self.now
        self.nodes.tick()
        controllers.tick(self.memory)
        self.ledger.abandon(KEY.name)
        for leader in self.leaders:
            if leader is not self.stalled:
                leader.tick()
            elif self.listens:
                leader.listen()
        self.ledger.register.meet()
        if self.stalled or any(leader.down for leader in self.leaders):
            self.disturb()
        if self.admission.policies.get(("status", CONSUMER_KIND), (self.now, ""))[0] > self.now:
            self.disturb()  # nothing can be said in a status; an event says so
        if [leader for leader in self.leaders if leader.faults.was_unsaid()]:
            self.disturb()
        self.ledger.tick(self.resource())
        self.person.tick()

    def disturb(self) -> None:
        """Operators or watches do not work as they should: what stands may be old for a while."""
        self.ledger.calm_since = self.now

    def stall(self, leader: Leader, calls: int, seconds: int) -> None:
        """Before its n-th call from now a process stands still for so long; the others go on."""
        leader.faults.stall[leader.faults.calls + calls] = lambda: self._meanwhile(leader, seconds, listens=False)

    def slow_answer(self, leader: Leader, calls: int, seconds: int, happens: Callable[[], None]) -> None:
        """The answer to its n-th call from now arrives after so long, and something happens before it does. Its watches go on."""

        def meanwhile() -> None:
            happens()
            self._meanwhile(leader, seconds, listens=True)

        leader.faults.slow[leader.faults.calls + calls] = meanwhile

    def _meanwhile(self, leader: Leader, seconds: int, *, listens: bool) -> None:
        if self.stalled is None:
            self.stalled, self.listens = leader, listens
            self.run(seconds)
            self.stalled, self.listens = None, False
            self.disturb()


def _replacing(old: Any, new: Any) -> Any:
    """The merge patch that leaves nothing of the old."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {key: None for key in old if key not in new} | {key: _replacing(old.get(key), value) for key, value in new.items()}


def ready(world: World) -> bool:
    current = world.status.get("observedGeneration") == world.must()["metadata"]["generation"]
    return current and world.condition("Ready").get("status") == "True" and not world.condition("Reconciling")

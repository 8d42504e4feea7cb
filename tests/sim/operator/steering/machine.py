"""The state machine: hypothesis chooses what users, nodes, drivers and networks do, and when; the invariants are those of `ledger`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from steering.finish import finish
from steering.leader import KINDS
from steering.load import Demand
from steering.stranger import Stranger
from steering.world import MIGRATING, SPEC, World

Json = dict[str, Any]
seconds = st.one_of(st.integers(1, 4), st.integers(1, 40))
soon = st.integers(1, 12)
which = st.integers(0, 1)
HURRIED: Json = {"progressDeadlineSeconds": 60}  # so that an example lives to see it pass
EDITS: dict[str, Json] = {
    "batch 1": {"batch": {"intervalSeconds": 1}},
    "batch 9": {"batch": {"intervalSeconds": 9}},
    "another image": {"pipeline": {"entrypoint": "orders.pipeline:process", "image": "other"}},
    "no such image": {"pipeline": {"entrypoint": "orders.pipeline:process", "image": "missing"}},
    "a typo": {"pipelin": {}},
    "back": {},
    "policy": {"restart": {"backoffSeconds": 5, "maxBackoffSeconds": 20}},
    "another source": {"migrateFrom": {"table": "orders-other"}},
    "no source": {"migrateFrom": None},
    "a source": {"migrateFrom": {"table": "orders-kcl"}},
}


ENDS: dict[str, Json | None] = {
    "at the tip": {"tip": True},
    "at noon": {"timestamp": "2026-11-26T12:00:00Z"},
    "at one": {"timestamp": "2026-11-26T13:00:00Z"},
    "nowhere": None,
}


class Operating(Stranger, RuleBasedStateMachine):
    """A consumer, those who want something of it, and everything that can go wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.spec: Json = HURRIED | SPEC
        self.lingered = False

    @initialize(migrating=st.booleans(), leaders=st.integers(1, 2), source=st.sampled_from(["ok", "ok", "active", "bad"]), run=st.integers(0, 30))
    def begin(self, migrating: bool, leaders: int, source: str, run: int) -> None:  # noqa: FBT001 - hypothesis passes names
        """A resource is applied, and something may have come of it."""
        self.world = World(leaders)
        self.world.habits.source = source
        self.spec = HURRIED | (MIGRATING if migrating else SPEC)
        self.world.apply(self.spec)
        self.world.run(run)

    # -- time ----------------------------------------------------------------------------------------------------------------------

    @rule(seconds=seconds)
    def wait(self, seconds: int) -> None:
        """Time passes."""
        self.world.run(seconds)

    # -- the user ------------------------------------------------------------------------------------------------------------------

    def _apply(self) -> None:
        present = self.world.resource()
        if present is None or "deletionTimestamp" not in present["metadata"]:
            self.world.apply({key: value for key, value in self.spec.items() if value is not None})

    @rule(edit=st.sampled_from(sorted(EDITS)), seconds=seconds)
    def edit(self, edit: str, seconds: int) -> None:
        """The spec is edited, or made right again; or the resource is made again."""
        self._edit(edit)
        self.world.run(seconds)

    def ends(self, at: str, seconds: int) -> None:
        """The run gets an end, or another one, or none. A rule of `test_ending`, for here it would change all examples."""
        self.spec = {**self.spec, "until": ENDS[at]}
        self._apply()
        self.world.run(seconds)

    def lasts(self, run: int) -> None:
        """How long a run with an end takes; likewise."""
        self.world.habits.run = run

    def moves(self, id_: str | None, to: str, seconds: int) -> None:
        """The positions are to be moved, or no more. A rule of `test_moving`; likewise."""
        self.spec = {**self.spec, "position": id_ and {"id": id_, "to": {to: True}}}
        self._apply()
        self.world.run(seconds)

    def autoscales(self, bounds: Json | None, seconds: int) -> None:
        """The operator chooses the number of executors, or no more. A rule of `test_scaling`; likewise."""
        self.spec = {**self.spec, "replicas": 1 if bounds else 2, "autoscale": bounds}
        self._apply()
        self.world.run(seconds)

    def rolls(self, rollout: Json | None, standby: str) -> None:
        """How the next restart is made, and what becomes of a standby. A rule of `test_rolling`; likewise."""
        self.world.habits.standby = standby
        self.spec = {**self.spec, "rollout": rollout}
        self._apply()

    def deploys(self, image: str, fault: str | None, seconds: int) -> None:
        """Another version, which is bad perhaps. A rule of `test_trials`; likewise."""
        self.blames(image, fault)
        self.spec = {**self.spec, "pipeline": {**SPEC["pipeline"], "image": image}}
        self._apply()
        self.world.run(seconds)

    def blames(self, image: str, fault: str | None) -> None:
        """What is bad about a version, or about all of them (*); likewise."""
        self.world.habits.bad |= {image: fault} if fault else {}
        if fault is None:
            self.world.habits.bad.pop(image, None)

    def demands(self, demand: Demand | None, seconds: int) -> None:
        """What the stream gives; likewise."""
        self.world.habits.demand = demand
        self.world.run(seconds)

    def mover(self, position: str) -> None:
        """What the next Job that moves positions comes to; likewise."""
        self.world.habits.position = position

    def _edit(self, edit: str) -> None:
        fresh = {key: self.spec[key] for key in (*HURRIED, *SPEC, "migrateFrom", "until", "position", "autoscale", "rollout") if key in self.spec}
        fresh |= {"pipeline": SPEC["pipeline"]}
        self.spec = {**fresh, **EDITS[edit]}
        self._apply()

    @rule(replicas=st.integers(0, 4), seconds=seconds)
    def scale(self, replicas: int, seconds: int) -> None:
        """Somebody, or an autoscaler, wants another number."""
        self.spec["replicas"] = replicas
        self._apply()
        self.world.run(seconds)

    @rule(seconds=seconds)
    def suspend(self, seconds: int) -> None:
        """Suspended, or resumed."""
        self.spec["suspend"] = not self.spec.get("suspend")
        self._apply()
        self.world.run(seconds)

    @rule(paused=st.booleans(), seconds=seconds)
    def pause(self, paused: bool, seconds: int) -> None:  # noqa: FBT001
        """Hands off; or no more."""
        self.world.annotate(paused="true" if paused else None)
        self.world.run(seconds)

    @rule(seconds=seconds, foreground=st.booleans(), again=st.booleans())
    def delete(self, seconds: int, foreground: bool, again: bool) -> None:  # noqa: FBT001
        """The resource is deleted, and perhaps made again under its name."""
        self.world.delete(cascade="foreground" if foreground else "background")
        self.world.run(seconds)
        if again:
            self._apply()
            self.world.run(seconds)

    @rule(seconds=seconds, grace=st.sampled_from([None, None, 0]), role=st.sampled_from(["driver", "executor", "migration"]))
    def delete_pod(self, seconds: int, grace: int | None, role: str) -> None:
        """`kubectl delete pod`, sometimes with --force."""
        for pod in self.world.pods(role)[:1]:
            self.world.delete_pod(pod["metadata"]["name"], grace)
        self.world.run(seconds)

    @rule(seconds=seconds)
    def delete_job(self, seconds: int) -> None:
        """`kubectl delete job`."""
        for job in list(self.world.memory.all("Job")):
            meta = job["metadata"]
            self.world.memory.remove("Job", meta["namespace"], meta["name"], meta["uid"])
        self.world.run(seconds)

    @rule(what=st.sampled_from(["retry", "restart", "force"]), number=st.integers(0, 9))
    def ask(self, what: str, number: int) -> None:
        """A new try of the migration, or a restart; or a driver is given up."""
        drivers = self.world.drivers()
        if what == "retry":
            self.world.annotate(retry=str(number))
        elif what == "restart":
            self.world.ask_restart()
        elif drivers:
            self.world.annotate(force=drivers[number % len(drivers)]["metadata"]["uid"])

    # -- programs and nodes --------------------------------------------------------------------------------------------------------

    @rule(code=st.sampled_from([0, 1, 65, 75, 76, 137]), times=st.integers(1, 2), seconds=seconds)
    def driver_ends(self, code: int, times: int, seconds: int) -> None:
        """The next drivers end by themselves."""
        self.world.habits.exits += [code] * times
        self.world.run(seconds)

    @rule(source=st.sampled_from(["ok", "active", "bad"]))
    def source(self, source: str) -> None:
        """What the next migrator finds."""
        self.world.habits.source = source

    @rule(drain=st.sampled_from([0, 3, 30, 1000]))
    def drain(self, drain: int) -> None:
        """How long a driver takes to end its batch; the last is longer than its grace period."""
        self.world.habits.drain = drain

    @rule(executors=st.sampled_from(["ok", "pending", "refused"]), seconds=seconds)
    def executors_come(self, executors: str, seconds: int) -> None:
        """Or they stay without a node, or are refused; those that are there stay."""
        self.world.habits.executors = executors
        self.world.run(seconds)

    @rule(hangs=st.booleans(), seconds=seconds)
    def batch(self, hangs: bool, seconds: int) -> None:  # noqa: FBT001
        """The open one does not end; or it does."""
        self.world.habits.hangs = hangs
        self.world.run(seconds)

    @rule(missing=st.booleans(), seconds=seconds)
    def account(self, missing: bool, seconds: int) -> None:  # noqa: FBT001
        """The service account of drivers and migrations is missing: their pods are refused."""
        self.world.habits.no_account = missing
        self.world.run(seconds)

    @precondition(lambda self: not self.lingered)
    @rule(seconds=st.integers(200, 700))
    def linger(self, seconds: int) -> None:
        """Nobody does anything for long."""
        self.lingered = True
        self.world.run(seconds)

    @rule(role=st.sampled_from(["driver", "executor", "migration"]), how=st.sampled_from(["evict", "kill"]), seconds=seconds)
    def pod_ends(self, role: str, how: str, seconds: int) -> None:
        """The node is short of memory, or the kernel is."""
        for pod in self.world.pods(role)[:1]:
            if how == "evict" and pod["metadata"]["uid"] in self.world.nodes.programs:
                self.world.nodes.evict(pod)
            else:
                self.world.nodes.kill(pod["metadata"]["uid"], 137)
        self.world.run(seconds)

    @rule(node=st.sampled_from("ab"), how=st.sampled_from(["cut", "dead"]), seconds=seconds)
    def lose_node(self, node: str, how: str, seconds: int) -> None:
        """A node answers no more; its programs may go on."""
        self.world.nodes.lose(node, how)
        self.world.run(seconds)

    @precondition(lambda self: self.world.nodes.lost)
    @rule(how=st.sampled_from(["restore", "restore", "remove"]), seconds=seconds)
    def end_of_outage(self, how: str, seconds: int) -> None:
        """The node is back, or is taken out of the cluster; then its pods are deleted by force."""
        for node in list(self.world.nodes.lost):
            self.world.nodes.restore(node) if how == "restore" else self.world.nodes.remove(node)
        self.world.run(seconds)

    # -- operators and the API server ----------------------------------------------------------------------------------------------

    @rule(who=which, what=st.sampled_from(["crash", "crash", "lose", "late", "down", "refuse"]), at=soon, times=st.integers(1, 3), seconds=seconds)
    def call_fails(self, who: int, what: str, at: int, times: int, seconds: int) -> None:
        """The process dies after a write, or a reply is lost, or comes too late, or says 429, 500 or 403."""
        faults = self._leader(who).faults
        begun = faults.calls if what == "down" else faults.writes
        getattr(faults, what).update(range(begun + at, begun + at + times))
        self.world.run(seconds)

    @rule(who=which, calls=soon, standing=st.sampled_from([1, 5, 30, 120]), seconds=seconds)
    def stall(self, who: int, calls: int, standing: int, seconds: int) -> None:
        """A process stands still in the middle of a pass; if there are two, the other one takes over meanwhile."""
        self.world.stall(self._leader(who), calls, standing)
        self.world.run(seconds)

    @rule(who=which, calls=soon, lasts=st.sampled_from([1, 5, 30]), edit=st.sampled_from(sorted(EDITS)), seconds=seconds)
    def slow_answer(self, who: int, calls: int, lasts: int, edit: str, seconds: int) -> None:
        """The spec is edited while the answer to a call is on its way; the watches of the same process show it before the answer comes."""
        self.world.slow_answer(self._leader(who), calls, lasts, lambda: self._edit(edit))
        self.world.run(seconds)

    @rule(who=which, down=st.integers(1, 60), seconds=seconds)
    def leader_ends(self, who: int, down: int, seconds: int) -> None:
        """A process is killed, and started again after a while."""
        self.world.disturb()
        self._leader(who).stop(down)
        self.world.run(seconds)

    @rule(ahead=st.sampled_from([-300, 0, 300]), seconds=seconds)
    def clock(self, ahead: int, seconds: int) -> None:
        """New processes run where the clock is so many seconds ahead of the API server's and the nodes'."""
        self.world.disturb()
        self.world.ahead = timedelta(seconds=ahead)
        for leader in self.world.leaders:
            leader.stop(1)
        self.world.run(seconds)

    @rule(who=which, lag=st.sampled_from([0, 3, 11]), seconds=seconds)
    def lag(self, who: int, lag: int, seconds: int) -> None:
        """Watches tell late, and all at once."""
        self._leader(who).lag = lag
        self.world.run(seconds)

    @rule(who=which, kind=st.sampled_from(KINDS), seconds=seconds, forgotten=st.booleans())
    def gap(self, who: int, kind: str, seconds: int, forgotten: bool) -> None:  # noqa: FBT001
        """A watch is interrupted, and goes on; or begins with a list again, which never tells what is gone."""
        leader = self._leader(who)
        leader.deaf.add(kind)
        self.world.run(seconds)
        if forgotten:
            self.world.memory.compact()
        leader.deaf.discard(kind)

    def _leader(self, who: int) -> Any:
        self.world.disturb()
        return self.world.leaders[who % len(self.world.leaders)]

    def teardown(self) -> None:
        """Faults end: what was asked for is reached; then it is deleted, and nothing is left."""
        finish(self.world)


def told(chapters: Iterable[tuple[str, Json]]) -> Operating:
    """A machine to which all this has happened; its teardown is the end of the story."""
    machine = Operating()
    for name, given in chapters:
        getattr(machine, name)(**given)
    return machine

"""What runs in the pods: driver, executor, migrator. They keep the rules of docs/interfaces.md and docs/protocol.md as far as an operator can see."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from steering.load import Demand, Work
from steering.register import is_standby

from sluice_lab.fakes.cluster import FINISHED, MemoryCluster, datetime_text
from sluice_operator.cluster.port import Exists
from sluice_operator.observe.parse import CONSUMER
from sluice_operator.untrusted.values import moment

if TYPE_CHECKING:
    from steering.ledger import Ledger

Json = dict[str, Any]
LABEL = "spark.kubernetes.executor.label."
SHARDS = 4
BATCHES_BEFORE = 359_051_000  # the clock counts batches; on screens they look like those of a consumer that began minutes ago
FIGURES, POLL = timedelta(seconds=5), 2
EARLY = {"WaitingOutLease", "Starting"}
STANDS = {"hangs", "searches"}  # faults with which no batch ends


@dataclass
class Table:
    """The checkpoint table, as far as it decides who may work. `taken` is the uid of the pod that holds the lease."""

    taken: str | None = None
    generation: int = 0
    beat: int = 0
    migrated: bool = False
    migrator: str | None = None
    reached: set[str] = field(default_factory=set)  # ends of runs, as `spec.until` says them
    moving: str | None = None  # the move whose plan is written down: whoever has the lease completes it
    moved: list[str] = field(default_factory=list)
    backlog: float = 0.0  # seconds behind

    def complete(self) -> None:
        """A move whose plan is written down is carried out. Whoever had reached an end reads again."""
        if self.moving is not None:
            self.moved.append(self.moving)
            self.moving = None
            self.reached.clear()


@dataclass
class Habits:
    """How programs behave for now.

    `source` is what a migrator finds: ok, active or bad; `job_exits` what the next migrators end with instead.
    `exits` is what the next drivers end with, once running, and `words` what they say then, if anything else than usual. `drain` and `leave`: seconds
    until a driver's batch has ended, and a decommissioned executor's tasks. `early`: drivers report before they run. `takes_over`: seconds for which
    they say Running and hold only some shards; a real one fences all of them first. `warnings` are those in their reports. `executors` that are asked
    for come (ok), stay without a node (pending), or are refused. `hangs`: the open batch does not end. `no_account`: the server refuses pods of
    drivers and migrations. `run`: seconds until a run that has an end reaches it. `sidecar`: a webhook puts another container
    into new pods, which does not end with them. `position`: whether a Job may move positions: ok, refused, or it fails (failing). `demand`: what the
    stream gives them to do; without it drivers report no figures of their load, as earlier ones. `standby`: one gets
    ready (ok), gets no node (pending), never gets ready (slow), ends (fails), or its table answers no more (mute). `bad`: how drivers of an image
    fail, or of all (*): they raise (raises), are refused (refused), end no batch (hangs), or search for a record (searches).
    """

    source: str = "ok"
    exits: list[int] = field(default_factory=list)
    job_exits: list[int] = field(default_factory=list)
    takes_over: int = 4
    drain: int = 3
    leave: int = 3
    warnings: list[str] = field(default_factory=list)
    executors: str = "ok"
    hangs: bool = False
    early: bool = True
    no_account: bool = False
    words: Json = field(default_factory=dict)
    run: int = 10
    sidecar: bool = False
    position: str = "ok"
    demand: Demand | None = None
    standby: str = "ok"
    bad: dict[str, str] = field(default_factory=dict)

    def fault(self, pod: Json) -> str | None:
        image = pod["spec"]["containers"][0]["image"]
        return self.bad.get(image, self.bad.get("*"))


@dataclass
class Place:
    """What every program sees: the API server, the time, tables by name, who watches."""

    server: MemoryCluster
    tables: dict[str, Table]
    habits: Habits
    ledger: Ledger
    now: datetime

    def table(self, name: str) -> Table:
        return self.tables.setdefault(name, Table())


class Driver:
    """Take the lease, or wait it out, or leave; report; follow the target; drain when asked to."""

    def __init__(self, place: Place, pod: Json) -> None:
        meta = pod["metadata"]
        self.place, self.uid, self.meta = place, meta["uid"], meta
        self.config: Json = json.loads(meta["annotations"]["sluice.dev/config"])
        self.table = place.table(self.config["checkpoints"]["table"])
        self.ended: tuple[int, Json] | None = None
        self.step, self.since = "WaitingOutLease", place.now
        self.begun = place.now
        self.watched = self.table.beat, self.table.generation
        self.standby = is_standby(pod)
        self.image = {"spec": {"containers": [{"image": pod["spec"]["containers"][0]["image"]}]}}
        self.generation = 0
        self.leaving: dict[str, datetime] = {}
        self.said: Json = {"number": 0}
        self.said_at: datetime | None = None
        self.work = Work()
        self.number = self.batch = 0  # of the last executor, and of the open batch

    @property
    def working(self) -> bool:
        """It may write, as far as it knows."""
        return self.generation > 0 and self.ended is None

    def tick(self, pod: Json | None) -> None:
        if self.generation and self.generation != self.table.generation:
            self.ended = (76, {"reason": "Fenced", "message": "another epoch took over"})
        elif self.generation:
            self.table.beat += 1
            self._work(pod)
            self._consume()
        else:
            self._take(pod)
        if pod is not None and self.ended is None and (self.place.habits.early or self.step not in EARLY):
            self._report(pod)

    def _go(self, step: str) -> None:
        self.step, self.since = step, self.place.now

    def _take(self, pod: Json | None) -> None:
        waited = self.place.now - self.since
        if self.config["migrateFrom"] and not self.table.migrated:
            self.ended = (65, {"message": "not migrated"})
        elif self.place.habits.fault(self.image) == "refused":
            self.ended = (65, {"reason": "Refused", "message": "entrypoint: there is no module orders"})
        elif not isinstance(self.config.get("acceptLossOfBatch", 0), int):
            self.ended = (65, {"message": "acceptLossOfBatch: a number is wanted"})
        elif pod and "deletionTimestamp" in pod["metadata"]:
            self.ended = (0, {"reason": "Drained", "message": "nothing was begun"})
        elif self.standby and (self._is_mute or self.step != "StandingBy" or (self.table.beat, self.table.generation) != self.watched):
            self._stand(pod)
        elif (self.table.beat, self.table.generation) != self.watched and not self.config["force"] and self.table.taken is not None:
            self.ended = (75, {"reason": "LeaseHeld", "message": "another driver works"})
        elif self.config["force"] or self.table.taken is None or waited >= timedelta(seconds=self.config["leaseDurationSeconds"]):
            self.place.ledger.takes(self)
            self.table.taken, self.table.generation = self.uid, self.table.generation + 1
            self.generation = self.table.generation
            self.table.complete()
            self._go("Starting")
            if pod is not None:
                self._follow(pod)  # Spark asks for executors when it starts

    @property
    def _is_mute(self) -> bool:
        """The table does not answer a standby."""
        return self.place.habits.standby == "mute"

    def _stand(self, pod: Json | None) -> None:
        """Get ready. Whenever the lease's heart has moved, its time is waited for again."""
        self.step = "Starting" if self.step == "WaitingOutLease" else self.step
        if pod is not None:
            self._follow(pod)
        ready = self.place.now - self.begun >= timedelta(seconds=5) and self.place.habits.standby != "slow"
        if self._is_mute:
            self._go("Starting")
        elif self.place.habits.standby == "fails":
            self.ended = (1, {"reason": "Failed", "message": "no module named orders"})
        elif ready:
            self.watched = self.table.beat, self.table.generation
            self._go("StandingBy")

    def _work(self, pod: Json | None) -> None:
        since = self.place.now - self.since
        if self.step == "Starting" and since >= timedelta(seconds=2):
            self._go("TakingOver" if self.place.habits.takes_over else "Running")
        elif self.step == "TakingOver" and since >= timedelta(seconds=self.place.habits.takes_over):
            self._go("Running")
        if pod is None:
            return
        if "deletionTimestamp" in pod["metadata"] and self.step != "Draining":
            self._go("Draining")
        if self.step == "Draining":
            self._drain(pod)
        elif self.step in {"TakingOver", "Running"}:
            self._follow(pod)
            if self.step == "Running" and self._is_done():
                self._finish()
            elif self.step == "Running" and self.place.habits.fault(self.image) == "raises" and since >= timedelta(seconds=2):
                self.ended = (1, {"reason": "Failed", "message": "ValueError: no such column"})
            elif self.step == "Running" and self.place.habits.exits:
                code = self.place.habits.exits.pop(0)
                self.ended = (code, self.place.habits.words or {"message": f"exit {code}"} if code != 137 else {})

    def _consume(self) -> None:
        if (demand := self.place.habits.demand) is not None:
            there = len([pod for pod in self._executors() if self._registered(pod)]) if self.step == "Running" else 0
            self.table.backlog = self.work.second(demand, self.table.backlog, there)

    @property
    def _until(self) -> str | None:
        """Where its run ends; None: nowhere."""
        return json.dumps(self.config["until"]) if "until" in self.config else None

    def _is_done(self) -> bool:
        lasted = self.place.now - self.since >= timedelta(seconds=self.place.habits.run)
        return self._until is not None and (lasted or self._until in self.table.reached)

    def _finish(self) -> None:
        self.table.reached.add(str(self._until))
        self._let_go()
        self.ended = (0, {"reason": "EndReached", "message": "7 records in 2 batches of 4 shards, up to batch 9"})

    def _let_go(self) -> None:
        for executor in self._executors():
            self._delete(executor)
        self.table.taken = None

    def _drain(self, pod: Json) -> None:
        if self.place.now - self.since >= timedelta(seconds=self.place.habits.drain):
            self._let_go()
            drained = (0, {"reason": "Drained", "message": f"{pod['metadata']['name']} drained"})
            self.ended = (75, {"reason": "Interrupted", "message": "stopped before the end"}) if self._until else drained

    def _executors(self) -> list[Json]:
        ours = (pod for pod in self.place.server.all("Pod") if (pod["metadata"].get("ownerReferences") or [{}])[0].get("uid") == self.uid)
        return [pod for pod in ours if "deletionTimestamp" not in pod["metadata"]]

    def _delete(self, pod: Json) -> None:
        meta = pod["metadata"]
        self.place.server.remove("Pod", meta["namespace"], meta["name"], meta["uid"])

    def _follow(self, pod: Json) -> None:
        since = self.since if self.generation else self.begun  # a standby begins to wait anew with each heartbeat that it sees
        if int((self.place.now - since).total_seconds()) % POLL:
            return
        target = int(pod["metadata"]["annotations"]["sluice.dev/executors"])
        have = {executor["metadata"]["name"]: executor for executor in self._executors()}
        ended = {name for name, executor in have.items() if executor.get("status", {}).get("phase") in FINISHED}
        staying = sorted((name for name in have if name not in ended | self.leaving.keys()), key=lambda name: not self._registered(have[name]))
        works = [name for name in staying if self._registered(have[name])]
        self.leaving |= dict.fromkeys(works[target:], self.place.now + timedelta(seconds=self.place.habits.leave))
        unborn = set(staying[target:]) - set(works)  # those that have not registered have no tasks to end: Spark deletes their pods at once
        for name in ended | unborn | {name for name, end in self.leaving.items() if end <= self.place.now}:
            self.leaving.pop(name, None)
            if name in have:
                self._delete(have[name])
        for _ in range(0 if self.place.habits.executors == "refused" else target - len(staying)):
            self._executor(pod)

    def _executor(self, pod: Json) -> None:
        meta = pod["metadata"]
        conf = self.config["sparkConf"]  # its pod may have lost the labels
        epoch = conf["spark.app.id"]
        labels = {"app.kubernetes.io/managed-by": "sluice", CONSUMER: self.config["name"], "sluice.dev/role": "executor"}
        labels |= {key.removeprefix(LABEL): value for key, value in conf.items() if key.startswith(LABEL)}  # none with `executor.inDriver`
        labels |= {"spark-role": "executor", "spark-app-selector": epoch}  # Spark's own
        refs = [{"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": self.uid, "controller": True}]
        head: Json = {"namespace": meta["namespace"], "ownerReferences": refs}
        if not self.number:
            self._create({"kind": "ConfigMap", "metadata": {**head, "name": f"spark-exec-{self.uid}-conf-map"}})
        spec = {"containers": [{"name": "executor", "image": pod["spec"]["containers"][0]["image"]}], "terminationGracePeriodSeconds": 30}
        created = False
        while not created:  # a name may be taken by an executor of another driver; Spark tries its next one then
            self.number += 1
            with contextlib.suppress(Exists):
                self._create({"kind": "Pod", "metadata": {**head, "name": f"{epoch}-exec-{self.number}", "labels": labels}, "spec": spec})
                created = True

    def _create(self, body: Json) -> None:
        self.place.server.create(body)

    def _report(self, pod: Json) -> None:
        report = self._figures()
        same = {**report, "number": 0} == {**self.said, "number": 0}
        if self.batch and (self.place.habits.hangs or self.place.habits.fault(self.image) in STANDS):
            report["batch"] = self.batch - 1
        self.batch = report["openBatch"] = report["batch"] + 1
        shown = {key: report[key] for key in ("phase", "executors", "heldShards", "draining", "warnings")}
        at_once = shown != {key: self.said.get(key) for key in shown}
        waited = self.place.now - self.said_at if self.said_at else FIGURES
        if not at_once and (waited < FIGURES or (same and waited < 5 * FIGURES)):
            return
        report["number"] = int(self.said["number"]) + 1
        self.said, self.said_at = report, self.place.now
        self.place.ledger.hears(self.uid, report, self.place.now)
        self.place.server.edit(pod, {"metadata": {"annotations": {"sluice.dev/report": json.dumps(report)}}})

    def _registered(self, executor: Json) -> bool:
        """It has dialled its driver: a program of this pod runs, and its node answers."""
        return self.place.ledger.runs(executor["metadata"]["uid"]) and not self.place.ledger.out_of_sight(executor["metadata"]["uid"])

    def _figures(self) -> Json:
        habits, there = self.place.habits, len([pod for pod in self._executors() if self._registered(pod)]) if self.generation else 0
        held = {"TakingOver": SHARDS // 2, "Running": SHARDS, "Draining": SHARDS}.get(self.step, 0)
        since = datetime_text(self.since)
        return {
            "number": 0,
            "phase": "Running" if self.step == "TakingOver" else self.step,
            "generation": self.generation or None,
            "batch": int(self.place.now.timestamp()) // 5 - BATCHES_BEFORE,
            "openShards": SHARDS,
            "heldShards": held,
            "executors": there,
            "draining": [{"pod": name, "since": since, "deadline": datetime_text(until)} for name, until in self.leaving.items()],
            "warnings": [*habits.warnings, *(["Isolating: batch 42, attempt 3"] if held and habits.fault(self.image) == "searches" else ())],
            **(self.work.figures(habits.demand, self.table.backlog) if habits.demand else {}),
        }


class Idle:
    """A stranger's program: it runs until its pod goes."""

    def __init__(self) -> None:
        self.ended: tuple[int, Json] | None = None

    def tick(self, pod: Json | None) -> None:
        if pod is not None and "deletionTimestamp" in pod["metadata"]:
            self.ended = (143, {})


class Executor:
    """Runs until it is told to end, or its driver is gone."""

    def __init__(self, place: Place, pod: Json) -> None:
        self.place, self.driver = place, pod["metadata"]["ownerReferences"][0]["uid"]
        self.ended: tuple[int, Json] | None = None

    def tick(self, pod: Json | None) -> None:
        """See Program. It dials its driver, whatever the API server says."""
        if pod is not None and "deletionTimestamp" in pod["metadata"]:
            self.ended = (143, {})
        elif not self.place.ledger.runs(self.driver):
            self.ended = (1, {})


class Migrator:
    """Takes three seconds; only one at a time gets anywhere."""

    ENDS: dict[int, Json] = {  # noqa: RUF012 - a table
        0: {"reason": "Complete", "message": "7 shards", "shards": 7},
        75: {"reason": "SourceActive", "message": "lease moved"},
    }

    def __init__(self, place: Place, pod: Json) -> None:
        words = pod["spec"]["containers"][0]["args"]
        self.place, self.uid, self.since = place, pod["metadata"]["uid"], place.now
        self.table = place.table(words[words.index("--target") + 1])
        self.ended: tuple[int, Json] | None = None

    def tick(self, pod: Json | None) -> None:
        if pod is not None and "deletionTimestamp" in pod["metadata"]:
            self._end(143)
        elif self.table.migrator not in {None, self.uid} and self.place.ledger.runs(self.table.migrator or ""):
            self._end(75)
        elif self.place.now - self.since >= timedelta(seconds=3):
            habits = self.place.habits
            self._end(habits.job_exits.pop(0) if habits.job_exits else {"ok": 0, "active": 75, "bad": 65}[habits.source])
        else:
            self.table.migrator = self.uid

    def _end(self, code: int) -> None:
        self.table.migrated = self.table.migrated or code == 0
        words = {} if code == 143 else self.ENDS.get(code, {"message": "row 'x' is unknown"})
        self.ended = (code, words | ({"warnings": 2} if code == 0 else {}))


class Mover:
    """Takes the lease, writes its plan down, carries it out, and lets go; a second each."""

    def __init__(self, place: Place, pod: Json) -> None:
        container = pod["spec"]["containers"][0]
        words: list[str] = container["args"]
        self.place, self.uid, self.since = place, pod["metadata"]["uid"], place.now
        self.table, self.id = place.table(words[words.index("--table") + 1]), words[words.index("--id") + 1]
        self.lease = timedelta(seconds=float(words[words.index("--lease-seconds") + 1]))
        self.watched, self.generation = (self.table.beat, self.table.generation), 0
        self.ended: tuple[int, Json] | None = None

    def tick(self, pod: Json | None) -> None:
        if pod is not None and "deletionTimestamp" in pod["metadata"]:
            self._end(143, {})
        elif self.generation and self.generation != self.table.generation:
            self._end(75, {"reason": "LeaseHeld", "message": "another epoch took the lease"})
        elif self.generation:
            self._move()
        else:
            self._take()

    def _take(self) -> None:
        table, habits = self.table, self.place.habits
        if self.id in table.moved:
            self._done(changed=False)
        elif habits.position == "refused" or not table.generation:
            self._end(65, {"reason": "Refused", "message": "batch 42 is open; name it by --give-up-batch 42"})
        elif (table.beat, table.generation) != self.watched:
            self._end(75, {"reason": "LeaseHeld", "message": "another driver works"})
        elif table.taken is None or self.place.now - self.since >= self.lease:
            self.place.ledger.takes(self)
            table.taken, table.generation = self.uid, table.generation + 1
            self.generation = table.generation

    def _move(self) -> None:
        if self.place.habits.position == "failing":
            self._end(1, {"message": "DynamoDB did not answer"})
        elif self.table.moving is None:
            self.table.moving = self.id
        else:
            self.table.complete()
            self._done(changed=True)

    def _done(self, *, changed: bool) -> None:
        moved = {"to": "trimHorizon", "shards": SHARDS, "recordsAgain": 12, "recordsPassedOver": 0, "batch": 41, "digest": "ab12"}
        words = "moved 4 shards back and 0 forward, after batch 41" if changed else f"the reset {self.id} was carried out before"
        self._end(0, {"reason": "Reset", "message": words, "state": "RESET", "id": self.id, "changed": changed, "warnings": 0, **moved})

    def _end(self, code: int, words: Json) -> None:
        if self.generation and self.generation == self.table.generation:
            self.table.taken = None
        self.ended = (code, words)


def job(place: Place, pod: Json) -> Migrator | Mover:
    return (Mover if "reset" in pod["spec"]["containers"][0]["args"] else Migrator)(place, pod)


PROGRAMS: dict[str, Any] = {"driver": Driver, "executor": Executor, "migration": job}


def gone_by(pod: Json) -> datetime | None:
    return moment(pod["metadata"].get("deletionTimestamp"))

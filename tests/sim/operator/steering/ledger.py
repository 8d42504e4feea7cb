"""The observer: sees every write of every operator before and after it happens, and says which invariant broke.

It reads objects as they are stored and shares no judgement with the operator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from steering.bounds import unfit
from steering.register import Register
from steering.whose import calls, labelled, names

from sluice_operator.cluster.memory import FINISHED, MemoryCluster
from sluice_operator.observe.parse import CONSUMER

if TYPE_CHECKING:
    from steering.line import Line
    from steering.nodes import Nodes
    from steering.programs import Driver, Table

Json = dict[str, Any]
KIND = "KinesisConsumer"
INVARIANTS = (
    "one_driver",
    "one_writer",
    "one_migration",
    "migrated_first",
    "drained_not_killed",
    "exits_are_kept",
    "status_is_true",
    "health_is_true",
    "generation_is_honest",
    "generation_is_seen",
    "spec_reached",
    "nothing_leaks",
    "no_hot_loop",
    "no_faults",
    "status_fits",
    "told_is_done",
    "end_is_kept",
)
TAKEN = {"Evicted", "Drained", "Killed", "DriverLost", "Forced"}
SILENT = timedelta(seconds=90)  # without a report, after which the operator may call a driver silent
HEARD = timedelta(seconds=100)  # a report may be so old while Ready is said: 90 s, and some for the time of a pass
SEEN = timedelta(seconds=20)  # until an operator whose watch is 11 s late has written that a driver ended
PROMPT = timedelta(seconds=45)  # a spec that the watches have shown; unsettled resources are read live every 30 s anyway
BELIEVED = timedelta(seconds=130)  # without news a status is looked at again after 90 s; then the look, and the write


WORDS = 18  # statuses a minute: 10 at once, then one every 10 s, and two for chance
UNMADE = 4  # attempts in a row: of two operators, or with edits to and fro, some


class Broken(AssertionError):
    """An invariant does not hold."""


def claim(invariant: str, holds: object, how: object) -> None:
    """Raises Broken unless it holds."""
    if not holds:
        raise Broken(f"{invariant}: {how}")


class Ledger:
    """What happened, and the claims about it."""

    def __init__(self, server: MemoryCluster, tables: dict[str, Table]) -> None:
        self.server, self.tables = server, tables
        self.register = Register(server)
        self.nodes: Nodes
        self.now: datetime
        self.calm_since: datetime
        self.reports: dict[str, tuple[datetime, Json]] = {}
        self.given_up: set[str] = set()
        self.taken_away: set[str] = set()
        self.foreign: set[str] = set()
        self.orphans: set[str] = set()  # ours, until somebody took off both their owner and its finalizer
        self.bare: dict[str, bool] = {}  # without label and owner, and whether the status named it when it lost the second of them
        self.late: set[str] = set()
        self.generations: dict[str, int] = {}
        self.told: dict[str, tuple[int, datetime]] = {}
        self.ran: dict[str, datetime] = {}
        self.named: dict[tuple[str, str | None], tuple[int, int]] = {}
        self.words: dict[tuple[Line, str], tuple[Json, str, list[datetime]]] = {}
        self.completed: dict[str, str] = {}  # by the resource's uid, the spec whose end its status says was reached
        self.asked: tuple[str, int] = "", 0
        self.asked_at: datetime

    # what programs do

    def runs(self, uid: str) -> bool:
        """Whether the program of that pod runs, wherever."""
        found = self.nodes.programs.get(uid)
        return found is not None and found[1].ended is None

    def out_of_sight(self, uid: str) -> bool:
        """Whether nobody could know that the program of that pod has ended: its node answers no more."""
        found = self.nodes.programs.get(uid)
        return found is not None and found[0] in self.nodes.lost

    def hears(self, uid: str, report: Json, now: datetime) -> None:
        """A driver reports."""
        self.reports[uid] = (now, report)

    def takes(self, driver: Driver) -> None:
        """A driver takes the lease: nobody else may be working, unless a person said so, or took its pod away by force."""
        holder = driver.table.taken
        works = holder is not None and holder != driver.uid and self.runs(holder)
        if works:
            node = self.nodes.programs[str(holder)][0]
            works = self.nodes.lost.get(node) != "dead"
        claim("one_writer", not works or holder in self.given_up, f"{driver.uid} takes the lease of {holder}, which runs; given up: {self.given_up}")

    # what operators write

    def judge(self, line: Line, verb: str, body: Json) -> Callable[[], None]:
        """Looks before the write; what it returns is called if the write changed something."""
        sight = JUDGES.get((verb, body["kind"]))
        problem = sight(self, line, body) if sight else None
        return lambda: claim(problem[0], holds=False, how=problem[1]) if problem else None

    def _creates_pod(self, line: Line, body: Json) -> tuple[str, str] | None:
        meta = body["metadata"]
        if line.stalled:
            self.late.add(meta["name"])
            return None
        others = [pod["metadata"]["name"] for pod in self._pods(meta) if self.role(pod) != "migration" and not self.only_held(pod)]
        if others:
            return "one_driver", f"{meta['name']} is made beside {others}"
        config = json.loads(meta["annotations"]["sluice.dev/config"])
        table = self.tables.get(config["checkpoints"]["table"])
        if config["migrateFrom"] and not (table and table.migrated):
            return "migrated_first", f"{meta['name']} is made, and nothing is migrated"
        if self.completed.get(_owner(body)) == meta["annotations"]["sluice.dev/spec-hash"]:
            return "end_is_kept", f"{meta['name']} is made, and the status said that the end of this spec was reached"
        busy = [pod["metadata"]["name"] for pod in self._pods(meta) if not self._has_ended(pod)]
        return ("migrated_first", f"{meta['name']} is made while {busy} runs") if busy else None

    def _creates_job(self, line: Line, body: Json) -> tuple[str, str] | None:
        if line.stalled:
            return None
        meta = body["metadata"]
        pods = (pod for pod in self._pods(meta) if self.role(pod) == "migration" or not self.only_held(pod))
        others = [item["metadata"]["name"] for item in (*self._of(meta, "Job"), *pods)]
        return ("one_migration", f"{meta['name']} is made beside {others}") if others else None

    def _deletes_pod(self, _line: Line, body: Json) -> tuple[str, str] | None:
        meta = body["metadata"]
        pod = self.server.get("Pod", meta["namespace"], meta["name"])
        if pod is None or pod["metadata"]["uid"] != meta["uid"] or self.role(pod) != "driver":
            return None
        owner = next((o for o in self.server.all(KIND) if o["metadata"]["uid"] == _owner(pod)), None)
        driver = (owner or {}).get("status", {}).get("driver", {})
        by_itself = "terminated" in json.dumps(pod.get("status", {})) and "deletionTimestamp" not in pod["metadata"]
        if by_itself and driver.get("pod") == meta["name"] and driver.get("exit") is None and meta["uid"] not in self.given_up:
            return "exits_are_kept", f"{meta['name']} is deleted, and nothing says how it ended"
        if body["grace"] is not None and meta["uid"] not in self.given_up:
            return "drained_not_killed", f"{meta['name']} is given {body['grace']} s to end, and nobody gave it up"
        return None

    def _lets_go(self, line: Line, body: Json) -> tuple[str, str] | None:
        meta = body["metadata"]
        if "finalizers" not in meta or "sluice.dev/operator" in (meta["finalizers"] or ()) or line.stalled:
            return None
        resource = self.server.get(KIND, meta["namespace"], meta["name"])
        uid = resource["metadata"]["uid"] if resource else ""
        left = [pod for pod in self._pods({**meta, "labels": {CONSUMER: meta["name"]}}) if pod.get("status", {}).get("phase") not in FINISHED]
        names = [pod["metadata"]["name"] for pod in left if _owner(pod) in {uid, ""} and pod["metadata"]["name"] not in self.late]
        return ("nothing_leaks", f"the resource is let go while {names} runs") if names else None

    def _writes_status(self, line: Line, body: Json) -> tuple[str, str] | None:
        status, meta = body["status"], body["metadata"]
        if problem := self._passes_over(meta["uid"], status["driver"]):
            return problem
        if status["phase"] == "Completed":
            self.completed[meta["uid"]] = status["driver"]["specHash"]
        elif self.completed.get(meta["uid"]) != status["driver"].get("specHash"):
            self.completed.pop(meta["uid"], None)
        seen, before = status["observedGeneration"], self.generations.get(meta["uid"], 0)
        if seen != meta["generation"] or seen < before:
            return "generation_is_honest", f"generation {meta['generation']}, observed {seen}, before {before}"
        self.generations[meta["uid"]] = seen
        for condition in status["conditions"]:
            if condition["observedGeneration"] != seen:
                return "generation_is_honest", f"{condition} at generation {seen}"
        chatter = self._chatters(line, meta, status)
        if problem := chatter or unfit(status) or self._dodges(meta, status["driver"]) or self._hurries(line, meta, status):
            return problem
        if line.stalled or condition_of(status, "Ready").get("status") != "True":
            return None  # who stood still writes what was true, onto what has not changed since, and looks again at once
        return self._at_rest(body) if _rests(status) else self._doubt(line, status)

    def _passes_over(self, uid: str, driver: Json) -> tuple[str, str] | None:
        """Whether attempts are named, one after another for the same spec, and none of them is made."""
        key, named = (uid, driver.get("specHash")), driver["attempt"]
        made = {name for pod in self.server.all("Pod") if (name := pod["metadata"]["name"])}
        before, passed = self.named.get(key, (named, 0))
        there = driver.get("uid") or driver.get("pod") in made or (driver.get("leaving") or {}).get("attempt", 0) >= before
        passed = 0 if there else passed + (named > before)
        self.named[key] = named, passed
        return ("no_hot_loop", f"{passed} attempts for one spec were named and not made, the last is {named}") if passed > UNMADE else None

    def _chatters(self, line: Line, meta: Json, status: Json) -> tuple[str, str] | None:
        """Whether one process writes words again and again: what flaps in a report is no news. A write that was lost does not count."""
        deeds = {key: status.get(key) for key in ("driver", "migration", "restarts", "observedGeneration", "lastGoodSpec")}
        before, version, times = self.words.get((line, meta["uid"]), ({}, "", []))
        stored = (self.server.get("KinesisConsumer", meta["namespace"], meta["name"]) or {"metadata": meta})["metadata"]["resourceVersion"]
        kept = times[:-1] if stored == version else times
        lately = [time for time in kept if self.now - time < timedelta(minutes=1)] + ([self.now] if deeds == before else [])
        self.words[line, meta["uid"]] = deeds, stored, lately
        return ("no_hot_loop", f"{len(lately)} statuses within a minute, in which only words differ") if len(lately) > WORDS else None

    def _at_rest(self, body: Json) -> tuple[str, str] | None:
        """Why Ready may not be said of what shall not run."""
        meta, spec = body["metadata"], body["status"]["lastGoodSpec"]
        running = [pod["metadata"]["name"] for pod in self._pods({"labels": {CONSUMER: meta["name"]}}) if self.runs(pod["metadata"]["uid"])]
        asked = spec.get("suspend") or spec.get("replicas") == 0 or self._has_reached(spec)
        return None if asked and not running else ("status_is_true", f"Ready at rest, and {running} runs; the spec: {spec}")

    def _has_reached(self, spec: Json) -> bool:
        """Whether a driver has come to where a run of this spec ends."""
        return "until" in spec and any(json.dumps(spec["until"]) in table.reached for table in self.tables.values())

    def _hurries(self, line: Line, meta: Json, status: Json) -> tuple[str, str] | None:
        """Whether a person is told to give a pod up that has all the time it was given, by the API server's clock."""
        if line.stalled or condition_of(status, "Stalled").get("reason") != "DriverOverdue":
            return None
        ends = [pod["metadata"].get("deletionTimestamp") for pod in self._pods({"labels": {CONSUMER: meta["name"]}})]
        late = [end for end in ends if end and datetime.fromisoformat(end) <= self.now]
        return None if late else ("status_is_true", f"DriverOverdue is said at {self.now}, and pods have until {ends}")

    def _dodges(self, meta: Json, driver: Json) -> tuple[str, str] | None:
        """Whether the status says that somebody took a pod away that stands there, and runs or has ended by itself. It may name it no more."""
        name, exit_ = driver.get("pod") or f"{meta['name']}-driver-{driver['attempt']}", driver.get("exit") or {}
        pod = self.server.get("Pod", meta["namespace"], name)
        if pod is None or exit_.get("reason") not in TAKEN or not self._is_meant(pod, meta["uid"], driver.get("uid")):
            return None
        taken = "deletionTimestamp" in pod["metadata"] or "DisruptionTarget" in json.dumps(pod.get("status", {}))
        return None if taken else ("exits_are_kept", f"{name} stands there or ended by itself, and the status says {exit_}")

    def _is_meant(self, pod: Json, resource: str, uid: str | None) -> bool:
        """Whether the status means this pod: by its uid, or because this resource made it and no uid was ever seen."""
        return uid == pod["metadata"]["uid"] if uid else self.register.of(pod).owner == resource and not self.is_foreign(pod)

    def _tells(self, line: Line, body: Json) -> tuple[str, str] | None:
        """An event of a deed."""
        words, where = str(body["message"]), body["involvedObject"]
        if line.stalled:
            return None
        if body["reason"] == "Deleted":
            resource = self.server.get(KIND, where["namespace"], where["name"])
            held = resource is not None and "sluice.dev/operator" in resource["metadata"].get("finalizers", ())
            return ("told_is_done", "Deleted is told, and the finalizer stands") if held else None
        if body["reason"] == "Scaling":
            pod = self.server.get("Pod", where["namespace"], words.rpartition(" ")[2]) or {"metadata": {"annotations": {}}}
            target = pod["metadata"]["annotations"].get("sluice.dev/executors", words.partition(" ")[0])
            return ("told_is_done", f"{words!r} is told, and the pod says {target}") if target != words.partition(" ")[0] else None
        return None

    def _doubt(self, line: Line, status: Json) -> tuple[str, str] | None:
        """Why Ready may not be said."""
        driver = status["driver"]
        said_at, report = self.reports.get(str(driver.get("uid")), (None, {}))
        if said_at is None or report["phase"] not in {"Running", "Idle"} or report["heldShards"] < report["openShards"]:
            return "status_is_true", f"Ready, and the driver {driver} said {report}"
        if not report["executors"] and not status["draining"]:
            return "status_is_true", f"Ready, and no executor has registered: {report}"
        number = status["stream"]["number"]
        told, at = self.told.get(driver["uid"], (0, self.now))
        if told != number:  # a process that has just begun takes what it sees first for new, once
            at = max(said_at, line.began)
            self.told[driver["uid"]] = number, at
        if self.now - max(said_at, at) > HEARD:
            return "status_is_true", f"Ready at {self.now}, and the driver has said nothing since {said_at}"
        return None

    def _pods(self, meta: Json) -> Iterator[Json]:
        return self._of(meta, "Pod")

    def _of(self, meta: Json, kind: str) -> Iterator[Json]:
        """What of that kind was made for the consumer, whatever its labels are now, and is not abandoned since."""
        for body in self.server.all(kind):
            if self.register.of(body).consumer == meta["labels"][CONSUMER] and not self.is_foreign(body):
                yield body

    def _named(self, consumer: str) -> set[tuple[str, str | None]]:
        return {one for resource in self.server.all(KIND) if resource["metadata"]["name"] == consumer for one in names(resource)}

    def abandon(self, consumer: str) -> None:
        """What has no label and no owner that exists is nobody's, unless the status named it then, or an executor does: by these it is found."""
        owners = {body["metadata"]["uid"] for kind in (KIND, "Pod", "Job") for body in self.server.all(kind)}
        for body in [body for kind in ("Pod", "Job") for body in self.server.all(kind)]:
            uid = body["metadata"]["uid"]
            if labelled(body, consumer) or _owner(body) in owners or self.is_foreign(body):
                continue
            named = self.bare.setdefault(uid, bool(self._named(consumer) & calls(body)))
            if not named and not any(labelled(pod, consumer) and _owner(pod) == uid for pod in self.server.all("Pod")):
                self.orphans.add(uid)

    def is_foreign(self, body: Json) -> bool:
        """A stranger's, or made by what is a stranger's."""
        return bool({body["metadata"]["uid"], _owner(body)} & (self.foreign | self.orphans))

    def role(self, pod: Json) -> str:
        """What it was made as."""
        return self.register.of(pod).role

    def _has_ended(self, pod: Json) -> bool:
        """Its own container has, whatever else runs in the pod."""
        status = pod.get("status", {})
        own = {"driver": "driver", "migration": "migrate"}.get(self.role(pod), "executor")
        over = any("terminated" in item["state"] for item in status.get("containerStatuses", ()) if item["name"] == own)
        return over or status.get("phase") in FINISHED

    def only_held(self, pod: Json) -> bool:
        """Its containers have ended for good, and a finalizer keeps it, or the driver that it is an executor of."""
        return pod.get("status", {}).get("phase") in FINISHED and (self.role(pod) == "executor" or bool(pod["metadata"].get("finalizers")))

    # what stands, second by second

    def _sees(self, resource: Json) -> None:
        """A changed spec is seen at once: not only when the next live read is due."""
        meta, seen = resource["metadata"], resource.get("status", {}).get("observedGeneration")
        if (asked := (meta["uid"], meta["generation"])) != self.asked:
            self.asked, self.asked_at = asked, self.now
        late = self.now - max(self.asked_at, self.calm_since)
        if seen != meta["generation"] and "deletionTimestamp" not in meta:
            claim("generation_is_seen", late < PROMPT, f"generation {meta['generation']} was not seen for {late}, the status says {seen}")

    def _two_run(self) -> None:
        """Two drivers of one consumer run, as the cluster has it: whatever their labels say, and whoever is the owner."""
        running: dict[str, list[str]] = {}
        for pod in self.server.all("Pod"):
            meta, made = pod["metadata"], self.register.of(pod)
            unknown = self.is_foreign(pod) or meta["name"] in self.late or meta["uid"] in self.given_up
            if made.role == "driver" and not unknown and self.runs(meta["uid"]):
                running.setdefault(made.consumer, []).append(meta["name"])
        claim("one_driver", all(len(names) == 1 for names in running.values()), f"two of one consumer run: {running}")

    def tick(self, resource: Json | None) -> None:
        """What may not stand for long: a claim of readiness of a driver that is not there, or says nothing."""
        self._two_run()
        if resource is not None:
            self._sees(resource)
        status = (resource or {}).get("status", {})
        driver = status.get("driver") or {}
        uid = str(driver.get("uid"))
        if self.runs(uid) or self.out_of_sight(uid):
            self.ran[uid] = self.now
        if condition_of(status, "Ready").get("status") != "True" or _rests(status) or self.now - self.calm_since < BELIEVED:
            return
        said_at = self.reports.get(uid, (self.calm_since, {}))[0]
        heard = self.now - self.ran.get(uid, self.calm_since) < SEEN and self.now - said_at < BELIEVED
        claim("status_is_true", heard, f"Ready for {self.now - self.calm_since}, and {driver} last reported at {said_at}")


def condition_of(status: Json, kind: str) -> Json:
    """A condition, or {}."""
    found: Json = next((item for item in status.get("conditions", ()) if item["type"] == kind), {})
    return found


def _rests(status: Json) -> bool:
    """It says that there is no driver. Ready means then that none shall run."""
    return not (status.get("driver") or {}).get("pod")


def _owner(pod: Json) -> str:
    return str((pod["metadata"].get("ownerReferences") or [{"uid": ""}])[0]["uid"])


Sight = Callable[["Ledger", "Line", Json], tuple[str, str] | None]
JUDGES: dict[tuple[str, str], Sight] = {
    ("create", "Pod"): Ledger._creates_pod,
    ("create", "Job"): Ledger._creates_job,
    ("delete", "Pod"): Ledger._deletes_pod,
    ("patch", KIND): Ledger._lets_go,
    ("status", KIND): Ledger._writes_status,
    ("create", "Event"): Ledger._tells,
}

"""The observer: sees every write of every operator before and after it happens, and says which invariant broke.

It reads objects as they are stored and shares no judgement with the operator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from steering.bounds import unfit
from steering.register import Register, is_standby
from steering.trials import Trials
from steering.whose import calls, labelled, names

from sluice_lab.fakes.cluster import FINISHED, MemoryCluster
from sluice_operator.observe.parse import CONSUMER

if TYPE_CHECKING:
    from steering.line import Line
    from steering.nodes import Nodes
    from steering.programs import Driver, Mover, Table

Json = dict[str, Any]
KIND = "KinesisConsumer"
INVARIANTS = (
    "two_drivers_at_most",
    "ready_first",
    "stop_is_kept",
    "suspended_rests",
    "one_worker",
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
    "moved_first",
    "moved_once",
    "scaled_within",
    "scaled_steadily",
    "proven_has_committed",
    "proven_is_kept",
    "rolled_back_stays",
)
TAKEN = {"Evicted", "Drained", "Killed", "DriverLost", "Forced"}
SILENT = timedelta(seconds=90)  # without a report, after which the operator may call a driver silent
HEARD = timedelta(seconds=100)  # a report may be so old while Ready is said: 90 s, and some for the time of a pass
SEEN = timedelta(seconds=20)  # until an operator whose watch is 11 s late has written that a driver ended
PROMPT = timedelta(seconds=45)  # a spec that the watches have shown; unsettled resources are read live every 30 s anyway
BELIEVED = timedelta(seconds=130)  # without news a status is looked at again after 90 s; then the look, and the write


LEASE = timedelta(seconds=20)  # of a driver that stops without releasing it
REFUSED = {"ApiRefused", "ReconcileFailed"}  # the API server does not let the operator end a pod, and the status says so
SHARDS = 4  # that give records
SLOWLY = timedelta(seconds=15)  # a change is seen here when it is written
WORDS = 18  # statuses a minute: 10 at once, then one every 10 s, and two for chance
UNMADE = 4  # attempts in a row: of two operators, or with edits to and fro, some


class Broken(AssertionError):
    """An invariant does not hold."""


def claim(invariant: str, holds: object, how: object) -> None:
    if not holds:
        raise Broken(f"{invariant}: {how}")


class Ledger:
    def __init__(self, server: MemoryCluster, tables: dict[str, Table]) -> None:
        self.server, self.tables = server, tables
        self.register = Register(server)
        self.nodes: Nodes
        self.now: datetime
        self.calm_since: datetime
        self.reports: dict[str, tuple[datetime, Json]] = {}
        self.given_up: set[str] = set()
        self.stood: set[str] = set()  # uids of drivers that said that they stand by, or that they work
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
        self.carried: dict[str, set[str]] = {}  # by the resource's uid, the moves that its status called complete
        self.left: dict[str, tuple[str | None, bool]] = {}  # by the resource's uid, the Job of a move, and whether its plan may be left to a driver
        self.counted: dict[str, tuple[datetime, int]] = {}  # by a driver's uid, its executors as it reports them, and since when it does
        self.scaled_at: dict[str, datetime] = {}  # by the resource's uid, when its status last chose another number of executors
        self.moving: dict[str, str | None] = {}  # by the resource's uid, the move that is under way by its status
        self.completed: dict[str, str] = {}  # by the resource's uid, the spec whose end its status says was reached
        self.trials = Trials(self)
        self.asked: tuple[str, int] = "", 0
        self.asked_at: datetime

    # what programs do

    def runs(self, uid: str) -> bool:
        found = self.nodes.programs.get(uid)
        return found is not None and found[1].ended is None

    def out_of_sight(self, uid: str) -> bool:
        """Whether nobody could know that the program of that pod has ended: its node answers no more."""
        found = self.nodes.programs.get(uid)
        return found is not None and found[0] in self.nodes.lost

    def hears(self, uid: str, report: Json, now: datetime) -> None:
        self.reports[uid] = (now, report)
        self.trials.hears(uid, report)
        if self.counted.get(uid, (now, -1))[1] != report["executors"]:
            self.counted[uid] = (now, report["executors"])
        if report["phase"] == "StandingBy" or report["generation"]:
            self.stood.add(uid)

    def takes(self, driver: Driver | Mover) -> None:
        """A driver, or what moves positions, takes the lease: nobody else may be working, unless a person gave it up, or took its pod away."""
        holder = driver.table.taken
        works = holder is not None and holder != driver.uid and self.runs(holder)
        if works:
            node = self.nodes.programs[str(holder)][0]
            works = self.nodes.lost.get(node) != "dead"
        claim("one_worker", not works or holder in self.given_up, f"{driver.uid} takes the lease of {holder}, which runs; given up: {self.given_up}")

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
        present = [pod for pod in self._pods(meta) if self.role(pod) != "migration" and not self.only_held(pod)]
        others = [pod["metadata"]["name"] for pod in present if not (is_standby(body) and self._is_beside(pod, meta))]
        if others:
            return "two_drivers_at_most", f"{meta['name']} is made beside {others}"
        config = json.loads(meta["annotations"]["sluice.dev/config"])
        table = self.tables.get(config["checkpoints"]["table"])
        if config["migrateFrom"] and not (table and table.migrated):
            return "migrated_first", f"{meta['name']} is made, and nothing is migrated"
        if problem := self._moves_later(meta, table) or self.trials.creates(_owner(body), meta):
            return problem
        if self.completed.get(_owner(body)) == meta["annotations"]["sluice.dev/spec-hash"]:
            return "end_is_kept", f"{meta['name']} is made, and the status said that the end of this spec was reached"
        busy = [pod["metadata"]["name"] for pod in self._pods(meta) if not self._has_ended(pod) and self.role(pod) == "migration"]
        return ("migrated_first", f"{meta['name']} is made while {busy} runs") if busy else None

    def _is_beside(self, pod: Json, meta: Json) -> bool:
        """Whether this is the driver that the status names, of an earlier attempt than the standby that is made; or an executor of it."""
        owner = next((one for one in self.server.all(KIND) if one["metadata"]["uid"] == _owner({"metadata": meta})), {})
        driver = owner.get("status", {}).get("driver", {})
        earlier = driver.get("attempt", 0) < int(meta["name"].rpartition("-")[2])
        return earlier and driver.get("uid") is not None and driver["uid"] in {pod["metadata"]["uid"], _owner(pod)}

    def _moves_later(self, meta: Json, table: Table | None) -> tuple[str, str] | None:
        """Whether a driver is made while a move is under way, or before the one that the spec asks for was carried out or refused."""
        owner = next((one for one in self.server.all(KIND) if one["metadata"]["uid"] == _owner({"metadata": meta})), {})
        status = owner.get("status", {})
        position, asked = status.get("position") or {}, (status.get("lastGoodSpec") or {}).get("position")
        if position.get("state") in {"Running", "Held", "Lost", "Failing"}:
            return "moved_first", f"{meta['name']} is made, and the move {position['id']} is {position['state']}"
        refused = position.get("state") == "Refused" and position.get("id") == (asked or {}).get("id")
        if asked and not refused and not (table and asked["id"] in table.moved):
            return "moved_first", f"{meta['name']} is made, and the move {asked['id']} was not"
        return None

    def _creates_job(self, line: Line, body: Json) -> tuple[str, str] | None:
        if line.stalled:
            return None
        meta = body["metadata"]
        words = body["spec"]["template"]["spec"]["containers"][0]["args"]
        if "--id" in words and words[words.index("--id") + 1] in self.carried.get(_owner(body), ()):
            return "moved_once", f"{meta['name']} is made for a move that was carried out"
        pods = (pod for pod in self._pods(meta) if self.role(pod) == "migration" or not self.only_held(pod))
        others = [item["metadata"]["name"] for item in (*self._of(meta, "Job"), *pods)]
        standing = [pod["metadata"]["name"] for pod in self._pods(meta) if is_standby(pod) and not self.only_held(pod)]
        if standing:
            return "stop_is_kept", f"{meta['name']} is made beside {standing}"
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
        follows = (driver.get("leaving") or {}).get("uid") == meta["uid"] and driver.get("uid")
        if follows and driver["uid"] not in self.stood:
            return "ready_first", f"{meta['name']} is asked to end for {driver['pod']}, which never said that it is ready"
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
        moved = self._passes_over(meta["uid"], status["driver"]) or self._says_moved(meta["uid"], status.get("position") or {})
        if problem := moved or self.trials.writes(body):
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
        chatter = self._chatters(line, meta, status) or self._scales(line, body)
        if problem := chatter or unfit(status) or self._dodges(meta, status["driver"]) or self._hurries(line, meta, status):
            return problem
        if line.stalled or condition_of(status, "Ready").get("status") != "True":
            return None  # who stood still writes what was true, onto what has not changed since, and looks again at once
        return self._at_rest(body) if _rests(status) else self._doubt(line, status)

    def _scales(self, line: Line, body: Json) -> tuple[str, str] | None:
        """Whether the status chooses a number that may not be, or takes executors away too soon."""
        meta, status = body["metadata"], body["status"]
        stored = (self.server.get(KIND, meta["namespace"], meta["name"]) or {}).get("status") or {}
        before, after = stored.get("autoscale") or {}, status.get("autoscale") or {}
        if line.stalled or not after or before.get("changedAt") == after.get("changedAt"):
            return None  # nothing was chosen: the user set, edited or removed the bounds
        old, new = before["replicas"], after["replicas"]
        bounds, how = status["lastGoodSpec"]["autoscale"], f"{old} → {new}: {after}"
        least, most = bounds.get("min", 1), bounds["max"]
        if not least <= new <= most or (new > old and (new > max(least, SHARDS) or new > 2 * old)):
            return "scaled_within", how
        if new > old and self._is_short(status["driver"].get("uid"), old):
            return "scaled_within", f"the driver has long had fewer than {old}; {how}"
        last, self.scaled_at[meta["uid"]] = self.scaled_at.get(meta["uid"]), self.now
        soon = last is not None and self.now - last < timedelta(seconds=bounds.get("coolDownSeconds", 600)) - SLOWLY
        disturbed = last is not None and self.calm_since > last  # another clock, or an operator that saw old things
        return ("scaled_steadily", f"the last change was at {last}; {how}") if new < old and soon and not disturbed else None

    def _is_short(self, uid: str | None, wanted: int) -> bool:
        """Whether a driver has said for some time, and says on its pod, that fewer executors run than were asked for."""
        since, there = self.counted.get(str(uid), (self.now, wanted))
        pod = next((one for one in self.server.all("Pod") if one["metadata"]["uid"] == uid), None)
        shown = (pod["metadata"].get("annotations") or {}).get("sluice.dev/report") if pod else None
        own = shown == json.dumps(self.reports.get(str(uid), (self.now, {}))[1])  # nobody else has written there
        return own and there < wanted and self.now - max(since, self.calm_since) > SLOWLY

    def _retargets(self, line: Line, body: Json) -> tuple[str, str] | None:
        """Whether a driver is given a number that the status does not have: it would be forgotten by a crash."""
        meta, asked = body["metadata"], (body["metadata"].get("annotations") or {}).get("sluice.dev/executors")
        pod = self.server.get("Pod", meta["namespace"], meta["name"])
        owner = next((one for one in self.server.all(KIND) if pod is not None and one["metadata"]["uid"] == _owner(pod)), None)
        if asked is None or line.stalled or owner is None or "autoscale" not in owner.get("status", {}):
            return None
        chosen = owner["status"]["autoscale"]
        return (
            None
            if str(chosen["replicas"]) == asked
            else ("scaled_within", f"{meta['name']} is asked for {asked} executors, and the status says {chosen}")
        )

    def _says_moved(self, uid: str, position: Json) -> tuple[str, str] | None:
        """Whether the status says of a move that it is complete that was not carried out."""
        if self._leaves_a_plan(uid, position):
            self.completed.pop(uid, None)
        if position.get("state") != "Complete":
            return None
        if position["id"] not in self.carried.setdefault(uid, set()):
            self.carried[uid].add(position["id"])
            self.completed.pop(uid, None)  # what was read to its end is read again
        done = any(position["id"] in table.moved for table in self.tables.values())
        return None if done else ("status_is_true", f"the move {position['id']} is said to be complete: {position}")

    def _leaves_a_plan(self, uid: str, position: Json) -> bool:
        """Whether a move is given up just now, or another takes its place, and its plan may be written down: a driver has to complete it."""
        left = position.get("state") == "Stopped" or "if its plan was written down" in position.get("message", "")
        before, self.left[uid] = self.left.get(uid), (position.get("job"), left)
        under_way = position.get("state") in {"Running", "Held", "Lost", "Failing"}
        former, self.moving[uid] = self.moving.get(uid), position.get("hash", "") if under_way else None
        replaced = former is not None and former != position.get("hash")
        return replaced or (left and before != self.left[uid])

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
        deeds = {key: status.get(key) for key in ("driver", "migration", "position", "restarts", "observedGeneration", "lastGoodSpec")}
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
        standing = [pod["metadata"]["name"] for pod in self._pods({"labels": {CONSUMER: meta["name"]}}) if is_standby(pod)]
        if standing:
            return "stop_is_kept", f"Ready at rest, and {standing} stands by"
        asked = spec.get("suspend") or spec.get("replicas") == 0 or self._has_reached(spec)
        return None if asked and not running else ("status_is_true", f"Ready at rest, and {running} runs; the spec: {spec}")

    def _has_reached(self, spec: Json) -> bool:
        """Whether a driver has come to where a run of this spec ends."""
        return "until" in spec and any(json.dumps(spec["until"]) in table.reached for table in self.tables.values())

    def _hurries(self, line: Line, meta: Json, status: Json) -> tuple[str, str] | None:
        """Whether a person is told to give a pod up that has all the time it was given, by the API server's clock."""
        stalled = condition_of(status, "Stalled")
        if line.stalled or stalled.get("reason") != "DriverOverdue":
            return None
        name = stalled["message"].partition(" ")[0]  # nobody's counts too: an executor of an earlier driver, with our label, is waited for
        pod = self.server.get("Pod", meta["namespace"], name) or {"metadata": {"uid": ""}}
        end, theirs = pod["metadata"].get("deletionTimestamp"), bool({pod["metadata"]["uid"], _owner(pod)} & self.foreign)
        late = end is not None and datetime.fromisoformat(end) <= self.now and not theirs
        return None if late else ("status_is_true", f"DriverOverdue is said of {name} at {self.now}, and it has until {end}")

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

    def _rests_in_time(self, resource: Json) -> None:
        """Once a consumer has been suspended for longer than a drain and a lease, no driver of it works, and none stands by."""
        meta, status = resource["metadata"], resource.get("status", {})
        hands_off = "deletionTimestamp" in meta or (meta.get("annotations") or {}).get("sluice.dev/paused") or self.nodes.lost
        if resource["spec"].get("suspend") is not True or hands_off or condition_of(status, "Stalled").get("reason") in REFUSED:
            return
        rested = self.now - max(self.asked_at, self.calm_since)
        for pod in self.server.all("Pod"):
            uid, made = pod["metadata"]["uid"], self.register.of(pod)
            unknown = self.is_foreign(pod) or pod["metadata"]["name"] in self.late or uid in self.given_up
            if made.role == "driver" and made.owner == meta["uid"] and not unknown and self.runs(uid):
                drain = timedelta(seconds=pod["spec"].get("terminationGracePeriodSeconds", 30))
                claim("suspended_rests", rested < drain + LEASE + PROMPT, f"suspended for {rested}, and {pod['metadata']['name']} runs")

    def _two_run(self) -> None:
        """Two drivers of one consumer run, as the cluster has it: whatever their labels say, and whoever is the owner."""
        running: dict[str, list[str]] = {}
        pods = sorted(self.server.all("Pod"), key=lambda pod: (len(pod["metadata"]["name"]), pod["metadata"]["name"]))  # attempt 10 after 9
        standing = {pod["metadata"]["name"] for pod in pods if is_standby(pod)}
        for pod in pods:
            meta, made = pod["metadata"], self.register.of(pod)
            unknown = self.is_foreign(pod) or meta["name"] in self.late or meta["uid"] in self.given_up
            if made.role == "driver" and not unknown and self.runs(meta["uid"]):
                running.setdefault(made.consumer, []).append(meta["name"])
        alone = all(len(names) - bool(standing & set(names[1:])) == 1 for names in running.values())
        claim("two_drivers_at_most", alone, f"two of one consumer run: {running}")

    def tick(self, resource: Json | None) -> None:
        """What may not stand for long: a claim of readiness of a driver that is not there, or says nothing."""
        self._two_run()
        self.trials.tick()
        if resource is not None:
            self._sees(resource)
            self._rests_in_time(resource)
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
    ("patch", "Pod"): Ledger._retargets,
    ("status", KIND): Ledger._writes_status,
    ("create", "Event"): Ledger._tells,
}

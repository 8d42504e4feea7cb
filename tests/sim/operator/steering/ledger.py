"""The observer: sees every write of every operator before and after it happens, and says which invariant broke.

It reads objects as they are stored and shares no judgement with the operator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sluice_operator.observe import CONSUMER
from sluice_operator.twin import FINISHED, Twin

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
    "generation_is_honest",
    "spec_reached",
    "nothing_leaks",
    "no_hot_loop",
)
HEARD = timedelta(seconds=100)  # a report may be 90 s old; and some for the time of a pass
SEEN = timedelta(seconds=20)  # until an operator whose watch is 11 s late has written that a driver ended
BELIEVED = timedelta(seconds=130)  # without news a status is looked at again after 90 s; then the look, and the write


class Broken(AssertionError):
    """An invariant does not hold."""


def claim(invariant: str, holds: object, how: object) -> None:
    """Raises Broken unless it holds."""
    if not holds:
        raise Broken(f"{invariant}: {how}")


class Ledger:
    """What happened, and the claims about it."""

    def __init__(self, server: Twin, tables: dict[str, Table]) -> None:
        self.server, self.tables = server, tables
        self.nodes: Nodes
        self.now: datetime
        self.calm_since: datetime
        self.reports: dict[str, tuple[datetime, Json]] = {}
        self.given_up: set[str] = set()
        self.taken_away: set[str] = set()
        self.late: set[str] = set()
        self.generations: dict[str, int] = {}
        self.told: dict[str, tuple[int, datetime]] = {}
        self.ran: dict[str, datetime] = {}

    # what programs do

    def runs(self, uid: str) -> bool:
        """Whether the program of that pod runs, wherever."""
        found = self.nodes.programs.get(uid)
        return found is not None and found[1].ended is None

    def _out_of_sight(self, uid: str) -> bool:
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
        others = [pod["metadata"]["name"] for pod in self._pods(meta) if _role(pod) != "migration"]
        if others:
            return "one_driver", f"{meta['name']} is made beside {others}"
        config = json.loads(meta["annotations"]["sluice.dev/config"])
        table = self.tables.get(config["checkpoints"]["table"])
        if config["migrateFrom"] and not (table and table.migrated):
            return "migrated_first", f"{meta['name']} is made, and nothing is migrated"
        busy = [pod["metadata"]["name"] for pod in self._pods(meta) if pod.get("status", {}).get("phase") not in FINISHED]
        return ("migrated_first", f"{meta['name']} is made while {busy} runs") if busy else None

    def _creates_job(self, line: Line, body: Json) -> tuple[str, str] | None:
        if line.stalled:
            return None
        meta = body["metadata"]
        jobs = self.server.list("Job", meta["namespace"], {CONSUMER: meta["labels"][CONSUMER]})
        others = [item["metadata"]["name"] for item in (*jobs, *self._pods(meta))]
        return ("one_migration", f"{meta['name']} is made beside {others}") if others else None

    def _deletes_pod(self, _line: Line, body: Json) -> tuple[str, str] | None:
        meta = body["metadata"]
        pod = self.server.get("Pod", meta["namespace"], meta["name"])
        if pod is None or pod["metadata"]["uid"] != meta["uid"] or _role(pod) != "driver":
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
        names = [pod["metadata"]["name"] for pod in left if uid == _owner(pod) and pod["metadata"]["name"] not in self.late]
        return ("nothing_leaks", f"the resource is let go while {names} runs") if names else None

    def _writes_status(self, line: Line, body: Json) -> tuple[str, str] | None:
        status, meta = body["status"], body["metadata"]
        seen, before = status["observedGeneration"], self.generations.get(meta["uid"], 0)
        if seen != meta["generation"] or seen < before:
            return "generation_is_honest", f"generation {meta['generation']}, observed {seen}, before {before}"
        self.generations[meta["uid"]] = seen
        for condition in status["conditions"]:
            if condition["observedGeneration"] != seen:
                return "generation_is_honest", f"{condition} at generation {seen}"
        if line.stalled or condition_of(status, "Ready").get("status") != "True":
            return None  # who stood still writes what was true, onto what has not changed since, and looks again at once
        return self._doubt(line, status)

    def _doubt(self, line: Line, status: Json) -> tuple[str, str] | None:
        """Why Ready may not be said."""
        driver = status["driver"]
        said_at, report = self.reports.get(str(driver.get("uid")), (None, {}))
        if said_at is None or report["phase"] not in {"Running", "Idle"} or report["heldShards"] < report["openShards"]:
            return "status_is_true", f"Ready, and the driver {driver} said {report}"
        number = status["stream"]["number"]
        told, at = self.told.get(driver["uid"], (0, self.now))
        if told != number:  # a process that has just begun takes what it sees first for new, once
            at = max(said_at, line.began)
            self.told[driver["uid"]] = number, at
        if self.now - max(said_at, at) > HEARD:
            return "status_is_true", f"Ready at {self.now}, and the driver has said nothing since {said_at}"
        return None

    def _pods(self, meta: Json) -> Iterator[Json]:
        name = meta["labels"][CONSUMER]
        return (pod for pod in self.server.all("Pod") if pod["metadata"].get("labels", {}).get(CONSUMER) == name)

    # what stands, second by second

    def tick(self, resource: Json | None) -> None:
        """What may not stand for long: a claim of readiness of a driver that is not there, or says nothing."""
        status = (resource or {}).get("status", {})
        driver = status.get("driver") or {}
        uid = str(driver.get("uid"))
        if self.runs(uid) or self._out_of_sight(uid):
            self.ran[uid] = self.now
        if condition_of(status, "Ready").get("status") != "True" or self.now - self.calm_since < BELIEVED:
            return
        said_at = self.reports.get(uid, (self.calm_since, {}))[0]
        heard = self.now - self.ran.get(uid, self.calm_since) < SEEN and self.now - said_at < BELIEVED
        claim("status_is_true", heard, f"Ready for {self.now - self.calm_since}, and {driver} last reported at {said_at}")


def condition_of(status: Json, kind: str) -> Json:
    """A condition, or {}."""
    found: Json = next((item for item in status.get("conditions", ()) if item["type"] == kind), {})
    return found


def _role(pod: Json) -> str:
    return str(pod["metadata"]["labels"].get("sluice.dev/role"))


def _owner(pod: Json) -> str:
    return str((pod["metadata"].get("ownerReferences") or [{"uid": ""}])[0]["uid"])


Sight = Callable[["Ledger", "Line", Json], tuple[str, str] | None]
JUDGES: dict[tuple[str, str], Sight] = {
    ("create", "Pod"): Ledger._creates_pod,
    ("create", "Job"): Ledger._creates_job,
    ("delete", "Pod"): Ledger._deletes_pod,
    ("patch", KIND): Ledger._lets_go,
    ("status", KIND): Ledger._writes_status,
}

"""The observer's part about trials, `spec.rollout.trial`: what a status says of versions, held against what their drivers did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steering.ledger import Ledger

Json = dict[str, Any]
Problem = tuple[str, str] | None
NO_FAULT = {75, 76}  # exit codes of a driver that found another one
OTHERS = {"NotValid", "PositionsMoved"}  # why a rollback may end besides
BACK = "RolledBack"
LEAST = 60  # seconds of work that a version has, at least


class Trials:
    """Versions by their hash: batches that their drivers reported, and faults of their own."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.batches: dict[str, tuple[int, int]] = {}
        self.written: dict[str, Json] = {}  # by the resource's uid, the trial that its status has
        self.restarts: dict[str, str | None] = {}  # and the request for a restart at a rollback
        self.since: dict[str, Any] = {}
        self.faults: dict[str, Any] = {}  # by version, when a driver of it last had a fault of its own

    def tick(self) -> None:
        pods = {pod["metadata"]["uid"]: pod for pod in self.ledger.server.all("Pod") if self.ledger.role(pod) == "driver"}
        for uid, (_, program) in self.ledger.nodes.programs.items():
            if uid in pods and program.ended is not None and program.ended[0] not in NO_FAULT and not _is_taken(pods[uid]):
                self.faults[self._version(uid)] = self.ledger.now

    def hears(self, uid: str, report: Json) -> None:
        if any(text.startswith("Isolating") for text in report["warnings"]):
            self.faults[self._version(uid)] = self.ledger.now
        if report["phase"] == "Running" and report["heldShards"] == report["openShards"]:
            version = self._version(uid)
            least, most = self.batches.get(version, (report["batch"], report["batch"]))
            self.batches[version] = min(least, report["batch"]), max(most, report["batch"])

    def _version(self, uid: str) -> str:
        pods = (pod for pod in self.ledger.server.all("Pod") if pod["metadata"]["uid"] == uid)
        return next((pod["metadata"]["annotations"]["sluice.dev/spec-hash"] for pod in pods), "")

    def creates(self, owner: str, meta: Json) -> Problem:
        trial, version = self.written.get(owner, {}), meta["annotations"]["sluice.dev/spec-hash"]
        again = trial.get("state") == BACK and trial["hash"] == version
        return ("rolled_back_stays", f"{meta['name']} is made of a version that was rolled back: {trial}") if again else None

    def writes(self, body: Json) -> Problem:
        self.tick()
        meta, status = body["metadata"], body["status"]
        before, after = self.written.get(meta["uid"], {}), status.get("trial") or {}
        stored = self.ledger.server.get("KinesisConsumer", meta["namespace"], meta["name"]) or body
        was, proven = ((one.get("status", {}).get("proven") or {}).get("hash") for one in (stored, body))
        asked = (meta.get("annotations") or {}).get("sluice.dev/restart")
        if proven not in {None, was} and (problem := self._proves(proven, stored)):
            return problem
        if after.get("state") == BACK and after["hash"] == was:
            return "proven_is_kept", f"{after}, and it is proven"
        if (
            before.get("state") == BACK
            and before["hash"] == after.get("hash")
            and after["state"] != BACK
            and self._leaves(meta, before, after, asked)
        ):
            return "rolled_back_stays", f"{before} → {after}, and nobody asked for it"
        self.written[meta["uid"]] = after
        if after.get("state") == BACK and before.get("state") != BACK:
            self.restarts[meta["uid"]], self.since[meta["uid"]] = asked, self.ledger.now
        return None

    def _proves(self, proven: str, resource: Json) -> Problem:
        least, most = self.batches.get(proven, (0, 0))
        terms = (resource["spec"].get("rollout") or {}).get("trial") or {}
        enough = most - least >= terms.get("batches", 3)
        return None if enough else ("proven_has_committed", f"{proven} is proven, and its drivers reported the batches {least} to {most}")

    def _leaves(self, meta: Json, before: Json, after: Json, asked: str | None) -> bool:
        """Whether a rollback ends without a reason that is seen here."""
        if asked not in {None, before.get("restart")} or after.get("reason") in OTHERS:
            return False
        return after["state"] == "Running" or not self._failed(before, self.since[meta["uid"]])

    def _failed(self, before: Json, since: Any) -> bool:
        """Whether a driver of another version had a fault of its own since, or has had a minute for its first batch."""
        blamed = any(at >= since for version, at in self.faults.items() if version != before["hash"])
        return blamed or (self.ledger.now - since).total_seconds() >= LEAST


def _is_taken(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"] or "DisruptionTarget" in json.dumps(pod.get("status", {}))

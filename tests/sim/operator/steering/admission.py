"""An admission policy that refuses what operators write, in the words of a real server (recorded from 1.34), and whether it is asked too often."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from steering.ledger import claim

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.client import failure

Json = dict[str, Any]
Asked = dict[tuple[Any, ...], list[datetime]]
METHODS = {"create": "POST", "status": "PUT", "patch": "PATCH", "delete": "DELETE"}
POLICY = "ValidatingAdmissionPolicy 'theirs' with binding 'theirs' denied request: metadata.uid and resourceVersion stay as they are"
WEBHOOK = 'admission webhook "theirs.example.com" denied the request: metadata.uid is immutable'
ANSWERS = {"Invalid": (422, POLICY), "Forbidden": (403, POLICY), "Unauthorized": (401, POLICY), "Conflict": (409, WEBHOOK)}
MINUTE = timedelta(seconds=60)
TRIES = 4  # a minute, of one kind of write, by one process, for one generation: every 30 s, and some at the edges


class Admission:
    """Policies, by verb and kind: until when they refuse, and how they say so."""

    def __init__(self, server: MemoryCluster, now: Callable[[], datetime]) -> None:
        self._server, self._now = server, now
        self.policies: dict[tuple[str, str], tuple[datetime, str]] = {}
        self.names: set[str] = set()  # objects that they are about; empty: all

    def refuses(self, verb: str, body: Json, asked: Asked) -> None:
        """Raises what the client makes of the answer. Conditions of the call itself come first, as with a real server."""
        until, answer = self.policies.get((verb, body["kind"]), (self._now(), ""))
        if until <= self._now() or self._lost(verb, body) or (self.names and body["metadata"]["name"] not in self.names):
            return
        resources = (item["metadata"] for item in self._server.all("KinesisConsumer"))
        self._count((verb, body["kind"], *((meta["uid"], meta["generation"]) for meta in resources)), asked)
        code, words = ANSWERS[answer]
        message = f'{body["kind"].lower()}s "{body["metadata"]["name"]}" is forbidden: {words}' if words is POLICY else words
        raise failure(METHODS[verb], code, {"reason": answer, "message": message, "details": {"causes": [{"message": words}]}})

    def _lost(self, verb: str, body: Json) -> bool:
        """Whether the call is refused anyway: there already, gone, or another."""
        meta = body["metadata"]
        stored = self._server.get(body["kind"], meta["namespace"], meta["name"])
        if verb == "create" or stored is None:
            return (stored is None) != (verb == "create")
        return any(meta.get(key, stored["metadata"][key]) != stored["metadata"][key] for key in ("uid", "resourceVersion"))

    def idle(self, verb: str, body: Json, asked: Asked) -> None:
        self._count(("idle", verb, body["kind"], body["metadata"]["name"]), asked)

    def _count(self, what: tuple[Any, ...], asked: Asked) -> None:
        times = [at for at in asked.get(what, []) if self._now() - at < MINUTE]
        asked[what] = times = [*times, self._now()]
        claim("no_hot_loop", len(times) <= TRIES, f"{len(times)} times within a minute, in vain: {what}")

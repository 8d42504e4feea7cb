"""Who made what, as it was when it was made: a label that is taken off or changed later changes none of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.observe.parse import CONSUMER, ROLE

Json = dict[str, Any]


class Made(NamedTuple):
    role: str
    consumer: str
    owner: str


class Register:
    def __init__(self, server: MemoryCluster) -> None:
        self._server = server
        self._made: dict[str, Made] = {}

    def meet(self) -> None:
        """Enter what is new. Strangers change labels between two seconds, so whatever is new has the labels that it was made with."""
        for kind in ("Pod", "Job"):
            for body in self._server.all(kind):
                self.of(body)

    def of(self, body: Json) -> Made:
        meta = body["metadata"]
        labels, owner = meta.get("labels") or {}, (meta.get("ownerReferences") or [{"uid": ""}])[0]["uid"]
        return self._made.setdefault(meta["uid"], Made(str(labels.get(ROLE)), str(labels.get(CONSUMER)), str(owner)))


def is_standby(pod: Json) -> bool:
    return "--standby" in (pod["spec"]["containers"][0].get("args") or ())

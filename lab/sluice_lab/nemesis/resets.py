"""Asks for resets through `spec.position`, as a user would, and says when none is under way."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice_lab.nemesis import passes
from sluice_lab.nemesis.passes import CarriedOut
from sluice_lab.scenario.checkpoints import Checkpoints

OVER = {"Complete", "Refused"}
FIRST_SIZE = 9_000  # spec.batch.maxRecordsPerShard, of the first deploy; each one has another


def targets(versions: Sequence[Mapping[str, Any]], committed: int) -> list[int | None]:
    """Where a reset can go back to: the first batch of a version that has committed one and keeps its positions; None is the oldest record."""
    return [None, *(version["first"] for version in versions if version["positions"] and version["first"] <= committed)]


def change(id_: str, batch: int | None) -> dict[str, Any]:
    """The patch of the spec; it takes out the target of an earlier one."""
    return {"position": {"id": id_, "to": {"batch": batch, "trimHorizon": True if batch is None else None}}}


@dataclass
class Resets:
    """The resets of one consumer.

    Attributes:
        kubectl: in the consumer's namespace.
        asked: ids that were asked for; what was carried out, the table says.
        refused: why, by id: an open batch, say.
    """

    kubectl: Callable[..., str]
    name: str
    checkpoints: Checkpoints
    asked: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    deploys: int = 0

    def deploy(self) -> str:
        """Change a field that a driver reads at its start, so that a version begins."""
        self.deploys += 1
        self._patch({"batch": {"maxRecordsPerShard": FIRST_SIZE + self.deploys}})
        return ""

    def ask(self, pick: float) -> str:
        """Ask for a reset; returns the words for it. Nothing is asked while another is under way: it would be replaced, or come too late."""
        if not self.over():
            return f"none: {self.asked[-1]} is under way"
        shown = self.checkpoints.shown()
        found = targets(shown["versions"], shown["committed"] or 0)
        batch, id_ = found[int(pick * len(found))], f"reset-{len(self.asked) + 1:02d}"
        self._patch(change(id_, batch))
        self.asked.append(id_)
        return f"{id_} to {passes.OLDEST if batch is None else f'batch {batch}'}"

    def over(self) -> bool:
        """Whether the last one that was asked for was carried out or refused."""
        if not self.asked:
            return True
        found = json.loads(self.kubectl("get", f"kc/{self.name}", "--output=json")).get("status", {}).get("position") or {}
        if found.get("id") != self.asked[-1]:
            return False
        if found.get("state") == "Refused":
            self.refused[found["id"]] = found.get("message", "")
        return found.get("state") in OVER

    def carried_out(self) -> list[CarriedOut]:
        """By the rows of the checkpoint table."""
        pages = self.checkpoints.dynamodb.get_paginator("scan").paginate(TableName=self.checkpoints.table, ConsistentRead=True)
        return passes.carried_out(row for page in pages for row in page["Items"])

    def _patch(self, spec: Mapping[str, Any]) -> None:
        self.kubectl("patch", f"kc/{self.name}", "--type=merge", f"--patch={json.dumps({'spec': spec})}")

"""Resets as a user asks for them: where they can go back to, the patch, and none while another is under way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluice_lab.nemesis import resets
from sluice_lab.nemesis.resets import Resets
from sluice_lab.scenario.checkpoints import Checkpoints

VERSIONS = [
    {"first": 1, "positions": False},  # from before an earlier reset
    {"first": 7, "positions": True},
    {"first": 12, "positions": True},
    {"first": 20, "positions": True},  # has committed no batch
]


class Table(Checkpoints):
    def __init__(self) -> None:
        super().__init__(None, "table")

    def shown(self) -> Mapping[str, Any]:
        return {"versions": VERSIONS, "committed": 19}


@dataclass
class Cluster:
    position: dict[str, str] = field(default_factory=dict)
    patches: list[dict[str, Any]] = field(default_factory=list)

    def kubectl(self, *arguments: str) -> str:
        if arguments[0] == "patch":
            self.patches.append(json.loads(arguments[-1].removeprefix("--patch="))["spec"])
        return json.dumps({"status": {"position": self.position} if self.position else {}})


def test_targets_are_versions_that_committed_and_keep_their_positions() -> None:
    assert resets.targets(VERSIONS, 19) == [None, 7, 12]
    assert resets.targets([], 0) == [None]


def test_a_patch_takes_out_the_target_of_the_one_before() -> None:
    """A target has exactly one key, and a merge patch keeps what it does not name."""
    assert resets.change("one", 7) == {"position": {"id": "one", "to": {"batch": 7, "trimHorizon": None}}}
    assert resets.change("two", None) == {"position": {"id": "two", "to": {"batch": None, "trimHorizon": True}}}


def test_one_is_asked_for_when_the_last_one_is_over() -> None:
    cluster = Cluster()
    asked = Resets(cluster.kubectl, "n", Table())
    assert asked.ask(0.99) == "reset-01 to batch 12"
    for position in ({}, {"id": "reset-00", "state": "Complete"}, {"id": "reset-01", "state": "Running"}, {"id": "reset-01", "state": "Failing"}):
        cluster.position = position
        assert asked.ask(0.0) == "none: reset-01 is under way"
    for state in ("Complete", "Refused"):
        cluster.position = {"id": asked.asked[-1], "state": state, "message": "batch 19 is open"}
        assert asked.ask(0.0).endswith(" to trimHorizon")
    assert [patch["position"]["id"] for patch in cluster.patches] == asked.asked == ["reset-01", "reset-02", "reset-03"]
    assert asked.refused == {"reset-02": "batch 19 is open"}


def test_each_deploy_is_another_version() -> None:
    """By a field that a driver reads at its start."""
    cluster = Cluster()
    asked = Resets(cluster.kubectl, "n", Table())
    asked.deploy()
    asked.deploy()
    assert [patch["batch"]["maxRecordsPerShard"] for patch in cluster.patches] == [9_001, 9_002]

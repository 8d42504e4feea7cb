"""A new operator takes over what the last release left: no resource is refused, no pod and no Job is touched."""

from __future__ import annotations

import copy
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from crd_change import taken_away
from simulated_cluster import KEY

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_lab.generate import crd
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe.cache import Cache
from sluice_operator.observe.parse import SPEC_HASH
from sluice_operator.resource.changes import DesiredSpec, migration_hash
from sluice_operator.resource.fields import parse
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

RELEASED = Path(__file__).parents[1] / "released"
CRDS = sorted(RELEASED.glob("crd-*.yaml"))
OBJECTS = [json.loads(path.read_text()) for path in sorted(RELEASED.glob("objects-*.json"))]
LAST = OBJECTS[-1]


@pytest.mark.parametrize("path", CRDS, ids=[path.stem for path in CRDS])
def test_the_crd_takes_nothing_away_from_a_release(path: Path) -> None:
    """No field lost, narrowed or newly required; else the version has to change."""
    assert taken_away(yaml.safe_load(path.read_text()), crd.definition()) == []


def schema(body: Json, *path: str) -> Json:
    found: Json = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        found = found["properties"][name]
    return found


CHANGES: dict[str, Callable[[Json], Any]] = {
    "spec.replicas: gone": lambda new: schema(new, "spec")["properties"].pop("replicas"),
    "spec.batch: required now": lambda new: schema(new, "spec")["required"].append("batch"),
    "spec.suspend: type changed": lambda new: schema(new, "spec", "suspend").update(type="string"),
    "spec.start.position: fewer values": lambda new: schema(new, "spec", "start", "position")["enum"].pop(),
    "spec.leaseDurationSeconds: maximum lowered": lambda new: schema(new, "spec", "leaseDurationSeconds").update(maximum=6),
    "spec.leaseDurationSeconds: minimum raised": lambda new: schema(new, "spec", "leaseDurationSeconds").update(minimum=60),
    "spec: new rule false": lambda new: schema(new, "spec")["x-kubernetes-validations"].append({"rule": "false"}),
    "spec.replicas: default changed": lambda new: schema(new, "spec", "replicas").update(default=2),
    "column Phase is gone": lambda new: new["spec"]["versions"][0]["additionalPrinterColumns"].pop(0),
    "is not served": lambda new: new["spec"]["versions"][0].update(served=False),
    "subresource scale changed": lambda new: new["spec"]["versions"][0]["subresources"].pop("scale"),
    "spec.names changed": lambda new: new["spec"]["names"].update(shortNames=["k"]),
    "conditions[].reason: gone": lambda new: schema(new, "status", "conditions")["items"]["properties"].pop("reason"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_kind_of_narrowing_is_noticed(change: str) -> None:
    old, new = crd.definition(), copy.deepcopy(crd.definition())
    CHANGES[change](new)
    found = taken_away(old, new)
    assert [line for line in found if change in line], found


def test_what_is_added_is_no_narrowing() -> None:
    old, new = crd.definition(), copy.deepcopy(crd.definition())
    schema(new, "spec")["properties"]["new"] = {"type": "string"}
    schema(new, "spec", "start", "position")["enum"].append("SOMEWHERE")
    schema(new, "spec", "leaseDurationSeconds").pop("maximum", None)
    assert taken_away(old, new) == []


def test_the_hashes_of_a_full_spec_are_what_they_were() -> None:
    """They decide whether a driver or a migration is still the wanted one."""
    raw, hashes = LAST["spec"]["raw"], LAST["spec"]["hashes"]
    wanted = DesiredSpec(parse(raw), raw)
    assert wanted.is_hash(hashes["driver"])
    assert wanted.is_job_hash(hashes["job"])
    assert migration_hash("default", "orders", wanted) == hashes["migration"]
    other = {**raw, "batch": {"intervalSeconds": 3}, "pipeline": {**raw["pipeline"], "image": "orders:2"}}
    edited = DesiredSpec(parse(other), other)
    assert not edited.is_hash(hashes["driver"])
    assert not edited.is_job_hash(hashes["job"])


class Left(MemoryCluster):
    def __init__(self, situation: Json) -> None:
        self.now = datetime.fromisoformat(situation["now"])
        super().__init__(lambda: self.now)
        self.wrote: list[tuple[str, str, str]] = []
        for body in copy.deepcopy(situation["objects"]):
            self._objects[body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]] = body
        self.version = 10_000
        self.context = ReconcileContext(self, Cache(), Settings(image="sluice-consumer:another"))
        for body in situation["objects"]:
            self.context.cache.see(body["kind"], copy.deepcopy(body), self.now)

    def pass_by(self, seconds: int = 0) -> None:
        self.now += timedelta(seconds=seconds)
        for _ in range(4):
            reconcile(self.context, KEY, self.now, force_refresh=True)

    def status(self) -> Json:
        found: Json = (self.get(CONSUMER_KIND, *KEY) or {})["status"]
        return found

    def create(self, body: Json) -> Json:
        if body["kind"] != "Event":
            self.wrote.append(("create", body["kind"], body["metadata"]["name"]))
        return super().create(body)

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        self.wrote.append(("patch", kind, name))
        return super().patch(kind, namespace, name, changes)

    def delete(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        self.wrote.append(("delete", kind, name))
        super().delete(kind, namespace, name, uid, grace)


@pytest.mark.parametrize("name", [name for name in LAST if name != "spec"])
def test_nothing_is_touched_in_whatever_situation_it_is_taken_over(name: str) -> None:
    left = Left(LAST[name])
    before = left.status()
    left.pass_by()
    assert left.wrote == []
    after = left.status()
    for part in ("phase", "driver", "migration", "restarts", "replicas", "selector", "lastGoodSpec"):
        assert after.get(part) == before.get(part), part


def test_a_failed_driver_is_followed_by_the_next_attempt() -> None:
    left = Left(LAST["backing_off"])
    left.pass_by(seconds=60)
    assert left.wrote == [("create", "Pod", "orders-driver-2")]
    pod = left.get("Pod", KEY.namespace, "orders-driver-2")
    assert pod is not None
    assert pod["metadata"]["annotations"][SPEC_HASH] == left.status()["driver"]["specHash"]


def test_a_drained_driver_is_followed_by_one_with_the_new_spec() -> None:
    left = Left(LAST["draining"])
    for body in list(left.all("Pod")):
        if body["metadata"]["labels"]["sluice.dev/role"] != "migration":
            left.finish_deletion(body)
    for _ in range(4):
        left.pass_by(seconds=1)
    assert left.wrote == [("create", "Pod", "orders-driver-2")]

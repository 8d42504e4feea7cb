"""Of several operators in a cluster, each looks after the resources of its class; those of others it neither writes nor remembers."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

import page_blocks
import pytest
import yaml
from chart import KUBERNETES, environment, helm, of, operator, rendered
from http_fake import HttpFake
from simulated_cluster import BEGIN, KEY, SPEC, SimulatedCluster, ready

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.client import ApiServer
from sluice_operator.cluster.operator_class import CLASS, belongs, selector
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe.cache import Cache
from sluice_operator.observe.watch_health import Freshness
from sluice_operator.observe.watch_state import WatchEvent
from sluice_operator.run.handlers import EventSink
from sluice_operator.run.loops import Loops
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings, read
from sluice_operator.telemetry.metrics import OperatorMetrics

Json = dict[str, Any]

BLUE = {CLASS: "blue"}


class Noted(Loops):
    def __init__(self, context: ReconcileContext) -> None:
        super().__init__(context, leading=False)
        self.woken: list[object] = []

    def wake(self, key: object, *, matters: bool = True) -> None:
        del matters
        self.woken.append(key)


def sink(own: str = "") -> tuple[EventSink, Noted]:
    context = ReconcileContext(MemoryCluster(lambda: BEGIN), Cache(), Settings(resource_class=own))
    loops = Noted(context)
    return EventSink(context.cache, loops, Freshness(resource_class=own), OperatorMetrics(), own), loops


def resource(labels: Json, version: str = "1") -> Json:
    return {"metadata": {"namespace": KEY.namespace, "name": KEY.name, "uid": "u", "resourceVersion": version, "labels": labels}, "spec": SPEC}


def pod(name: str = "orders-driver-1") -> Json:
    labels = {"sluice.dev/consumer": KEY.name, "sluice.dev/role": "driver"}
    meta = {"namespace": KEY.namespace, "name": name, "uid": name, "resourceVersion": "2", "labels": labels}
    return {"metadata": {**meta, "annotations": {"sluice.dev/report": json.dumps({"number": 1})}}}


@pytest.mark.parametrize(("own", "labels"), [("", BLUE), ("blue", {}), ("blue", {CLASS: "green"})])
@pytest.mark.parametrize("pod_first", [False, True])
def test_a_stranger_is_not_remembered(own: str, labels: Json, *, pod_first: bool) -> None:
    found, loops = sink(own)
    events = [("Pod", pod()), (CONSUMER_KIND, resource(labels))]
    for kind, body in events if pod_first else reversed(events):
        found.see(kind, WatchEvent(body))
    before = len(loops.woken)
    found.see("Pod", WatchEvent(pod("orders-driver-2")))
    assert found.cache.known() == []
    assert found.cache.snapshots() == []
    assert len(loops.woken) == before == int(pod_first)  # a pod alone says nothing of a class; its loop ends at once


@pytest.mark.parametrize(("own", "labels"), [("", {}), ("", {CLASS: ""}), ("blue", BLUE)])
def test_its_own_are(own: str, labels: Json) -> None:
    found, loops = sink(own)
    found.see(CONSUMER_KIND, WatchEvent(resource(labels)))
    found.see("Pod", WatchEvent(pod()))
    assert found.cache.known() == loops.woken[:1] == [KEY]
    assert belongs(resource(labels), own)


def test_a_resource_changes_hands_with_its_label() -> None:
    (old, loops), (new, _) = sink(), sink("blue")
    for version, labels in (("1", {}), ("2", BLUE), ("3", {})):
        for each in (old, new):
            each.see(CONSUMER_KIND, WatchEvent(resource(labels, version)))
            each.see("Pod", WatchEvent(pod()))
        owner, other = (new, old) if labels else (old, new)
        assert owner.cache.known() == [KEY]
        assert owner.cache.observed(KEY).drivers
        assert other.cache.known() == []
    assert loops.woken.count(KEY) >= 2  # its loop has to notice that it is over


def test_the_name_of_a_stranger_that_is_gone_is_free() -> None:
    found, _ = sink()
    found.see(CONSUMER_KIND, WatchEvent(resource(BLUE)))
    found.see(CONSUMER_KIND, WatchEvent(resource(BLUE), gone=True))
    assert found.strangers == set()
    found.see("Pod", WatchEvent(pod()))
    found.see(CONSUMER_KIND, WatchEvent(resource({})))
    assert found.cache.observed(KEY).drivers


def test_the_deletion_of_a_stranger_may_be_shown_after_a_resource_of_ours_with_its_name() -> None:
    """The order of one uid's events is all that kopf keeps."""
    found, _ = sink()
    found.see(CONSUMER_KIND, WatchEvent(resource(BLUE)))
    ours = resource({}, "3")
    ours["metadata"]["uid"] = "v"
    found.see(CONSUMER_KIND, WatchEvent(ours))
    found.see(CONSUMER_KIND, WatchEvent(resource(BLUE, "2"), gone=True))
    found.see("Pod", WatchEvent(pod()))
    assert found.cache.body(KEY) == ours
    assert found.cache.observed(KEY).drivers


def test_the_deletion_of_ours_may_be_shown_after_a_stranger_with_its_name() -> None:
    found, _ = sink()
    found.see(CONSUMER_KIND, WatchEvent(resource({})))
    theirs = resource(BLUE, "3")
    theirs["metadata"]["uid"] = "v"
    found.see(CONSUMER_KIND, WatchEvent(theirs))
    found.see(CONSUMER_KIND, WatchEvent(resource({}, "2"), gone=True))
    found.see("Pod", WatchEvent(pod()))
    assert found.cache.known() == []


def test_a_pass_that_finds_a_stranger_writes_nothing() -> None:
    """The cache may be behind; a live look is not."""
    world = SimulatedCluster()
    world.apply(SPEC)
    assert world.run(60, lambda: ready(world))
    world.memory.edit(world.must(), {"metadata": {"labels": BLUE}})
    world.memory.delete("Pod", KEY.namespace, world.drivers()[0]["metadata"]["name"], world.drivers()[0]["metadata"]["uid"])
    before, version = world.faults.writes, world.memory.version
    assert reconcile(world.context, KEY, world.now, force_refresh=True).wake is not None
    assert reconcile(world.context, KEY, world.now, force_refresh=True).wake is None
    assert (world.faults.writes, world.memory.version) == (before, version)
    assert world.context.cache.known() == []


def test_an_audit_asks_for_its_own_only() -> None:
    """Else a watch that passes strangers over would look stuck, and end the process."""
    http = HttpFake(MemoryCluster(lambda: BEGIN))
    for name, labels in (("ours", BLUE), ("plain", {}), ("theirs", {CLASS: "green"})):
        http.memory.create({"kind": CONSUMER_KIND, "metadata": {"namespace": "a", "name": name, "labels": labels}, "spec": SPEC})
    server = ApiServer(http)  # type: ignore[arg-type]  # it stands where ApiClient stands
    found = {own: set(server.versions(CONSUMER_KIND, "", selector(own))) for own in ("", "blue", "green", "red")}
    assert [len(uids) for uids in found.values()] == [1, 1, 1, 0]
    for own, uids in found.items():
        fresh = Freshness(resource_class=own)
        for uid in uids:
            fresh.shown(CONSUMER_KIND, uid, server.versions(CONSUMER_KIND, "", "")[uid])
        fresh.audit(server, ())
        assert not any(fresh._owed.values())


@pytest.mark.built
def test_the_chart_hands_the_class_on() -> None:
    usual = read(environment(operator(rendered())))
    blue = read(environment(operator(rendered(**{"class": "blue"}, fullnameOverride="sluice-blue"))))
    assert (usual.resource_class, blue.resource_class) == ("", "blue")
    assert blue.lease != usual.lease


@pytest.mark.built
def test_the_second_installation_of_the_page_has_a_class_of_its_own() -> None:
    """docs/operations.md: as Helm renders its command; the label of the next line is what this class selects."""
    install, label = page_blocks.beginning("docs/operations.md", "helm install sluice-blue").splitlines()
    _, command, *arguments = shlex.split(install)
    assert command == "install"
    text = subprocess.run([helm(), "template", *arguments, KUBERNETES], cwd=page_blocks.ROOT, check=True, capture_output=True, text=True).stdout
    objects = [body for body in yaml.safe_load_all(text) if body]
    found = read(environment(operator(objects)))
    assert shlex.split(label)[-1] == f"{CLASS}={found.resource_class}"
    assert of("CustomResourceDefinition", objects) == []
    assert {body["metadata"]["namespace"] for body in of("ServiceAccount", objects)} == {"sluice-blue", "team-b"}

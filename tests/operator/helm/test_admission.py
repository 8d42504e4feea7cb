"""What the chart's ValidatingAdmissionPolicy lets the operator and drivers do, decided by a real API server."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import chart
import pytest
from admission_scene import (
    ADMIN,
    CONSUMER,
    HERE,
    OPERATOR,
    POLICIES,
    Caller,
    Denied,
    Json,
    Scene,
    driver,
    executor,
    job,
)
from chart import RELEASE, of, one, rendered
from scenarios import live
from simulated_cluster import MIGRATING, SPEC, SimulatedCluster

from sluice_lab import places
from sluice_lab.machine import apiserver
from sluice_lab.machine.processes import poll
from sluice_operator.run.shared import ReconcileContext

pytestmark = pytest.mark.built

if TYPE_CHECKING:
    from sluice_operator.cluster.port import Cluster


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """One API server for all; the policy works as soon as it refuses something."""
    with apiserver.running(places.work(), (ADMIN,)) as server:
        admin, operator = Caller(server), Caller(server, OPERATOR)
        admin.call("POST", "api/v1/namespaces", {"metadata": {"name": HERE}})
        mine, theirs = admin.create(driver()), admin.create(driver("payments"))
        web = admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": HERE, "name": "web"}, "spec": plain()})
        first = admin.create(executor(mine))
        objects = rendered(admissionPolicy={"enabled": True})
        admin.call("POST", f"{POLICIES}/validatingadmissionpolicies", one("ValidatingAdmissionPolicy", objects))
        admin.call("POST", f"{POLICIES}/validatingadmissionpolicybindings", one("ValidatingAdmissionPolicyBinding", objects))
        assert poll(lambda: refused(lambda: operator.delete(web)), 30), "the policy has no effect"
        yield Scene(admin, operator, mine, theirs, first, web)


def plain() -> Json:
    return {"containers": [{"name": "web", "image": "web:1"}]}


def refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except Denied:
        return True
    return False


def changed(body: Json, path: str, value: Any) -> Json:
    """A copy with one place set; numbers in the path are places in lists, and a list is joined to what is there."""
    found = copy.deepcopy(body)
    *parts, last = path.split(".")
    at: Any = found
    for part in parts:
        at = at[int(part)] if part.isdigit() else at.setdefault(part, {})
    at[last] = [*at.get(last, ()), *value] if isinstance(value, list) else value
    return found


def test_all_that_operator_and_drivers_do_is_let_through(scene: Scene) -> None:
    scene.operator.create(changed(driver(), "metadata.name", "orders-driver-2"), dry=True)
    scene.operator.create(job(), dry=True)
    scene.operator.patch(scene.mine, {"metadata": {"uid": scene.mine["metadata"]["uid"], "annotations": {"sluice.dev/executors": "3"}}})
    scene.operator.delete(scene.mine)
    scene.driver.create(executor(scene.mine, "orders-1-exec-2"), dry=True)
    scene.driver.patch(scene.mine, {"metadata": {"annotations": {"sluice.dev/report": "{}"}}})
    scene.driver.patch(scene.executor, {"metadata": {"labels": {"spark-exec-inactive": "true"}}})
    scene.driver.delete(scene.executor)
    scene.driver.call(
        "DELETE", f"api/v1/namespaces/{HERE}/pods?labelSelector={quote('sluice.dev/role=executor,sluice.dev/consumer=orders')}&dryRun=All"
    )


class Recorded(SimulatedCluster):
    def __init__(self) -> None:
        self.sent: list[tuple[str, Json]] = []
        super().__init__()

    def equipped(self, context: ReconcileContext) -> ReconcileContext:
        return replace(context, cluster=Recorder(context.cluster, self.sent))  # type: ignore[arg-type]  # it hands the rest on


class Recorder:
    def __init__(self, cluster: Cluster, sent: list[tuple[str, Json]]) -> None:
        self._cluster, self._sent = cluster, sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def create(self, body: Json) -> Json:
        self._sent.append(("create", copy.deepcopy(body)))
        return self._cluster.create(body)

    def check(self, body: Json) -> None:
        self._sent.append(("check", copy.deepcopy(body)))
        self._cluster.check(body)


def test_every_object_of_a_whole_life_with_a_migration_is_let_through(scene: Scene) -> None:
    """What the operator really sends, dry runs among them: one that is refused keeps the consumer from ever starting."""
    world = live(Recorded(), {**MIGRATING, "pipeline": {**SPEC["pipeline"], "env": [{"name": "A", "value": "b"}]}})
    assert isinstance(world, Recorded)
    sent = [(how, body) for how, body in world.sent if body["kind"] in {"Pod", "Job"}]
    roles = {(how, body["kind"], body["metadata"]["labels"]["sluice.dev/role"]) for how, body in sent}
    made = {("create", "Pod", "driver"), ("create", "Job", "migration")}
    assert roles == {*made, ("check", "Pod", "executor"), ("check", "Pod", "migration")}
    for number, (_, body) in enumerate(sent):
        meta = {**body["metadata"], "namespace": HERE, "name": f"{body['metadata']['name'][:40]}-{number}"}
        scene.operator.create({**body, "metadata": meta}, dry=True)


FORBIDDEN = {
    "spec.serviceAccountName": RELEASE,
    "spec.hostNetwork": True,
    "spec.hostPID": True,
    "spec.hostIPC": True,
    "spec.nodeName": "control-plane",
    "spec.priorityClassName": "system-node-critical",
    "spec.volumes": [{"name": "root", "hostPath": {"path": "/"}}],
    "spec.containers.0.securityContext": {"privileged": True},
    "spec.containers.0.securityContext.capabilities": {"add": ["SYS_ADMIN"]},
    "spec.initContainers": [{"name": "init", "image": "i", "securityContext": {"privileged": True}}],
}


@pytest.mark.parametrize(("path", "value"), FORBIDDEN.items(), ids=FORBIDDEN)
def test_what_leads_out_of_a_pod_is_refused(scene: Scene, path: str, value: Any) -> None:
    bodies = [changed(driver(), "metadata.name", "orders-driver-9"), executor(scene.mine, "orders-1-exec-9")]
    for caller, body in zip((scene.operator, scene.driver), bodies, strict=True):
        with pytest.raises(Denied):
            caller.create(changed(body, path, value), dry=True)
        Caller(scene.admin.server, "somebody").create(changed(body, path, value), dry=True)
    with pytest.raises(Denied):
        scene.operator.create(changed(job(), f"spec.template.{path}", value), dry=True)


def test_a_refusal_says_whose_account_it_was(scene: Scene) -> None:
    with pytest.raises(Denied, match="not as cluster-admin-bot") as caught:
        scene.operator.create(changed(changed(driver(), "metadata.name", "x"), "spec.serviceAccountName", "cluster-admin-bot"), dry=True)
    assert "sluice-consumer" in str(caught.value)


def test_pods_of_others_are_left_alone(scene: Scene) -> None:
    stranger = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": HERE, "name": "miner"}, "spec": plain()}
    ours = {"labels": {"app.kubernetes.io/managed-by": "sluice", "sluice.dev/consumer": "orders", "sluice.dev/role": "executor"}}
    for caller in (scene.operator, scene.driver):
        assert refused(lambda caller=caller: caller.create(stranger, dry=True))
        assert refused(lambda caller=caller: caller.create(changed(stranger, "metadata.labels", ours["labels"]), dry=True))
        assert refused(lambda caller=caller: caller.patch(scene.web, {"metadata": ours}))
        assert refused(lambda caller=caller: caller.delete(scene.web))


LABELS = ["sluice.dev/consumer", "sluice.dev/role", "app.kubernetes.io/managed-by"]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("value", [None, "theirs"])
def test_what_sluice_made_is_deleted_and_scaled_though_a_label_was_taken_off(scene: Scene, label: str, value: str | None) -> None:
    """An attack: the deletion of its resource was refused for ever. A driver reports on and ends its executors, too."""
    name, off = f"{label.rpartition('/')[2]}-{value or 'off'}".lower(), {"metadata": {"labels": {label: value}}}
    mine = scene.admin.create(changed(driver(), "metadata.name", f"orders-driver-{LABELS.index(label) + (20 if value else 30)}"))
    work = scene.admin.create(changed(job(), "metadata.name", f"orders-migrate-0ae0c6-{LABELS.index(label) + (20 if value else 30)}"))
    bare = scene.admin.create(executor(mine, f"orders-{name}-exec-1"))
    for body in (mine, bare, work):
        scene.admin.patch(body, off)
    its = Caller(scene.admin.server, CONSUMER, mine["metadata"]["uid"])
    its.patch(mine, {"metadata": {"annotations": {"sluice.dev/report": "{}"}}})
    scene.operator.patch(mine, {"metadata": {"annotations": {"sluice.dev/executors": "3"}}})
    its.delete(bare)
    for body in (mine, bare, work):
        scene.operator.delete(body)


def test_what_lost_label_and_owner_is_deleted_by_its_name_and_its_hash(scene: Scene) -> None:
    """`kubectl delete --cascade=orphan` takes the owner off."""
    for body in (changed(driver(), "metadata.name", "orders-driver-40"), changed(job(), "metadata.name", "orders-migrate-0ae0c6-40")):
        made = scene.admin.create(body)
        scene.admin.patch(made, {"metadata": {"labels": {"sluice.dev/consumer": None}, "ownerReferences": None}})
        scene.operator.delete(made)


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("their-db-1", {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "name": "their-db"}),
        ("x-driver-1", {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "name": "orders"}),
        ("orders-driver-91", {"apiVersion": "example.com/v1", "kind": "KinesisConsumer", "name": "orders"}),
        ("orders-driver-92", {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "orders"}),
        ("their-worker-exec-1", {"apiVersion": "v1", "kind": "Pod", "name": "their-worker"}),
    ],
)
def test_no_edit_makes_a_foreign_pod_one_of_ours(scene: Scene, name: str, owner: Json) -> None:
    """An owner can be written onto any pod; its name cannot be changed."""
    refs = [{**owner, "uid": "u", "controller": True}]
    body: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": HERE, "name": name, "ownerReferences": refs}, "spec": plain()}
    theirs = scene.admin.create(body)
    assert refused(lambda: scene.operator.delete(theirs))
    assert refused(lambda: scene.driver.delete(theirs))


@pytest.mark.parametrize("place", ["name", "kind", "apiVersion", "controller"])
def test_the_operator_makes_nothing_without_its_owner(scene: Scene, place: str) -> None:
    fresh = changed(driver(), "metadata.name", "orders-driver-8")
    scene.operator.create(fresh, dry=True)
    for body in (fresh, job()):
        other = {"name": "payments", "kind": "Deployment", "apiVersion": "apps/v1", "controller": False}[place]
        assert refused(lambda body=body, other=other: scene.operator.create(changed(body, f"metadata.ownerReferences.0.{place}", other), dry=True))


def test_a_driver_cannot_touch_another_consumers_pods(scene: Scene) -> None:
    other = Caller(scene.admin.server, CONSUMER, scene.theirs["metadata"]["uid"])
    forged = {"metadata": {"annotations": {"sluice.dev/report": '{"phase": "Running"}'}}}
    assert refused(lambda: other.patch(scene.mine, forged))
    assert refused(lambda: other.patch(scene.executor, forged))
    assert refused(lambda: other.delete(scene.mine))
    assert refused(lambda: other.delete(scene.executor))
    assert refused(lambda: other.create(executor(scene.mine, "orders-1-exec-3"), dry=True))
    assert refused(lambda: other.call("DELETE", f"api/v1/namespaces/{HERE}/pods?dryRun=All"))
    without_pod = Caller(scene.admin.server, CONSUMER)
    assert refused(lambda: without_pod.delete(scene.executor))


def test_a_driver_makes_no_driver_and_no_job(scene: Scene) -> None:
    assert refused(lambda: scene.driver.create(changed(driver(), "metadata.name", "orders-driver-3"), dry=True))
    assert refused(lambda: scene.driver.create(job(), dry=True))


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": {"activeDeadlineSeconds": 1}},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"labels": {"sluice.dev/consumer": "payments"}}},
        {"metadata": {"labels": {"sluice.dev/role": None}}},
    ],
    ids=json.dumps,
)
def test_what_a_pod_is_stays(scene: Scene, changes: Json) -> None:
    assert refused(lambda: scene.operator.patch(scene.mine, changes))
    assert refused(lambda: scene.driver.patch(scene.mine, changes))


def test_everybody_else_works_as_before(scene: Scene) -> None:
    user = Caller(scene.admin.server, "somebody")
    user.patch(scene.web, {"metadata": {"labels": {"a": "b"}}})
    user.delete(scene.mine)


def test_the_policy_is_an_option() -> None:
    """Of Kubernetes 1.30 and later, and it refuses: a policy without a binding does nothing."""
    assert of("ValidatingAdmissionPolicy", rendered()) == []
    objects = rendered(admissionPolicy={"enabled": True})
    policy, binding = one("ValidatingAdmissionPolicy", objects), one("ValidatingAdmissionPolicyBinding", objects)
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    assert {rule.get("reason") for rule in policy["spec"]["validations"]} == {"Forbidden"}  # else 422, which looks like a lost race
    assert "1.30" in chart.refused("--kube-version=1.29.9", admissionPolicy={"enabled": True})


def policy(**values: Any) -> str:
    return json.dumps(one("ValidatingAdmissionPolicy", rendered(admissionPolicy={"enabled": True}, **values)))


def test_accounts_of_the_policy_are_those_that_the_operator_allows() -> None:
    assert "['sluice-consumer','sluice-executor']" in policy()
    names: Json = {"executorServiceAccount": {"name": ""}}
    assert "['sluice-consumer','orders']" in policy(consumer=names, policy={"serviceAccounts": ["orders"]})


def test_privileged_pods_are_allowed_by_the_same_value() -> None:
    assert "hostPath" in policy()
    assert "hostPath" not in policy(policy={"privilegedPods": True})

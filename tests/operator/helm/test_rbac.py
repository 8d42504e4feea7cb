"""The operator's rights in the chart are the calls that the real client makes in a whole life: nothing more, nothing less."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from chart import NAMESPACE, RELEASE, of, one, rendered
from http_fake import HttpFake, Right, target
from pool_scene import Scene, pooled
from scenarios import live
from simulated_cluster import BEGIN, SimulatedCluster
from steering.line import Line

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.apply.execute import SYSTEM
from sluice_operator.cluster.client import ApiServer
from sluice_operator.cluster.port import CONSUMER_KIND, PATHS
from sluice_operator.election.candidate import Candidate, ElectionTimings, LeaseRef
from sluice_operator.observe.watch import KINDS
from sluice_operator.observe.watch_health import Freshness
from sluice_operator.run.shared import ReconcileContext

pytestmark = pytest.mark.built

Json = dict[str, Any]

NOT_CALLED = {("update", "sluice.dev", f"{kind}/finalizers") for kind in ("kinesisconsumers", "kinesisconsumerpools")}
"""Asked for by admission: our pods' owner references block their owner's deletion (OwnerReferencesPermissionEnforcement)."""
MODES: dict[str, Json] = {
    "everywhere": {},
    "some namespaces": {"watchNamespaces": ["a", "b"]},
    "no cluster role": {"watchNamespaces": ["a", "b"], "rbac": {"clusterWide": False}},
}


class Remote(SimulatedCluster):
    def __init__(self) -> None:
        self.rights: set[Right] = set()
        super().__init__()

    def equipped(self, context: ReconcileContext) -> ReconcileContext:
        assert isinstance(context.cluster, Line)
        server = ApiServer(HttpFake(context.cluster, rights=self.rights))  # type: ignore[arg-type]  # it stands where ApiClient stands
        return replace(context, cluster=server)


@pytest.fixture(scope="module")
def calls() -> set[Right]:
    world = Remote()
    live(world)
    pooled(Scene(lambda memory: ApiServer(HttpFake(memory, rights=world.rights))))  # type: ignore[arg-type]  # as in Remote
    http, server = elsewhere()
    Candidate(server, LeaseRef(NAMESPACE, "none", "a"), ElectionTimings(duration=0)).acquire_or_renew()
    shipped = {"kind": "Lease", "metadata": {"namespace": NAMESPACE, "name": RELEASE}}
    http.memory.create(shipped)
    Candidate(server, LeaseRef(NAMESPACE, RELEASE, "a"), ElectionTimings()).acquire_or_renew()
    Freshness().audit(server, ())
    for kind in ("Pod", "Job"):
        server.get(kind, "default", "taken")  # apply, when a name is taken
    kinds = (target("/".join((PATHS[kind][0], "namespaces/a", PATHS[kind][1]))) for kind in (CONSUMER_KIND, *KINDS))
    watched = {(verb, kind.group, kind.plural) for kind in kinds for verb in ("list", "watch")}
    return world.rights | http.rights | watched


def elsewhere() -> tuple[HttpFake, ApiServer]:
    http = HttpFake(MemoryCluster(lambda: BEGIN))
    return http, ApiServer(http)  # type: ignore[arg-type]  # it stands where ApiClient stands


def granted(objects: list[Json]) -> set[Right]:
    bindings = [*of("RoleBinding", objects), *of("ClusterRoleBinding", objects)]
    bound = {(b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings if b["subjects"][0]["name"] == RELEASE}
    roles = [body for body in (*of("Role", objects), *of("ClusterRole", objects)) if (body["kind"], body["metadata"]["name"]) in bound]
    return {right for role in roles for right in rights(role)}


def rights(role: Json) -> set[Right]:
    return {(verb, group, kind) for rule in role["rules"] for group in rule["apiGroups"] for kind in rule["resources"] for verb in rule["verbs"]}


@pytest.mark.parametrize("values", MODES.values(), ids=MODES)
def test_rights_are_the_calls(calls: set[Right], values: Json) -> None:
    assert granted(rendered(**values)) == calls | NOT_CALLED


def test_a_missing_right_would_be_noticed(calls: set[Right]) -> None:
    assert {("patch", "sluice.dev", "kinesisconsumers"), ("delete", "", "pods"), ("create", "coordination.k8s.io", "leases")} <= calls
    assert ("get", "", "namespaces") in calls


def test_nothing_is_granted_wholesale() -> None:
    for values in MODES.values():
        everything = {word for right in granted(rendered(**values)) for word in right}
        assert not {"*", "secrets", "rbac.authorization.k8s.io", "impersonate", "escalate", "bind"} & everything


def test_with_watched_namespaces_only_the_own_kind_is_granted_everywhere() -> None:
    """Pods and Jobs of other namespaces are none of its business; of Namespaces it reads the watched ones, and the one whose uid is the cluster's."""
    objects = rendered(**MODES["some namespaces"])
    (bound,) = of("ClusterRoleBinding", objects)
    (role,) = (body for body in of("ClusterRole", objects) if body["metadata"]["name"] == bound["roleRef"]["name"])
    assert {(group, kind) for _, group, kind in rights(role)} == {
        ("sluice.dev", "kinesisconsumers"),
        ("sluice.dev", "kinesisconsumers/status"),
        ("sluice.dev", "kinesisconsumerpools"),
        ("sluice.dev", "kinesisconsumerpools/status"),
        ("", "namespaces"),
    }
    reading = [(rule["verbs"], rule["resourceNames"]) for rule in role["rules"] if rule["resources"] == ["namespaces"]]
    assert reading == [(["get"], ["a", "b"]), (["get"], [SYSTEM])]


def test_without_a_cluster_role_everything_is_in_the_namespaces() -> None:
    objects = rendered(**MODES["no cluster role"])
    assert of("ClusterRole", objects) == of("ClusterRoleBinding", objects) == []


def test_people_may_do_with_consumers_what_they_may_do_with_pods() -> None:
    aggregate = "rbac.authorization.k8s.io/aggregate-to-"
    granted_to: dict[str, set[Right]] = {"view": set(), "edit": set(), "admin": set()}
    for role in of("ClusterRole", rendered()):
        for who, found in granted_to.items():
            if role["metadata"]["labels"].get(f"{aggregate}{who}") == "true":
                found.update(rights(role))
    kinds = ("kinesisconsumers", "kinesisconsumerpools")
    look = {(verb, "sluice.dev", f"{kind}{part}") for verb in ("get", "list", "watch") for kind in kinds for part in ("", "/status", "/scale")}
    write = {(verb, "sluice.dev", kind) for verb in ("create", "update", "patch", "delete", "deletecollection") for kind in kinds}
    scale = {(verb, "sluice.dev", f"{kind}/scale") for verb in ("update", "patch") for kind in kinds}
    assert granted_to == {"view": look, "edit": look | write | scale, "admin": look | write | scale}
    assert [role["metadata"]["name"] for role in of("ClusterRole", rendered(rbac={"aggregate": False}))] == [f"{NAMESPACE}-{RELEASE}"]


def test_only_its_own_lease_may_be_changed() -> None:
    """A name cannot limit a creation; everything else it does."""
    objects = rendered(lease={"install": True})
    (role,) = (body for body in of("Role", objects) if body["metadata"]["name"] == f"{RELEASE}-election")
    named, unnamed = role["rules"]
    assert (named["verbs"], named["resourceNames"]) == (["get", "patch"], [one("Lease", objects)["metadata"]["name"]])
    assert unnamed["verbs"] == ["create"]
    assert role["metadata"]["namespace"] == NAMESPACE


def test_drivers_touch_nothing_but_pods_and_nobody_else_of_a_consumer_touches_anything() -> None:
    """Which verbs they need is recorded from a real Spark driver: test_driver_rights.py."""
    objects = rendered(consumer={"namespaces": ["team"]})
    bindings = [body for body in of("RoleBinding", objects) if body["metadata"]["namespace"] == "team"]
    assert [(body["roleRef"]["name"], [subject["name"] for subject in body["subjects"]]) for body in bindings] == [
        ("sluice-consumer", ["sluice-consumer"])
    ]
    (role,) = (body for body in of("Role", objects) if body["metadata"]["namespace"] == "team")
    assert {(group, kind) for _, group, kind in rights(role)} == {("", "pods")}

"""One contract for the API server in memory and the real one; each condition has a test in which it fails.

Both are asked through the real client too. The real server has no node and no controllers.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from crd_server import install
from executors_kubelet import Admin
from http_fake import HttpFake
from kubernetes.client.api_client import ApiClient
from port_places import Place, through
from simulated_cluster import BEGIN, SPEC

from sluice_lab import places
from sluice_lab.fakes.cluster import MemoryCluster
from sluice_lab.machine import apiserver
from sluice_operator.cluster.client import ApiServer, connect
from sluice_operator.cluster.port import CONSUMER_KIND, Conflict, Exists, Rejected
from sluice_operator.election.candidate import Candidate, ElectionTimings, LeaseRef, LostLeadership
from sluice_operator.observe import watch_health

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

PLACES = [pytest.param("memory"), pytest.param("client"), pytest.param("server", marks=pytest.mark.built)]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Admin, ApiClient]]:
    with apiserver.running(places.work(), ("admin",), accounts=True) as found, pytest.MonkeyPatch.context() as patch:
        admin = Admin(found)
        install(admin.call)
        patch.setenv("KUBECONFIG", str(found.kubeconfig("admin")))
        yield admin, connect()


def _accounts(body: Json) -> None:
    """As the admission plugin ServiceAccount does it, and a server that is asked to be strict."""
    account = body.get("spec", {}).get("serviceAccountName")
    if account == "none-such":
        name = f"{body['metadata']['namespace']}/{account}"
        raise Rejected("Forbidden", f'pods is forbidden: error looking up service account {name}: serviceaccount "{account}" not found')
    if "nodeselector" in body.get("spec", {}):
        raise Rejected("BadRequest", 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.nodeselector"')


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param != "server":
        memory = MemoryCluster(lambda: BEGIN)
        memory.admission = _accounts
        yield Place(memory if request.param == "memory" else through(HttpFake(memory)), "default")
        return
    admin, api = request.getfixturevalue("server")
    name = f"port-{uuid.uuid4().hex[:8]}"
    admin.call("POST", "api/v1/namespaces", {"metadata": {"name": name}})
    admin.call("POST", f"api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    yield Place(ApiServer(api), name)


def test_what_is_not_there_is_none(place: Place) -> None:
    assert place.get("Pod", "p") is None
    place.cluster.delete("Pod", place.namespace, "p", "uid")


@pytest.mark.parametrize("name", ["", ".", "..", "p/status", "p?x=1", "p#x", "p%2Fstatus", "p/../p", "../pods/p", "p x", "p\n"])
def test_a_name_that_no_object_may_have_is_nobodys(place: Place, name: str) -> None:
    """It is not read as a path: `p?x=1` is not p, and the empty name is not all of a kind. What others do with p meanwhile does not count."""
    made = place.pod()
    assert place.get("Pod", name) is None
    with pytest.raises((Conflict, Rejected)):
        place.cluster.patch(
            "Pod", place.namespace, name, {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"], "labels": {"a": "b"}}}
        )
    place.cluster.delete("Pod", place.namespace, name, made["metadata"]["uid"])
    left = place.get("Pod", "p") or {"metadata": {}}
    assert {key: left["metadata"].get(key) for key in ("uid", "labels", "deletionTimestamp")} == {
        key: made["metadata"].get(key) for key in ("uid", "labels", "deletionTimestamp")
    }


def test_a_name_is_given_once(place: Place) -> None:
    place.pod()
    with pytest.raises(Exists):
        place.pod()


def test_a_check_makes_nothing(place: Place) -> None:
    head = {"name": "asked", "namespace": place.namespace}
    place.cluster.check({"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert place.get("Pod", "asked") is None


def test_a_check_is_refused_in_the_servers_words(place: Place) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": place.namespace}}
    with pytest.raises(Rejected, match=r"service account .*none-such"):
        place.cluster.check({**body, "spec": {"serviceAccountName": "none-such", "containers": [{"name": "c", "image": "i"}]}})


def test_a_field_that_the_api_does_not_know_is_refused_by_its_name(place: Place) -> None:
    """A typo in a podTemplate: by default the server passes over it, with a warning that nobody sees."""
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": place.namespace}}
    pod = {**body, "spec": {"nodeselector": {"a": "b"}, "containers": [{"name": "c", "image": "i"}]}}
    for ask in (place.cluster.check, place.cluster.create):
        with pytest.raises(Rejected, match=r"unknown field \"spec\.nodeselector\""):
            ask(pod)
    assert place.get("Pod", "p") is None


def test_lists_go_by_labels(place: Place) -> None:
    place.pod("a")
    place.pod("b", labels={"sluice.dev/consumer": "other"})
    found = place.cluster.list("Pod", place.namespace, {"sluice.dev/consumer": "orders"})
    assert [pod["metadata"]["name"] for pod in found] == ["a"]


def test_a_label_without_a_value_has_to_be_there(place: Place) -> None:
    place.pod("a", labels={"sluice.dev/consumer": "other", "batch.kubernetes.io/job-name": "x"})
    place.pod("b", labels={"sluice.dev/consumer": "other"})
    found = place.cluster.list("Pod", place.namespace, {"batch.kubernetes.io/job-name": None})
    assert [pod["metadata"]["name"] for pod in found] == ["a"]


def test_a_list_of_no_namespace_is_one_of_all(place: Place) -> None:
    place.pod("a")
    found = place.cluster.list("Pod", "", {"sluice.dev/consumer": "orders"})
    assert (place.namespace, "a") in {(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in found}


def test_a_status_is_written_only_onto_what_was_seen(place: Place) -> None:
    seen = place.consumer()
    place.cluster.patch(CONSUMER_KIND, place.namespace, "orders", {"metadata": {"annotations": {"a": "b"}}})
    with pytest.raises(Conflict):
        place.cluster.replace_status({**seen, "status": {"phase": "Running"}})


def test_a_status_write_touches_neither_spec_nor_generation(place: Place) -> None:
    seen = place.consumer()
    place.cluster.replace_status({**seen, "spec": {**SPEC, "replicas": 9}, "status": {"phase": "Running"}})
    now = place.get(CONSUMER_KIND, "orders")
    assert now is not None
    assert now["spec"]["replicas"] == 2
    assert now["status"]["phase"] == "Running"
    assert now["metadata"]["generation"] == 1


def test_a_patch_of_the_spec_leaves_the_status_and_counts_the_generation(place: Place) -> None:
    seen = place.consumer()
    place.cluster.replace_status({**seen, "status": {"phase": "Running"}})
    place.cluster.patch(CONSUMER_KIND, place.namespace, "orders", {"spec": {"replicas": 3}, "status": {"phase": "x"}})
    now = place.get(CONSUMER_KIND, "orders")
    assert now is not None
    assert now["metadata"]["generation"] == 2
    assert now["status"]["phase"] == "Running"


def test_a_patch_is_refused_when_its_condition_fails(place: Place) -> None:
    seen = place.pod()["metadata"]
    place.cluster.patch("Pod", place.namespace, "p", {"metadata": {"annotations": {"a": "b"}}})
    for condition in ({"uid": "another"}, {"resourceVersion": seen["resourceVersion"]}):
        with pytest.raises(Conflict):
            place.cluster.patch("Pod", place.namespace, "p", {"metadata": {**condition, "annotations": {"c": "d"}}})


def test_a_patch_of_what_is_gone_is_a_conflict(place: Place) -> None:
    with pytest.raises(Conflict):
        place.cluster.patch("Pod", place.namespace, "p", {"metadata": {"annotations": {"a": "b"}}})


def test_a_deletion_is_for_one_uid(place: Place) -> None:
    pod = place.pod()
    with pytest.raises(Conflict):
        place.cluster.delete("Pod", place.namespace, "p", "another")
    place.cluster.delete("Pod", place.namespace, "p", pod["metadata"]["uid"], 0)
    assert place.get("Pod", "p") is None


def test_a_finalizer_holds_a_resource_until_it_is_taken_off(place: Place) -> None:
    seen = place.consumer()
    place.cluster.patch(CONSUMER_KIND, place.namespace, "orders", {"metadata": {"finalizers": ["sluice.dev/operator"]}})
    place.cluster.delete(CONSUMER_KIND, place.namespace, "orders", seen["metadata"]["uid"])
    now = place.get(CONSUMER_KIND, "orders")
    assert now is not None
    assert "deletionTimestamp" in now["metadata"]
    place.cluster.patch(CONSUMER_KIND, place.namespace, "orders", {"metadata": {"finalizers": []}})
    assert place.get(CONSUMER_KIND, "orders") is None


def test_a_lease_is_renewed_only_as_it_was_seen(place: Place) -> None:
    head = {"name": "l", "namespace": place.namespace}
    empty = place.cluster.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": head})
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 1, "renewTime": "2026-11-21T10:00:00.000001Z"}
    condition = {"resourceVersion": empty["metadata"]["resourceVersion"]}
    held = place.cluster.patch("Lease", place.namespace, "l", {"metadata": condition, "spec": spec})
    assert held["spec"] == spec
    with pytest.raises(Conflict):
        place.cluster.patch("Lease", place.namespace, "l", {"metadata": condition, "spec": {"holderIdentity": "b"}})
    with pytest.raises(Exists):
        place.cluster.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": head})


def test_a_candidate_is_elected_and_releases(place: Place) -> None:
    posts = [LeaseRef(place.namespace, "l", name) for name in ("a", "b")]
    first, second = (Candidate(place.cluster, post, ElectionTimings(duration=1, deadline=60)) for post in posts)
    place.cluster.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": place.namespace}})
    first.acquire_or_renew()
    assert first.leads()
    first.release()
    second.acquire_or_renew()
    assert second.leads()
    with pytest.raises(LostLeadership, match="b holds"):
        first.acquire_or_renew()


@pytest.mark.built
@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_a_namespace_is_found_by_its_name(place: Place) -> None:
    """Whether it is being deleted decides how its resources go."""
    assert (place.cluster.get("Namespace", place.namespace, "") or {})["metadata"]["name"] == place.namespace
    assert place.cluster.get("Namespace", "no-such-namespace", "") is None


@pytest.mark.built
@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_an_audit_reads_metadata_of_one_namespace_or_of_all(place: Place) -> None:
    body = place.consumer()
    assert isinstance(place.cluster, ApiServer)
    own = {body["metadata"]["uid"]: body["metadata"]["resourceVersion"]}
    assert place.cluster.versions(CONSUMER_KIND, place.namespace, "") == own
    assert own.items() <= place.cluster.versions(CONSUMER_KIND, "", "").items()
    assert place.cluster.versions("Pod", "", watch_health.SAMPLES["Pod"]) is not None


@pytest.mark.built
@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_real_server_refuses_what_cannot_be(place: Place) -> None:
    with pytest.raises(Rejected):
        place.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": place.namespace}})

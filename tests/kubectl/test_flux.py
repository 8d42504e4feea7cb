"""What a person's commands write outlives a reconcile of Flux, which takes over the fields of other tools before each apply, by their prefix.

The rule and the list are those of kustomize-controller (`ssa.ApplyCleanupOptions.FieldManagers`, `strings.HasPrefix`), done to a real API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from admission_scene import ADMIN, Caller
from click.testing import CliRunner
from crd_server import CONSUMERS, install
from simulated_cluster import SPEC

from sluice_kubectl.api.kubeconfig import AGENT, MANAGER
from sluice_kubectl.cli.group import program
from sluice_lab import places
from sluice_lab.machine import apiserver

Json = dict[str, Any]
FLUX = "kustomize-controller"
TAKEN_OVER = (("kubectl", "Apply"), ("kubectl", "Update"), ("before-first-apply", "Update"), (FLUX, "Update"))
MERGE = "application/merge-patch+json"


def taken_over(entry: Json) -> bool:
    """Whether Flux makes this manager's fields its own, and so removes those that are not in git."""
    theirs = any(entry["manager"].startswith(name) and entry["operation"] == operation for name, operation in TAKEN_OVER)
    return theirs and not entry.get("subresource")


def test_no_prefix_of_flux_is_that_of_our_manager() -> None:
    """The user agent, from which the server would make one, has such a prefix."""
    assert not taken_over({"manager": MANAGER, "operation": "Update"})
    assert taken_over({"manager": AGENT, "operation": "Update"})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Caller]:
    with apiserver.running(places.work(), (ADMIN,)) as server:
        caller = Caller(server)
        install(caller.call)
        yield caller


def in_git(name: str, **spec: Any) -> Json:
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": {"name": name}, "spec": {**SPEC, **spec}}


def reconcile(cluster: Caller, manifest: Json) -> Json:
    """As Flux does it: managers are renamed, then the manifest is applied by force."""
    path = f"{CONSUMERS}/{manifest['metadata']['name']}"
    apply = f"{path}?fieldManager={FLUX}&force=true"
    found = cluster.call("PATCH", f"{apply}&dryRun=All", manifest, "application/apply-patch+yaml")
    entries = found["metadata"]["managedFields"]
    renamed = [{**entry, "manager": FLUX, "operation": "Apply"} if taken_over(entry) else entry for entry in entries]
    if renamed != entries:
        patch: Any = [{"op": "replace", "path": "/metadata/managedFields", "value": renamed}]
        cluster.call("PATCH", path, patch, "application/json-patch+json")
    return cluster.call("PATCH", apply, manifest, "application/apply-patch+yaml")


def run(cluster: Caller, *arguments: str) -> None:
    answer = CliRunner().invoke(program, [*arguments, "--kubeconfig", str(cluster.server.kubeconfig(ADMIN))])
    assert answer.exit_code == 0, answer.output


@pytest.mark.built
def test_a_pause_and_a_drain_outlive_reconciles(cluster: Caller) -> None:
    manifest = in_git("kept")
    reconcile(cluster, manifest)
    run(cluster, "pause", "kept")
    run(cluster, "drain", "kept")
    for _ in range(2):
        found = reconcile(cluster, manifest)
        assert found["metadata"]["annotations"] == {"sluice.dev/paused": "true"}
        assert found["spec"]["suspend"] is True
    run(cluster, "resume", "kept")
    found = reconcile(cluster, manifest)
    assert "annotations" not in found["metadata"]
    assert not found["spec"].get("suspend")


@pytest.mark.built
def test_what_kubectl_itself_writes_is_undone(cluster: Caller) -> None:
    """So the page says how to write it; the same rule would undo a manager with kubectl's prefix."""
    manifest = in_git("undone")
    reconcile(cluster, manifest)
    for manager in ("kubectl-annotate", AGENT):
        patch = {"metadata": {"annotations": {"sluice.dev/paused": "true"}}}
        cluster.call("PATCH", f"{CONSUMERS}/undone?fieldManager={manager}", patch, MERGE)
        assert "annotations" not in reconcile(cluster, manifest)["metadata"]


@pytest.mark.built
def test_what_is_in_git_wins(cluster: Caller) -> None:
    manifest = in_git("gits", suspend=False)
    reconcile(cluster, manifest)
    run(cluster, "drain", "gits")
    assert reconcile(cluster, manifest)["spec"]["suspend"] is False


@pytest.mark.built
def test_a_number_of_executors_by_scale_stays(cluster: Caller) -> None:
    """An autoscaler's, or that of `kubectl scale`: Flux leaves what came through a subresource."""
    manifest = in_git("scaled")
    del manifest["spec"]["replicas"]
    reconcile(cluster, manifest)
    cluster.call("PATCH", f"{CONSUMERS}/scaled/scale?fieldManager=kubectl", {"spec": {"replicas": 6}}, MERGE)
    assert reconcile(cluster, manifest)["spec"]["replicas"] == 6

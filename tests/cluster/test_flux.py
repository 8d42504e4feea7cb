"""A real Flux over a git repository of a consumer: what it waits for, what it leaves alone, what it takes away (docs/gitops.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from cluster_bench import Bench, condition, is_ready
from flux_scene import AFTER, NAME, OF_PAGE, OPERATOR, PAUSED, STREAMS, Synced
from git_repository import BRANCH, Repository
from rules_world import world

from sluice_lab import places
from sluice_lab.machine import flux as machine
from sluice_lab.scenario.installing import NAMESPACE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

Json = dict[str, Any]


@pytest.fixture(scope="module")
def synced(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synced]:
    repository = Repository.new(tmp_path_factory.mktemp("flux"))
    crds = [yaml.safe_load(path.read_text()) for path in sorted((places.REPO / "crds").glob("*.yaml"))]
    repository.write("crds.yaml", *crds, folder="operator")
    after = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": AFTER, "namespace": NAMESPACE}}
    repository.write("after.yaml", after, folder="after")
    with world(bench, "flux", shards=2) as stream, repository.served() as url, machine.running(bench.cluster) as flux:
        found = Synced(flux, repository, stream)
        repository.write("consumer.yaml", found.manifest())
        _begin(found, url)
        yield found


def _begin(synced: Synced, url: str) -> None:
    """What comes after is there first, so that it has to wait."""
    source = {"interval": OF_PAGE["spec"]["interval"], "url": url, "ref": {"branch": BRANCH}}
    repository = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": STREAMS}, "spec": source}
    synced.bench.apply_in(machine.NAMESPACE, repository)
    synced.kustomization(AFTER, path="./after", prune=True, dependsOn=[{"name": STREAMS}])
    synced.bench.apply_in(machine.NAMESPACE, OF_PAGE)
    synced.kustomization(OPERATOR, path="./operator", prune=False)


def test_a_kustomization_is_ready_when_its_consumer_works_and_a_dependent_one_waits_for_it(synced: Synced) -> None:
    synced.bench.until("the Kustomization is Ready", synced.ready)
    worked = condition(synced.bench.resource(NAME), "Ready")
    assert worked["status"] == "True"
    assert ("Starting", "Unknown") in synced.shown
    assert not {phase for phase, said in synced.shown if said == "True"} & {"", "Pending", "Starting"}, synced.shown
    made = synced.bench.until("what comes after", lambda: synced.bench.get("configmaps", f"--field-selector=metadata.name={AFTER}"))
    assert made[0]["metadata"]["creationTimestamp"] >= worked["lastTransitionTime"]


def test_a_bad_spec_fails_the_kustomization_at_once_and_a_good_one_heals_it(synced: Synced) -> None:
    driver = synced.subject.attempts()
    said = synced.sync(sparkConf={"spark.master": "local"})
    assert (said["status"], said["reason"]) == ("False", "HealthCheckFailed")
    assert f"KinesisConsumer/{NAMESPACE}/{NAME}" in said["message"]
    assert "spec.sparkConf: spark.master" in synced.subject.condition("Stalled")["message"]
    assert synced.sync()["status"] == "True"
    assert synced.subject.attempts() == driver


def test_a_typo_is_refused_and_the_field_is_named(synced: Synced) -> None:
    before = synced.bench.resource(NAME)["metadata"]["generation"]
    said = synced.sync(batch={"intervalSecond": 2})
    assert said["status"] == "False"
    assert "intervalSecond" in said["message"]
    assert synced.bench.resource(NAME)["metadata"]["generation"] == before
    assert synced.sync()["status"] == "True"


def test_a_pause_by_kubectl_sluice_outlives_reconciles_until_resume(synced: Synced) -> None:
    driver = synced.subject.attempts()
    synced.sluice("pause")
    assert [synced.again()["status"] for _ in range(2)] == ["True", "True"]
    assert synced.paused()
    synced.sluice("resume")
    assert synced.again()["status"] == "True"
    assert not synced.paused()
    assert synced.subject.attempts() == driver


def test_a_pause_by_kubectl_ends_at_the_next_reconcile_unless_it_has_the_manager(synced: Synced) -> None:
    patch = f'--patch={{"metadata": {{"annotations": {{"{PAUSED}": "true"}}}}}}'
    for words in (("annotate", "kc", NAME, f"{PAUSED}=true"), ("patch", "kc", NAME, "--type=merge", patch)):
        synced.bench.kubectl(*words)
        synced.again()
        assert not synced.paused(), words
        synced.bench.kubectl(*words, "--field-manager=sluice")
        synced.again()
        assert synced.paused(), words
        synced.sluice("resume")


def test_a_number_of_executors_by_scale_is_left_alone(synced: Synced) -> None:
    synced.subject.scale(2)
    synced.bench.until("two executors", lambda: synced.subject.settled(2))
    synced.again()
    assert synced.sync(restart={"backoffSeconds": 2})["status"] == "True"
    found = synced.bench.resource(NAME)["spec"]
    assert (found["replicas"], found["restart"]["backoffSeconds"]) == (2, 2)
    synced.subject.scale(1)
    synced.sync()


def test_a_restart_happens_once_and_stays(synced: Synced) -> None:
    driver = synced.subject.attempts()
    synced.sluice("restart")
    synced.bench.until("the next driver", lambda: synced.subject.attempts() == driver + 1 and synced.subject.settled(1))
    assert synced.again()["status"] == "True"
    assert "sluice.dev/restart" in synced.bench.resource(NAME)["metadata"]["annotations"]
    assert synced.subject.attempts() == driver + 1


def test_a_drain_outlives_reconciles_until_git_says_otherwise(synced: Synced) -> None:
    driver = synced.subject.attempts()
    synced.sluice("drain")
    synced.bench.until("nothing runs", lambda: not synced.subject.pods("driver") and not synced.subject.pods("executor"))
    assert [synced.again()["status"] for _ in range(2)] == ["True", "True"]
    assert synced.bench.resource(NAME)["spec"]["suspend"] is True
    assert not synced.subject.pods("driver")
    assert synced.sync(suspend=False)["status"] == "True"
    assert synced.subject.attempts() == driver + 1
    assert synced.sync()["status"] == "True"
    assert is_ready(synced.bench.resource(NAME))


def test_a_suspended_kustomization_suspends_flux_and_not_the_consumer(synced: Synced) -> None:
    """Its driver reads on, and git is not applied. What `flux suspend` writes is `spec.suspend`."""
    driver = synced.subject.attempts()
    synced.flux.kubectl("patch", "kustomization", STREAMS, "--type=merge", '--patch={"spec": {"suspend": true}}')
    synced.repository.write("consumer.yaml", synced.manifest(restart={"backoffSeconds": 3}))
    synced.flux.reconcile("gitrepository", STREAMS)
    synced.world.put()
    synced.bench.until("the records are kept", lambda: not synced.world.missing(NAME))
    assert synced.subject.attempts() == driver
    assert synced.bench.resource(NAME)["spec"]["restart"]["backoffSeconds"] == 1
    synced.flux.kubectl("patch", "kustomization", STREAMS, "--type=merge", '--patch={"spec": {"suspend": false}}')
    assert synced.again()["status"] == "True"
    assert synced.bench.resource(NAME)["spec"]["restart"]["backoffSeconds"] == 3


def test_prune_drains_the_batch_and_leaves_nothing_but_the_table(synced: Synced) -> None:
    assert synced.sync(args={"hold": 20})["status"] == "True"
    synced.bench.until("all that was put before is kept", lambda: not synced.world.missing(NAME))
    before = len(synced.world.kept(NAME))
    synced.world.put()
    synced.bench.until("a batch is open", lambda: synced.world.bound(NAME))
    synced.repository.remove("consumer.yaml")
    synced.repository.write("another.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another", "namespace": NAMESPACE}})
    synced.again(source=True)
    assert synced.bench.resource(NAME)["metadata"].get("deletionTimestamp")
    synced.bench.until("the consumer is gone", lambda: NAME not in {r["metadata"]["name"] for r in synced.bench.get("kinesisconsumers")})
    synced.bench.until("its pods are gone", lambda: not synced.subject.left())
    assert len(synced.world.kept(NAME)) > before
    assert (synced.world.skipped(NAME), synced.world.twice(NAME), synced.world.bound(NAME)) == ([], [], 0)
    assert any("DriverDraining" in said for said in synced.bench.events(NAME))

"""A real Argo CD over a git repository of the chart and a consumer: what it shows, what it waits for, what it leaves alone (docs/gitops.md)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from cluster_bench import Bench, condition, consumer, is_ready
from git_repository import Repository

from sluice_lab.machine import argocd
from sluice_lab.machine.argocd import ArgoCd
from sluice_lab.scenario import installing, kcl_table
from sluice_lab.scenario.installing import CHART, NAMESPACE, OPERATOR_NAMESPACE, RELEASE
from sluice_lab.scenario.topology import Stream

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

Json = dict[str, Any]
NAME, AFTER, STREAM, TABLE = "synced", "after-synced", "gitops", "gitops-kcl"
SERVER = "https://kubernetes.default.svc"
REPLICAS = {"group": "sluice.dev", "kind": "KinesisConsumer", "jsonPointers": ["/spec/replicas"]}


@dataclass
class GitOps:
    bench: Bench
    argo: ArgoCd
    repository: Repository
    shown: set[tuple[str, str]] = field(default_factory=set)

    def application(self, name: str, source: Json, namespace: str) -> None:
        spec = {
            "project": "default",
            "source": {"repoURL": f"file://{self.repository.folder}", "targetRevision": "main", **source},
            "destination": {"server": SERVER, "namespace": namespace},
            "ignoreDifferences": [REPLICAS],
            "syncPolicy": {
                "automated": {"prune": True, "selfHeal": True},
                "syncOptions": ["ServerSideApply=true", "RespectIgnoreDifferences=true"],
                "retry": {"limit": 5, "refresh": True, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "30s"}},
            },
        }
        body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name}, "spec": spec}
        self.bench.apply_in(argocd.NAMESPACE, body)

    def manifest(self, **spec: Any) -> Json:
        """The consumer as git has it: without a number of executors, which an autoscaler owns."""
        found = consumer(self.bench, NAME, batch={"intervalSeconds": 1}, migrateFrom={"table": TABLE, "quietSeconds": 5}, **spec)
        found["spec"]["stream"] |= {"name": STREAM}
        del found["spec"]["replicas"]
        return found

    def status(self, name: str = "streams") -> Json:
        """The Application's, with what it shows of the consumer noted beside the operator's phase."""
        found: Json = self.argo.application(name).get("status") or {}
        mine = self.bench.get("kinesisconsumers")
        phase = next((body.get("status", {}).get("phase", "") for body in mine if body["metadata"]["name"] == NAME), "")
        self.shown.add((phase, self.health(found)))
        return found

    def health(self, status: Json, name: str = NAME) -> str:
        return next((item.get("health", {}).get("status", "") for item in status.get("resources", []) if item["name"] == name), "")

    def until(self, health: str, sync: str = "Synced") -> Json:
        return self.bench.until(f"{sync} and {health}", lambda: self._is(health, sync))  # type: ignore[no-any-return]

    def _is(self, health: str, sync: str) -> Json | None:
        found = self.status()
        return found if self.health(found) == health and found.get("sync", {}).get("status") == sync else None

    def act(self, action: str) -> None:
        where = ("--kind=KinesisConsumer", f"--resource-name={NAME}", "--all")
        self.argo.argocd("app", "actions", "run", "streams", action, *where)

    def attempt(self) -> int:
        return int(self.bench.resource(NAME)["status"]["driver"]["attempt"])


@pytest.fixture(scope="module")
def gitops(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitOps]:
    repository = Repository.new(tmp_path_factory.mktemp("gitops"))
    shutil.copytree(CHART, repository.folder / "charts" / "sluice")
    repository.commit("Add the chart")
    shown = bench.cluster.helm(
        "template", RELEASE, str(CHART), "--set=argocd.customizations=true", "--kube-version=1.34.0", "--show-only=templates/argocd.yaml"
    )
    with argocd.running(bench.cluster, yaml.safe_load(shown)["data"]) as argo:
        yield GitOps(bench, argo, repository)


@pytest.fixture(scope="module", autouse=True)
def _source(bench: Bench, gitops: GitOps) -> None:  # noqa: ARG001 - not before Argo CD runs
    stream = Stream(bench.aws.kinesis, STREAM)
    stream.create(2)
    kcl_table.write(bench.aws.dynamodb, TABLE, kcl_table.dump()["description"], kcl_table.unread(stream.shards()))


def test_the_chart_is_synced_and_healthy_without_a_warning(gitops: GitOps) -> None:
    values = installing.values(gitops.bench.cluster).read_text()
    before = gitops.bench.cluster.kubectl(f"--namespace={OPERATOR_NAMESPACE}", "get", "deployment", RELEASE, "--output=jsonpath={.metadata.uid}")
    gitops.application("operator", {"path": "charts/sluice", "helm": {"releaseName": RELEASE, "values": values}}, OPERATOR_NAMESPACE)

    def done() -> Json | None:
        status: Json = gitops.argo.application("operator").get("status") or {}
        fine = (status.get("sync", {}).get("status"), status.get("health", {}).get("status")) == ("Synced", "Healthy")
        return status if fine else None

    status = gitops.bench.until("the chart is Synced and Healthy", done)
    assert status.get("conditions", []) == []
    after = gitops.bench.cluster.kubectl(f"--namespace={OPERATOR_NAMESPACE}", "get", "deployment", RELEASE, "--output=jsonpath={.metadata.uid}")
    assert after == before


def test_a_consumer_is_progressing_until_it_works_and_a_later_wave_waits_for_it(gitops: GitOps) -> None:
    wave = {"argocd.argoproj.io/sync-wave": "1"}
    gitops.repository.write("consumer.yaml", gitops.manifest())
    gitops.repository.write("after.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": AFTER, "annotations": wave}})
    gitops.application("streams", {"path": "consumers"}, NAMESPACE)
    gitops.until("Healthy")
    assert {("Migrating", "Progressing"), ("Starting", "Progressing")} <= gitops.shown, gitops.shown
    assert not {health for phase, health in gitops.shown if phase in {"Migrating", "Starting"}} - {"Progressing", "", "Missing"}
    made = gitops.bench.get("configmaps", f"--field-selector=metadata.name={AFTER}")[0]["metadata"]["creationTimestamp"]
    assert made >= condition(gitops.bench.resource(NAME), "Ready")["lastTransitionTime"]


def test_pods_that_the_operator_makes_are_no_drift(gitops: GitOps) -> None:
    status = gitops.until("Healthy")
    assert {(item["kind"], item["name"], item["status"]) for item in status["resources"]} == {
        ("KinesisConsumer", NAME, "Synced"),
        ("ConfigMap", AFTER, "Synced"),
    }
    assert len(gitops.bench.get("pods", f"--selector=sluice.dev/consumer={NAME}")) >= 2
    tree = json.loads(gitops.argo.argocd("app", "get-resource", "streams", "--kind=KinesisConsumer", f"--resource-name={NAME}", "--output=json"))
    assert tree


def test_a_bad_spec_degrades_it_and_a_good_one_heals_it(gitops: GitOps) -> None:
    driver = gitops.attempt()
    gitops.repository.write("consumer.yaml", gitops.manifest(sparkConf={"spark.master": "local"}))
    status = gitops.until("Degraded")
    said = next(item["health"] for item in status["resources"] if item["name"] == NAME)
    assert "spec.sparkConf: spark.master" in said.get("message", gitops.bench.condition(NAME, "Stalled")["message"])
    assert status["health"]["status"] == "Degraded"
    gitops.repository.write("consumer.yaml", gitops.manifest())
    gitops.until("Healthy")
    assert gitops.attempt() == driver


def test_a_typo_is_refused_at_the_sync(gitops: GitOps) -> None:
    wrong = gitops.manifest()
    wrong["spec"]["batch"]["intervalSecond"] = 2
    gitops.repository.write("consumer.yaml", wrong)
    gitops.bench.until("the sync fails", lambda: gitops.status().get("operationState", {}).get("phase") in {"Failed", "Error"} or _refused(gitops))
    assert "intervalSecond" in json.dumps(gitops.status())
    gitops.repository.write("consumer.yaml", gitops.manifest())
    gitops.until("Healthy")


def _refused(gitops: GitOps) -> bool:
    return "intervalSecond" in json.dumps(gitops.status().get("conditions", []))


def test_an_autoscalers_number_of_executors_is_left_alone(gitops: GitOps) -> None:
    gitops.bench.kubectl("scale", "kinesisconsumer", NAME, "--replicas=2")
    gitops.bench.until("two executors", lambda: gitops.bench.resource(NAME)["status"]["replicas"] == 2)
    gitops.repository.write("consumer.yaml", gitops.manifest(restart={"backoffSeconds": 11}))
    gitops.bench.until("the sync", lambda: gitops.bench.resource(NAME)["spec"]["restart"]["backoffSeconds"] == 11)
    gitops.until("Healthy")
    assert gitops.bench.resource(NAME)["spec"]["replicas"] == 2


def test_the_actions_drain_resume_and_restart_and_the_application_stays_synced(gitops: GitOps) -> None:
    driver = gitops.attempt()
    gitops.act("restart")
    gitops.bench.until("the next driver", lambda: gitops.attempt() == driver + 1)
    gitops.until("Healthy")
    gitops.act("drain")
    gitops.until("Suspended")
    assert not gitops.bench.get("pods", f"--selector=sluice.dev/consumer={NAME},sluice.dev/role=driver")
    gitops.act("resume")
    gitops.until("Healthy")
    assert gitops.attempt() == driver + 2


def test_a_paused_consumer_is_suspended_and_runs_on(gitops: GitOps) -> None:
    driver = gitops.attempt()
    gitops.act("pause")
    gitops.until("Suspended")
    assert is_ready(gitops.bench.resource(NAME))
    gitops.act("resume")
    gitops.until("Healthy")
    assert gitops.attempt() == driver


def test_prune_drains_deletes_and_keeps_the_table(gitops: GitOps) -> None:
    gitops.repository.remove("consumer.yaml")
    gitops.bench.until("the consumer is gone", lambda: NAME not in {r["metadata"]["name"] for r in gitops.bench.get("kinesisconsumers")})
    assert not gitops.bench.get("pods", f"--selector=sluice.dev/consumer={NAME},sluice.dev/role=driver")
    assert f"sluice_{NAMESPACE}_{NAME}" in gitops.bench.aws.dynamodb.list_tables()["TableNames"]

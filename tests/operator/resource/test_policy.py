"""What an operator refuses though its fields are well formed; and that a consumer which runs with it goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pod_security import BASELINE, breaches
from simulated_cluster import MIGRATING, SPEC, SimulatedCluster, ready

from sluice_operator.resource import policy as bounds
from sluice_operator.resource.fields import parse
from sluice_operator.resource.policy import Policy
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import read

Json = dict[str, Any]

TENANTS, OWN = Policy(), Policy(own=("default", "sluice"))
LISTED = Policy(service_accounts=("orders", "readers"))


def template(role: str = "driver", **spec: Any) -> Json:
    return {role: {"podTemplate": {"spec": spec}}}


def security(role: str = "executor", kind: str = "containers", **asked: Any) -> Json:
    return template(role, **{kind: [{"name": role, "securityContext": asked}]})


PRIVILEGED: dict[str, tuple[Json, str]] = {
    "a folder of the node": (template(volumes=[{"name": "root", "hostPath": {"path": "/"}}]), "spec.driver.podTemplate: spec.volumes.root: hostPath"),
    "a folder of the node, shared": (
        {"pipeline": {**SPEC["pipeline"], "volumes": [{"name": "root", "hostPath": {"path": "/"}}]}},
        "spec.pipeline.volumes.root: hostPath mounts a folder of the node",
    ),
    "processes of the node": (
        template("executor", hostPID=True),
        "spec.executor.podTemplate: spec.hostPID: shares a namespace of the node, which is not allowed for a pipeline",
    ),
    "the network of the node": (template(hostNetwork=True), "spec.driver.podTemplate: spec.hostNetwork"),
    "memory of the node": (template(hostIPC=True), "spec.driver.podTemplate: spec.hostIPC"),
    "a node": (template(nodeName="n-1"), "spec.nodeName: bypasses the scheduler; use nodeSelector or affinity"),
    "a class of the cluster": (template(priorityClassName="system-node-critical"), "spec.priorityClassName"),
    "root, all containers": (template(securityContext={"runAsUser": 0}), "spec.driver.podTemplate: spec.securityContext.runAsUser: 0"),
    "root, a container": (security(runAsUser=0), "spec.executor.podTemplate: spec.containers.executor.securityContext.runAsUser: 0"),
    "maybe root": (security(runAsNonRoot=False), "securityContext.runAsNonRoot: False"),
    "privileged": (security(privileged=True), "spec.containers.executor.securityContext.privileged: True"),
    "privileged first": (security(kind="initContainers", privileged=True), "spec.initContainers.executor.securityContext.privileged: True"),
    "escalation": (security("driver", allowPrivilegeEscalation=True), "securityContext.allowPrivilegeEscalation: True"),
    "escalation first": (security("driver", "initContainers", allowPrivilegeEscalation=True), "spec.initContainers.driver.securityContext"),
    "capabilities": (security(kind="initContainers", capabilities={"add": ["SYS_ADMIN"]}), "securityContext.capabilities.add: SYS_ADMIN"),
    "every system call": (security(seccompProfile={"type": "Unconfined"}), "securityContext.seccompProfile"),
    "the whole of /proc": (security(procMount="Unmasked"), "securityContext.procMount: Unmasked"),
    "a process of a Windows node": (security(windowsOptions={"hostProcess": True}), "securityContext.windowsOptions.hostProcess"),
    "a port of the node": (
        template(initContainers=[{"name": "proxy", "ports": [{"hostPort": 80}]}]),
        "spec.initContainers.proxy.ports.hostPort: 80 is a port of the node",
    ),
    "a folder of the node, by Spark": (
        {"sparkConf": {"spark.kubernetes.executor.volumes.hostPath.root.options.path": "/"}},
        "spec.sparkConf: spark.kubernetes.executor.volumes.hostPath.root.options.path would mount a folder of the node",
    ),
}
HARMLESS: dict[str, Json] = {
    "nothing": {},
    "what is asked for by name": template("executor", hostPID=False, hostNetwork=None, nodeName="", priorityClassName="batch"),
    "a user": security(runAsUser=1000, privileged=False, capabilities={"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}, procMount="Default"),
    "volumes": template(volumes=[{"name": "code", "configMap": {"name": "code"}}, {"name": "x", "emptyDir": {}}]),
    "a sidecar": template(initContainers=[{"name": "proxy", "restartPolicy": "Always", "ports": [{"containerPort": 80}]}]),
    "volumes that Spark claims": {"sparkConf": {"spark.kubernetes.executor.volumes.persistentVolumeClaim.a.options.claimName": "b"}},
    "nonsense": {"driver": {"podTemplate": {"spec": {"nodeSelector": 5, "initContainers": [{"ports": 7, "securityContext": []}]}}}},
    "a driver that has enough": {"driver": {"resources": {"limits": {"memory": "1Gi"}}}},
    "a driver that asks for little": {"driver": {"resources": {"requests": {"memory": "64Mi"}}}},
}
NEVER: dict[str, tuple[Json, str]] = {
    "a token for executors": (template("executor", automountServiceAccountToken=True), "spec.automountServiceAccountToken: is set by the operator"),
    "no token for the driver": (template("driver", automountServiceAccountToken=False), "spec.driver.podTemplate: spec.automountServiceAccountToken"),
    "volumes of a pod that Spark does not make": (
        {"sparkConf": {"spark.kubernetes.driver.volumes.emptyDir.a.mount.path": "/a"}},
        "spec.sparkConf: spark.kubernetes.driver.volumes.emptyDir.a.mount.path has no effect",
    ),
    "a driver that cannot run, by its template": (
        template(containers=[{"name": "driver", "resources": {"limits": {"memory": "9"}}}]),
        "spec.driver.podTemplate: spec.containers.driver.resources: memory: 9 is too little for a driver",
    ),
    "a driver of a size that is none": (
        template(containers=[{"name": "driver", "resources": {"limits": {"memory": ["lots"]}}}]),
        "spec.driver.podTemplate: spec.containers.driver.resources: ['lots'] is not a valid quantity",
    ),
    "a driver that cannot run": (
        {"driver": {"resources": {"limits": {"memory": "512Mi"}}}},
        "spec.driver.resources: memory: 512Mi is too little for a driver; Spark needs at least",
    ),
}


SHAPE: Json = {"spec": {"containers": [{"name": "driver"}], "initContainers": [{"name": "first"}]}}
NEVER_SAID = {("containers", "ports")}  # the operator's own, whoever allows privileges
CONTROLS: dict[str, Json] = {
    str(breach): {"driver": {"podTemplate": breach.into(SHAPE)}}
    for breach in breaches(BASELINE)
    if "ephemeralContainers" not in breach.path and breach.path[1:4:2] not in NEVER_SAID
}


@pytest.mark.parametrize("change", CONTROLS.values(), ids=CONTROLS)
def test_every_control_of_the_level_baseline_is_held(change: Json) -> None:
    assert said(change).endswith("(Helm: policy.privilegedPods)")
    assert said(change, Policy(privileged_pods=True)) == ""


SAFE = [
    security(seLinuxOptions={"type": "container_t", "level": "s0:c1,c2"}),
    security(appArmorProfile={"type": "Localhost", "localhostProfile": "x"}),
    security(sysctls=[{"name": "net.ipv4.tcp_syncookies", "value": "1"}]),
    template(initContainers=[{"name": "i", "livenessProbe": {"httpGet": {"port": 80}}}]),
]


@pytest.mark.parametrize("change", SAFE)
def test_what_the_level_baseline_allows_is_accepted(change: Json) -> None:
    assert said(change) == ""


def said(change: Json, policy: Policy = TENANTS, namespace: str = "default") -> str:
    return bounds.problem(parse({**SPEC, **change}), namespace, policy) or ""


@pytest.mark.parametrize(("change", "told"), PRIVILEGED.values(), ids=PRIVILEGED)
def test_a_privilege_is_refused_by_its_place_unless_the_administrator_allows_it(change: Json, told: str) -> None:
    assert told in said(change)
    assert said(change).endswith("the operator's administrator may allow it (Helm: policy.privilegedPods)")
    assert said(change, Policy(privileged_pods=True)) == ""


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_what_stays_in_bounds_is_accepted(change: Json) -> None:
    assert said(change, OWN) == ""


@pytest.mark.parametrize("policy", [TENANTS, Policy(privileged_pods=True)])
@pytest.mark.parametrize(("change", "told"), NEVER.values(), ids=NEVER)
def test_what_cannot_work_is_refused_whoever_is_trusted(change: Json, told: str, policy: Policy) -> None:
    assert told in said(change, policy)


DRIVERS, EXECUTORS = {"serviceAccountName": "sluice"}, {"executor": {"serviceAccountName": "sluice"}}


@pytest.mark.parametrize(("change", "field"), [(DRIVERS, "spec.serviceAccountName"), (EXECUTORS, "spec.executor.serviceAccountName")])
def test_the_operators_own_account_is_nobody_elses(change: Json, field: str) -> None:
    assert said(change, OWN).startswith(f"{field}: sluice is the operator's own account")
    assert said(change, Policy(own=OWN.own, service_accounts=("sluice",))) != ""
    assert said(change, OWN, "elsewhere") == said(change) == ""


def test_only_listed_accounts_may_be_named() -> None:
    assert said({}, LISTED) == said({"serviceAccountName": "orders", "executor": {"serviceAccountName": "readers"}}, LISTED) == ""
    assert said({"serviceAccountName": "admin"}, LISTED).startswith("spec.serviceAccountName: admin is not among the accounts")
    assert said({"executor": {"serviceAccountName": "admin"}}, LISTED).endswith("(Helm: policy.serviceAccounts): orders, readers")


def test_several_faults_are_all_named() -> None:
    both = said({"serviceAccountName": "admin", **template(hostPID=True)}, LISTED)
    assert "spec.serviceAccountName" in both
    assert "spec.hostPID" in both


def test_the_policy_comes_from_the_environment() -> None:
    assert read({}).policy == read({"SLUICE_PRIVILEGED_PODS": "no", "SLUICE_SERVICE_ACCOUNTS": " ,", "SLUICE_ACCOUNT": "sluice"}).policy == TENANTS
    told = {"SLUICE_PRIVILEGED_PODS": "true", "SLUICE_SERVICE_ACCOUNTS": "a, b", "SLUICE_ACCOUNT": "system/sluice", "SLUICE_EXECUTOR_ACCOUNT": "idle"}
    assert read(told).policy == Policy(privileged_pods=True, service_accounts=("a", "b"), own=("system", "sluice"))
    assert read(told).executor_account == "idle"


BEFORE: dict[str, Json] = {name: change for name, (change, _) in (PRIVILEGED | NEVER).items()} | {"an account": {"serviceAccountName": "admin"}}


class Upgraded(SimulatedCluster):
    policy = Policy(privileged_pods=True)

    def equipped(self, context: ReconcileContext) -> ReconcileContext:
        return replace(context, settings=replace(context.settings, policy=self.policy))


@pytest.mark.parametrize("name", BEFORE)
def test_what_ran_before_an_upgrade_goes_on_and_comes_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, spec = Upgraded(), {**MIGRATING, **BEFORE[name]}
    with monkeypatch.context() as before:
        before.setattr(bounds, "problem", lambda *_: None)
        world.apply(spec)
        assert world.run(120, until=lambda: ready(world))
    (driver,) = world.drivers()
    world.policy = LISTED
    world.operator.restart()
    world.run(60)
    assert [pod["metadata"]["uid"] for pod in world.drivers()] == [driver["metadata"]["uid"]]
    assert world.condition("SpecValid")["status"] == "False"
    assert world.condition("SpecValid")["message"].startswith("spec.")
    assert world.condition("Ready")["status"] == "True"
    world.delete_pod(driver["metadata"]["name"])
    assert world.run(120, until=lambda: world.status["driver"]["attempt"] == 2 and ready(world))
    (again,) = world.drivers()
    for pod in (driver, again):
        pod["spec"]["containers"][0].pop("env")  # an attempt that follows one is told that there is a table
        pod["spec"].pop("nodeName")
    assert {key: again["spec"].get(key) for key in driver["spec"]} == driver["spec"]

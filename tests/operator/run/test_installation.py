"""`helm test`: an installation works if KinesisConsumers are served and somebody renews the Lease."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import chart
import pytest
from chart import NAMESPACE, RELEASE, one, rendered
from http_fake import HttpFake
from simulated_cluster import BEGIN

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.client import ApiServer
from sluice_operator.cluster.port import Cluster, Rejected
from sluice_operator.election.candidate import Candidate, ElectionTimings, LeaseRef
from sluice_operator.run.installation import WaitTimings, results
from sluice_operator.settings import Settings, read

LEASE = (NAMESPACE, RELEASE)


@dataclass
class Time:
    """A clock that goes on while somebody waits; `meanwhile` is what others do then."""

    now: float = 0.0
    others: list[Candidate] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for candidate in self.others:
            candidate.acquire_or_renew()

    def clock(self) -> float:
        return self.now


def said(cluster: Cluster, time: Time, settings: Settings) -> list[str]:
    api = ApiServer(HttpFake(cluster))  # type: ignore[arg-type]  # it stands where ApiClient stands
    return [str(result) for result in results(api, settings, WaitTimings(time.sleep, time.clock))]


def replica(cluster: Cluster, time: Time, name: str = "a") -> Candidate:
    return Candidate(cluster, LeaseRef(*LEASE, identity=name), ElectionTimings(), time.clock)


def test_a_leader_that_renews_is_found() -> None:
    cluster, time = MemoryCluster(lambda: BEGIN), Time()
    time.others.append(replica(cluster, time))
    consumers, lease = said(cluster, time, Settings(lease=LEASE))
    assert consumers == "ok      KinesisConsumers in all namespaces: 0 listed"
    assert lease == f"ok      the Lease {NAMESPACE}/{RELEASE}: a renews it"


def test_a_holder_that_does_not_renew_is_no_leader() -> None:
    """Its name stays in the Lease when it dies."""
    cluster, time = MemoryCluster(lambda: BEGIN), Time()
    dead = replica(cluster, time)
    while not dead.leads():
        time.now += dead.acquire_or_renew()
    _, lease = said(cluster, time, Settings(lease=LEASE))
    assert lease.startswith("FAILED")
    assert "a holds it, and did not renew it for 60 s" in lease
    assert "Nobody leads" in lease


def test_without_a_lease_nobody_leads() -> None:
    _, lease = said(MemoryCluster(lambda: BEGIN), Time(), Settings(lease=LEASE))
    assert lease.startswith("FAILED")
    assert "nobody holds it" in lease


class Closed(MemoryCluster):
    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        raise Rejected("Forbidden", f"{kind} {namespace}/{name}")

    def all(self, kind: str) -> Any:
        raise Rejected("Forbidden", kind)


def test_missing_rights_are_named() -> None:
    found = said(Closed(lambda: BEGIN), Time(), Settings(lease=LEASE, namespaces=("a", "b")))
    assert [line.split()[0] for line in found] == ["FAILED"] * 3
    assert "KinesisConsumers in b: the API server does not list them: Forbidden" in found[1]
    assert "rbac.create" in found[1]


@pytest.mark.built
@pytest.mark.parametrize("values", [{}, {"watchNamespaces": ["a", "b"], "class": "blue"}])
def test_the_pod_of_helm_test_asks_as_the_operator(values: dict[str, Any]) -> None:
    objects = rendered(**values)
    deployment, test = one("Deployment", objects), one("Pod", objects)
    pod = deployment["spec"]["template"]["spec"]
    operator, (container,) = chart.operator(objects), test["spec"]["containers"]
    assert container["command"] == ["python", "-m", "sluice_operator.run.installation"]
    assert (container["image"], test["spec"]["serviceAccountName"]) == (operator["image"], pod["serviceAccountName"])
    assert read(chart.environment(operator)) == read(chart.environment(container))
    assert (container["securityContext"], test["spec"]["securityContext"]) == (operator["securityContext"], pod["securityContext"])
    assert not deployment["spec"]["selector"]["matchLabels"].items() <= test["metadata"]["labels"].items()
    assert test["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert test["spec"]["restartPolicy"] == "Never"

"""By what a cluster is known in the checkpoint tables of its consumers."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_cluster import BEGIN, SPEC, SimulatedCluster

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.apply.execute import SYSTEM, identities
from sluice_operator.cluster.port import ApiError, Rejected, Unavailable

Json = dict[str, Any]


class Answering(MemoryCluster):
    error: ApiError | None = None

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        if self.error is not None and (kind, namespace) == ("Namespace", SYSTEM):
            raise self.error
        return super().get(kind, namespace, name)


@pytest.fixture
def cluster() -> Answering:
    found = Answering(lambda: BEGIN)
    found.create({"kind": "Namespace", "metadata": {"namespace": SYSTEM, "name": ""}})
    return found


def uid(cluster: MemoryCluster) -> str:
    found = cluster.get("Namespace", SYSTEM, "")
    assert found is not None
    return str(found["metadata"]["uid"])


@pytest.mark.parametrize("name", ["", "prod-eu"])
def test_a_cluster_is_known_by_its_name_first_and_by_its_uid(cluster: Answering, name: str) -> None:
    """A name that is given later changes no owner: drivers know both."""
    assert identities(cluster, name) == (*([name] if name else []), uid(cluster))


@pytest.mark.parametrize("name", ["", "prod-eu"])
def test_without_the_right_to_read_it_only_the_name_counts(cluster: Answering, name: str) -> None:
    """`rbac.clusterWide: false`: no driver waits for that right."""
    cluster.error = Rejected("Forbidden", "cannot get namespaces")
    assert identities(cluster, name) == ((name,) if name else ())


def test_no_answer_makes_no_driver_without_its_cluster(cluster: Answering) -> None:
    """It would leave the cluster open by chance. The pass is repeated."""
    cluster.error = Unavailable("503")
    with pytest.raises(Unavailable):
        identities(cluster, "")


def test_a_driver_gets_owner_and_cluster_from_the_cluster_that_it_is_made_in() -> None:
    world = SimulatedCluster()
    made = world.memory.create({"kind": "Namespace", "metadata": {"namespace": SYSTEM, "name": ""}})
    world.apply(SPEC)
    assert world.run(30, until=lambda: bool(world.drivers()))
    (driver,) = world.drivers()
    given = {item["name"]: item.get("value") for item in driver["spec"]["containers"][0]["env"]}
    assert (given["SLUICE_OWNER"], given["SLUICE_CLUSTER"]) == ("default/orders", made["metadata"]["uid"])

"""Who reaches whom with the chart's NetworkPolicies, by the labels and ports that pods really get."""

from __future__ import annotations

from typing import Any

import pytest
from chart import NAMESPACE, of, one, refused, rendered
from network import Place, Port, allowed
from simulated_cluster import SPEC

from sluice_operator.apply.jobs import migration_job
from sluice_operator.apply.manifests import driver_pod, executor_template
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse
from sluice_operator.settings import Settings
from sluice_operator.state.objects import Resource
from sluice_operator.state.status import DriverStatus, MigrationStatus

pytestmark = pytest.mark.built

Json = dict[str, Any]

METRICS = 9404
SPARK, HTTPS, DNS, POSTGRES = Port(40001), Port(443), Port(53, "UDP"), Port(5432)  # Spark takes any free port
MONITORING = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
API = Port(6443)
AWS, DATABASE, NODE = Place(address="52.94.0.1"), Place(address="192.168.7.7"), Place(address="169.254.169.254")
AGENT, SERVER = Place(address="169.254.170.23"), Place(address="10.96.0.1")
PROMETHEUS, STRANGER = Place("monitoring", {"app": "prometheus"}), Place("a", {"app": "web"})
CLOSED: Json = {"ingress": True, "egress": True}


def pods(namespace: str, name: str) -> tuple[Place, Place, Place]:
    resource = Resource(namespace=namespace, name=name, uid="u", version="7", generation=3)
    raw = {**SPEC, "migrateFrom": {"table": "old-table"}}
    wanted, settings = DesiredSpec(parse(raw), raw), Settings(driver_metrics=METRICS)
    job = migration_job(resource, wanted, MigrationStatus(job=f"{name}-migrate-1", hash="h", spec_hash="s", tries=1), settings)
    bodies = (
        driver_pod(resource, wanted, DriverStatus(attempt=1, pod=f"{name}-driver-1"), settings),
        executor_template(resource, wanted, settings),
        job["spec"]["template"],
    )
    return tuple(Place(namespace, body["metadata"]["labels"], ports=named(body)) for body in bodies)  # type: ignore[return-value]  # there are three


def named(body: Json) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for container in body["spec"]["containers"] for port in container.get("ports") or ()}


DRIVER, EXECUTOR, MIGRATION = pods("a", "orders")
ELSEWHERE, _, _ = pods("b", "orders")


def policies(**consumers: Any) -> list[Json]:
    network = {"enabled": True, "metricsFrom": [MONITORING], "consumers": consumers}
    asked = rendered(consumer={"namespaces": ["a", "b"]}, networkPolicy=network, driverMetrics={"port": METRICS})
    return of("NetworkPolicy", asked)


INSIDE = [(DRIVER, EXECUTOR), (EXECUTOR, DRIVER), (EXECUTOR, EXECUTOR)]


@pytest.mark.parametrize("consumers", [CLOSED, {"ingress": True}, {"egress": True}])
@pytest.mark.parametrize(("source", "target"), INSIDE)
def test_spark_works_within_every_policy(consumers: Json, source: Place, target: Place) -> None:
    """RPC, blocks and shuffles go both ways, on ports that nobody knows before."""
    assert allowed(policies(**consumers), source, target, SPARK)


@pytest.mark.parametrize("port", [SPARK, Port(METRICS), Port(7078)])
@pytest.mark.parametrize("source", [STRANGER, ELSEWHERE, MIGRATION, AWS, Place(NAMESPACE, {"app.kubernetes.io/name": "sluice"})])
@pytest.mark.parametrize("target", [DRIVER, EXECUTOR])
def test_nobody_else_reaches_drivers_and_executors(source: Place, target: Place, port: Port) -> None:
    assert allowed([], source, target, port)
    assert not allowed(policies(ingress=True), source, target, port)


def test_metrics_of_drivers_are_read_from_where_the_values_say() -> None:
    closed = policies(**CLOSED)
    assert allowed(closed, PROMETHEUS, DRIVER, Port(METRICS))
    assert not allowed(closed, PROMETHEUS, DRIVER, SPARK)
    assert not allowed(closed, PROMETHEUS, EXECUTOR, Port(METRICS))
    assert not allowed(closed, STRANGER, DRIVER, Port(METRICS))


def test_without_a_port_for_metrics_nothing_is_opened() -> None:
    asked = rendered(consumer={"namespaces": ["a"]}, networkPolicy={"consumers": CLOSED})
    assert not allowed(of("NetworkPolicy", asked), PROMETHEUS, DRIVER, Port(METRICS))


@pytest.mark.parametrize("source", [DRIVER, EXECUTOR, MIGRATION])
def test_everybody_finds_aws(source: Place) -> None:
    """Names, endpoints, and the agent that hands out credentials; not the metadata of nodes, whose role would come along."""
    closed = policies(**CLOSED)
    assert all(allowed(closed, source, *to) for to in ((AWS, HTTPS), (AWS, DNS), (AGENT, Port(80))))
    assert not allowed(closed, source, NODE, Port(80))
    assert not allowed(closed, source, DATABASE, POSTGRES)
    assert not allowed(closed, source, STRANGER, Port(8080))


def test_only_the_driver_speaks_to_the_api_server() -> None:
    """Where it has a port of its own; where it shares AWS's, its addresses have to be named."""
    closed = policies(**CLOSED)
    assert allowed(closed, DRIVER, SERVER, API)
    assert not any(allowed(closed, source, SERVER, API) for source in (EXECUTOR, MIGRATION))
    assert allowed(closed, EXECUTOR, SERVER, HTTPS)
    named_too = policies(**CLOSED, **{"except": ["10.96.0.1/32", "fd00::1/128"]})
    assert allowed(named_too, DRIVER, SERVER, HTTPS)
    assert not allowed(named_too, EXECUTOR, SERVER, HTTPS)
    assert all(allowed(named_too, source, AWS, HTTPS) for source in (DRIVER, EXECUTOR, MIGRATION))


def test_what_pipelines_write_to_is_opened_by_values() -> None:
    assert allowed(policies(**CLOSED, ports=[443, POSTGRES.number]), EXECUTOR, DATABASE, POSTGRES)
    rule = {"to": [{"ipBlock": {"cidr": "192.168.7.0/24"}}], "ports": [{"port": POSTGRES.number, "protocol": "TCP"}]}
    opened = policies(**CLOSED, rules=[rule])
    assert allowed(opened, EXECUTOR, DATABASE, POSTGRES)
    assert not allowed(opened, EXECUTOR, AWS, POSTGRES)


def test_one_direction_leaves_the_other_alone() -> None:
    """Ingress may be closed by those who do not know what pipelines reach."""
    assert allowed(policies(ingress=True), EXECUTOR, DATABASE, POSTGRES)
    assert allowed(policies(egress=True), STRANGER, DRIVER, SPARK)


def test_policies_stand_in_every_namespace_with_consumers() -> None:
    assert {p["metadata"]["namespace"] for p in policies(ingress=True)} == {NAMESPACE, "a", "b"}
    watched = rendered(watchNamespaces=["c"], networkPolicy={"consumers": {"ingress": True}})
    assert {p["metadata"]["namespace"] for p in of("NetworkPolicy", watched)} == {"c"}
    assert "consumer.namespaces" in refused(networkPolicy={"consumers": {"egress": True}})


def test_none_is_made_unless_it_is_asked_for() -> None:
    """What pipelines reach, and who scrapes, the chart does not know."""
    assert of("NetworkPolicy", rendered(consumer={"namespaces": ["a"]})) == []
    asked = rendered(networkPolicy={"enabled": True, "metricsFrom": [MONITORING]})
    policy = one("NetworkPolicy", asked)
    assert policy["metadata"]["namespace"] == NAMESPACE
    assert policy["spec"]["podSelector"] == one("Deployment", asked)["spec"]["selector"]
    assert policy["spec"]["ingress"] == [{"ports": [{"port": "http"}], "from": [MONITORING]}]
    assert {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]} == {53, 443, 6443}

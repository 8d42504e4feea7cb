"""Who scrapes the operator and drivers, if the chart is asked to."""

from __future__ import annotations

from typing import Any

import pytest
from chart import of, one, refused, rendered

pytestmark = pytest.mark.built

Json = dict[str, Any]


def test_a_service_monitor_brings_the_service_that_it_selects() -> None:
    """Whose pods are the operator's, also those that are not ready; beside a PodMonitor every series would come twice."""
    assert of("Service", rendered()) == of("ServiceMonitor", rendered()) == []
    objects = rendered(serviceMonitor={"enabled": True})
    service, monitor, deployment = (one(kind, objects) for kind in ("Service", "ServiceMonitor", "Deployment"))
    template = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert service["spec"]["publishNotReadyAddresses"] is True
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in {each["name"] for each in template["spec"]["containers"][0]["ports"]}
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["path"]) == (port["name"], "/metrics")
    assert "podMonitor and serviceMonitor" in refused(serviceMonitor={"enabled": True}, podMonitor={"enabled": True})


def test_a_pod_monitor_selects_the_operators_pods_if_it_is_asked_for() -> None:
    assert of("PodMonitor", rendered()) == []
    asked = rendered(podMonitor={"enabled": True})
    assert one("PodMonitor", asked)["spec"]["selector"] == one("Deployment", asked)["spec"]["selector"]


def test_series_keep_the_namespace_of_their_consumer() -> None:
    for kind in ("podMonitor", "serviceMonitor"):
        (monitor,) = (body for body in rendered(**{kind: {"enabled": True}}) if body["kind"].endswith("Monitor"))
        (endpoint,) = monitor["spec"].get("podMetricsEndpoints") or monitor["spec"]["endpoints"]
        assert endpoint["honorLabels"] is True
    drivers = one("PodMonitor", rendered(driverMetrics={"port": 9404, "podMonitor": {"enabled": True}}))
    assert "honorLabels" not in drivers["spec"]["podMetricsEndpoints"][0]


@pytest.mark.parametrize("place", ["podMonitor", "serviceMonitor", "driverMetrics.podMonitor"])
def test_a_scrape_is_what_its_values_say(place: str) -> None:
    relabelings = [{"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}]
    said = {"interval": "15s", "scrapeTimeout": "10s", "relabelings": relabelings, "metricRelabelings": relabelings}
    monitor, endpoint = asked(place, {"enabled": True, "labels": {"release": "p"}, "annotations": {"a": "b"}, **said})
    assert endpoint.items() >= {"path": "/metrics", **said}.items()
    assert monitor["metadata"]["labels"]["release"] == "p"
    assert monitor["metadata"]["annotations"] == {"a": "b"}
    assert not {"scrapeTimeout", "relabelings", "metricRelabelings"} & set(asked(place, {"enabled": True})[1])


def asked(place: str, monitor: Json) -> tuple[Json, Json]:
    values = {"driverMetrics": {"port": 9404, "podMonitor": monitor}} if "." in place else {place: monitor}
    (found,) = (body for body in rendered(**values) if body["kind"].endswith("Monitor"))
    (endpoint,) = found["spec"].get("podMetricsEndpoints") or found["spec"]["endpoints"]
    return found, endpoint

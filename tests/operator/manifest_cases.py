"""A resource and its driver, and the manifests that are made of them."""

from __future__ import annotations

import json
from typing import Any

from simulated_cluster import SPEC

from sluice_operator.apply import manifests
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse
from sluice_operator.settings import Settings
from sluice_operator.state.objects import Resource
from sluice_operator.state.status import DriverStatus

Json = dict[str, Any]
RESOURCE = Resource(namespace="default", name="orders", uid="u-1", version="7", generation=3)
DRIVER = DriverStatus(attempt=3, pod="orders-driver-3", spec_hash="abc")
SETTINGS = Settings(image="sluice-consumer:1")
TEMPLATE: Json = {
    "metadata": {"labels": {"team": "x"}, "annotations": {"a": "b"}},
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "securityContext": {"fsGroup": 7},
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "initContainers": [{"name": "proxy", "restartPolicy": "Always"}],
        "containers": [
            {
                "name": "driver",
                "env": [{"name": "AWS_PROFILE", "value": "x"}],
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                "resources": {"limits": {"memory": "3Gi"}},
            },
        ],
    },
}


def wanted(**change: Any) -> DesiredSpec:
    raw = {**SPEC, **change}
    return DesiredSpec(parse(raw), raw)


def driver_pod(**change: Any) -> Json:
    return manifests.driver_pod(RESOURCE, wanted(**change), DRIVER, SETTINGS)


def config(pod: Json) -> Json:
    loaded: Json = json.loads(pod["metadata"]["annotations"]["sluice.dev/config"])
    return loaded

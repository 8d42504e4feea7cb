"""Whether an object is what Kubernetes takes, by Kubernetes' own schemas, strictly: a field that the schema does not have is a mistake.

The schemas of every version come with the package kubernetes-validate, so neither a program nor a host is needed (those of kubeconform come from a
host). Those of the Prometheus operator's kinds come out of its CRDs.
"""

from __future__ import annotations

import functools
from typing import Any

import jsonschema
import kubernetes_validate

from sluice_lab.machine import prometheus

Json = dict[str, Any]

OLDEST, NEWEST = "1.29", kubernetes_validate.latest_version().rpartition(".")[0]
MONITORING = "monitoring.coreos.com/v1"


def mistakes(body: Json, version: str) -> str:
    """The first mistake; "" if there is none.

    Raises:
        SchemaNotFoundError: that version does not have the kind.
    """
    try:
        if body["apiVersion"] == MONITORING:
            jsonschema.validate(body, monitoring()[body["kind"]])
        else:
            kubernetes_validate.validate(body, version, strict=True)
    except jsonschema.ValidationError as error:
        return f"{body['kind']} {body['metadata']['name']}: {'.'.join(map(str, error.path))}: {error.message}"
    return ""


@functools.cache
def monitoring() -> dict[str, Json]:
    found: list[Any] = prometheus.operator_crds()
    return {crd["spec"]["names"]["kind"]: closed(crd["spec"]["versions"][-1]["schema"]["openAPIV3Schema"]) for crd in found}


def closed(schema: Json) -> Json:
    """A CRD's schema that refuses what it does not know, as the API server does with strict field validation."""
    found: Json = {key: _inner(key, value) for key, value in schema.items()}
    if "x-kubernetes-int-or-string" in schema:
        found.pop("type", None)
    if "(?i)" in schema.get("pattern", ""):
        del found["pattern"]  # Go's: Python has flags only at the start
    if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found["additionalProperties"] = False
    return found


def _inner(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: closed(each) for name, each in value.items()}
    return closed(value) if key in {"items", "additionalProperties"} and isinstance(value, dict) else value

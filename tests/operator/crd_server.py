"""The CRD on a local API server of a test."""

from __future__ import annotations

import urllib.error
from collections.abc import Callable
from typing import Any

import yaml
from patience import PATIENCE

from sluice_lab import places
from sluice_lab.machine import processes

Json = dict[str, Any]

CRDS = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONSUMERS = "apis/sluice.dev/v1alpha1/namespaces/default/kinesisconsumers"
POOLS = "apis/sluice.dev/v1alpha1/namespaces/default/kinesisconsumerpools"


def document(kind: str = "kinesisconsumers") -> Json:
    found: Json = yaml.safe_load((places.REPO / "crds" / f"{kind}.sluice.dev.yaml").read_text())
    return found


def install(call: Callable[..., Json]) -> None:
    """Make the CRDs, and wait until their resources are served. `call`: of an administrator, (method, path, body)."""
    call("POST", CRDS, document())
    call("POST", CRDS, document("kinesisconsumerpools"))
    assert processes.poll(lambda: _served(call), PATIENCE)


def _served(call: Callable[..., Json]) -> bool:
    """A CRD takes a moment: 404, then 429, then its list."""
    try:
        return all("items" in call("GET", kind) for kind in (CONSUMERS, POOLS))
    except (urllib.error.HTTPError, AssertionError):
        return False

"""What kstatus computes from an object, ported from its specification (sigs.k8s.io/cli-utils, pkg/kstatus: generic rules and the Ready condition).

Flux, `kubectl wait` scripts and Crossplane read resources so. Rules in their order:

1. A deletion timestamp: Terminating.
2. An `observedGeneration` that is not the generation: InProgress.
3. The first condition that is Reconciling=True: InProgress; or Stalled=True: Failed.
4. Ready: True is Current, anything else is InProgress. No Ready condition: Current.
"""

from __future__ import annotations

from typing import Any

CURRENT, IN_PROGRESS, FAILED, TERMINATING = "Current", "InProgress", "Failed", "Terminating"
FIRST = {"Reconciling": IN_PROGRESS, "Stalled": FAILED}


def kstatus(body: dict[str, Any]) -> str:
    meta, status = body["metadata"], body.get("status") or {}
    if "deletionTimestamp" in meta:
        return TERMINATING
    if "observedGeneration" in status and status["observedGeneration"] != meta.get("generation"):
        return IN_PROGRESS
    conditions = status.get("conditions") or ()
    for condition in conditions:
        if condition["type"] in FIRST and condition["status"] == "True":
            return FIRST[condition["type"]]
    ready = next((condition["status"] for condition in conditions if condition["type"] == "Ready"), "True")
    return CURRENT if ready == "True" else IN_PROGRESS

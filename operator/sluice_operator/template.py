"""Laying the user's pod template under the pods we make.

The user decides where and with what a pod runs; what makes it ours (labels, account, restart policy, grace period,
the command) is not theirs, and a template that sets it is refused by name instead of being overruled in silence. Pure.
"""

from __future__ import annotations

from typing import Any

OURS = {"serviceAccountName", "serviceAccount", "restartPolicy", "terminationGracePeriodSeconds"}
OURS_IN_CONTAINER = {"image", "command", "args", "terminationMessagePath", "terminationMessagePolicy", "ports"}
OUR_KEYS = ("sluice.dev/", "app.kubernetes.io/managed-by", "argocd.argoproj.io/")
RESERVED_ENV = "SLUICE_"

Json = dict[str, Any]


def template_problem(template: Json, container: str) -> str | None:
    """Why the template cannot be used, naming the place in it; None if it can."""
    for key in template:
        if key not in {"metadata", "spec"}:
            return f"{key}: only metadata and spec are known here"
    shapes = (_metadata_problem, _pod_problem)
    return next((why for check in shapes if (why := check(template, container))), None)


def _metadata_problem(template: Json, _container: str) -> str | None:
    metadata = template.get("metadata", {})
    if not isinstance(metadata, dict):
        return "metadata: an object is wanted"
    for part, entries in metadata.items():
        if part not in {"labels", "annotations"} or not isinstance(entries, dict):
            return f"metadata.{part}: only objects labels and annotations are taken over"
        if taken := next((key for key in entries if key.startswith(OUR_KEYS)), None):
            return f"metadata.{part}.{taken}: belongs to the operator"
    return None


def _pod_problem(template: Json, container: str) -> str | None:
    spec = template.get("spec", {})
    if not isinstance(spec, dict):
        return "spec: an object is wanted"
    if taken := next((key for key in spec if key in OURS), None):
        return f"spec.{taken}: is set by the operator"
    containers = spec.get("containers") or []
    if not isinstance(containers, list):
        return "spec.containers: a list is wanted"
    for each in containers:
        name = each.get("name") if isinstance(each, dict) else None
        if name != container:
            return f"spec.containers: only '{container}' may stand here, not '{name}'; sidecars go into initContainers"
        if why := _container_problem(each):
            return f"spec.containers.{container}.{why}"
    return None


def _container_problem(container: Json) -> str | None:
    if taken := next((key for key in container if key in OURS_IN_CONTAINER), None):
        return f"{taken}: is set by the operator"
    names = (str(item.get("name", "")) for item in container.get("env") or [] if isinstance(item, dict))
    taken = next((name for name in names if name.startswith(RESERVED_ENV)), None)
    return f"env.{taken}: names starting with {RESERVED_ENV} belong to the operator" if taken else None


def lay_under(template: Json, pod: Json, container: str) -> Json:
    """A new pod (metadata, spec with one container): the template's, with `pod` laid over it. Lists are joined."""
    theirs: Json = next(iter(template.get("spec", {}).get("containers") or []), {})
    spec = _merge({**template.get("spec", {}), "containers": []}, {**pod["spec"], "containers": []})
    ours = next(item for item in pod["spec"]["containers"] if item["name"] == container)
    spec["containers"] = [_merge(theirs, ours) | _their_resources(theirs)]
    return {**pod, "metadata": _merge(template.get("metadata", {}), pod["metadata"]), "spec": spec}


def _their_resources(theirs: Json) -> Json:
    return {"resources": theirs["resources"]} if theirs.get("resources") else {}


def _merge(under: Any, over: Any) -> Any:
    if isinstance(under, dict) and isinstance(over, dict):
        return {key: _merge(under.get(key), over.get(key)) for key in [*under, *(k for k in over if k not in under)]}
    if isinstance(under, list) and isinstance(over, list):
        return [*over, *under]
    return under if over is None else over

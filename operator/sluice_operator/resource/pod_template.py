"""Merge the user's pod template with the pods that the operator creates.

The user decides where and with what a pod runs. Labels, account, restart policy, grace period and command are the operator's: a template
that sets one of them is refused by name, not overruled. Pure.
"""

from __future__ import annotations

from typing import Any

from sluice_operator.untrusted.values import objects

OURS = {"serviceAccountName", "serviceAccount", "restartPolicy", "terminationGracePeriodSeconds"}
OURS_IN_CONTAINER = {"image", "command", "args", "terminationMessagePath", "terminationMessagePolicy", "ports"}
OUR_KEYS = ("sluice.dev/", "app.kubernetes.io/managed-by", "argocd.argoproj.io/")
RESERVED_ENV = "SLUICE_"
LISTS_OF_POD = ("volumes", "initContainers", "containers", "ephemeralContainers", "imagePullSecrets", "tolerations")
LISTS_OF_CONTAINER = ("env", "envFrom", "volumeMounts", "volumeDevices")
OBJECTS_OF_POD = ("securityContext",)
OBJECTS_OF_CONTAINER = ("resources", "securityContext")
THEIRS = {"SLUICE_LOG_LEVEL"}  # may be set all the same
SCRATCH = {"sluice-tmp": "/tmp", "sluice-work": "/opt/sluice/work"}  # noqa: S108 - the pods' own
"""Volumes that the containers write to, by name, and their folders: the root file system is read-only."""

Json = dict[str, Any]


def template_problem(template: Json, container: str) -> str | None:
    """Why the template cannot be used, naming the field in it; None if it can."""
    for key in template:
        if key not in {"metadata", "spec"}:
            return f"{key}: only metadata and spec are allowed here"
    shapes = (_metadata_problem, _pod_problem)
    return next((why for check in shapes if (why := check(template, container))), None)


def _metadata_problem(template: Json, _container: str) -> str | None:
    metadata = template.get("metadata", {})
    if not isinstance(metadata, dict):
        return "metadata: must be an object"
    for field, entries in metadata.items():
        if field not in {"labels", "annotations"} or not isinstance(entries, dict):
            return f"metadata.{field}: only labels and annotations are allowed here"
        if taken := next((key for key in entries if key.startswith(OUR_KEYS)), None):
            return f"metadata.{field}.{taken}: belongs to the operator"
        if odd := next((key for key, value in entries.items() if not isinstance(value, str)), None):
            return f"metadata.{field}.{odd}: must be a text"
    return None


def _pod_problem(template: Json, container: str) -> str | None:
    spec = template.get("spec", {})
    if not isinstance(spec, dict):
        return "spec: must be an object"
    if taken := next((key for key in spec if key in OURS), None):
        return f"spec.{taken}: is set by the operator"
    if why := _list_problem(spec, LISTS_OF_POD) or _object_problem(spec, OBJECTS_OF_POD):
        return f"spec.{why}"
    for each in objects(spec, "containers"):
        if (name := each.get("name")) != container:
            return f"spec.containers: only '{container}' is allowed here, not '{str(name)[:63]}'; sidecars go into initContainers"
        if why := _container_problem(each):
            return f"spec.containers.{container}.{why}"
    return None


def _list_problem(where: Json, keys: tuple[str, ...]) -> str | None:
    """Why the first of these keys that is not a list of objects is refused. One that is absent or null is none."""
    for key in keys:
        items = where.get(key)
        if items is not None and not isinstance(items, list):
            return f"{key}: must be a list"
        if not all(isinstance(item, dict) for item in items or ()):
            return f"{key}: must be a list of objects"
    return None


def _object_problem(where: Json, keys: tuple[str, ...]) -> str | None:
    odd = next((key for key in keys if not isinstance(where.get(key), dict | None)), None)
    return f"{odd}: must be an object" if odd else None


def _container_problem(container: Json) -> str | None:
    if taken := next((key for key in container if key in OURS_IN_CONTAINER), None):
        return f"{taken}: is set by the operator"
    if why := _list_problem(container, LISTS_OF_CONTAINER) or _object_problem(container, OBJECTS_OF_CONTAINER):
        return why
    names = (str(item.get("name", "")) for item in objects(container, "env"))
    taken = next((name for name in names if name.startswith(RESERVED_ENV) and name not in THEIRS), None)
    return f"env.{taken}: names starting with {RESERVED_ENV} belong to the operator" if taken else None


def reserved_problem(env: list[Json]) -> str | None:
    """Why a variable is refused: its name is the operator's. None if all may be set."""
    return _container_problem({"env": env})


def with_shared(template: Json, container: str, shared: Json) -> Json:
    """The template with what all pods of a pipeline share (env, envFrom, volumeMounts, volumes): before its own, so that its own win."""
    volumes, parts = shared.get("volumes"), {key: value for key, value in shared.items() if key != "volumes"}
    spec = template.get("spec", {})
    if volumes:
        spec = {**spec, "volumes": [*volumes, *(spec.get("volumes") or [])]}
    if parts:
        theirs = their_container(template) or {"name": container}
        spec = {**spec, "containers": [{**theirs, **{key: [*value, *(theirs.get(key) or [])] for key, value in parts.items()}}]}
    return {**template, "spec": spec} if volumes or parts else template


def their_container(template: Json) -> Json:
    """What the template says of the one container; {} if nothing."""
    container: Json = next(iter(template.get("spec", {}).get("containers") or []), {})
    return container


def stated_resources(container: Json) -> Json:
    """The resources of a template's container; those that say nothing are none."""
    resources = container.get("resources")
    return {key: value for key, value in resources.items() if value} if isinstance(resources, dict) else {}


def lay_under(template: Json, pod: Json, container: str) -> Json:
    """A new pod (metadata, spec with one container): the template's, with `pod` laid over it. Lists are joined.

    Three things of the template win: resources, a root file system that may be written, and what it mounts itself in place of our scratch space.
    """
    under, theirs = template.get("spec", {}), their_container(template)
    ours = next(item for item in pod["spec"]["containers"] if item["name"] == container)
    ours = {**ours, "volumeMounts": _left(ours.get("volumeMounts") or [], theirs)}
    volumes = _needed(pod["spec"].get("volumes") or [], ours["volumeMounts"], under)
    spec = _merge({**under, "containers": []}, {**pod["spec"], "volumes": volumes, "containers": []})
    spec["containers"] = [_merge(theirs, ours) | _their_own(theirs, ours)]
    return {**pod, "metadata": _merge(template.get("metadata", {}), pod["metadata"]), "spec": spec}


def _left(mounts: list[Json], theirs: Json) -> list[Json]:
    """Our mounts but for scratch space where the template mounts something itself."""
    taken = {str(item.get("mountPath", "")).rstrip("/") for item in objects(theirs, "volumeMounts")}
    return [mount for mount in mounts if mount["name"] not in SCRATCH or mount["mountPath"] not in taken]


def _needed(volumes: list[Json], mounts: list[Json], under: Json) -> list[Json]:
    """Our volumes but for scratch space that is not mounted, or that the template defines itself (a size, a medium)."""
    mounted = {mount["name"] for mount in mounts}
    theirs = {str(item.get("name")) for item in objects(under, "volumes")}
    return [volume for volume in volumes if volume["name"] not in SCRATCH or (volume["name"] in mounted and volume["name"] not in theirs)]


def _their_own(theirs: Json, ours: Json) -> Json:
    resources = stated_resources(theirs)
    own: Json = {"resources": resources} if resources else {}
    security = theirs.get("securityContext")
    if isinstance(security, dict) and security.get("readOnlyRootFilesystem") is False:
        own["securityContext"] = _merge(security, {**ours["securityContext"], "readOnlyRootFilesystem": False})
    return own


def _merge(under: Any, over: Any) -> Any:
    if isinstance(under, dict) and isinstance(over, dict):
        return {key: _merge(under.get(key), over.get(key)) for key in [*under, *(k for k in over if k not in under)]}
    if isinstance(under, list) and isinstance(over, list):
        return [*over, *under]
    return under if over is None else over

"""Values that no field means, and specs as the CRD lets them through: what a stranger may write, for tests that take it all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from simulated_cluster import SPEC

from sluice_lab.generate import crd

Json = dict[str, Any]


def deep(levels: int) -> Json:
    found: Json = {}
    for _ in range(levels):
        found = {"a": found}
    return found


NUMBERS = [0, -1, 2**53, 2**63 - 1, -(2**63), 1e308, -0.0, 2.5]
TIMES = ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "2026-02-30T00:00:00Z", "now"]
AMOUNTS = ["1e9999999", "-1", "", "abc", "1Zi", "1e-9999999", "9" * 300, "NaN", "Infinity", "1e99", "0.0000001n", "9223372036854775808", ".5"]
TEXTS = ["", " ", "\n", "x" * 300, "\ud800", "\x00\x1b[2J", "\uff41\uff11", "true"]
ODD: list[Any] = [
    None,
    True,
    *NUMBERS,
    *TIMES,
    *AMOUNTS,
    *TEXTS,
    [],
    {},
    [None],
    [5],
    ["x"],
    [[]],
    [{}],
    {"": None},
    deep(100),
    deep(900),
    [deep(100)],
]
"""Each in the place of something else."""
KINDS: list[Any] = [None, True, 0, 2.5, "", "1e9999999", "x" * 300, "\ud800", [], {}, [5], [[]], [{}], {"": None}, deep(900)]
"""One of each kind."""

WORDS = [
    "annotations", "apiVersion", "conditions", "containerStatuses", "controller", "creationTimestamp", "deletionGracePeriodSeconds",
    "deletionTimestamp", "exitCode", "finalizers", "finishedAt", "generation", "holderIdentity", "initContainerStatuses", "kind", "labels",
    "leaseDurationSeconds", "leaseTransitions", "message", "metadata", "name", "namespace", "ownerReferences", "phase", "reason",
    "renewTime", "resourceVersion", "running", "spec", "startedAt", "state", "status", "terminated", "type", "uid", "waiting",
]  # fmt: skip


def anything(words: list[str] = WORDS) -> st.SearchStrategy[Any]:
    leaves = st.one_of(st.sampled_from(ODD), st.text(max_size=8), st.integers(), st.floats(), st.booleans(), st.none())
    names = st.one_of(st.sampled_from(words), st.text(max_size=4))
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=6), max_leaves=20)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def put(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    key, rest = path[0], path[1:]
    if isinstance(value, list):
        return [put(item, rest, other) if at == key else item for at, item in enumerate(value)]
    return {**value, key: put(value[key], rest, other)}


def specs() -> st.SearchStrategy[Json]:
    schema = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return _drawn(schema, "spec").map(lambda drawn: {**SPEC, **drawn})


def _drawn(node: Json, name: str) -> st.SearchStrategy[Any]:
    if node.get("x-kubernetes-int-or-string"):
        return st.one_of(st.from_regex(node["pattern"], fullmatch=True), st.integers(0, 2**63 - 1), st.sampled_from(["1e99", "9" * 64]))
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if node["type"] == "object":
        return _object(node)
    if node["type"] == "array":
        return st.lists(_drawn(node["items"], name), max_size=3)
    if node["type"] == "string":
        return _text(node)
    return _scalar(node)


def _scalar(node: Json) -> st.SearchStrategy[Any]:
    if node["type"] == "number":
        return st.floats(node["minimum"], node["maximum"])
    return {"integer": st.integers(node.get("minimum", -(2**63)), node.get("maximum", 2**63 - 1)), "boolean": st.booleans()}[node["type"]]


def _object(node: Json) -> st.SearchStrategy[Any]:
    if "properties" in node:
        drawn = {name: _drawn(each, name) for name, each in node["properties"].items()}
        required = set(node.get("required", ()))
        return st.fixed_dictionaries(
            {name: each for name, each in drawn.items() if name in required}, optional={n: e for n, e in drawn.items() if n not in required}
        )
    if "additionalProperties" in node:
        names = st.sampled_from(["cpu", "memory", "x", "spark.executor.cores", "spark.x"])
        return st.dictionaries(names, _drawn(node["additionalProperties"], ""), max_size=3)
    return st.one_of(st.just({}), st.dictionaries(st.sampled_from([*WORDS, *OF_TEMPLATES]), anything(OF_TEMPLATES), max_size=4))


def _text(node: Json) -> st.SearchStrategy[str]:
    if node.get("format") == "date-time":
        return st.sampled_from([*TIMES[:4], "2026-01-31T00:00:00Z"])
    if "pattern" in node:
        return st.from_regex(str(node["pattern"])).filter(lambda text: len(text) <= node.get("maxLength", 300))
    return st.text(min_size=node.get("minLength", 0), max_size=20)


OF_TEMPLATES = [
    "metadata", "spec", "containers", "initContainers", "volumes", "env", "envFrom",
    "volumeMounts", "resources", "limits", "requests", "memory", "securityContext", "name",
]  # fmt: skip
TEMPLATE: Json = {
    "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
    "spec": {
        "volumes": [{"name": "sluice-tmp", "emptyDir": {"sizeLimit": "1Gi"}}],
        "initContainers": [{"name": "i", "ports": [{"hostPort": 0}], "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}}}],
        "imagePullSecrets": [{"name": "s"}],
        "tolerations": [{"key": "k"}],
        "securityContext": {"runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}, "windowsOptions": {"hostProcess": False}},
        "priorityClassName": "batch",
        "nodeName": "",
        "hostPID": False,
        "containers": [
            {
                "name": "driver",
                "imagePullPolicy": "Always",
                "env": [{"name": "A", "value": "b"}],
                "envFrom": [{"configMapRef": {"name": "c"}}],
                "volumeMounts": [{"name": "sluice-tmp", "mountPath": "/opt/sluice/work"}],
                "resources": {"limits": {"memory": "2Gi", "cpu": "1"}, "requests": {"memory": "2Gi"}},
                "securityContext": {"readOnlyRootFilesystem": False, "procMount": "Default", "capabilities": {"add": ["NET_BIND_SERVICE"]}},
            }
        ],
    },
}
"""A pod template that says something at every place that the operator reads."""

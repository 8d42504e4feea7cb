"""The CRD, generated from the models: `python -m sluice_operator.generate.crd [FILE…]` writes it (default: standard output).

The API server refuses a field that the schema does not have (`kubectl apply` asks it to), and writes defaults out. Two parts stay open: arguments of
the pipeline, and what is Kubernetes' own, such as a pod template, which the API server sees when a pod is made.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sluice_operator.names import GROUP, LETTER_PLACES
from sluice_operator.resource.fields import ONE_END, ONE_PLACE, Spec
from sluice_operator.state.serialization import STATUS

Json = dict[str, Any]

KEEP = {"helm.sh/resource-policy": "keep"}  # uninstalling the chart must not delete every consumer of the cluster
OPEN = "x-kubernetes-preserve-unknown-fields"
UNSEEN = {"observedGeneration": 0}  # without a status kstatus takes a resource for one that works, and Flux continues at once
UNDEFAULTED = {"serviceAccountName"}  # whether it was written decides what the executors run as
TABLE = "checkpoints.table is immutable, also when it was left out: the positions are in the old table"
SPEC_RULES = [
    {"rule": "self.stream.name == oldSelf.stream.name", "message": "stream.name is immutable"},
    {"rule": "self.stream.region == oldSelf.stream.region", "message": "stream.region is immutable"},
    {
        "rule": "(has(self.checkpoints) && has(self.checkpoints.table) ? self.checkpoints.table : '')"
        " == (has(oldSelf.checkpoints) && has(oldSelf.checkpoints.table) ? oldSelf.checkpoints.table : '')",
        "message": TABLE,
    },
]
LETTER_RULES = [
    {
        "rule": f"[{', '.join(f'has(self.{place})' for place in LETTER_PLACES)}].exists_one(given, given)",
        "message": f"deadLetter {ONE_PLACE}",
    },
]
START_RULES = [
    {
        "rule": "(has(self.position) && self.position == 'AT_TIMESTAMP') == has(self.timestamp)",
        "message": "start.timestamp belongs to position AT_TIMESTAMP, and only to it",
    },
]
UNTIL_RULES = [
    {
        "rule": "[has(self.tip), has(self.timestamp)].exists_one(given, given)",
        "message": f"until {ONE_END}",
    },
]
ON_ERROR_RULES = [
    {
        "rule": "has(self.deadLetter) || (has(self.isolate) && !self.isolate)",
        "message": "onError.deadLetter: required; it stores the records that are left out",
    },
]
NAME_RULES = [
    {
        "rule": "self.metadata.name.size() <= 45 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "message": "metadata.name: at most 45 characters a-z, 0-9 and '-', starting with a letter; pods add suffixes",
    },
]


def _condition(kind: str, part: str = "status") -> str:
    return f".status.conditions[?(@.type=='{kind}')].{part}"


COLUMNS = [
    ("Phase", "string", ".status.phase", 0),
    ("Ready", "string", _condition("Ready"), 0),
    ("Stream", "string", ".spec.stream.name", 0),
    ("Replicas", "integer", ".status.replicas", 0),
    ("Desired", "integer", ".spec.replicas", 0),
    ("Rate", "number", ".status.stream.recordsPerSecond", 0),
    ("Lag", "string", ".status.stream.lag", 0),
    ("Migrated", "string", _condition("Migrated"), 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Batch", "integer", ".status.stream.batch", 1),
    ("Shards", "integer", ".status.stream.openShards", 1),
    ("Driver", "string", ".status.driver.pod", 1),
    ("Image", "string", ".spec.pipeline.image", 1),
    ("Reason", "string", _condition("Ready", "reason"), 1),
]


def definition() -> Json:
    """The CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"kinesisconsumers.{GROUP}", "annotations": KEEP},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": "KinesisConsumer",
                "listKind": "KinesisConsumerList",
                "plural": "kinesisconsumers",
                "singular": "kinesisconsumer",
                "shortNames": ["kc"],
                "categories": ["streaming"],
            },
            "scope": "Namespaced",
            "versions": [_version()],
        },
    }


def _version() -> Json:
    return {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path} | ({"priority": priority} if priority else {}) for name, kind, path, priority in COLUMNS
        ],
        "schema": {"openAPIV3Schema": _schema()},
    }


def _schema() -> Json:
    spec = structural(Spec.model_json_schema(by_alias=True), defaults=True)
    spec["x-kubernetes-validations"] = SPEC_RULES
    spec["properties"]["start"]["x-kubernetes-validations"] = START_RULES
    spec["properties"]["until"]["x-kubernetes-validations"] = UNTIL_RULES
    spec["properties"]["onError"]["x-kubernetes-validations"] = ON_ERROR_RULES
    spec["properties"]["onError"]["properties"]["deadLetter"]["x-kubernetes-validations"] = LETTER_RULES
    status = structural(STATUS.json_schema(mode="serialization", by_alias=True))
    status["properties"]["conditions"] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return {
        "type": "object",
        "description": "A consumer of one Kinesis stream on Spark that never loses its place.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status | {"default": UNSEEN},
        },
        "x-kubernetes-validations": NAME_RULES,
    }


def structural(schema: Json, *, defaults: bool = False) -> Json:
    """A JSON schema as pydantic writes it, in the structural form that Kubernetes takes: no $ref, title, anyOf null.

    With `defaults`, an object that may be left out and has a field with a default gets the default {}: the API server fills in the field.
    """
    return _node(schema, _Source(schema.get("$defs", {}), defaults=defaults))


@dataclass(frozen=True, slots=True)
class _Source:
    """The schemas that a $ref names, and whether defaults are wanted."""

    named: Json
    defaults: bool


def _node(node: Json, source: _Source) -> Json:
    if "$ref" in node:
        found = source.named[node["$ref"].rsplit("/", 1)[-1]]
        return _node({**found, **{key: value for key, value in node.items() if key != "$ref"}}, source)
    if "anyOf" in node:
        return _choice(node, source)
    kept = {key: value for key, value in node.items() if key in PASSED_ON}
    if "const" in node:
        kept["enum"] = [node["const"]]
    if "items" in node:
        kept["items"] = _node(node["items"], source)
    if source.defaults and node.get("default") is not None:
        kept["default"] = node["default"]
    return kept | _object(node, source) if node.get("type") == "object" else kept


PASSED_ON = {
    "type", "description", "enum", "format", "pattern", "required",
    "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
    "x-kubernetes-int-or-string",
}  # fmt: skip


def _choice(node: Json, source: _Source) -> Json:
    if node.get("x-kubernetes-int-or-string"):
        return {key: value for key, value in node.items() if key in PASSED_ON}
    real = next(option for option in node["anyOf"] if option.get("type") != "null")
    return _node({**real, **{key: value for key, value in node.items() if key != "anyOf"}}, source)


def _object(node: Json, source: _Source) -> Json:
    if "properties" in node:
        required = {*node.get("required", ()), *(name for name, each in node["properties"].items() if "anyOf" in each)}
        found = {name: _node(each, source) for name, each in node["properties"].items()}
        return {"properties": {name: each if name in required else _made(name, each) for name, each in found.items()}}
    values = node.get("additionalProperties")
    return {"additionalProperties": _node(values, source)} if isinstance(values, dict) and values else {OPEN: True}


def _made(name: str, node: Json) -> Json:
    """A field that may be left out. As an object it is made, if a field in it has a default."""
    if name in UNDEFAULTED:
        return {key: value for key, value in node.items() if key != "default"}
    return {**node, "default": {}} if any("default" in each for each in node.get("properties", {}).values()) else node


def render() -> str:
    """The file's text."""
    head = "# Generated by `python -m sluice_operator.generate.crd`; do not edit.\n"
    return head + str(yaml.safe_dump(definition(), sort_keys=False, width=120, allow_unicode=True))


def main(files: list[str]) -> None:
    """Write the CRD to each file."""
    for name in files or ["/dev/stdout"]:
        Path(name).write_text(render())


if __name__ == "__main__":
    main(sys.argv[1:])

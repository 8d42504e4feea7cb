"""The CRDs, generated from the models: `python -m sluice_lab.generate.crd [FILE…]` writes that of consumers (default: standard output).

With `--pool` it writes that of pools.

The API server refuses a field that the schema does not have (`kubectl apply` asks it to), and writes defaults out. Two parts stay open: arguments of
the pipeline, and what is Kubernetes' own, such as a pod template, which the API server sees when a pod is made.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from sluice_operator.names import GROUP, LETTER_PLACES
from sluice_operator.resource import spark_conf
from sluice_operator.resource.fields import LONGER_LEASE, ONE_PLACE, ONE_SEAT, SHORTEST_LEASE, Spec
from sluice_operator.resource.fields import OF_POOL as OF_POOL_TEXT
from sluice_operator.resource.pods import IN_DRIVER, ONE_SCALER, ORDER
from sluice_operator.resource.pools import PoolSpec
from sluice_operator.resource.positions import EXPIRED_AT_TIME, ONE_END, ONE_TARGET
from sluice_operator.resource.rollout import ALWAYS, MEASURED_SECONDS, NO_TRIAL_OF_A_RUN, ONLY_WITH_STANDBY, STANDBY, TOO_SHORT, WITHOUT_END
from sluice_operator.resource.stream import BOTH, ELSEWHERE, NEITHER, OF_REGIONS, OF_ROLE, PARTITIONS, without_role
from sluice_operator.state.serialization import STATUS

if TYPE_CHECKING:
    from collections.abc import Collection

Json = dict[str, Any]

KEEP = {"helm.sh/resource-policy": "keep"}  # uninstalling the chart must not delete every consumer of the cluster
OPEN = "x-kubernetes-preserve-unknown-fields"
UNSEEN = {"observedGeneration": 0}  # without a status kstatus takes a resource for one that works, and Flux continues at once
UNDEFAULTED = {"serviceAccountName"}  # whether it was written decides what the executors run as
TABLE = "checkpoints.table is immutable, even if it was omitted: the positions are in the old table"


def name_in(spec: str) -> str:
    """The stream's name, as CEL has it: of the ARN, if there is one."""
    return f"(has({spec}.stream.arn) ? {spec}.stream.arn.split('/')[1] : has({spec}.stream.name) ? {spec}.stream.name : '')"


def region_in(spec: str) -> str:
    """The stream's region, likewise."""
    return f"(has({spec}.stream.arn) ? {spec}.stream.arn.split(':')[3] : has({spec}.stream.region) ? {spec}.stream.region : '')"


IN_POOL = OF_POOL_TEXT.format("named in spec.pool")
OF_POOL = {
    **{f"pipeline.{field}": f"!has(self.pipeline.{field})" for field in ("image", "imagePullPolicy", "source")},
    "serviceAccountName": "!has(self.serviceAccountName)",
    "sparkConf": "!has(self.sparkConf) || self.sparkConf.size() == 0",
    "autoscale": "!has(self.autoscale)",
    "rollout": "!has(self.rollout)",
}
"""Fields of a pool that a rule refuses cheaply; the operator refuses the others (`resource.fields`)."""
SPEC_RULES = [
    {"rule": f"{name_in('self')} == {name_in('oldSelf')}", "message": "stream.name is immutable"},
    {"rule": f"{region_in('self')} == {region_in('oldSelf')}", "message": "stream.region is immutable"},
    {
        "rule": "!has(self.stream.arn) || !has(oldSelf.stream.arn) || self.stream.arn == oldSelf.stream.arn",
        "message": "stream.arn is immutable",
    },
    {
        "rule": "(has(self.checkpoints) && has(self.checkpoints.table) ? self.checkpoints.table : '')"
        " == (has(oldSelf.checkpoints) && has(oldSelf.checkpoints.table) ? oldSelf.checkpoints.table : '')",
        "message": TABLE,
    },
    {"rule": "!has(self.autoscale) || !has(self.replicas) || self.replicas == 1", "message": ONE_SCALER},
    {
        "rule": "!has(self.autoscale) || !has(self.executor) || !has(self.executor.inDriver) || !self.executor.inDriver",
        "message": IN_DRIVER,
    },
    *({"rule": f"!has(self.pool) || {absent}", "message": f"{field}: {IN_POOL}"} for field, absent in OF_POOL.items()),
    {"rule": "!has(self.pool) || !has(self.replicas) || self.replicas <= 1", "message": f"replicas: {ONE_SEAT}"},
    {
        "rule": f"!has(self.pool) || !has(self.leaseDurationSeconds) || self.leaseDurationSeconds >= {SHORTEST_LEASE}",
        "message": f"leaseDurationSeconds: {LONGER_LEASE}",
    },
    {
        "rule": f"!has(self.until) || !has(self.rollout) || !has(self.rollout.strategy) || self.rollout.strategy != '{STANDBY}'",
        "message": WITHOUT_END,
    },
    {"rule": "!has(self.until) || !has(self.rollout) || !has(self.rollout.trial)", "message": NO_TRIAL_OF_A_RUN},
]
ROLLOUT_RULES = [
    {
        "rule": f"!has(self.standby) || self.standby != '{ALWAYS}' || (has(self.strategy) && self.strategy == '{STANDBY}')",
        "message": f"rollout.{ONLY_WITH_STANDBY}",
    },
]
TRIAL_RULES = [
    {
        "rule": f"!has(self.maxSlowdown) || !has(self.seconds) || self.seconds >= {MEASURED_SECONDS}",
        "message": f"rollout.trial.{TOO_SHORT}",
    },
]
AUTOSCALE_RULES = [{"rule": "!has(self.min) || self.min <= self.max", "message": f"autoscale.{ORDER}"}]
STREAM_RULES = [
    {"rule": "has(self.arn) || (has(self.name) && has(self.region))", "message": f"stream: {NEITHER}"},
    {"rule": "!has(self.arn) || (!has(self.name) && !has(self.region))", "message": f"stream.{BOTH}"},
    *({"rule": f"has(self.roleArn) || !has(self.{field})", "message": f"stream.{without_role(field)}"} for field in OF_ROLE),
    {
        "rule": "!has(self.arn) || !has(self.roleArn) || self.roleArn.startsWith(self.arn.substring(0, self.arn.indexOf(':kinesis:')) + ':iam:')",
        "message": f"stream.{PARTITIONS}",
    },
    {
        "rule": "!has(self.region) || !has(self.roleArn) || ("
        + " && ".join(f"self.roleArn.startsWith('arn:{name}:') == self.region.startsWith('{prefix}')" for name, prefix in OF_REGIONS.items())
        + ")",
        "message": f"stream.{ELSEWHERE}",
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
TARGET_RULES = [
    {
        "rule": "[has(self.timestamp), has(self.batch), has(self.trimHorizon), has(self.latest)].exists_one(given, given)",
        "message": f"position.to {ONE_TARGET}",
    },
]
POSITION_RULES = [
    {
        "rule": "!(has(self.acceptExpired) && self.acceptExpired) || has(self.to.timestamp) || has(self.to.batch)",
        "message": f"position.{EXPIRED_AT_TIME}",
    },
]
ON_ERROR_RULES = [
    {
        "rule": "has(self.deadLetter) || (has(self.isolate) && !self.isolate)",
        "message": "onError.deadLetter: required; it stores the records that are left out",
    },
]
SPARK_RULES = [{"rule": f"!({key!r} in self)", "message": f"sparkConf: {key} {why}"} for key, why in spark_conf.EXACT.items()]
NAME_RULES = [
    {
        "rule": "self.metadata.name.size() <= 45 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "message": "metadata.name: at most 45 characters a-z, 0-9 and '-', beginning with a-z; pods add suffixes",
    },
]


def _condition(kind: str, part: str = "status") -> str:
    return f".status.conditions[?(@.type=='{kind}')].{part}"


COLUMNS = [
    ("Phase", "string", ".status.phase", 0),
    ("Ready", "string", _condition("Ready"), 0),
    ("Stream", "string", ".spec.stream['arn','name']", 0),
    ("Replicas", "integer", ".status.replicas", 0),
    ("Desired", "integer", ".spec.replicas", 0),
    ("Rate", "number", ".status.stream.recordsPerSecond", 0),
    ("Lag", "string", ".status.stream.lag", 0),
    ("Migrated", "string", _condition("Migrated"), 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Batch", "integer", ".status.stream.batch", 1),
    ("Shards", "integer", ".status.stream.openShards", 1),
    ("Driver", "string", ".status.driver.pod", 1),
    ("Pool", "string", ".spec.pool", 1),
    ("Autoscaled", "integer", ".status.autoscale.replicas", 1),
    ("Image", "string", ".spec.pipeline.image", 1),
    ("Reason", "string", _condition("Ready", "reason"), 1),
]


POOL_COLUMNS = [
    ("Phase", "string", ".status.phase", 0),
    ("Ready", "string", _condition("Ready"), 0),
    ("Members", "integer", ".status.members", 0),
    ("Members-Ready", "integer", ".status.readyMembers", 0),
    ("Replicas", "integer", ".status.replicas", 0),
    ("Desired", "integer", ".spec.replicas", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Pod", "string", ".status.driver.pod", 1),
    ("Image", "string", ".spec.pipeline.image", 1),
    ("Reason", "string", _condition("Ready", "reason"), 1),
]
OF_CONSUMERS = ("standby", "attempts", "migration", "position", "autoscale", "start")
"""Parts of a status that a pool does not have."""
OF_POOLS = ("members", "readyMembers", "deaths")


def definition() -> Json:
    """The CustomResourceDefinition of consumers."""
    return _definition("KinesisConsumer", "kc", _version(COLUMNS, _schema()))


def pool_definition() -> Json:
    """The CustomResourceDefinition of pools."""
    return _definition("KinesisConsumerPool", "kcp", _version(POOL_COLUMNS, _pool_schema()))


def _definition(kind: str, short: str, version: Json) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{GROUP}", "annotations": KEEP},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": f"{kind.lower()}s",
                "singular": kind.lower(),
                "shortNames": [short],
                "categories": ["streaming"],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _version(columns: list[tuple[str, str, str, int]], schema: Json) -> Json:
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
            {"name": name, "type": kind, "jsonPath": path} | ({"priority": priority} if priority else {}) for name, kind, path, priority in columns
        ],
        "schema": {"openAPIV3Schema": schema},
    }


def _schema() -> Json:
    spec = structural(Spec.model_json_schema(by_alias=True), defaults=True)
    spec["x-kubernetes-validations"] = SPEC_RULES
    spec["properties"]["stream"]["x-kubernetes-validations"] = STREAM_RULES
    spec["properties"]["start"]["x-kubernetes-validations"] = START_RULES
    spec["properties"]["autoscale"]["x-kubernetes-validations"] = AUTOSCALE_RULES
    spec["properties"]["rollout"]["x-kubernetes-validations"] = ROLLOUT_RULES
    spec["properties"]["rollout"]["properties"]["trial"]["x-kubernetes-validations"] = TRIAL_RULES
    spec["properties"]["until"]["x-kubernetes-validations"] = UNTIL_RULES
    spec["properties"]["position"]["x-kubernetes-validations"] = POSITION_RULES
    spec["properties"]["position"]["properties"]["to"]["x-kubernetes-validations"] = TARGET_RULES
    spec["properties"]["onError"]["x-kubernetes-validations"] = ON_ERROR_RULES
    spec["properties"]["sparkConf"]["x-kubernetes-validations"] = SPARK_RULES
    spec["properties"]["onError"]["properties"]["deadLetter"]["x-kubernetes-validations"] = LETTER_RULES
    return _resource("A consumer of one Kinesis stream on Spark that never loses its position.", spec, OF_POOLS)


def _pool_schema() -> Json:
    spec = structural(PoolSpec.model_json_schema(by_alias=True), defaults=True)
    spec["properties"]["sparkConf"]["x-kubernetes-validations"] = SPARK_RULES
    return _resource("A driver with its executors, which runs the batches of several KinesisConsumers.", spec, OF_CONSUMERS)


def _resource(description: str, spec: Json, without: Collection[str]) -> Json:
    status = structural(STATUS.json_schema(mode="serialization", by_alias=True))
    status["properties"] = {name: each for name, each in status["properties"].items() if name not in without}
    status["properties"]["conditions"] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return {
        "type": "object",
        "description": description,
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


def render(*, pool: bool = False) -> str:
    """The file's text."""
    head = f"# Generated by `python -m sluice_lab.generate.crd{' --pool' if pool else ''}`; do not edit.\n"
    return head + str(yaml.safe_dump(pool_definition() if pool else definition(), sort_keys=False, width=120, allow_unicode=True))


def main(files: list[str]) -> None:
    """Write the CRD to each file."""
    pool = files[:1] == ["--pool"]
    for name in files[pool:] or ["/dev/stdout"]:
        Path(name).write_text(render(pool=pool))


if __name__ == "__main__":
    main(sys.argv[1:])

"""A KinesisConsumer's manifest as `dev` runs it: what its driver would get, without what only a cluster or an account of AWS has.

The operator makes a driver's configuration of a spec. Neither package may import the other. So this takes the parts that a driver gets as they stand,
and leaves every judgement to the driver's own `config.parse`. `tests/contract/programs` compares it with the operator on the manifests of examples/.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.names import counted
from sluice_consumer.dev import kubectl_yaml

VARIABLE = re.compile(r"[^=\0]+")
KIND = {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer"}
AS_IT_STANDS = ("batch", "onError", "drainTimeoutSeconds", "sparkConf")
USED = {
    "": set(KIND) | {"metadata", "spec"},
    "spec": {*AS_IT_STANDS, "stream", "pipeline"},
    "spec.stream": {"name", "region", "arn", "probeShare"},
    "spec.pipeline": {"entrypoint", "args", "env"},
}
UNUSED = {
    "": {"status"},
    "spec": {
        *("autoscale", "checkpoints", "driver", "executor", "leaseDurationSeconds", "migrateFrom", "pool", "position", "progressDeadlineSeconds"),
        *("replicas", "restart", "rollout", "serviceAccountName", "start", "suspend", "until"),
    },
    "spec.stream": {"dynamodbEndpoint", "externalId", "kinesisEndpoint", "roleArn", "sessionName"},
    "spec.pipeline": {"envFrom", "image", "imagePullPolicy", "imagePullSecrets", "source", "volumeMounts", "volumes"},
}
"""The other fields of the CRD. `kubectl apply` refuses one that is in neither."""


@dataclass(frozen=True)
class Manifest:
    """One manifest.

    Attributes:
        config: of the driver, without the checkpoint table and the addresses of services; judged by nobody yet.
        environment: variables that the manifest gives a value.
        unused: fields that `dev` does not use, as `spec.replicas`.
    """

    config: dict[str, Any]
    environment: dict[str, str]
    unused: tuple[str, ...]


def read(path: Path) -> Manifest:
    """Reads the one KinesisConsumer of a file, which may hold other resources, one by one or in a List.

    Raises:
        Refused: the file is not YAML, or holds none or several; or a part of the spec is not an object.
    """
    try:
        documents = kubectl_yaml.documents(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise Refused(f"--manifest {path}: {error}") from error
    except yaml.YAMLError as error:
        raise Refused(f"--manifest {path}: not YAML: {' '.join(str(error).split())}") from error
    consumers = [resource for resource in _resources(documents) if all(resource.get(key) == value for key, value in KIND.items())]
    if len(consumers) != 1:
        raise Refused(
            f"--manifest {path}: holds {counted(len(consumers), 'resource')} of kind {KIND['kind']} ({KIND['apiVersion']}); it must hold exactly one"
        )
    return of_resource(consumers[0])


def _resources(documents: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for document in documents:
        if isinstance(document, dict):
            yield from _resources(document["items"]) if isinstance(document.get("items"), list) else (document,)


def of_resource(resource: Mapping[str, Any]) -> Manifest:
    """What `dev` takes of a resource.

    Raises:
        Refused: a part of it is not an object, or it has a field that the CRD has not; the message names it.
    """
    refuse_unknown("", resource)
    spec = _object(resource, "spec")
    refuse_unknown("spec", spec)
    pipeline, stream = _object(spec, "pipeline", "spec."), _object(spec, "stream", "spec.")
    refuse_unknown("spec.pipeline", pipeline)
    refuse_unknown("spec.stream", stream)
    variables = pipeline.get("env") or []
    if not isinstance(variables, list) or not all(isinstance(each, dict) and VARIABLE.fullmatch(str(each.get("name", ""))) for each in variables):
        raise Refused("spec.pipeline.env: must be a list of objects with name and value; a name has no `=`")
    if any("\0" in str(each.get("value")) for each in variables):
        raise Refused("spec.pipeline.env: a value holds a zero byte")
    config = {
        "name": _object(resource, "metadata").get("name"),
        "stream": {key: stream[key] for key in ("name", "region", "arn", "probeShare") if key in stream},
        "pipeline": {key: pipeline[key] for key in ("entrypoint", "args") if key in pipeline},
        **{key: spec[key] for key in AS_IT_STANDS if key in spec},
    }
    return Manifest(
        config,
        dict(_given(variables)),
        (*_unused("spec", spec), *_unused("spec.stream", stream), *_unused("spec.pipeline", pipeline), *_asked(variables)),
    )


def refuse_unknown(where: str, fields: Mapping[str, Any]) -> None:
    """Refuses what `kubectl apply` refuses, too: a trial would run with the default of the field that was meant.

    Args:
        where: path of the part; "" is the resource itself.
        fields: as it is in the manifest.

    Raises:
        Refused: a field is in no KinesisConsumer.
    """
    known = USED[where] | UNUSED[where]
    for name in (name for name in fields if name not in known):
        meant = difflib.get_close_matches(str(name), known, 1)
        raise Refused(f"{where}.{name}: unknown field{f'; did you mean {meant[0]}?' if meant else ''}".removeprefix("."))


def _object(of: Mapping[str, Any], name: str, where: str = "") -> dict[str, Any]:
    value = of.get(name)
    if not isinstance(value, dict):
        raise Refused(f"{where}{name}: {'missing' if value is None else f'{value!r} is not an object'}")
    return value


def _given(variables: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    return ((str(each.get("name")), str(each["value"])) for each in variables if _is_plain(each))


def _asked(variables: list[dict[str, Any]]) -> Iterator[str]:
    return (f"spec.pipeline.env.{each.get('name')}" for each in variables if not _is_plain(each))


def _is_plain(variable: Mapping[str, Any]) -> bool:
    """Whether the manifest alone says what the value is: neither a Secret's, nor made of other variables."""
    return isinstance(variable.get("value"), str) and "$(" not in variable["value"]


def _unused(where: str, fields: Mapping[str, Any]) -> Iterator[str]:
    return (f"{where}.{key}" for key in fields if key not in USED[where])

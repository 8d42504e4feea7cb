"""Objects of a cluster without what may be a secret. A text is hidden unless its field is known, or its form is harmless. Pure.

`text` is for what has no fields: logs, messages. A Secret object is not read at all (`cli.reporting`).
"""

from __future__ import annotations

import json
import re
from typing import Any

from sluice_kubectl.views.credentials import HIDDEN, is_named_so, without_forms
from sluice_kubectl.views.free_text import DEEPEST, VARIABLES, names_one, parsed, text
from sluice_kubectl.views.known_fields import ENVIRONMENT, FREE, KNOWN, LABELS, SPARK
from sluice_operator.names import counted

__all__ = ["body", "text"]
ITEM = "[]"
Path = tuple[str, ...]
REFERENCES: tuple[Path, ...] = (
    ("env", ITEM, "valueFrom", "secretKeyRef"),
    ("envFrom", ITEM, "secretRef"),
    ("volumes", ITEM, "secret"),
    ("volumes", ITEM, "projected", "sources", ITEM, "secret"),
    ("volumes", ITEM, "projected", "sources", ITEM, "serviceAccountToken"),
    ("volumes", ITEM, "csi", "nodePublishSecretRef"),
    ("spec", "imagePullSecrets"),
    ("spec", "automountServiceAccountToken"),
    ("pipeline", "imagePullSecrets"),
)
"""Where Kubernetes names a Secret: a pod that waits for one cannot be understood without its name."""
OF_REFERENCES = {"name", "key", "optional", "secretName", "items", "path", "mode", "defaultMode", "audience", "expirationSeconds"}
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/:-]{0,252})")
KEY = re.compile(r"(?!(?=.*[a-z])(?=.*[A-Z])(?=.*\d))[A-Za-z0-9$][\w.$/:-]{0,252}")  # a word of lower and upper case and digits may be a secret
TYPED = re.compile(  # a number, a duration, a size, a time, a flag
    r"-?\d{1,12}(?:\.\d{1,6})?\s?(?:ms|s|m|min|h|d|[kKmMgGtTpP]i?[bB]?|%)?"
    r"|(?i:true|false|none|null)|\d{4}-\d\d-\d\d(?:[T ][\d:.]{5,15}(?:Z|[+-]\d\d:\d\d)?)?"
    r"|(?i:debug|info|warn|warning|error|earliest|latest|append|overwrite|json|csv|avro|parquet|delta|iceberg|orc|utc|fair|fifo|gzip|snappy|zstd|lz4)"
)
FIELDS_V1 = {"fieldsV1", "managedFieldsV1"}


def body(value: Any, path: Path = (), level: int = 0) -> Any:
    """JSON with the same keys and numbers; of its texts, those of known fields and of harmless forms. Others say how long they are."""
    if level > DEEPEST:
        return HIDDEN
    if isinstance(value, dict):
        return _object(value, path, level)
    if isinstance(value, list):
        return _list(value, (*path, ITEM), level)
    return _string(value, path, level) if isinstance(value, str) else value


def _object(value: dict[str, Any], path: Path, level: int) -> dict[str, Any]:
    """Of a pair that is named like a credential, such as `{"key": "password", "value": …}`, all is hidden."""
    if any(names_one(each) for each in value.values()) and not _is_of_kubernetes(path):
        return {_key(key, at): HIDDEN for at, key in enumerate(value)}
    return {_key(key, at): _field(value, key, (*path, key), level) for at, key in enumerate(value)}


def _key(key: str, at: int) -> str:
    """A key; one that may itself be a secret has a number instead."""
    return without_forms(key) if KEY.fullmatch(key) or key in KNOWN or key in ENVIRONMENT else f"(hidden key {at})"


def _field(parent: dict[str, Any], key: str, path: Path, level: int) -> Any:
    value = parent[key]
    if _is_reference(path):
        return _names(value, level)
    if path[-3:] == ("env", ITEM, "name") and isinstance(value, str):
        return _key(value, 0)
    if key in FIELDS_V1 or is_named_so(key) or _is_variable(parent, key, path):
        return HIDDEN
    if key == "value" and path[-3:-1] == ("env", ITEM) and isinstance(value, str):
        return text(value, level + 1)
    return body(value, path, level + 1)


def _is_variable(parent: dict[str, Any], key: str, path: Path) -> bool:
    """Whether this is the value of an environment variable that is not on the list."""
    if key == "value" and "name" in parent:
        return path[-3:-1] != ("env", ITEM) or parent["name"] not in ENVIRONMENT
    return len(path) > 1 and VARIABLES.fullmatch(path[-2]) is not None and key not in ENVIRONMENT


def _is_of_kubernetes(path: Path) -> bool:
    """Whether the names in the object are of variables, volumes and references, whatever they are called."""
    return FREE.isdisjoint(path) and all(step in KNOWN or step == ITEM for step in path)


def _is_reference(path: Path) -> bool:
    of_pod_spec = path == ("imagePullSecrets",)  # that is all there is
    return FREE.isdisjoint(path) and (of_pod_spec or any(path[-len(place) :] == place for place in REFERENCES))


def _names(value: Any, level: int) -> Any:
    """A reference: its own fields, and names in them."""
    if level > DEEPEST:
        return HIDDEN
    if isinstance(value, dict):
        return {_key(key, at): _names(each, level + 1) if key in OF_REFERENCES else HIDDEN for at, (key, each) in enumerate(value.items())}
    if isinstance(value, list):
        return [_names(each, level + 1) for each in value]
    if isinstance(value, str):
        return without_forms(value) if NAME.fullmatch(value) else HIDDEN
    return value


def _list(values: list[Any], path: Path, level: int) -> list[Any]:
    """After a name such as `password` or `--password`, the rest of the list is hidden."""
    found, hides = [], False
    for value in values:
        found.append(HIDDEN if hides else body(value, path, level + 1))
        hides = hides or names_one(value)
    return found


def _string(said: str, path: Path, level: int) -> str:
    """A known field is shown without what looks like a credential. Annotations hold whole manifests as JSON: they are objects again."""
    shown = _shows(path)
    if (found := parsed(said)) is not None and path[-2:-1] == ("annotations",):
        return json.dumps(body(found, (), level + 1))
    if shown:
        return text(said, level + 1)
    return said if TYPED.fullmatch(said) else f"<hidden: text of {counted(len(said), 'character')}>"


def _shows(path: Path) -> bool:
    names = [step for step in path if step != ITEM]
    free = next((at for at, step in enumerate(names) if step in FREE), None)
    if free is None:
        return bool(names) and all(step in KNOWN for step in names)
    own = names[free + 1 :]
    if len(own) != 1:
        return False
    return own[0] in SPARK if names[free] == "sparkConf" else names[free] != "args" and own[0].startswith(LABELS)

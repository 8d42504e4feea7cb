"""Objects of a cluster without what may be a secret. A text is hidden unless its field is known, or its form is harmless. Pure.

A Secret object is not read at all (`cli.reporting`). Messages and logs have no fields: they are shown as they were written.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sluice_kubectl.views.known_fields import ENVIRONMENT, FREE, KNOWN, LABELS, SPARK
from sluice_operator.names import counted

HIDDEN = "(hidden by sluice report)"
DEEPEST = 40  # levels; what is below is hidden
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
    ("imagePullSecrets",),
)
"""Where Kubernetes names a Secret: a pod that waits for one cannot be understood without its name."""
OF_REFERENCES = {"name", "key", "optional", "secretName", "items", "path", "mode", "defaultMode", "audience", "expirationSeconds"}
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/:-]{0,252})")
KEY = re.compile(r"(?!(?=.*[a-z])(?=.*[A-Z])(?=.*\d))[A-Za-z0-9$][\w.$/:-]{0,252}")  # a word of lower and upper case and digits may be a secret
CREDENTIAL = re.compile(r"pass|pwd|secret|token|key|cred|auth|pin", re.IGNORECASE)
TYPED = re.compile(  # a number, a duration, a size, a time, a flag
    r"-?\d{1,12}(?:\.\d{1,6})?\s?(?:ms|s|m|min|h|d|[kKmMgGtTpP]i?[bB]?|%)?"
    r"|(?i:true|false|none|null)|\d{4}-\d\d-\d\d(?:[T ][\d:.]{5,15}(?:Z|[+-]\d\d:\d\d)?)?"
    r"|(?i:debug|info|warn|warning|error|earliest|latest|append|overwrite|json|csv|avro|parquet|delta|iceberg|orc|utc|fair|fifo|gzip|snappy|zstd|lz4)"
)
FIELDS_V1 = {"fieldsV1", "managedFieldsV1"}


def body(value: Any, path: Path = ()) -> Any:
    """JSON with the same keys; of its texts, those of known fields and of harmless forms. Others say how long they are."""
    if len(path) > DEEPEST:
        return HIDDEN
    if isinstance(value, dict):
        return {_key(key, at): _field(value, key, (*path, key)) for at, key in enumerate(value)}
    if isinstance(value, list):
        return [body(each, (*path, ITEM)) for each in value]
    return _string(value, path) if isinstance(value, str) else value


def _key(key: str, at: int) -> str:
    """A key; one that may itself be a secret has a number instead."""
    return key if KEY.fullmatch(key) or key in KNOWN or key in ENVIRONMENT else f"(hidden key {at})"


def _field(parent: dict[str, Any], key: str, path: Path) -> Any:
    value = parent[key]
    if FREE.isdisjoint(path) and any(path[-len(place) :] == place for place in REFERENCES):
        return _names(value, path)
    if path[-3:] == ("env", ITEM, "name") and isinstance(value, str):
        return _key(value, 0)
    if path[-3:] == ("env", ITEM, "value"):
        return value if parent.get("name") in ENVIRONMENT else HIDDEN
    if key in FIELDS_V1 or (not FREE.isdisjoint(path) and CREDENTIAL.search(key)):
        return HIDDEN
    return body(value, path)


def _names(value: Any, path: Path) -> Any:
    if isinstance(value, dict):
        return {key: _names(each, path) for key, each in value.items() if key in OF_REFERENCES}
    if isinstance(value, list):
        return [_names(each, path) for each in value]
    return value if not isinstance(value, str) or NAME.fullmatch(value) else HIDDEN


def _string(text: str, path: Path) -> str:
    """Annotations hold whole manifests as JSON: they are objects again."""
    if path[-2:-1] == ("annotations",) and (document := _parsed(text)) is not None:
        return json.dumps(body(document))
    return text if _shows(path) or TYPED.fullmatch(text) else f"<hidden: text of {counted(len(text), 'character')}>"


def _parsed(text: str) -> Any:
    """An object or a list; None if it is no JSON, or nested too deeply for a parser."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _shows(path: Path) -> bool:
    names = [step for step in path if step != ITEM]
    free = next((at for at, step in enumerate(names) if step in FREE), None)
    if free is None:
        return bool(names) and all(step in KNOWN for step in names)
    own = names[free + 1 :]
    if len(own) != 1:
        return False
    return own[0] in SPARK if names[free] == "sparkConf" else names[free] != "args" and own[0].startswith(LABELS)

"""What must not leave a cluster in a report: values of credentials, in objects and in text. Pure.

Hidden is by default what may be one: every environment variable but a list, and everything below a key that is named like a credential. A Secret
object is not read at all (`cli.report`).
"""

from __future__ import annotations

import json
import re
from typing import Any

from sluice_kubectl.views.credentials import HIDDEN, is_named_so, without_assigned, without_forms

DEEPEST = 100  # levels; what is below is hidden
ITEM = "[]"
Path = tuple[str, ...]
ENVIRONMENT = re.compile(
    r"SLUICE_[A-Z_]+|AWS_(?:DEFAULT_)?REGION|AWS_USE_(?:FIPS|DUALSTACK)_ENDPOINT|AWS_ROLE_ARN|TZ|LANG|LC_ALL|PATH|HOME|USER|HOSTNAME"
    r"|PYTHON(?:PATH|UNBUFFERED|HASHSEED|DONTWRITEBYTECODE)|JAVA_HOME|SPARK_(?:HOME|USER|LOCAL_DIRS|CONF_DIR|EXECUTOR_[A-Z_]+|DRIVER_[A-Z_]+)"
    r"|KUBERNETES_SERVICE_(?:HOST|PORT)|(?:OMP|OPENBLAS|MKL)_NUM_THREADS|MALLOC_ARENA_MAX"
)
"""Environment variables whose values are shown: those of Sluice, Spark and the platform that explain what it does."""
VARIABLES = re.compile(r"env|environ|environment|envVars|(?:spark\.)?executorEnv", re.IGNORECASE)
OF_SPARK = re.compile(r"spark\.(?:executorEnv|kubernetes\.driverEnv|yarn\.appMasterEnv)\.(?P<name>.+)")
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
FREE = {"args", "sparkConf", "labels", "annotations"}  # the user's own keys, whatever they are called
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/:-]{0,252})")


def text(said: str) -> str:
    """The text without what looks like a credential. A line of JSON is read as such."""
    return without_assigned("\n".join(map(_line, without_forms(said).split("\n"))))


def body(value: Any, path: Path = ()) -> Any:
    """JSON without values of credentials: by the name of their key or environment variable, and by their looks."""
    if len(path) > DEEPEST:
        return HIDDEN
    if isinstance(value, dict):
        return {text(str(key)): _field(value, str(key), (*path, str(key))) for key in value}
    if isinstance(value, list):
        return _list(value, (*path, ITEM))
    return _string(value) if isinstance(value, str) else value


def _field(parent: dict[str, Any], key: str, path: Path) -> Any:
    value = parent[key]
    if _is_reference(path):
        return _names(value)
    if is_named_so(key) or _is_variable(parent, key, path):
        return HIDDEN
    return body(value, path)


def _is_variable(parent: dict[str, Any], key: str, path: Path) -> bool:
    """Whether this is the value of an environment variable that is not on the list."""
    if key == "value" and "name" in parent:
        return ENVIRONMENT.fullmatch(str(parent["name"])) is None
    if found := OF_SPARK.fullmatch(key):
        return ENVIRONMENT.fullmatch(found["name"]) is None
    return len(path) > 1 and VARIABLES.fullmatch(path[-2]) is not None and ENVIRONMENT.fullmatch(key) is None


def _is_reference(path: Path) -> bool:
    of_pod_spec = path == ("imagePullSecrets",)  # that is all there is
    return FREE.isdisjoint(path) and (of_pod_spec or any(path[-len(place) :] == place for place in REFERENCES))


def _names(value: Any) -> Any:
    """A reference: its own fields, and names in them."""
    if isinstance(value, dict):
        return {key: _names(each) if key in OF_REFERENCES else HIDDEN for key, each in value.items()}
    if isinstance(value, list):
        return [_names(each) for each in value]
    if isinstance(value, str):
        return without_forms(value) if NAME.fullmatch(value) else HIDDEN
    return value


def _list(values: list[Any], path: Path) -> list[Any]:
    """Of an option such as `--password` in a list of words, the next word is hidden."""
    found, hides_next = [], False
    for value in values:
        found.append(HIDDEN if hides_next else body(value, path))
        hides_next = isinstance(value, str) and value.startswith("-") and not {"=", ":", " "} & set(value) and is_named_so(value)
    return found


def _string(value: str) -> str:
    """Annotations hold whole manifests as JSON, with environment variables in them."""
    found = _json(value)
    return text(value) if found is None else json.dumps(body(found))


def _line(line: str) -> str:
    found = _json(line)
    return line if found is None else json.dumps(body(found))


def _json(said: str) -> Any:
    """An object or a list; None if it is no JSON."""
    if not said.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        return None

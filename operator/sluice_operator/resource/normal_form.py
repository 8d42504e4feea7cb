"""What a spec says, however it is written: two specs of one meaning have one normal form. Pure.

The API server stores `1000m` and `1`, or an absent list and an empty one, as the same pod. A field is listed here only if Kubernetes makes no
difference. Where absent and empty differ (`emptyDir: {}`, `labelSelector: {}`, `runAsUser: 0`, `storageClassName: ""`), what is written stays.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Any

from sluice_operator.resource.quantities import POWERS, amount

ARGUMENTS = ("pipeline", "args")  # the pipeline's own: any difference may mean something
AS_IN_KUBERNETES = {"podTemplate", "resources", "env", "envFrom", "volumes", "volumeMounts"}
WORDS_OF_USERS = {"labels", "annotations", "nodeSelector", "matchLabels", "volumeAttributes", "options"}
"""Maps whose keys are names that somebody chose."""
AMOUNTS, AMOUNT = {"requests", "limits"}, {"sizeLimit", "divisor"}
EMPTY_OBJECTS = {"metadata", "spec", "resources", "affinity", "nodeAffinity", "podAffinity", "podAntiAffinity", "capabilities", "dnsConfig"}
EMPTY_OBJECTS |= {"securityContext", "lifecycle"} | AMOUNTS | WORDS_OF_USERS
"""Objects in which an empty one says no more than its absence."""
FALSE = {"readOnly", "optional", "privileged", "hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "stdin", "stdinOnce", "tty"}
BLANK = {"subPath", "subPathExpr", "medium", "prefix", "effect", "priorityClassName", "nodeName", "hostname", "subdomain", "fsType"}
ACCOUNT = "sluice-consumer"
NANO = Decimal("1e-9")

Json = dict[str, Any]


def normal(raw: Json) -> Json:
    """The fields of a spec in their normal form. What is null, or empty where that means nothing, is left out."""
    if "serviceAccountName" in raw and _account_says_nothing(raw):
        raw = {key: value for key, value in raw.items() if key != "serviceAccountName"}
    return _object(raw, ())


def _account_says_nothing(raw: Json) -> bool:
    """Whether it is the default, written out, and names the account of nothing else: executors without one of their own follow it."""
    executor = raw.get("executor") or {}
    return raw["serviceAccountName"] == ACCOUNT and bool(executor.get("serviceAccountName") or executor.get("inDriver"))


def _object(value: Json, path: tuple[str, ...]) -> Json:
    parts = {key: _field(key, each, (*path, key)) for key, each in value.items()}
    return {key: each for key, each in parts.items() if each is not None and each not in ({}, [])}


def _field(key: str, value: Any, path: tuple[str, ...]) -> Any:
    if path == ARGUMENTS:
        return value
    if key in AS_IN_KUBERNETES:
        return kubernetes(value, key)
    return _object(value, path) if isinstance(value, dict) else value


def kubernetes(value: Any, key: str = "") -> Any:
    """A part of a pod, under this key of its parent, as the API server would take it."""
    if key in AMOUNTS and isinstance(value, dict):
        return {name: quantity(each) for name, each in value.items() if each is not None}
    if key in AMOUNT:
        return quantity(value)
    if key in WORDS_OF_USERS:
        return value
    if isinstance(value, list):
        return [_variable(item) if key == "env" else kubernetes(item) for item in value]
    return _pod_object(value) if isinstance(value, dict) else value


def _pod_object(value: Json) -> Json:
    parts = {key: kubernetes(each, key) for key, each in value.items()}
    return {key: each for key, each in parts.items() if not _absent(key, each)}


def _absent(key: str, value: Any) -> bool:
    """Whether Kubernetes takes it as nothing. Kubernetes does not distinguish an empty list from none."""
    if value is None or value == []:
        return True
    return (value == {} and key in EMPTY_OBJECTS) or (value is False and key in FALSE) or (value == "" and key in BLANK)


def _variable(item: Any) -> Any:
    """An environment variable: one without a value is empty."""
    normal = kubernetes(item)
    return {key: each for key, each in normal.items() if key != "value" or each != ""} if isinstance(normal, dict) else normal


def quantity(written: Any) -> Any:
    """The shortest way to write this amount, a whole number as such; what is not a quantity stays as it is.

    Kubernetes rounds up to a billionth.
    """
    try:
        value = amount(written).quantize(NANO, ROUND_CEILING)
    except (ValueError, ArithmeticError):
        return written
    ways = [f"{int(value / power)}{suffix}" for suffix, power in POWERS.items() if value and not value % power]
    whole = [str(int(value))] if value == int(value) else []
    shortest = min([*whole, *ways], key=len)
    return int(shortest) if shortest.isdecimal() else shortest

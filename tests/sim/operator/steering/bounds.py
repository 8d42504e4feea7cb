"""What any status has to keep: bounds of the API server, of metav1.Condition, and of what etcd should be asked to hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
LARGEST = 32_768  # bytes of JSON, without the user's own spec
LONGEST = 1024  # characters of a message
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?")
WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")


def unfit(status: Json) -> tuple[str, str] | None:
    return next((("status_fits", problem) for problem in _problems(status)), None)


def _problems(status: Json) -> Iterator[str]:
    size = len(json.dumps({key: value for key, value in status.items() if key not in {"lastGoodSpec", "provenSpec"}}))
    if size > LARGEST:
        yield f"{size} bytes"
    for condition in status["conditions"]:
        if not REASON.fullmatch(condition["reason"]) or len(condition["message"]) > LONGEST:
            yield f"{condition['type']}: reason {condition['reason'][:80]!r}, {len(condition['message'])} characters of a message"
    for words in (status["driver"].get("exit") or {}, status.get("restarts") or {}):
        if not WORD.fullmatch(words.get("reason", "None")):
            yield f"reason {words['reason'][:80]!r}"
    for path, value in _leaves(status):
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
            yield f"{path} is {value}"
        if isinstance(value, float) and value - value != 0:
            yield f"{path} is no number"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, f"{path}[]")
    else:
        yield path, value

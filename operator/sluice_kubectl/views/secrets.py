"""What must not leave a cluster in a report: values of credentials, in objects and in text. Pure.

Better a word too many is hidden than a password too few. A Secret object is not read at all (`cli.report`).
"""

from __future__ import annotations

import json
import re
from typing import Any

HIDDEN = "(hidden by sluice report)"
NAMED = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|credential|private.?key|access.?key|api.?key|authorization|cookie|connection.?string|dsn$", re.IGNORECASE
)
WORDS = r"[\w.-]*(?:password|passwd|passphrase|secret|token|credential|private[_.-]?key|access[_.-]?key|api[_.-]?key|authorization)[\w.-]*"
IN_TEXT = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),  # a JSON Web Token
    re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"),  # user and password of a URL
    re.compile(r"(?<=\b[Bb]earer )[\w.~+/=-]{8,}"),
    re.compile(r"(?<=X-Amz-Signature=)\w+"),
    re.compile(r"(?<=X-Amz-Security-Token=)[\w%.-]+"),
)
ASSIGNED = re.compile(rf"(?P<name>{WORDS}[\"']?\s*[=:]\s*)(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;&}}\]]+)", re.IGNORECASE)
REFERENCES = {
    "secretKeyRef",
    "secretRef",
    "secretName",
    "imagePullSecrets",
    "serviceAccountToken",
    "automountServiceAccountToken",
}  # names, no values


def text(said: str) -> str:
    """The text without what looks like a credential."""
    for pattern in IN_TEXT:
        said = pattern.sub(HIDDEN, said)
    return ASSIGNED.sub(lambda found: found["name"] + HIDDEN, said)


def body(value: Any, name: str = "") -> Any:
    """JSON without values of credentials: by the name of their key or environment variable, and by their looks."""
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, list):
        return [body(each, name) for each in value]
    if isinstance(value, str):
        return HIDDEN if name not in REFERENCES and NAMED.search(name) else _string(value)
    return value


def _string(value: str) -> str:
    """Annotations hold whole manifests as JSON, with environment variables in them."""
    if not value.startswith(("{", "[")):
        return text(value)
    try:
        found = json.loads(value)
    except ValueError:
        return text(value)
    return json.dumps(body(found))


def _object(value: dict[str, Any]) -> dict[str, Any]:
    named = str(value.get("name") or "")
    found = {key: each if key in REFERENCES else body(each, key) for key, each in value.items()}
    if "value" in value and NAMED.search(named):  # an environment variable
        found["value"] = HIDDEN
    return found

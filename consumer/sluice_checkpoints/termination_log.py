"""The termination log: the JSON object that Kubernetes shows as the last message of a container (docs/interfaces.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VARIABLE = "SLUICE_TERMINATION_LOG"
DEFAULT = "/dev/termination-log"
LIMIT = 4000  # bytes; Kubernetes keeps 4,096


def write(document: Mapping[str, Any]) -> str | None:
    """Write the document to the file that the environment names, or to Kubernetes' default where that exists.

    Returns:
        Why it could not be written; None: it was written, or this is not a container. A failure never changes a result.
    """
    named = os.environ.get(VARIABLE)
    path = Path(named or DEFAULT)
    try:
        if named or os.access(path, os.W_OK):
            path.write_text(cut(document))
    except (OSError, ValueError) as error:
        return str(error)
    return None


def cut(document: Mapping[str, Any]) -> str:
    """The document as JSON of at most `LIMIT` bytes: the last of `firstWarnings` go first, then the end of `message`."""
    left = dict(document)
    while len(text := json.dumps(left)) > LIMIT and left.get("firstWarnings"):
        left["firstWarnings"] = left["firstWarnings"][:-1]
    while len(text := json.dumps(left)) > LIMIT and len(left["message"]) > 1:
        left["message"] = left["message"][: len(left["message"]) * 9 // 10 - 1] + "…"
    return text

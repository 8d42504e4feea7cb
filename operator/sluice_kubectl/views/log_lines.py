"""Lines of a driver's log in which several consumers run (docs/groups.md, "Run several consumers"). Pure."""

from __future__ import annotations

import json


def names_another(line: str, consumer: str) -> bool:
    """Whether this line is about one of the other consumers. Lines of Spark, and those about all of them, name none."""
    if '"consumer"' not in line:
        return False
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("consumer", consumer) != consumer

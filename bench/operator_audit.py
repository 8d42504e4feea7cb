"""The operator's writes, as the API server's audit log has them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson

KINDS = {
    "kinesisconsumers/status": "status",
    "kinesisconsumers": "finalizer",
    "pods": "pods",
    "jobs": "jobs",
    "events": "events",
}
Writes = Counter[str]


class Audit:
    def __init__(self, log: Path, user: str) -> None:
        self._log, self._user = log.open("rb"), user

    def more(self) -> Writes:
        """Writes since the last time, by what was written; those that were refused are `refused`."""
        found: Writes = Counter()
        for line in self._log:
            entry = orjson.loads(line)
            if entry["user"]["username"] != self._user:
                continue
            ref = entry["objectRef"]
            kind = KINDS.get("/".join(filter(None, (ref["resource"], ref.get("subresource")))))
            if kind is not None:
                found[kind if entry["responseStatus"]["code"] < 300 else "refused"] += 1
        return found

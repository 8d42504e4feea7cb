"""What `sluice reset` says, in words of the spec. Pure."""

from __future__ import annotations

import re

FIELDS = {
    "--give-up-batch": "position.giveUpBatch",
    "--accept-expired": "position.acceptExpired",
    "--to-batch": "position.to.batch",
    "--to": "position.to",
    "--shard": "position.shards",
    "--id": "position.id",
}
"""Options of `sluice reset` that the operator gives its Job, and the fields that they come from."""
OPTION = re.compile(r"(?<![\w-])--shard (?=shardId-)|(?<![\w-])(" + "|".join(FIELDS) + r")(?![\w-])")


def in_fields(message: str) -> str:
    """What `sluice reset` says, with the fields of the spec instead of its options."""
    return OPTION.sub(lambda found: FIELDS[found[1]] if found[1] else "", message)

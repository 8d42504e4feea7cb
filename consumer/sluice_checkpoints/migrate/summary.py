"""A migration in one line. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sluice_checkpoints.formats.detect import AUTO
from sluice_checkpoints.migrate.plan import MigrationPlan
from sluice_checkpoints.migrate.ports import MigrationRequest
from sluice_checkpoints.migrate.store import MigrationClaim
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.rows import ConsumerRow

DIGITS_SHOWN = 12  # of a plan's digest, in messages: enough to know a dry run's plan again
RISKS = {"possiblyLost": "with records that may be lost", "readAgain": "read again from an earlier position"}


def without_effect(request: MigrationRequest, claim: MigrationClaim) -> Iterator[str]:
    """Options that differ from those of the migration that was completed."""
    if request.format not in {AUTO, claim.row.format}:
        yield f"--format {request.format} has no effect: the source was read as {claim.row.format}, and that migration is complete"
    for name in sorted(request.choices.keys() | claim.choices.keys()):
        now, then = request.choices.get(name, "not given"), claim.choices.get(name, "not given")
        if now != then:
            was = f"it was {_shown(then)} when this migration was completed"
            yield f"--{name} ({_shown(now)}) has no effect: {was}; choose a new --target to migrate again"


def _shown(choice: object) -> str:
    return ", ".join(map(str, choice)) if isinstance(choice, list) else str(choice)


def summarize(made: MigrationPlan) -> str:
    """The one line that reaches status and event of a resource."""
    return f"{shard_count(len(made.shards), made.risks)}, plan {made.digest[:DIGITS_SHOWN]}"


def shard_count(count: int, risks: Mapping[str, int]) -> str:
    """Also of a migration that was complete before: the Job that ended it may not have reported it."""
    named = [f"{number} {what}" for name, what in RISKS.items() if (number := risks.get(name, 0))]
    return counted(count, "shard") + (f" ({', '.join(named)})" if named else "")


def owner(consumer: ConsumerRow | None, claim: MigrationClaim | None) -> str:
    """Whose a target is, by its consumer and claim."""
    if consumer is None:
        return str(claim) if claim else "another program: it holds rows that are not Sluice's"
    origin = f"migrated from {claim.row.source}" if claim else "not migrated"
    return f"a consumer of stream {consumer.stream_arn} (created {consumer.stream_created}, {origin})"

"""`spec.start`, `spec.until` and `spec.position`: where a consumer begins to read, where it ends, and where it is moved to. Pure."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from sluice_operator.resource.part import SpecPart, Time, zoned

ONE_END = "must have exactly one of tip and timestamp"


class StartSpec(SpecPart):
    """Start position of a consumer without checkpoints. It has no effect once the checkpoint table exists."""

    position: Literal["LATEST", "TRIM_HORIZON", "AT_TIMESTAMP"] = "TRIM_HORIZON"
    """Start position: LATEST, TRIM_HORIZON (default) or AT_TIMESTAMP."""
    timestamp: Time | None = None
    """Start time for AT_TIMESTAMP, in ISO 8601 with a time zone. Only with AT_TIMESTAMP."""

    @model_validator(mode="after")
    def _time_with_at_timestamp(self) -> Self:
        if (self.position == "AT_TIMESTAMP") != (self.timestamp is not None):
            raise ValueError("timestamp belongs to position AT_TIMESTAMP, and only to it")
        return self


class UntilSpec(SpecPart):
    """End of the run: exactly one of tip and timestamp. Then the phase is Completed and no pod is left. Only a changed spec starts a driver."""

    tip: Literal[True] | None = None
    """Whether the run ends once all records are processed that had arrived at the driver's start. An edit that restarts the driver sets a new end."""
    timestamp: Time | None = None
    """Time, in ISO 8601 with a zone. The run ends in each shard before the first record that arrived then or later."""

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.tip is None) == (self.timestamp is None):
            raise ValueError(ONE_END)
        return self


ONE_TARGET = "must have exactly one of timestamp, batch, trimHorizon and latest"
EXPIRED_AT_TIME = "acceptExpired belongs to to.timestamp and to.batch, and only to these"
MILLIS = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,3})?(Z|[+-][0-9]{2}:[0-9]{2})$"
ShardId = Annotated[str, Field(pattern=r"^shardId-[0-9]{12}$", max_length=20)]


class TargetSpec(SpecPart):
    """New position: exactly one of timestamp, batch, trimHorizon and latest."""

    timestamp: Annotated[str, Field(pattern=MILLIS, max_length=32), AfterValidator(zoned)] | None = None
    """Before the first record that arrived at this time or later. In ISO 8601 with a time zone, and at most milliseconds."""
    batch: Annotated[int, Field(ge=1)] | None = None
    """First batch of a version, as `sluice show` lists it: each shard moves to where it was in front of this batch."""
    trim_horizon: Literal[True] | None = None
    """Before the oldest record that the stream still has."""
    latest: Literal[True] | None = None
    """Behind the newest record. What is passed over is never delivered."""

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if len(self.document()) != 1:
            raise ValueError(ONE_TARGET)
        return self


class PositionSpec(SpecPart):
    """Moves the positions of a consumer, once for each id. The driver drains, a Job moves them, and the driver starts again.

    Removing it moves nothing.
    """

    id: str = Field(min_length=1, max_length=63, pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]*$")
    """Name of this move, such as 2026-11-27-bad-deploy. It is carried out once: another move needs another id."""
    to: TargetSpec
    shards: Annotated[list[ShardId], Field(max_length=256)] = Field(default_factory=list)
    """Shards to move; by default all. A shard's descendants have to be named with it."""
    give_up_batch: Annotated[int, Field(ge=1)] | None = None
    """Number of the open batch, which then counts as processed although it was not. By default, an open batch refuses the move."""
    accept_expired: bool = False
    """Whether the new position may be older than the oldest record. By default, that refuses the move. Only with to.timestamp and to.batch."""

    @model_validator(mode="after")
    def _expired_at_time(self) -> Self:
        if self.accept_expired and self.to.timestamp is None and self.to.batch is None:
            raise ValueError(EXPIRED_AT_TIME)
        return self

    @property
    def target(self) -> dict[str, str | int]:
        """The option of `sluice reset` that says where to."""
        if self.to.batch is not None:
            return {"--to-batch": self.to.batch}
        return {"--to": self.to.timestamp or ("trimHorizon" if self.to.trim_horizon else "latest")}

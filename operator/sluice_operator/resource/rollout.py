"""`spec.rollout`: how one driver follows another when the spec changes, and which versions are on trial. Pure."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sluice_operator.resource.part import SpecPart

STANDBY = "Standby"
ALWAYS = "Always"
ONLY_WITH_STANDBY = "standby: must be Rollout, or omitted, unless rollout.strategy is Standby"
WITHOUT_END = "rollout.strategy: must be Recreate with until, because a run with an end has no standby"
NO_TRIAL_OF_A_RUN = "rollout.trial: must be omitted with until, because a run with an end has nothing to go back to"
MEASURED_SECONDS = 120
TOO_SHORT = f"seconds: must be {MEASURED_SECONDS} or more with maxSlowdown, because a driver measures its speed over a minute"


class TrialSpec(SpecPart):
    """A new version has to commit batches. If it does not, the operator returns to the last version that did. The spec stays as it is."""

    batches: Annotated[int, Field(ge=1, le=1000)] = 3
    """Number of batches that a new version must commit. Default 3."""
    seconds: Annotated[int, Field(ge=60, le=86_400)] = 600
    """Time of work that it has for that, including its start. Time without records and pauses between batches do not count. Default 600."""
    max_slowdown: Annotated[float, Field(ge=1.5, le=100)] | None = None
    """How many times slower it may be than the version before, while its batches follow each other. If omitted, its speed is not judged."""

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        if self.max_slowdown is not None and self.seconds < MEASURED_SECONDS:
            raise ValueError(TOO_SHORT)
        return self


class RolloutSpec(SpecPart):
    """How the next driver follows the present one when a change needs a restart."""

    strategy: Literal["Recreate", "Standby"] = "Recreate"
    """Recreate (default): the driver ends its work, then the next one starts.
    Standby: the next driver starts beside it, and the driver ends its work only when that one is ready. This needs room for both."""
    standby: Literal["Rollout", "Always"] = "Rollout"
    """Rollout (default): there is a standby only while a rollout lasts.
    Always: a standby also stands behind the driver between rollouts, and continues when it is lost. This needs room for two drivers all the time."""
    ready_seconds: Annotated[int, Field(ge=30, le=3600)] = 300
    """Time that a standby has to become ready. After it, the rollout continues as Recreate; between rollouts, it is replaced. Default 300."""
    trial: TrialSpec | None = None

    @property
    def stands_by(self) -> bool:
        """Whether the next driver starts beside the present one."""
        return self.strategy == STANDBY

    @property
    def for_good(self) -> bool:
        """Whether a standby also stands behind the driver between rollouts."""
        return self.stands_by and self.standby == ALWAYS

    @model_validator(mode="after")
    def _with_strategy(self) -> Self:
        if self.standby == ALWAYS and not self.stands_by:
            raise ValueError(ONLY_WITH_STANDBY)
        return self

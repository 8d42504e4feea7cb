"""`spec.autoscale`: bounds and aim of the number of executors, if the operator chooses it. Pure."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sluice_operator.resource.part import SpecPart

MOST = 10_000
ORDER = "min is larger than max"
ONE_SCALER = (
    "replicas: omit it, or set it to 1, while autoscale is set, because the operator chooses the number of executors."
    " To use another autoscaler, remove autoscale; to stop the consumer, set suspend"
)
IN_DRIVER = "autoscale: must be omitted with executor.inDriver, because only the driver's pod runs tasks"

Count = Annotated[int, Field(ge=1, le=MOST)]


class AutoscaleSpec(SpecPart):
    """Lets the operator choose the number of executors, by how busy the driver is. `replicas` must then be omitted, or 1."""

    min: Count = 1
    """Smallest number of executors. Default 1."""
    max: Count
    """Largest number of executors."""
    target_lag_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60
    """How far the consumer may be behind before executors are added. Default 60."""
    cool_down_seconds: Annotated[int, Field(ge=60, le=86_400)] = 600
    """How long the load must be small before an executor is removed, and the time from any change to the next removal. Default 600."""
    cap: Literal["ActiveShards", "None"] = "ActiveShards"
    """Further limit. ActiveShards (default): executors with one core for each shard that gives records. None: no other limit than max."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(ORDER)
        return self

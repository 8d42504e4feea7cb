"""`spec.driver`, `spec.executor` and `spec.autoscale`: the pods, and how many executors the operator may choose. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from sluice_operator.resource.part import Account, Quantity, SpecPart
from sluice_operator.resource.pod_template import template_problem
from sluice_operator.resource.quantities import EXECUTOR, shares

MOST = 10_000
ORDER = "min is larger than max"
ONE_SCALER = (
    "replicas: omit it, or set it to 1, while autoscale is set, because the operator chooses the number of executors."
    " To use another autoscaler, remove autoscale; to stop the consumer, set suspend"
)
IN_DRIVER = "autoscale: must be omitted with executor.inDriver, because only the driver's pod runs tasks"

Count = Annotated[int, Field(ge=1, le=MOST)]


class Resources(SpecPart):
    """As a container's resources."""

    requests: dict[str, Quantity] = Field(default_factory=dict)
    """Requests, such as {cpu: 500m, memory: 2Gi}."""
    limits: dict[str, Quantity] = Field(default_factory=dict)
    """Limits, such as {memory: 2Gi}."""


def _template(container: str) -> AfterValidator:
    def checked(value: dict[str, Any]) -> dict[str, Any]:
        if problem := template_problem(value, container):
            raise ValueError(problem)
        return value

    return AfterValidator(checked)


class DriverSpec(SpecPart):
    """The driver's pod."""

    resources: Resources = Field(default_factory=Resources)
    """Resources of the driver's container."""
    pod_template: Annotated[dict[str, Any], _template("driver")] = Field(default_factory=dict)
    """Pod template (metadata and spec) to build on. The container is named `driver`. The migration Job uses it as well."""


class ExecutorSpec(SpecPart):
    """The executors' pods."""

    in_driver: bool = False
    """Whether tasks run in the driver's pod, `cores` at a time, without executor pods. This is for small streams. Default false."""
    service_account_name: Account | None = None
    """Service account of executors. They get no API token. Default: spec.serviceAccountName if given, else the operator's account for executors."""
    cores: Annotated[int, Field(ge=1, le=256)] = 1
    """Number of tasks that an executor runs at the same time. Default 1."""
    resources: Resources = Field(default_factory=Resources)
    """Resources of the executor's container. Spark's heap is derived from memory. Others, such as nvidia.com/gpu, are passed on unchanged."""
    pod_template: Annotated[dict[str, Any], _template("executor")] = Field(default_factory=dict)
    """Pod template (metadata and spec) to build on. The container is named `executor`."""

    @model_validator(mode="after")
    def _without_pods(self) -> Self:
        theirs = {
            "resources": self.resources != Resources(),
            "podTemplate": bool(self.pod_template),
            "serviceAccountName": self.service_account_name is not None,
        }
        if self.in_driver and (given := [name for name, is_given in theirs.items() if is_given]):
            raise ValueError(f"inDriver: there are no executor pods, so {' and '.join(given)} would have no effect; use spec.driver")
        return self

    @field_validator("resources")
    @classmethod
    def _enough(cls, value: Resources) -> Resources:
        if (memory := value.limits.get("memory", value.requests.get("memory"))) is not None:
            shares(memory, EXECUTOR)
        return value


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

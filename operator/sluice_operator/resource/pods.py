"""`spec.driver` and `spec.executor`: the pods. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from sluice_operator.resource.part import Account, Quantity, SpecPart
from sluice_operator.resource.pod_template import template_problem
from sluice_operator.resource.quantities import EXECUTOR, shares


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

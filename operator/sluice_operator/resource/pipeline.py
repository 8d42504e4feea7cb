"""`spec.pipeline`: the user's code, and what all pods that run it share. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from sluice_operator.resource.part import Account, SpecPart
from sluice_operator.resource.pod_template import reserved_problem


class EnvVar(SpecPart):
    """As a container's env."""

    name: str = Field(min_length=1, max_length=256)
    """Name of the variable. It must not begin with SLUICE_; the only exception is SLUICE_LOG_LEVEL."""
    value: str | None = Field(default=None, max_length=32_768)
    """Text of the variable. $(NAME) stands for another variable."""
    value_from: dict[str, Any] | None = None
    """Source of the value, as in Kubernetes: secretKeyRef, configMapKeyRef, fieldRef or resourceFieldRef."""


class EnvFrom(SpecPart):
    """As a container's envFrom."""

    prefix: str | None = Field(default=None, max_length=256)
    """Text that is put before each name."""
    config_map_ref: dict[str, Any] | None = None
    """ConfigMap, as in Kubernetes: name, optional."""
    secret_ref: dict[str, Any] | None = None
    """Secret, as in Kubernetes: name, optional."""


class VolumeMount(SpecPart):
    """As a container's volumeMounts."""

    name: str = Field(min_length=1, max_length=63)
    """Name of an entry in `volumes`."""
    mount_path: str = Field(min_length=1, max_length=4096)
    """Folder in the container."""
    sub_path: str | None = Field(default=None, max_length=4096)
    """Path in the volume. Default: the whole volume."""
    sub_path_expr: str | None = Field(default=None, max_length=4096)
    """Path in the volume, in which $(NAME) stands for a variable."""
    read_only: bool | None = None
    """Whether the volume is mounted read-only. Default false."""
    mount_propagation: Literal["None", "HostToContainer", "Bidirectional"] | None = None
    """Mount propagation, as in Kubernetes."""
    recursive_read_only: Literal["Disabled", "IfPossible", "Enabled"] | None = None
    """Recursive read-only mounts, as in Kubernetes."""


class SourceSpec(SpecPart):
    """Modules of the pipeline that are not in the image, for a first trial and for small jobs."""

    config_map: Account
    """ConfigMap of the namespace. Its keys that end with .py are modules. A driver copies them when it starts, so a change needs a restart."""


class PoolPipelineSpec(SpecPart):
    """Image of the pool, and what the code of its members needs in driver, executors and migrations."""

    image: str | None = Field(default=None, min_length=1, max_length=512)
    """Image of driver, executors and migration. Default: the operator's consumer image."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """Pull policy of driver, executors and migration. Default: Always for the tag latest, IfNotPresent otherwise."""
    image_pull_secrets: Annotated[list[Account], Field(max_length=16)] = Field(default_factory=list)
    """Names of Secrets in the namespace for pulling the image, in addition to those of the service accounts."""
    env: Annotated[list[EnvVar], Field(max_length=128)] = Field(default_factory=list)
    """Environment variables of driver, executors and migration. Those of a pod template take precedence."""
    env_from: Annotated[list[EnvFrom], Field(max_length=32)] = Field(default_factory=list)
    """Secrets and ConfigMaps whose entries become environment variables of driver, executors and migration."""
    volumes: Annotated[list[dict[str, Any]], Field(max_length=32)] = Field(default_factory=list)
    """Volumes of driver, executors and migration, as in Kubernetes."""
    volume_mounts: Annotated[list[VolumeMount], Field(max_length=64)] = Field(default_factory=list)
    """Mounts of these volumes in driver, executors and migration."""
    source: SourceSpec | None = None
    """Source of modules that are not in the image."""

    @field_validator("env")
    @classmethod
    def _theirs(cls, value: list[EnvVar]) -> list[EnvVar]:
        if problem := reserved_problem([item.document() for item in value]):
            raise ValueError(problem.removeprefix("env."))
        return value

    @property
    def shared(self) -> dict[str, Any]:
        """env, envFrom, volumeMounts and volumes of all pods, as on the wire, without empty lists."""
        document = self.document()
        return {key: document[key] for key in ("env", "envFrom", "volumeMounts", "volumes") if document[key]}


class PipelineSpec(PoolPipelineSpec):
    """Your code, and what it needs in driver, executors and migration."""

    entrypoint: str = Field(max_length=256, pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """Function as `module:function`. It is called as function(batch, info), once per batch."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Arguments that the function finds in info.args."""

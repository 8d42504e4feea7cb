"""`spec.pipeline`: the user's code, and what all pods that run it share. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from sluice_operator.resource.part import Account, SpecPart
from sluice_operator.resource.pod_template import reserved_problem


class EnvVar(SpecPart):
    """As a container's env."""

    name: str = Field(min_length=1, max_length=256)
    """Not one that begins with SLUICE_, but for SLUICE_LOG_LEVEL."""
    value: str | None = Field(default=None, max_length=32_768)
    """Text; $(NAME) stands for another variable."""
    value_from: dict[str, Any] | None = None
    """As in Kubernetes: secretKeyRef, configMapKeyRef, fieldRef or resourceFieldRef."""


class EnvFrom(SpecPart):
    """As a container's envFrom."""

    prefix: str | None = Field(default=None, max_length=256)
    """Goes before each name."""
    config_map_ref: dict[str, Any] | None = None
    """As in Kubernetes: name, optional."""
    secret_ref: dict[str, Any] | None = None
    """As in Kubernetes: name, optional."""


class VolumeMount(SpecPart):
    """As a container's volumeMounts."""

    name: str = Field(min_length=1, max_length=63)
    """Of one of the volumes."""
    mount_path: str = Field(min_length=1, max_length=4096)
    """Folder in the container."""
    sub_path: str | None = Field(default=None, max_length=4096)
    """Path in the volume; default: all of it."""
    sub_path_expr: str | None = Field(default=None, max_length=4096)
    """The same, with $(NAME) of variables."""
    read_only: bool | None = None
    """Default false."""
    mount_propagation: Literal["None", "HostToContainer", "Bidirectional"] | None = None
    """As in Kubernetes."""
    recursive_read_only: Literal["Disabled", "IfPossible", "Enabled"] | None = None
    """As in Kubernetes."""


class SourceSpec(SpecPart):
    """Modules of the pipeline that are in no image: for a first try and for small jobs."""

    config_map: Account
    """A ConfigMap of the namespace; its keys that end with .py are modules. A driver copies them when it starts, so a change needs a restart."""


class PipelineSpec(SpecPart):
    """The user's code, and what it needs in driver, executors and migration."""

    image: str | None = Field(default=None, min_length=1, max_length=512)
    """Image of driver, executors and migration; default: the operator's consumer image."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """Of driver, executors and migration; default: Always for a tag latest, IfNotPresent otherwise."""
    image_pull_secrets: Annotated[list[Account], Field(max_length=16)] = Field(default_factory=list)
    """Names of Secrets in the namespace, for pulling the image; beside those of the service accounts."""
    env: Annotated[list[EnvVar], Field(max_length=128)] = Field(default_factory=list)
    """Variables of driver, executors and migration; a pod template's win."""
    env_from: Annotated[list[EnvFrom], Field(max_length=32)] = Field(default_factory=list)
    """Variables out of Secrets and ConfigMaps, of all three."""
    volumes: Annotated[list[dict[str, Any]], Field(max_length=32)] = Field(default_factory=list)
    """Volumes of all three pods, as in Kubernetes."""
    volume_mounts: Annotated[list[VolumeMount], Field(max_length=64)] = Field(default_factory=list)
    """Where all three mount them."""
    source: SourceSpec | None = None
    """Where modules come from that the image lacks."""
    entrypoint: str = Field(max_length=256, pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """`module:function`, called as function(batch, info) once a batch."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Handed to the function as info.args."""

    @field_validator("env")
    @classmethod
    def _theirs(cls, value: list[EnvVar]) -> list[EnvVar]:
        if problem := reserved_problem([item.document() for item in value]):
            raise ValueError(problem.removeprefix("env."))
        return value

    @property
    def shared(self) -> dict[str, Any]:
        """env, envFrom, volumeMounts and volumes of all pods, as on the wire, without empty lists."""
        found = self.document()
        return {key: found[key] for key in ("env", "envFrom", "volumeMounts", "volumes") if found[key]}

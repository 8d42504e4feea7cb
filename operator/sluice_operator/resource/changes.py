"""What a change of each spec field costs, and the hashes by which a change is noticed.

Hashes cover what differs from the defaults of the schema, in its normal form. The API server writes defaults out, so an absent field and its
default are the same. A new field with a default, or a new operator, restarts nothing. Pure.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sluice_operator.names import default_table
from sluice_operator.resource.normal_form import kubernetes, normal
from sluice_operator.resource.pod_template import their_container

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice_operator.resource.fields import Spec

Json = dict[str, Any]


class ChangeCost(StrEnum):
    """SCALE: the running driver follows. RESTART: it is drained, and the next one starts. IGNORE: only the operator reads the field."""

    SCALE = "Scale"
    RESTART = "Restart"
    IGNORE = "Ignore"


CHANGES = {
    "stream": ChangeCost.RESTART,  # endpoints and the role; the stream itself cannot change
    "start": ChangeCost.IGNORE,  # without effect once there are checkpoints
    "until": ChangeCost.RESTART,
    "position": ChangeCost.IGNORE,  # a rule of its own
    "checkpoints": ChangeCost.IGNORE,  # cannot change
    "migrateFrom": ChangeCost.IGNORE,  # the migration reads it, not the driver
    "replicas": ChangeCost.SCALE,
    "autoscale": ChangeCost.SCALE,
    "rollout": ChangeCost.IGNORE,  # how the next restart is made
    "pool": ChangeCost.RESTART,
    "pipeline": ChangeCost.RESTART,
    "batch": ChangeCost.RESTART,
    "onError": ChangeCost.RESTART,
    "leaseDurationSeconds": ChangeCost.RESTART,
    "drainTimeoutSeconds": ChangeCost.RESTART,  # also the pod's grace period
    "restart": ChangeCost.IGNORE,
    "progressDeadlineSeconds": ChangeCost.IGNORE,
    "suspend": ChangeCost.IGNORE,  # a rule of its own
    "serviceAccountName": ChangeCost.RESTART,
    "driver": ChangeCost.RESTART,
    "executor": ChangeCost.RESTART,
    "sparkConf": ChangeCost.RESTART,
}
DEFAULTS: Json = {
    "batch": {"intervalSeconds": 5, "maxRecordsPerShard": 10_000, "maxBytesPerShard": 8_388_608, "shardsPerTask": 8},
    "onError": {"attempts": 3, "isolate": True, "maxExcludedPerHour": 100},
    "leaseDurationSeconds": 20,
    "drainTimeoutSeconds": 120,
    "executor": {"cores": 1, "inDriver": False},
    "migrateFrom": {"format": "Auto", "unstarted": "TrimHorizon"},
    "position": {"acceptExpired": False},
}
"""The schema's defaults of the fields that a hash covers. If one changes, it stays here as it was: stored resources have the old one written out."""
RESTARTING = [key for key, change in CHANGES.items() if change is ChangeCost.RESTART]
RESET_FIELDS = ("stream", "checkpoints", "position", "pipeline", "serviceAccountName", "driver")
MIGRATION_FIELDS = ("stream", "checkpoints", "migrateFrom", "pipeline", "serviceAccountName", "driver")


@dataclass(frozen=True)
class DesiredSpec:
    """A spec that can be carried out: parsed, and `raw` as the user wrote it."""

    spec: Spec
    raw: Json

    @cached_property
    def driver_hash(self) -> str:
        """12 hex digits over what the RESTART fields say. Another way to write the same is not a change."""
        return digest(normal(_chosen(self.raw, RESTARTING)), 12)

    def is_hash(self, other: str | None) -> bool:
        """Whether a driver with this hash carries the spec out."""
        return other == self.driver_hash

    @property
    def version(self) -> Json:
        """The fields that `driver_hash` covers, as the user wrote them: what a rollback brings back."""
        return {key: self.raw[key] for key in RESTARTING if key in self.raw}

    @property
    def table_hash(self) -> str:
        """12 hex digits over what decides which table a driver finds under its name: the address of DynamoDB, and as whom AWS knows its pods.

        The pod template of the driver may say that, too. Another way to write the same is not a change.
        """
        container, stream = their_container(self.spec.driver_template), self.spec.stream.dynamodb_endpoint
        named = [item for item in container.get("env") or [] if str(item.get("name", "")).startswith("AWS_")]
        return digest([stream, self.spec.service_account_name, kubernetes(named, "env"), kubernetes(container.get("envFrom") or None)], 12)

    def with_executors(self, number: int) -> DesiredSpec:
        """The same with this number of executors, as `spec.autoscale` has come to it."""
        return DesiredSpec(self.spec.model_copy(update={"replicas": number}), self.raw)

    @property
    def job_hash(self) -> str:
        """12 hex digits over all the migration Job would run: editing it lets a failed or waiting migration try again."""
        return digest(normal(_chosen(self.raw, MIGRATION_FIELDS)), 12)

    @property
    def reset_job_hash(self) -> str:
        """12 hex digits over all that a Job for `spec.position` would run."""
        return digest(normal(_chosen(self.raw, RESET_FIELDS)), 12)

    def is_job_hash(self, other: str) -> bool:
        """Whether a Job with this hash runs what the spec says."""
        return other == self.job_hash


def written_hash(raw: Json) -> str:
    """12 hex digits over the RESTART fields as they are written, of any spec, including one that nobody has parsed."""
    return digest(_chosen(raw, RESTARTING), 12)


def with_version(raw: Json, version: Json) -> Json:
    """A spec with the fields of another version in place of its own.

    A version whose tasks run in the driver has one executor at most, and no `autoscale`, whatever the spec says of another version's executors.
    """
    merged = {key: value for key, value in raw.items() if key not in RESTARTING} | {key: version[key] for key in RESTARTING if key in version}
    executor, number = version.get("executor"), raw.get("replicas")
    if not isinstance(executor, dict) or executor.get("inDriver") is not True:
        return merged
    merged.pop("autoscale", None)
    return merged | ({"replicas": 1} if isinstance(number, int) and number > 1 else {})


def start_position(raw: Json) -> str:
    """`LATEST`, `TRIM_HORIZON` or `AT_TIMESTAMP 2026-11-26T12:00:00+00:00`; in UTC, so that one position has one text.

    Of any spec, including one that nobody has parsed: what cannot be read counts as the default.
    """
    start = raw.get("start")
    fields = start if isinstance(start, dict) else {}
    words = [str(fields.get("position") or "TRIM_HORIZON")]
    return " ".join([*words, _in_utc(str(fields["timestamp"]))] if fields.get("timestamp") else words)


def _in_utc(time: str) -> str:
    try:
        return datetime.fromisoformat(time).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return time


def _chosen(raw: Json, keys: Iterable[str]) -> Json:
    """These fields, without what is as the schema's defaults have it."""
    return {key: kept for key in keys if (kept := _without_default(raw.get(key), DEFAULTS.get(key))) is not None}


def _without_default(value: Any, default: Any) -> Any:
    """None for the default. Of an object that has defaults inside, what differs from them; None if nothing does."""
    if isinstance(value, dict) and isinstance(default, dict):
        kept = {key: left for key, each in value.items() if (left := _without_default(each, default.get(key))) is not None}
        return kept or None
    return None if value == default and type(value) is type(default) else value


def digest(value: object, digits: int) -> str:
    """Hex digits of SHA-256 over canonical JSON; a field that is null counts as absent."""
    text = json.dumps(_without_nulls(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def table_name(namespace: str, name: str, spec: Spec) -> str:
    """The checkpoint table: the user's, or `sluice_<namespace>_<name>`."""
    return spec.checkpoints.table or default_table(namespace, name)


def migration_hash(namespace: str, name: str, wanted: DesiredSpec) -> str | None:
    """6 hex digits over source table, format and target table; None without migrateFrom."""
    source = wanted.spec.migrate_from
    if source is None:
        return None
    written = _chosen(wanted.raw, ["migrateFrom"])["migrateFrom"].get("format")
    return digest([source.table, written, table_name(namespace, name, wanted.spec)], 6)


def position_hash(namespace: str, name: str, wanted: DesiredSpec) -> str | None:
    """6 hex digits over what `spec.position` asks for, and of which table; None without it."""
    position = wanted.spec.position
    return None if position is None else digest([position.document(), table_name(namespace, name, wanted.spec)], 6)

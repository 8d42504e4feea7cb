"""What a change of each spec field costs, and the hashes by which a change is noticed.

Hashes cover fields as the user wrote them, never defaults: a new default, or a new operator, restarts nothing. Therefore the
CRD has no defaults except `replicas`. Pure.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice_operator.spec.fields import Spec

Json = dict[str, Any]


class ChangeCost(StrEnum):
    """SCALE: the running driver follows. RESTART: it is drained, and the next one starts. IGNORE: only the operator reads the field."""

    SCALE = "Scale"
    RESTART = "Restart"
    IGNORE = "Ignore"


CHANGES = {
    "stream": ChangeCost.RESTART,  # endpoints; name and region cannot change
    "start": ChangeCost.IGNORE,  # without effect once there are checkpoints
    "checkpoints": ChangeCost.IGNORE,  # cannot change
    "migrateFrom": ChangeCost.IGNORE,  # the migration reads it, not the driver
    "replicas": ChangeCost.SCALE,
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
MIGRATION_FIELDS = ("stream", "checkpoints", "migrateFrom", "pipeline", "serviceAccountName", "driver")


@dataclass(frozen=True, slots=True)
class DesiredSpec:
    """A spec that can be carried out: parsed, and `raw` as the user wrote it."""

    spec: Spec
    raw: Json

    @property
    def driver_hash(self) -> str:
        """12 hex digits over the RESTART fields."""
        return digest({key: self.raw.get(key) for key, change in CHANGES.items() if change is ChangeCost.RESTART}, 12)

    @property
    def job_hash(self) -> str:
        """12 hex digits over all the migration Job would run: editing it lets a failed or waiting migration try again."""
        return digest({key: self.raw.get(key) for key in MIGRATION_FIELDS}, 12)


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
    return spec.checkpoints.table or f"sluice_{namespace}_{name}"


def migration_hash(namespace: str, name: str, wanted: DesiredSpec) -> str | None:
    """6 hex digits over source table, format as written and target table; None without migrateFrom."""
    source = wanted.spec.migrate_from
    if source is None:
        return None
    written = (wanted.raw.get("migrateFrom") or {}).get("format")
    return digest([source.table, written, table_name(namespace, name, wanted.spec)], 6)

"""By what an operator can find a pod or a Job that lost its owner: by its label, or because a status names it. What has neither is nobody's."""

from __future__ import annotations

from typing import Any

from sluice_operator.observe.parse import CONSUMER
from sluice_operator.run.live_read import JOB_NAME, SPARK_APP

Json = dict[str, Any]


def labelled(body: Json, consumer: str) -> bool:
    """Whether it carries the consumer's label, or one of Spark or of the Job controller that names a driver or a Job of it."""
    labels = body["metadata"].get("labels") or {}
    return labels.get(CONSUMER) == consumer or any(str(labels.get(label, "")).startswith(f"{consumer}-") for label in (SPARK_APP, JOB_NAME))


def calls(body: Json) -> set[tuple[str, str | None]]:
    """What it can be named by: its name and uid, or its name alone until its uid was seen."""
    return {(body["metadata"]["name"], uid) for uid in (body["metadata"]["uid"], None)}


def names(resource: Json) -> set[tuple[str, str | None]]:
    """Names and uids of pods and Jobs that the status names. Without a uid it is whatever has the name."""
    status = resource.get("status", {})
    driver, migration = status.get("driver") or {}, status.get("migration") or {}
    named = [(one.get("pod"), one.get("uid")) for one in (driver, driver.get("leaving") or {})]
    gates = [(one.get("job"), one.get("uid")) for one in (migration, status.get("position") or {})]
    return {(str(name), uid) for name, uid in [*named, *gates] if name}

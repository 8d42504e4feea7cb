"""The port to the API server: eight calls, and errors named by what the caller does next.

Objects are plain JSON. `client` is the real thing, `memory` the one in memory; a contract suite holds them to the
same answers.
"""

from __future__ import annotations

from typing import Any, Protocol

Json = dict[str, Any]

CONSUMER_KIND = "KinesisConsumer"
PATHS = {
    CONSUMER_KIND: ("apis/sluice.dev/v1alpha1", "kinesisconsumers"),
    "Pod": ("api/v1", "pods"),
    "Job": ("apis/batch/v1", "jobs"),
    "Event": ("api/v1", "events"),
    "Lease": ("apis/coordination.k8s.io/v1", "leases"),
    "Namespace": ("api/v1", ""),  # found by its namespace, which it is, and the name ""
}


class ApiError(Exception):
    """Base of what a call may raise."""


class Conflict(ApiError):
    """What the call was conditional on is no longer so, or its object is gone: look again."""


class Exists(ApiError):
    """An object of that name is there: ours from before, or somebody's."""


class Rejected(ApiError):
    """The server understood and said no; the same call will hardly be answered otherwise."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason, self.message = reason, message


class Unavailable(ApiError):
    """No answer, or not now; the call may have been carried out. Look before doing it again."""


class Cluster(Protocol):
    """What the operator needs of an API server."""

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """The object as it is now, not from a cache; None if there is none."""

    def list(self, kind: str, namespace: str, labels: dict[str, str]) -> list[Json]:
        """All objects with these labels, as they are now."""

    def create(self, body: Json) -> Json:
        """Make it. Raises Exists."""

    def check(self, body: Json) -> None:
        """Ask whether it would be made, and make nothing (a dry run). Raises Refused."""

    def replace_status(self, body: Json) -> Json:
        """Write `.status` if `metadata.resourceVersion` is still the present one. Raises Conflict."""

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        """Merge patch; `metadata.uid` or `metadata.resourceVersion` in it are conditions. Raises Conflict."""

    def delete(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        """Ask for deletion of this very object; gone already is fine. Raises Conflict when the uid is another's."""

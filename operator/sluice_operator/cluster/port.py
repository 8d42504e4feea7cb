"""The port to the API server: eight calls, and errors named by what the caller does next.

Objects are plain JSON. `client` calls the real server, `sluice_lab.fakes.cluster` is the in-memory fake; one contract suite tests both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Json = dict[str, Any]
Labels = Mapping[str, str | None]
"""Labels and their values. None: the label with any value."""

JSON = "application/json"
METADATA = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
CONSUMER_KIND, POOL_KIND = "KinesisConsumer", "KinesisConsumerPool"
PATHS = {
    CONSUMER_KIND: ("apis/sluice.dev/v1alpha1", "kinesisconsumers"),
    POOL_KIND: ("apis/sluice.dev/v1alpha1", "kinesisconsumerpools"),
    "Pod": ("api/v1", "pods"),
    "Job": ("apis/batch/v1", "jobs"),
    "Event": ("api/v1", "events"),
    "Lease": ("apis/coordination.k8s.io/v1", "leases"),
    "Namespace": ("api/v1", ""),  # addressed by its own name as the namespace, and the name ""
}


class ApiError(Exception):
    """Base of what a call may raise."""


class Conflict(ApiError):
    """A condition of the call failed, or the object is gone: reconcile again."""


class Exists(ApiError):
    """An object of that name exists: this operator's, or another one."""


class Rejected(ApiError):
    """The server refused the call. Repeating it at once would get the same answer."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason, self.message = reason, message


class Unavailable(ApiError):
    """No answer, or a temporary error. The call may have been carried out: read before repeating it.

    Attributes:
        after: for so many seconds the server wants no repetition (`Retry-After`, of 429 and 503); 0: it did not say.
    """

    def __init__(self, message: str, after: int = 0) -> None:
        super().__init__(message)
        self.after = after


class Cluster(Protocol):
    """What the operator needs of an API server."""

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """The object as it is now, not from a cache; None if there is none."""

    def list(self, kind: str, namespace: str, labels: Labels) -> list[Json]:
        """All objects with these labels, as they are now; of every namespace if it is ''."""

    def create(self, body: Json) -> Json:
        """Create the object. Raises Exists."""

    def check(self, body: Json) -> None:
        """A dry run of `create`: nothing is created. Raises Rejected."""

    def replace_status(self, body: Json) -> Json:
        """Write `.status` if `metadata.resourceVersion` is still the present one; the rest of the body is ignored. Raises Conflict."""

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        """Merge patch; `metadata.uid` or `metadata.resourceVersion` in it are conditions. Raises Conflict."""

    def delete(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        """Ask for the deletion of the object with this uid. No error if it is gone. Raises Conflict if another object has its name."""

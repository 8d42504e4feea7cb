"""Which command a person would run next, by the reason of Ready (docs/runbooks.md, "By reason"). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_kubectl.views.consumer import ConsumerView
from sluice_kubectl.views.objects import PodView

BY_REASON = {
    "MigrationFailed": "retry",
    "SourceActive": "retry",
    "DriverOverdue": "force",
    **dict.fromkeys(("Failed", "BatchOverdue", "ExecutorsPending", "ReportStale", "Completed", "OOMKilled", "Isolating", "OutageLasts"), "logs"),
    **dict.fromkeys(("Unschedulable", "ImagePullBackOff", "CreateContainerConfigError"), "events"),
}
FIRST = {"retry": "repair what the message names", "force": "only if the node will not come back"}


def next_step(one: ConsumerView, pods: Sequence[PodView]) -> str | None:
    """`retry orders: repair what the message names first`; None where nobody has to do anything.

    A log is named only while the driver's pod is there.
    """
    command = "resume" if one.paused or one.suspended else BY_REASON.get(one.reason)  # the status may not know of the spec yet
    if command is None or one.deleting:
        return None
    if command == "logs" and not any(pod.role == "driver" for pod in pods):
        command = "events"
    return f"{command} {one.name}" + (f" ({FIRST[command]})" if command in FIRST else "")

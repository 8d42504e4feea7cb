"""Which command a person would run next, by the reason of Ready (docs/runbooks.md, "By reason"). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_kubectl.views.consumer import ConsumerView
from sluice_kubectl.views.objects import PodView

BY_REASON = {
    "MigrationFailed": "retry",
    "SourceActive": "retry",
    "DriverOverdue": "force",
    **dict.fromkeys(("Failed", "BatchOverdue", "ExecutorsPending", "ReportStale", "Completed", "OOMKilled", "Isolating"), "logs"),
    **dict.fromkeys(("Unschedulable", "ImagePullBackOff", "CreateContainerConfigError"), "events"),
}
FIRST = {
    "retry": "repair what the message names",
    "force": "only if the node will not come back",
    "restart": "tries the version that was rolled back again as it is; a corrected one needs kubectl apply",
}


def _of_position(view: ConsumerView) -> str | None:
    """A refused move is retried, if the spec still asks for it."""
    return "retry" if any(each.type == "PositionRefused" for each in view.conditions) else None


def _of_trial(view: ConsumerView) -> str | None:
    """A version that was rolled back is tried again only if it is asked for, however well the proven one works."""
    return "restart" if any(each.type == "RolledBack" and each.status == "True" for each in view.conditions) else None


def next_step(view: ConsumerView, pods: Sequence[PodView]) -> str | None:
    """`retry orders: repair what the message names first`; None where nobody has to do anything.

    A log is named only while the driver's pod is there.
    """
    by_state = BY_REASON.get(view.reason) or _of_position(view) or _of_trial(view)
    command = "resume" if view.paused or view.suspended else by_state  # the status may not know of the spec yet
    if command is None or view.deleting:
        return None
    if command == "logs" and not any(pod.drives for pod in pods):
        command = "events"
    return f"{command} {view.name}" + (f" ({FIRST[command]})" if command in FIRST else "")

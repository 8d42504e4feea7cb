"""Which command a person would run next, by the reason of Ready (docs/runbooks.md, "By reason"). Pure."""

from __future__ import annotations

from sluice_kubectl.views.consumer import ConsumerView

BY_REASON = {
    "MigrationFailed": "retry",
    "SourceActive": "retry",
    "DriverOverdue": "force",
    **dict.fromkeys(("Failed", "BatchOverdue", "ExecutorsPending", "ReportStale", "Completed", "OOMKilled", "Isolating"), "logs"),
    **dict.fromkeys(("Unschedulable", "ImagePullBackOff", "CreateContainerConfigError"), "events"),
}
FIRST = {"retry": "repair what the message names", "force": "only if the node is lost for good"}


def next_step(one: ConsumerView) -> str | None:
    """`retry orders: repair what the message names first`; None where nobody has to do anything."""
    command = "resume" if one.paused or one.suspended else BY_REASON.get(one.reason)  # the status may not know of the spec yet
    if command is None or one.deleting:
        return None
    return f"{command} {one.name}" + (f" ({FIRST[command]})" if command in FIRST else "")

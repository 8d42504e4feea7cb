"""What goes wrong, what the operator does about it, and what you have to do. Pure.

`do` ends the messages of conditions, with the command to run. The table of failures in docs/runbooks.md is generated from here.
Keys are reasons of conditions, as `rules`, `running`, `migration` and `observe` give them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """`does` is the operator's part; `do` the user's, empty where nothing is left to do. `late`: only when the progress deadline is over."""

    does: str
    do: str = ""
    late: bool = False


WORDS = 880  # characters of a message before the advice: a condition may have 1024
RETRY = "then run `kubectl sluice retry NAME`, or set a new value of the annotation sluice.dev/retry"
SPEC = "Correct what is named above and apply the spec. To retry without a change, run `kubectl sluice restart NAME`"
LOGS = "Run `kubectl sluice logs NAME` to see what the driver does"
IMAGE = "Correct spec.pipeline.image, or give the nodes access to the image"

FAILURES: dict[str, Advice] = {
    "SpecInvalid": Advice("keeps the last good spec in force; starts nothing if there is none", "Correct the field named above"),
    "ReconcileFailed": Advice(
        "retries every minute, and changes nothing; a deletion still works",
        "Correct the field named above. If no field is named, open an issue with the archive of `kubectl sluice report NAME`",
    ),
    "ApiRefused": Advice(
        "repeats the call every 30 s",
        "Fix what the API server names: grant the permission, raise the quota, free the name, or adjust the admission policy",
    ),
    "SourceActive": Advice("starts nothing; retries with backoff", "Stop the consumer that still writes to the source table"),
    "MigrationFailed": Advice("starts nothing and waits", f"Repair what is named above, {RETRY}"),
    "MigrationLost": Advice("retries with backoff"),
    "ImagePullBackOff": Advice("waits; the kubelet retries", IMAGE),
    "InvalidImageName": Advice("waits", IMAGE),
    "CreateContainerConfigError": Advice("waits; the kubelet retries", "Create the Secret or ConfigMap named above, or correct the pod template"),
    "CreateContainerError": Advice("waits; the kubelet retries", "Correct the pod template"),
    "RunContainerError": Advice("waits; the kubelet retries", "Correct the pod template or the image"),
    "CrashLoopBackOff": Advice("waits; the kubelet starts the init container again", "Correct the init container in the pod template"),
    "Unschedulable": Advice("waits", "Add nodes, or lower the requests in spec.driver.resources and spec.executor.resources"),
    "ExecutorsPending": Advice(
        "waits; Spark asks for executors again", "Run `kubectl sluice logs NAME` to see why Spark gets none: a quota, an admission policy", late=True
    ),
    "BatchOverdue": Advice(
        "waits: `process` may still return; if spec.batch.maxSeconds stopped the driver, starts the next attempt with backoff",
        "Run `kubectl sluice logs NAME`. If batches are meant to take this long, raise spec.progressDeadlineSeconds and spec.batch.maxSeconds",
    ),
    "DriverStarting": Advice("waits", LOGS, late=True),
    "SpecChanged": Advice("waits until the previous driver has finished its work", LOGS, late=True),
    "RestartRequested": Advice("waits until the previous driver has finished its work", LOGS, late=True),
    "Migrating": Advice("waits for the Job", "Run `kubectl sluice logs NAME --role migration` to see what it waits for", late=True),
    "DriverOverdue": Advice(
        "waits: a driver that cannot be seen may still work", "If the node will not come back, run `kubectl sluice force NAME` or set this annotation"
    ),
    "PodHeld": Advice(
        "waits until the object is gone: nothing of it runs any more, or you removed it",
        "First ask the owner of these finalizers: that program may not have finished its work",
    ),
    "StrayDriver": Advice("stops a driver that its status does not name, and starts none before it is gone"),
    "StrayJob": Advice("stops a migration Job that its status does not name, and continues when it is gone"),
    "ExecutorsLeaving": Advice(
        "waits: executors of the last driver may still work", "If their node will not come back, run `kubectl delete node NODE`"
    ),
    "ReportStale": Advice("waits: a driver that is silent may still work", "Run `kubectl sluice logs NAME`; if the driver hangs, delete its pod"),
    "WaitingOutLease": Advice("waits: the previous driver was killed and did not release its lease"),
    "LeaseHeld": Advice("retries with backoff, and counts no failure", "If this persists, find out who else uses the checkpoint table"),
    "NotNow": Advice("starts the next attempt with backoff, and counts no failure", "`process` raised NotNow; check the sink it writes to"),
    "Interrupted": Advice("starts the next attempt, which continues: the driver was stopped before it reached spec.until"),
    "Held": Advice("retries with backoff, and counts no failure", "If this persists, find out who else uses the checkpoint table"),
    "Fenced": Advice("retries with backoff, and counts no failure", "If this repeats, find out who else uses the checkpoint table"),
    "Refused": Advice("retries with backoff, up to spec.restart.maxBackoffSeconds", SPEC),
    "StreamNotFound": Advice(
        "retries with backoff",
        "Create the stream. If its name or region is wrong here, delete this resource and create it again: both fields are immutable",
    ),
    "DataLost": Advice(
        "retries with backoff, and reads nothing", "Decide whether the records named above may be lost, then do what the message says"
    ),
    "TooMuchPoison": Advice(
        "retries with backoff, and excludes no more than spec.onError.maxExcludedPerHour",
        "Run `kubectl sluice dead-letters list NAME` to see what is wrong with the records, or raise the limit",
    ),
    "OOMKilled": Advice("starts the next attempt with backoff", "Raise the memory in spec.driver.resources"),
    "Failed": Advice("starts the next attempt with backoff", "Run `kubectl sluice logs NAME` and look for the error named above"),
    "Completed": Advice(
        "starts the next attempt with backoff: the operator had not asked the driver to stop",
        "Run `kubectl sluice logs NAME` to see why the driver ended",
    ),
    "Killed": Advice("starts the next attempt, which waits for the lease to expire"),
    "Evicted": Advice("starts the next attempt, and counts no failure"),
    "DriverLost": Advice("starts the next attempt, and counts no failure"),
    "Forced": Advice("removes the pod and its executors without waiting, and starts the next attempt, which watches the lease first"),
    "DataLossSuspected": Advice(
        "continues, and keeps the condition", "Check which records are missing from your sink at the position or time named above"
    ),
    "SourceMoved": Advice("continues, and keeps the condition", "Stop the old consumer: it reads the same records again"),
    "PoisonExcluded": Advice("continues, and keeps the condition", "Run `kubectl sluice dead-letters list NAME`: these records are in no batch"),
    "Isolating": Advice("waits: the driver searches for the record on which `process` raises", LOGS, late=True),
    "OutageLasts": Advice(
        "retries the batch, and leaves nothing out",
        "Run `kubectl sluice logs NAME` and repair what it names. If nothing is down, deploy a `process` that raises ValueError for such a record",
    ),
    "RetentionNear": Advice(
        "continues; the condition disappears when it is over", "Raise the stream's retention or spec.replicas before unread records expire"
    ),
}
OTHERS = Advice("retries with backoff", SPEC)
"""For reasons that a pipeline gives, which cannot be listed."""


def advised(reason: str, message: str, name: str = "NAME", *, stalled: bool = False) -> str:
    """The message of a condition, ended by what you have to do; a stalled resource always has something. `name` is the resource's."""
    advice = FAILURES.get(reason, OTHERS if stalled else Advice(""))
    do = advice.do.replace("NAME", name)
    if not do or do in message or (advice.late and not stalled):
        return message
    words = message[:WORDS].rstrip(" .")
    end = "" if words.endswith(("?", "!")) else "."
    return f"{words}{end} {do}." if words else f"{do}."

"""What goes wrong, what the operator does about it, and what is left to the user. Pure.

The words of `do` end the messages of conditions; all of it is the table of failures in docs/runbooks.md, which is generated from here.
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
RETRY = "then annotate this resource with a new value of sluice.dev/retry"
SPEC = "Correct what is named; a changed spec, or a new value of sluice.dev/restart, is tried at once"
IMAGE = "Correct spec.pipeline.image, or give the nodes access to it"

FAILURES: dict[str, Advice] = {
    "SpecInvalid": Advice("goes on with the last good spec; starts nothing if there is none", "Correct the field that is named"),
    "ReconcileFailed": Advice(
        "tries again every minute, and changes nothing; a deletion goes through",
        "Correct the field that is named; if none is, open an issue with the archive of `kubectl sluice report`",
    ),
    "ApiRefused": Advice("repeats the call every 30 s", "Grant or free what the API server names: a right, a quota, a name, an admission policy"),
    "SourceActive": Advice("starts nothing; tries again with backoff", "Stop the consumer that still writes to the source table"),
    "MigrationFailed": Advice("starts nothing and waits", f"Repair what is named, {RETRY}"),
    "MigrationLost": Advice("makes a new try with backoff"),
    "ImagePullBackOff": Advice("waits; the kubelet tries again", IMAGE),
    "InvalidImageName": Advice("waits", IMAGE),
    "CreateContainerConfigError": Advice("waits; the kubelet tries again", "Make the Secret or ConfigMap that is named, or correct the pod template"),
    "CreateContainerError": Advice("waits; the kubelet tries again", "Correct the pod template"),
    "RunContainerError": Advice("waits; the kubelet tries again", "Correct the pod template or the image"),
    "CrashLoopBackOff": Advice("waits; the kubelet starts the init container again", "Repair the init container of the pod template"),
    "Unschedulable": Advice("waits", "Add nodes, or lower the requests in spec.driver.resources and spec.executor.resources"),
    "ExecutorsPending": Advice(
        "waits; Spark asks for executors again", "Read in the driver's log why Spark gets none: a quota, an admission policy", late=True
    ),
    "BatchOverdue": Advice(
        "waits: `process` may still end; where spec.batch.maxSeconds ended the driver, starts the next attempt with backoff",
        "Read in the driver's log where `process` stands; raise spec.progressDeadlineSeconds and spec.batch.maxSeconds if such batches are wanted",
    ),
    "DriverStarting": Advice("waits", "Read the driver's log", late=True),
    "SpecChanged": Advice("waits until the driver before has ended its work", "Read the driver's log", late=True),
    "RestartRequested": Advice("waits until the driver before has ended its work", "Read the driver's log", late=True),
    "Migrating": Advice("waits for the Job", "Read the log of the Job's pod", late=True),
    "DriverOverdue": Advice("waits: a driver that cannot be seen may still work", "If its node is lost for good, give the pod up by the annotation"),
    "PodHeld": Advice(
        "waits until the object is gone: nothing of it runs any more, or you gave it up",
        "Ask who set them first: the program may not have done its work",
    ),
    "StrayDriver": Advice("ends a driver that its status does not name, and starts none before it is gone"),
    "StrayJob": Advice("ends a migration Job that its status does not name, and goes on when it is gone"),
    "ExecutorsLeaving": Advice("waits: executors of the last driver may still work", "If their node is lost for good, delete the Node"),
    "ReportStale": Advice("waits: a driver that is silent may still work", "Read its log; delete its pod if it hangs"),
    "WaitingOutLease": Advice("waits: the driver before this one was killed and released nothing"),
    "LeaseHeld": Advice("tries again with backoff, and counts no failure", "If it stays so, find who else uses the checkpoint table"),
    "NotNow": Advice("starts the next attempt with backoff, and counts no failure", "`process` asked for its batch later: look at its sink"),
    "Held": Advice("tries again with backoff, and counts no failure", "If it stays so, find who else uses the checkpoint table"),
    "Fenced": Advice("tries again with backoff, and counts no failure", "If it comes again, find who else uses the checkpoint table"),
    "Refused": Advice("tries again with backoff, up to spec.restart.maxBackoffSeconds", SPEC),
    "StreamNotFound": Advice("tries again with backoff", "Make the stream, or create the resource again: name and region of a stream are fixed"),
    "DataLost": Advice("tries again with backoff, and reads nothing", "Decide whether what is named may be lost, and go on as the message says"),
    "TooMuchPoison": Advice(
        "tries again with backoff, and excludes no more than spec.onError.maxExcludedPerHour",
        "Find what is wrong with the records in the dead letters, or raise the limit",
    ),
    "OOMKilled": Advice("starts the next attempt with backoff", "Raise the memory in spec.driver.resources"),
    "Failed": Advice("starts the next attempt with backoff", "Read what is named in the driver's log"),
    "Completed": Advice("starts the next attempt with backoff: the operator had not asked the driver to end", "Read why the driver ended in its log"),
    "Killed": Advice("starts the next attempt; it waits out the lease"),
    "Evicted": Advice("starts the next attempt, and counts no failure"),
    "DriverLost": Advice("starts the next attempt, and counts no failure"),
    "Forced": Advice("removes the pod and its executors without waiting, and starts the next attempt, which watches the lease first"),
    "DataLossSuspected": Advice("goes on, and keeps the condition", "Find what is missing between the two positions that are named"),
    "SourceMoved": Advice("goes on, and keeps the condition", "Stop the old consumer: what it reads is read twice"),
    "PoisonExcluded": Advice("goes on, and keeps the condition", "Look at the dead letters: these records are in no batch"),
    "Isolating": Advice("waits: the driver looks for the record on which `process` raises", "Read the driver's log", late=True),
    "OutageLasts": Advice(
        "tries the batch again, and leaves nothing out",
        "Repair what the driver's log names; if nothing is down, deploy a `process` that raises a ValueError for such a record",
    ),
    "RetentionNear": Advice(
        "goes on; the condition goes when it is over", "Raise the stream's retention or spec.replicas, before unread records expire"
    ),
}
OTHERS = Advice("tries again with backoff", SPEC)
"""For reasons that a pipeline gives, which cannot be listed."""


def advised(reason: str, message: str, *, stalled: bool = False) -> str:
    """The message of a condition, ended by what is left to do; a stalled resource always has something."""
    advice = FAILURES.get(reason, OTHERS if stalled else Advice(""))
    if not advice.do or advice.do in message or (advice.late and not stalled):
        return message
    words = message[:WORDS].rstrip(" .")
    end = "" if words.endswith(("?", "!")) else "."
    return f"{words}{end} {advice.do}." if words else f"{advice.do}."

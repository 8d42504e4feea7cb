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
CUT = "…"
RETRY = "then run `kubectl sluice retry NAME`, or set a new value of the annotation sluice.dev/retry"
SPEC = "Correct what is named above and apply the spec. To retry without a change, run `kubectl sluice restart NAME`"
LOGS = "Run `kubectl sluice logs NAME` to see what the driver does"
IMAGE = "Correct spec.pipeline.image and run `kubectl apply`, or give the nodes access to the image"
LEASE = "If this persists, run `sluice show --table TABLE --region REGION` to see who holds the lease"

FAILURES: dict[str, Advice] = {
    "SpecInvalid": Advice(
        "keeps the last good spec in force; starts nothing if there is none", "Correct the field named above, and run `kubectl apply`"
    ),
    "ReconcileFailed": Advice(
        "retries every minute, and changes nothing; a deletion still works",
        "Correct the field named above. If no field is named, open an issue with the archive of `kubectl sluice report NAME`",
    ),
    "ApiRefused": Advice(
        "repeats the call every 30 s",
        "Grant the permission, raise the quota, free the name, or adjust the admission policy. Run `kubectl sluice events NAME` to see each answer",
    ),
    "SourceActive": Advice(
        "starts nothing; retries with backoff",
        "Stop the old consumer; Sluice retries automatically. Run `kubectl sluice logs NAME --role migration` to see which rows change",
    ),
    "MigrationFailed": Advice("starts nothing and waits", f"Repair what is named above, {RETRY}"),
    "MigrationLost": Advice("retries with backoff"),
    "ImagePullBackOff": Advice("waits; the kubelet retries", IMAGE),
    "InvalidImageName": Advice("waits", IMAGE),
    "CreateContainerConfigError": Advice(
        "waits; the kubelet retries", "Create the Secret or ConfigMap named above, or correct the pod template and run `kubectl apply`"
    ),
    "CreateContainerError": Advice("waits; the kubelet retries", "Correct the pod template, and run `kubectl apply`"),
    "RunContainerError": Advice("waits; the kubelet retries", "Correct the pod template or the image, and run `kubectl apply`"),
    "CrashLoopBackOff": Advice(
        "waits; the kubelet starts the init container again", "Correct the init container in the pod template, and run `kubectl apply`"
    ),
    "Unschedulable": Advice(
        "waits", "Run `kubectl sluice events NAME`, then add nodes or lower the requests in spec.driver.resources and spec.executor.resources"
    ),
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
    "StandbyWithoutRoom": Advice(
        "makes this rollout as Recreate",
        "Run `kubectl describe quota` and `kubectl describe nodes`, then make room for two drivers, or set spec.rollout.strategy",
    ),
    "StandbyNotReady": Advice(
        "makes this rollout as Recreate; with spec.rollout.standby Always, replaces the standby after a pause",
        "Run `kubectl sluice logs NAME` to see what its start waits for, or raise spec.rollout.readySeconds",
    ),
    "StandbyAwaited": Advice("creates a standby when what is named above is over; the driver continues"),
    "StandbySilent": Advice(
        "replaces the standby if that lasts for spec.rollout.readySeconds; the driver continues",
        "Run `kubectl sluice logs NAME --pod POD` for the pod named above: it may have lost its node, its network or its credentials",
    ),
    "RolledBack": Advice(
        "runs the proven version, and tries this one again only if the spec or sluice.dev/restart changes",
        "Correct the version and run `kubectl apply`. To try it again as it is, run `kubectl sluice restart NAME`",
    ),
    "ReportStale": Advice("waits: a driver that is silent may still work", "Run `kubectl sluice logs NAME`; if the driver hangs, delete its pod"),
    "WaitingOutLease": Advice("waits: the previous driver was killed and did not release its lease"),
    "LeaseHeld": Advice("retries with backoff, and counts no failure", LEASE),
    "NotNow": Advice(
        "starts the next attempt with backoff, and counts no failure",
        "Run `kubectl sluice logs NAME` to see why `process` raised NotNow, and check its sink",
    ),
    "Interrupted": Advice("starts the next attempt, which continues: the driver was stopped before it reached spec.until"),
    "Held": Advice("retries with backoff, and counts no failure", LEASE),
    "Fenced": Advice("retries with backoff, and counts no failure", LEASE),
    "Refused": Advice("retries with backoff, up to spec.restart.maxBackoffSeconds", SPEC),
    "AccessDenied": Advice(
        "retries with backoff, up to spec.restart.maxBackoffSeconds",
        "Correct the policy that is named above, then run `kubectl sluice restart NAME`",
    ),
    "StreamNotFound": Advice(
        "retries with backoff",
        "Create the stream. If its name, region or ARN is wrong, run `kubectl delete kc NAME` and apply it again: they are immutable",
    ),
    "DataLost": Advice(
        "retries with backoff, and reads nothing",
        "If these records may be lost, run `kubectl annotate kc NAME sluice.dev/accept-loss=BATCH` with the batch above",
    ),
    "TooMuchPoison": Advice(
        "retries with backoff, and excludes no more than spec.onError.maxExcludedPerHour",
        "Run `kubectl sluice dead-letters list NAME` to see what is wrong with the records, or raise the limit",
    ),
    "OOMKilled": Advice("starts the next attempt with backoff", "Raise the memory in spec.driver.resources, and run `kubectl apply`"),
    "Failed": Advice("starts the next attempt with backoff", "Run `kubectl sluice logs NAME` and look for the error named above"),
    "Completed": Advice(
        "starts the next attempt with backoff: the operator had not asked the driver to stop",
        "Run `kubectl sluice logs NAME` to see why the driver ended",
    ),
    "Killed": Advice("starts the next attempt, which waits for the lease to expire"),
    "Evicted": Advice("starts the next attempt, and counts no failure"),
    "DriverLost": Advice("starts the next attempt, and counts no failure"),
    "Forced": Advice("removes the pod and its executors without waiting, and starts the next attempt, which watches the lease first"),
    "StartIgnored": Advice(
        "continues at the consumer's positions; the condition disappears when spec.start is as it was",
        "To read records again, set spec.position (docs/how-to/read-again.md); else set spec.start back and run `kubectl apply`",
    ),
    "Resetting": Advice(
        "drains the driver, and starts none before the Job has moved the positions",
        "Run `kubectl sluice logs NAME --role migration` to see what it waits for; to give the move up, remove spec.position",
        late=True,
    ),
    "ResetLost": Advice("retries the Job with backoff, and starts no driver before its end"),
    "ResetFailing": Advice(
        "retries the Job with backoff, three times at most; then the driver starts",
        "Run `kubectl sluice logs NAME --role migration` and look for the error named above",
    ),
    "PositionRefused": Advice(
        "continues at the consumer's positions; the condition disappears with another spec.position, or without one",
        "Correct spec.position and run `kubectl apply`, or repair what is named and run `kubectl sluice retry NAME`; else remove spec.position",
    ),
    "DataLossSuspected": Advice(
        "continues, and keeps the condition",
        "Run `kubectl sluice shards NAME`, and check which records are missing from your sink at the position or time named above",
    ),
    "SourceMoved": Advice(
        "continues; the condition disappears when no position has moved there for an hour",
        "Stop the old consumer, which reads the same records. Run `kubectl sluice migrate --plan consumer.yaml` to see which rows change",
    ),
    "PoisonExcluded": Advice("continues, and keeps the condition", "Run `kubectl sluice dead-letters list NAME`: these records are in no batch"),
    "Isolating": Advice("waits: the driver searches for the record on which `process` raises", LOGS, late=True),
    "HotShard": Advice(
        "adds no executors, because one task reads a shard",
        "Use more partition keys, or split the shard. If `process` repartitions its batch, set spec.autoscale.cap to None and run `kubectl apply`",
    ),
    "NoGain": Advice(
        "returns to the former number of executors, and tries more again after an hour",
        "Run `kubectl sluice logs NAME`: a batch may wait for its sink or a service. If full batches are short, raise spec.batch.maxRecordsPerShard",
    ),
    "NotBusy": Advice(
        "adds no executors, because these have time left",
        "Lower spec.batch.intervalSeconds and run `kubectl apply`",
    ),
    "AtMaximum": Advice("adds no executors", "Raise spec.autoscale.max and run `kubectl apply`, or make `process` faster"),
    "AtActiveShards": Advice(
        "adds no executors, because one task reads a shard",
        "Add shards to the stream. If `process` repartitions its batch, set spec.autoscale.cap to None and run `kubectl apply`",
    ),
    "ExecutorsOverdue": Advice(
        "asks for no more executors, and uses those that run; when these are enough, gives the others up",
        "Run `kubectl sluice events NAME`, and `kubectl sluice logs NAME` for a quota. Then make room, or lower spec.autoscale.max",
    ),
    "PoolMissing": Advice(
        "starts nothing; the positions stay", "Create the pool, correct spec.pool, or remove it to run a driver of its own; then run `kubectl apply`"
    ),
    "PoolFull": Advice("starts nothing; the other members continue", "Name another pool in spec.pool, and run `kubectl apply`"),
    "PoolSuspended": Advice("starts nothing until the pool does", "Set spec.suspend and spec.replicas of the pool, and run `kubectl apply`"),
    "PoolNotReady": Advice("waits for the pool's pod", "Run `kubectl describe kcp` to see what keeps the pool from starting", late=True),
    "PoolFailing": Advice(
        "starts the pool's pod again with backoff",
        """Move one of them: run `kubectl patch kc MEMBER --type merge -p '{"spec":{"pool":"OTHER"}}'` with the name of another pool""",
    ),
    "OutOfPool": Advice(
        "runs it in a driver of its own, until its spec or sluice.dev/restart changes",
        "Correct its `process` or its memory; then run `kubectl sluice restart NAME` to return it to the pool",
    ),
    "RetentionNear": Advice(
        "continues; the condition disappears when it is over",
        "Run `aws kinesis increase-stream-retention-period --stream-name STREAM --retention-period-hours 168`, or raise spec.replicas",
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
    end = CUT if len(message) > WORDS else "" if words.endswith(("?", "!")) else "."
    return f"{words}{end} {do}." if words else f"{do}."

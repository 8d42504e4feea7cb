"""The planner's table: one row a rule of `plan.rules.RULES`, from a view to phase, reason, message and actions.

The table stays in one file, longer than others. The rules have one order, a test holds the rows to it, and a reader follows it from the top down.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import kstatus
import pytest
from argo_lua import argo_health
from plan.rows import GOING, SETTLED, STUCK, Row, add, shown
from plan.views import (
    EXECUTORS,
    HASH,
    MIGRATING,
    MOVE,
    MOVING,
    NOW,
    REPORT,
    RESOURCE,
    attempt,
    driver,
    ended,
    executor,
    gone,
    job,
    migration,
    position,
    seconds,
    view,
    wanted,
)

from sluice_operator.names import FINALIZER
from sluice_operator.plan import rules
from sluice_operator.state.actions import (
    AddFinalizer,
    CreateDriver,
    CreateJob,
    CreateResetJob,
    CreateStandby,
    DeleteJob,
    DeletePod,
    RemoveFinalizer,
    Retarget,
)
from sluice_operator.state.objects import Observed, Pod, Report, Trouble
from sluice_operator.state.serialization import dump_status
from sluice_operator.state.status import (
    AutoscaleStatus,
    Exit,
    Leaving,
    MigrationState,
    Phase,
    PositionState,
    RestartStatus,
    ScaleSample,
    StandbyStatus,
    Status,
    StreamStatus,
)
from sluice_operator.state.view import View

OVERDUE = (
    "orders-driver-1 should have stopped; its node may be lost. The annotation sluice.dev/force=driver-1 removes it. "
    "If the node will not come back, run `kubectl sluice force orders` or set this annotation."
)
NOT_DONE = (
    "waiting until orders-exec-1 is gone; not done within 600 s "
    "(spec.progressDeadlineSeconds). If their node will not come back, run `kubectl delete node NODE`."
)
FAILED = RestartStatus(count=1, next_at=seconds(10))
REFUSED = replace(FAILED, reason="Refused", message="no such stream.", refused=wanted().driver_hash)
LEFT = Leaving(attempt=1, pod="orders-driver-1", uid="driver-1", why="SpecChanged")
NOTHING = Observed()
BOTH = wanted(migrateFrom={"table": "orders-kcl"}, position={"id": "one", "to": {"latest": True}})
ALONE = wanted(replicas=1, executor={"inDriver": True})
FRESH = Status(observed_generation=1)
UNTIL = wanted(until={"tip": True})
REACHED = Exit(code=0, reason="EndReached", message="7 records", at=NOW)
COMPLETED = Status(observed_generation=1, driver=gone(spec_hash=UNTIL.driver_hash, exit=REACHED))
SCALED = wanted(replicas=1, autoscale={"max": 8})
SAMPLE = ScaleSample(at=seconds(-60), attempt=1, executors=2, batch=7, records=0, millis_behind_latest=80_000)
MEASURED = Status(observed_generation=1, driver=attempt(), autoscale=AutoscaleStatus(replicas=2, sample=SAMPLE))

ROLLED = wanted(batch={"intervalSeconds": 9}, rollout={"strategy": "Standby"})
MOVED_TABLE = {"name": "orders", "region": "eu-west-1", "dynamodbEndpoint": "http://dynamodb.shop:8000"}
STANDING = Status(
    observed_generation=1,
    driver=attempt(),
    standby=StandbyStatus(attempt=2, pod="orders-driver-2", uid="driver-2", spec_hash=ROLLED.driver_hash, since=NOW),
    attempts=2,
)


def second(**fields: Any) -> Pod:
    return driver(**{"name": "orders-driver-2", "uid": "driver-2", "attempt": 2, "report": None, "reported_at": None} | fields)


def beside(**fields: Any) -> Observed:
    return Observed(drivers=(driver(), second(**fields)), executors=EXECUTORS)


def late(status: Status) -> Status:
    assert status.standby is not None
    return replace(status, standby=replace(status.standby, since=seconds(-300)))


def busy(**figures: Any) -> Observed:
    told = replace(REPORT, **{"busy": 1.0, "batch": 8, "records": 600, "millis_behind_latest": 120_000, "active_shards": 4} | figures)
    return Observed(drivers=(driver(report=told),), executors=EXECUTORS)


ROWS: list[Row] = []
row = partial(add, ROWS)

row(
    "force",
    "the driver pod that the user gave up and its executors are deleted with no grace period, of a deleted resource too",
    view(
        resource=replace(RESOURCE, force="driver-1", deleting=True), observed=Observed(drivers=(driver(gone_by=seconds(-60)),), executors=EXECUTORS)
    ),
    (Phase.DRAINING, "Forced", "annotation sluice.dev/force removes orders-driver-1"),
    DeletePod("orders-driver-1", "driver-1", 0),
    DeletePod("orders-exec-1", "exec-1", 0),
    DeletePod("orders-exec-2", "exec-2", 0),
)
row(
    "release",
    "a deleted resource drains its driver first",
    view(resource=replace(RESOURCE, deleting=True)),
    (Phase.DELETING, "Deleted", "orders-driver-1 drains"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "release",
    "a deleted resource of which nothing runs loses its finalizer",
    view(resource=replace(RESOURCE, deleting=True), status=Status(observed_generation=1, driver=gone()), observed=NOTHING),
    (Phase.DELETING, "Deleted", "nothing of it runs any more; the checkpoint table stays"),
    RemoveFinalizer(),
)
row(
    "release",
    "a resource of a deleted namespace loses its finalizer though a driver may run",
    view(resource=replace(RESOURCE, deleting=True), observed=Observed(doomed=True)),
    (Phase.DELETING, "Deleted", "its namespace is being deleted; the checkpoint table stays"),
    RemoveFinalizer(),
)
row(
    "release",
    "a deleted resource drains its driver though it is paused",
    view(resource=replace(RESOURCE, deleting=True, paused=True)),
    (Phase.DELETING, "Deleted", "orders-driver-1 drains"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "release",
    "a deleted resource whose objects are left alone deletes its Jobs itself, those that have ended too",
    view(
        resource=replace(RESOURCE, deleting=True, finalizers=(FINALIZER, "orphan")),
        status=Status(observed_generation=1, driver=gone()),
        observed=Observed(jobs=(job(state="Complete"),)),
    ),
    (Phase.DELETING, "MigrationStopping", f"waiting until orders-migrate-{HASH}-1 is gone"),
    DeleteJob(f"orders-migrate-{HASH}-1", "job-1"),
)
row(
    "paused",
    "a paused resource that is as its spec asks stays ready",
    view(resource=replace(RESOURCE, paused=True)),
    (Phase.RUNNING, "Paused", "annotation sluice.dev/paused is set"),
    ready="True",
    health=SETTLED,
)
row(
    "paused",
    "a paused resource takes no action, and says which rule waits, without a deadline",
    view(
        resource=replace(RESOURCE, paused=True),
        spec=wanted(batch={"intervalSeconds": 9}),
        status=Status(observed_generation=1, driver=attempt(), progressing_since=seconds(-6000)),
    ),
    (Phase.RUNNING, "Paused", "annotation sluice.dev/paused is set; then: SpecChanged"),
    ready="True",
)
row(
    "paused",
    "a paused resource that rests is shown at rest",
    view(
        resource=replace(RESOURCE, paused=True),
        spec=wanted(suspend=True),
        status=Status(observed_generation=1, driver=gone()),
        observed=NOTHING,
    ),
    (Phase.SUSPENDED, "Paused", "annotation sluice.dev/paused is set"),
    ready="True",
    health=SETTLED,
)
row(
    "paused",
    "a paused resource is not stalled by what a driver refused before",
    view(
        resource=replace(RESOURCE, paused=True),
        status=Status(observed_generation=1, driver=attempt(), restarts=REFUSED),
        observed=Observed(drivers=(driver(report=None, reported_at=None),)),
    ),
    (Phase.STARTING, "Paused", "annotation sluice.dev/paused is set; then: DriverStarting"),
)
row(
    "invalid_spec",
    "an invalid spec without a valid one before it starts nothing",
    view(problem="spec.replicas: -1 is less than 0", status=FRESH, observed=NOTHING),
    (Phase.FAILED, "SpecInvalid", "spec.replicas: -1 is less than 0. Correct the field named above, and run `kubectl apply`."),
    health=STUCK,
)
row(
    "invalid_spec",
    "without a valid spec nobody knows whether a standby may follow, so it ends",
    view(problem="spec.replicas: -1 is less than 0", status=STANDING, observed=beside()),
    (Phase.FAILED, "SpecInvalid", "spec.replicas: -1 is less than 0. Correct the field named above, and run `kubectl apply`."),
    DeletePod("orders-driver-2", "driver-2"),
    health=STUCK,
)
row(
    "invalid_spec",
    "a driver is stopped all the same if an invalid spec says that nothing shall run",
    replace(view(problem="spec.replicas: -1 is less than 0"), rests=True),
    (Phase.DRAINING, "Suspended", "orders-driver-1 drains"),
    DeletePod("orders-driver-1", "driver-1"),
    health=STUCK,
)
row(
    "add_finalizer",
    "a new resource gets the finalizer before anything else",
    view(resource=replace(RESOURCE, finalizers=()), status=Status(), observed=NOTHING),
    (Phase.PENDING, "Accepted", "taken over by the operator"),
    AddFinalizer(),
)
row(
    "clear_strays",
    "a driver that the status does not name is drained, and no other is started",
    view(observed=Observed(drivers=(driver(), driver(name="orders-driver-7", uid="stray", attempt=7)), executors=EXECUTORS)),
    (Phase.DRAINING, "StrayDriver", "waiting until orders-driver-7 is gone"),
    DeletePod("orders-driver-7", "stray"),
)
row(
    "clear_strays",
    "one that another resource of this name made is waited for, and left to the garbage collector",
    view(observed=Observed(drivers=(driver(), driver(name="orders-driver-7", uid="stray", owner="earlier")), executors=EXECUTORS)),
    (Phase.DRAINING, "StrayDriver", "waiting until orders-driver-7 is gone"),
)
row(
    "await_leaving",
    "the next driver is named, and the one before it has not been asked to end: it is",
    view(status=Status(observed_generation=1, driver=attempt(2, uid=None, leaving=LEFT))),
    (Phase.STARTING, "SpecChanged", "orders-driver-1 finishes its work, then the next driver starts"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "await_leaving",
    "the next driver waits until the one before it is gone",
    view(
        status=Status(observed_generation=1, driver=attempt(2, uid=None, leaving=LEFT)),
        observed=Observed(drivers=(driver(gone_by=seconds(30)),)),
    ),
    (Phase.STARTING, "SpecChanged", "orders-driver-1 finishes its work, then the next driver starts"),
)
row(
    "delete_finished_driver",
    "the pod of a driver that failed is deleted; its exit is in the status",
    view(observed=Observed(drivers=(ended(1),), executors=EXECUTORS)),
    (Phase.BACKING_OFF, "Failed", "orders-driver-1 ended with 1: sink is full. Run `kubectl sluice logs orders` and look for the error named above."),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "delete_finished_driver",
    "the pod of a driver that reached the end of its run is deleted; that is no failure",
    view(spec=UNTIL, observed=Observed(drivers=(ended(0, "EndReached"),), executors=EXECUTORS)),
    (Phase.DRAINING, "EndReached", "orders-driver-1 ended with 0: sink is full"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "delete_finished_driver",
    "the pod of a driver that was asked to end is deleted",
    view(
        status=Status(observed_generation=1, driver=attempt(stopping="Suspended")),
        spec=wanted(suspend=True),
        observed=Observed(drivers=(ended(0, "Drained", gone_by=seconds(30)),)),
    ),
    (Phase.DRAINING, "Suspended", "orders-driver-1 ended with 0: sink is full"),
)
row(
    "await_exit",
    "a driver that somebody deleted is waited for",
    view(observed=Observed(drivers=(driver(gone_by=seconds(30)),), executors=EXECUTORS)),
    (Phase.DRAINING, "DriverDeleted", "waiting until orders-driver-1 is gone"),
)
row(
    "await_exit",
    "of a driver that should be gone the user is told how to give it up",
    view(observed=Observed(drivers=(driver(gone_by=seconds(-30)),), executors=EXECUTORS)),
    (Phase.DRAINING, "DriverOverdue", OVERDUE),
    health=STUCK,
)
row(
    "clear_jobs",
    "a migration Job that the status does not name is deleted",
    view(spec=MIGRATING, status=FRESH, observed=Observed(jobs=(job(name="orders-migrate-0ld-1", uid="old"),))),
    (Phase.PENDING, "StrayJob", "waiting until orders-migrate-0ld-1 is gone"),
    DeleteJob("orders-migrate-0ld-1", "old"),
)
row(
    "clear_jobs",
    "a Job that other programs keep is waited for, and how they are taken off is said",
    view(spec=MIGRATING, status=FRESH, observed=Observed(jobs=(job(name="orders-migrate-0ld-1", uid="old", deleting=True, finalizers=("a.io/b",)),))),
    (
        Phase.PENDING,
        "StrayJob",
        (
            "waiting until orders-migrate-0ld-1 is gone; finalizers of other programs keep it: remove its finalizers (a.io/b): "
            """kubectl patch job orders-migrate-0ld-1 -n shop --type=merge -p '{"metadata":{"finalizers":null}}'"""
        ),
    ),
)
row(
    "suspend",
    "a suspended resource drains its driver",
    view(spec=wanted(suspend=True)),
    (Phase.DRAINING, "Suspended", "orders-driver-1 drains"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "suspend",
    "a suspended resource of which nothing runs is ready",
    view(spec=wanted(suspend=True), status=Status(observed_generation=1, driver=gone()), observed=NOTHING),
    (Phase.SUSPENDED, "Suspended", "spec.suspend is true"),
    ready="True",
    health=SETTLED,
)
row(
    "migrate",
    "a Job of an earlier resource of this name is left to the garbage collector, and waited for",
    view(spec=MIGRATING, status=FRESH, observed=Observed(jobs=(job(owner="earlier"),))),
    (Phase.MIGRATING, "MigrationStopping", "waiting until the Job of the last try is gone"),
)
row(
    "migrate",
    "the migration comes before the first driver",
    view(spec=MIGRATING, status=FRESH, observed=NOTHING),
    (Phase.MIGRATING, "Migrating", f"Job orders-migrate-{HASH}-1 copies the source's positions"),
    CreateJob(),
)
row(
    "migrate",
    "the migration comes before the positions are moved",
    view(spec=BOTH, status=FRESH, observed=NOTHING),
    (Phase.MIGRATING, "Migrating", f"Job orders-migrate-{HASH}-1 copies the source's positions"),
    CreateJob(),
)
row(
    "migrate",
    "a migration that failed waits for the user",
    view(
        spec=MIGRATING,
        status=replace(FRESH, migration=migration(state=MigrationState.FAILED, message="two rows of shard 7")),
        observed=Observed(jobs=(job(state="Failed"),)),
    ),
    (
        Phase.FAILED,
        "MigrationFailed",
        (
            "two rows of shard 7. Repair what is named above, then run `kubectl sluice retry "
            "orders`, or set a new value of the annotation sluice.dev/retry."
        ),
    ),
    health=STUCK,
)
row(
    "migrate",
    "a new try that is asked for ends the pause while the source is active",
    view(
        spec=MIGRATING,
        resource=replace(RESOURCE, retry="monday"),
        status=replace(FRESH, migration=migration(state=MigrationState.SOURCE_ACTIVE, message="worker 1 wrote just now", next_at=seconds(60))),
        observed=NOTHING,
    ),
    (Phase.MIGRATING, "Migrating", f"Job orders-migrate-{HASH}-2 copies the source's positions"),
    CreateJob(),
)
row(
    "reset",
    "the driver drains before the positions are moved",
    view(spec=MOVING),
    (Phase.DRAINING, "Resetting", "orders-driver-1 drains"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "reset",
    "a Job moves the positions when nothing of the driver is left",
    view(spec=MOVING, status=Status(observed_generation=1, driver=gone(generation=3)), observed=NOTHING),
    (Phase.DRAINING, "Resetting", f"Job orders-reset-{MOVE}-1 moves the positions"),
    CreateResetJob(),
)
row(
    "reset",
    "no driver is made while the Job runs",
    view(
        spec=MOVING,
        status=Status(observed_generation=1, driver=gone(generation=3), position=position()),
        observed=Observed(jobs=(job(name=f"orders-reset-{MOVE}-1", active=True),)),
    ),
    (Phase.DRAINING, "Resetting", f"Job orders-reset-{MOVE}-1 moves the positions"),
)
row(
    "reset",
    "a move that finds the lease held is tried again later",
    view(
        spec=MOVING,
        status=Status(observed_generation=1, driver=gone(), position=position(state=PositionState.HELD, message="held by a", next_at=seconds(9))),
        observed=NOTHING,
    ),
    (
        Phase.DRAINING,
        "LeaseHeld",
        "held by a; next try at 12:00:09Z. If this persists, run `sluice show --table TABLE --region REGION` to see who holds the lease.",
    ),
)
row(
    "reset",
    "the Job of a move that is not wanted any more is stopped before a driver is made",
    view(
        status=Status(observed_generation=1, driver=gone(), position=position()),
        observed=Observed(jobs=(job(name=f"orders-reset-{MOVE}-1", active=True),)),
    ),
    (Phase.DRAINING, "Resetting", f"waiting until orders-reset-{MOVE}-1 is gone"),
    DeleteJob(f"orders-reset-{MOVE}-1", "job-1"),
)
row(
    "scale_to_zero",
    "replicas 0 drains the driver",
    view(spec=wanted(replicas=0)),
    (Phase.DRAINING, "ScaledToZero", "orders-driver-1 drains"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "scale_to_zero",
    "replicas 0 without a driver is ready",
    view(spec=wanted(replicas=0), status=Status(observed_generation=1, driver=gone()), observed=NOTHING),
    (Phase.IDLE, "ScaledToZero", "spec.replicas is 0"),
    ready="True",
    health=SETTLED,
)
row(
    "stand_by",
    "with a standby, a RESTART change names the next driver beside the one that works",
    view(spec=ROLLED),
    (Phase.RUNNING, "Consuming", "4 open shards, 2 executors; orders-driver-2 starts beside it"),
    CreateStandby(),
    ready="True",
)
row(
    "stand_by",
    "an executor that an earlier driver left on a lost node is waited for before a standby is made",
    view(spec=ROLLED, observed=Observed(drivers=(driver(),), executors=(*EXECUTORS, executor(3, owner="driver-0")))),
    (Phase.RUNNING, "Consuming", "2 executors ready, 2 wanted; orders-exec-3 of an earlier driver is waited for"),
    ready="True",
)
row(
    "stand_by",
    "a standby that is ready is the next driver, and the former one is drained",
    view(spec=ROLLED, status=STANDING, observed=beside(report=Report(number=1, phase="StandingBy"))),
    (Phase.STARTING, "SpecChanged", "orders-driver-1 finishes its work, then orders-driver-2 continues"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "stand_by",
    "a standby that finds no room in its time is given up, and the driver works on meanwhile",
    view(spec=ROLLED, status=late(STANDING), observed=beside(trouble=Trouble("Unschedulable", "0/3 nodes are available"))),
    (Phase.RUNNING, "Consuming", "4 open shards, 2 executors; orders-driver-2 is given up"),
    DeletePod("orders-driver-2", "driver-2"),
    ready="True",
)
row(
    "stand_by",
    "a standby without its image is waited for, whatever its time: the driver works",
    view(spec=ROLLED, status=late(STANDING), observed=beside(trouble=Trouble("ImagePullBackOff", "no such image"))),
    (Phase.RUNNING, "Consuming", "4 open shards, 2 executors; orders-driver-2 gets ready to follow"),
    ready="True",
)
row(
    "stand_by",
    "a driver that ended is followed by its standby, ready or not",
    view(spec=ROLLED, status=replace(STANDING, driver=gone()), observed=Observed(drivers=(second(),))),
    (Phase.STARTING, "StandbyFollows", "orders-driver-2 follows: it takes the lease when that is free"),
)
row(
    "redeploy",
    "a RESTART change names the next driver and drains the present one",
    view(spec=wanted(batch={"intervalSeconds": 9})),
    (Phase.STARTING, "SpecChanged", "orders-driver-1 finishes its work, then the next driver starts"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "redeploy",
    "a restart that is asked for names the next driver, which honours it, and drains the present one",
    view(resource=replace(RESOURCE, restart="monday")),
    (Phase.STARTING, "RestartRequested", "orders-driver-1 finishes its work, then the next driver starts"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "redeploy",
    "so it is without a standby while the driver does not hold every shard",
    view(spec=ROLLED, observed=Observed(drivers=(driver(report=replace(REPORT, held_shards=3)),), executors=EXECUTORS)),
    (Phase.STARTING, "SpecChanged", "orders-driver-1 finishes its work, then the next driver starts"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "redeploy",
    "a change that moves the table restarts all the same: a standby would find a lease of its own there, and both would work",
    view(spec=wanted(stream=MOVED_TABLE, rollout={"strategy": "Standby"})),
    (Phase.STARTING, "SpecChanged", "orders-driver-1 finishes its work, then the next driver starts"),
    DeletePod("orders-driver-1", "driver-1"),
)
row(
    "await_executors",
    "executors of the last driver are waited for before the next one starts",
    view(status=Status(observed_generation=1, driver=gone()), observed=Observed(executors=(executor(1),))),
    (Phase.DRAINING, "ExecutorsLeaving", "waiting until orders-exec-1 is gone. If their node will not come back, run `kubectl delete node NODE`."),
)
row(
    "await_executors",
    "so it is after a driver that drained",
    view(
        status=Status(observed_generation=1, driver=gone(exit=Exit(code=0, reason="Drained", message="", at=NOW))),
        observed=Observed(executors=(executor(1),)),
    ),
    (Phase.DRAINING, "ExecutorsLeaving", "waiting until orders-exec-1 is gone. If their node will not come back, run `kubectl delete node NODE`."),
)
row(
    "await_executors",
    "one that is overdue is what is told, whatever its driver failed with",
    view(
        status=Status(observed_generation=1, driver=gone(exit=ended(1).exit), restarts=replace(FAILED, reason="Failed", message="sink is full")),
        observed=Observed(executors=(executor(1, gone_by=seconds(-60)),)),
    ),
    (Phase.BACKING_OFF, "DriverOverdue", OVERDUE.replace("orders-driver-1", "orders-exec-1")),
    health=STUCK,
)
row(
    "await_executors",
    "while executors of a driver that failed are waited for, its failure is what is told",
    view(
        status=Status(
            observed_generation=1,
            driver=gone(exit=Exit(code=1, reason="Failed", message="sink is full", at=NOW)),
            restarts=replace(FAILED, reason="Failed", message="sink is full"),
        ),
        observed=Observed(executors=(executor(1),)),
    ),
    (
        Phase.BACKING_OFF,
        "Failed",
        "sink is full; waiting until orders-exec-1 is gone. Run `kubectl sluice logs orders` and look for the error named above.",
    ),
)
row(
    "await_executors",
    "so it is after a long run, after which the next attempt does not wait for itself",
    view(
        status=Status(
            observed_generation=1, driver=gone(exit=ended(1).exit), restarts=replace(FAILED, reason="Failed", message="sink is full", next_at=None)
        ),
        observed=Observed(executors=(executor(1),)),
    ),
    (
        Phase.STARTING,
        "Failed",
        "sink is full; waiting until orders-exec-1 is gone. Run `kubectl sluice logs orders` and look for the error named above.",
    ),
)
row(
    "completed",
    "a run that reached its end is left alone",
    view(spec=UNTIL, status=COMPLETED, observed=NOTHING),
    (Phase.COMPLETED, "EndReached", "spec.until was reached: 7 records"),
    ready="True",
    health=SETTLED,
)
row(
    "completed",
    "a restart that is asked for starts nothing then",
    view(spec=UNTIL, resource=replace(RESOURCE, restart="monday"), status=COMPLETED, observed=NOTHING),
    (Phase.COMPLETED, "EndReached", "spec.until was reached: 7 records"),
    ready="True",
    health=SETTLED,
)
row(
    "confirm",
    "a driver that the status names and that was never created is created",
    view(status=Status(observed_generation=1, driver=attempt(uid=None)), observed=NOTHING),
    (Phase.STARTING, "DriverStarting", "orders-driver-1 has not reported yet"),
    CreateDriver(),
)
row(
    "back_off",
    "after a failure the next attempt waits",
    view(
        status=Status(observed_generation=1, driver=gone(), restarts=replace(FAILED, reason="Failed", message="sink is full")),
        observed=NOTHING,
    ),
    (Phase.BACKING_OFF, "Failed", "sink is full; attempt 2 at 12:00:10Z. Run `kubectl sluice logs orders` and look for the error named above."),
)
row(
    "start",
    "another spec than the one whose end was reached gets a driver",
    view(spec=wanted(until={"timestamp": "2026-11-26T12:00:00Z"}), status=COMPLETED, observed=NOTHING),
    (Phase.STARTING, "DriverStarting", "orders-driver-2 has not reported yet"),
    CreateDriver(),
)
row(
    "start",
    "an exit with 0 that does not say that the end was reached is none",
    view(spec=UNTIL, status=replace(COMPLETED, driver=replace(COMPLETED.driver, exit=replace(REACHED, reason="Completed"))), observed=NOTHING),
    (Phase.STARTING, "DriverStarting", "orders-driver-2 has not reported yet"),
    CreateDriver(),
)
row(
    "start",
    "without a driver the next attempt is named and created",
    view(status=Status(observed_generation=1, driver=gone()), observed=NOTHING),
    (Phase.STARTING, "DriverStarting", "orders-driver-2 has not reported yet"),
    CreateDriver(),
)
row(
    "start",
    "a restart that is asked for ends the pause after a failure",
    view(
        resource=replace(RESOURCE, restart="monday"),
        status=Status(observed_generation=1, driver=gone(), restarts=replace(FAILED, reason="Failed", message="sink is full")),
        observed=NOTHING,
    ),
    (Phase.STARTING, "DriverStarting", "orders-driver-2 has not reported yet"),
    CreateDriver(),
)
row(
    "rescale",
    "a SCALE change is written to the driver pod",
    view(spec=wanted(replicas=5)),
    (Phase.RUNNING, "Consuming", "2 executors ready, 5 wanted"),
    Retarget("orders-driver-1", "driver-1", 5),
    ready="True",
)
row(
    "autoscale",
    "a driver that is behind and busy gets more executors",
    view(spec=SCALED, status=MEASURED, observed=busy()),
    (Phase.RUNNING, "Consuming", "4 open shards, 2 executors"),
    Retarget("orders-driver-1", "driver-1", 4),
    ready="True",
)
row(
    "running",
    "a driver that holds every shard is ready",
    view(),
    (Phase.RUNNING, "Consuming", "4 open shards, 2 executors"),
    ready="True",
    health=SETTLED,
)
row(
    "running",
    "a restart that the driver honours already is not made again",
    view(resource=replace(RESOURCE, restart="monday"), status=Status(observed_generation=1, driver=attempt(restart="monday"))),
    (Phase.RUNNING, "Consuming", "4 open shards, 2 executors"),
    ready="True",
    health=SETTLED,
)
row(
    "running",
    "an annotation that is taken away restarts nothing",
    view(status=Status(observed_generation=1, driver=attempt(restart="monday"))),
    (Phase.RUNNING, "Consuming", "4 open shards, 2 executors"),
    ready="True",
    health=SETTLED,
)
row(
    "running",
    "a driver that runs the tasks itself is its one executor",
    view(
        spec=ALONE,
        status=Status(observed_generation=1, driver=attempt(spec_hash=ALONE.driver_hash)),
        observed=Observed(drivers=(driver(report=replace(REPORT, executors=1), target="1"),)),
    ),
    (Phase.RUNNING, "Consuming", "4 open shards, tasks in the driver"),
    ready="True",
    health=SETTLED,
)
row(
    "running",
    "beside an invalid spec the driver of the last good one works",
    replace(view(), problem="spec.pipelin: unknown field; did you mean pipeline?"),
    (Phase.RUNNING, "Consuming", "4 open shards, 2 executors"),
    ready="True",
    health=STUCK,
)
row(
    "running",
    "a driver that takes over shards is not ready yet",
    view(observed=Observed(drivers=(driver(report=replace(REPORT, held_shards=3)),), executors=EXECUTORS)),
    (Phase.RUNNING, "TakingOver", "orders-driver-1 is Running, 3 of 4 shards held"),
)
row(
    "running",
    "a driver that has sent no report for 90 s is not ready",
    view(observed=Observed(drivers=(driver(report=REPORT, reported_at=seconds(-90)),), executors=EXECUTORS)),
    (
        Phase.RUNNING,
        "ReportStale",
        "no report from orders-driver-1 since 11:58:30Z. Run `kubectl sluice logs orders`; if the driver hangs, delete its pod.",
    ),
)
row(
    "refused_by_api",
    "an action that the API server refused is not repeated before its time",
    view(
        status=Status(observed_generation=1, driver=gone()),
        observed=Observed(refusal=Trouble("ApiRefused", "pods is forbidden"), refused_until=seconds(30)),
    ),
    (
        Phase.STARTING,
        "ApiRefused",
        (
            "pods is forbidden. Grant the permission, raise the quota, free the name, or adjust the admission policy. "
            "Run `kubectl sluice events orders` to see each answer."
        ),
    ),
    health=STUCK,
)
row(
    "refused_by_driver",
    "a spec that a driver refused is stalled while the next attempt waits",
    view(
        status=Status(observed_generation=1, driver=gone(), restarts=REFUSED),
        observed=NOTHING,
    ),
    (
        Phase.FAILED,
        "Refused",
        (
            "no such stream; attempt 2 at 12:00:10Z. Correct what is named above and apply the "
            "spec. To retry without a change, run `kubectl sluice restart orders`."
        ),
    ),
    health=STUCK,
)
row(
    "limited",
    "what is not done within the progress deadline is stalled",
    view(
        status=Status(observed_generation=1, driver=gone(), progressing_since=seconds(-600)),
        observed=Observed(executors=(executor(1),)),
    ),
    (Phase.DRAINING, "ExecutorsLeaving", NOT_DONE),
    health=STUCK,
)

HUNG = "process is at pipeline.py:17 in write"
LONG = Status(observed_generation=1, driver=attempt(), stream=StreamStatus(reported_at=NOW, open_batch=8, batch_at=seconds(-700)))
CUT = Status(
    observed_generation=1,
    driver=gone(exit=Exit(code=1, reason="BatchOverdue", message=HUNG, at=NOW)),
    restarts=replace(FAILED, reason="BatchOverdue", message=HUNG),
)

RULES = [rule.__name__ for rule in rules.RULES]
CLIENTS = {GOING: (kstatus.IN_PROGRESS, "Progressing"), SETTLED: (kstatus.CURRENT, "Healthy"), STUCK: (kstatus.FAILED, "Degraded")}
AMENDMENTS = ["refused_by_api", "refused_by_driver", "limited"]  # they change the step of a rule


@pytest.mark.parametrize("expected", ROWS, ids=str)
def test_a_view_has_this_plan(expected: Row) -> None:
    assert shown(expected.view) == expected.plan


@pytest.mark.parametrize(
    ("overdue", "status", "words"),
    [
        (view(status=LONG, observed=Observed(drivers=(driver(report=replace(REPORT, open_batch=8)),), executors=EXECUTORS)), "Unknown", "batch 8"),
        (view(status=CUT, observed=NOTHING), "False", f"exit 1: {HUNG}"),
    ],
    ids=["a driver that works on one batch for too long", "a driver that has ended for that"],
)
def test_a_batch_that_does_not_end_leaves_the_driver_in_doubt_until_it_has_ended(overdue: View, status: str, words: str) -> None:
    found = rules.plan(overdue).status.condition("DriverHealthy")
    assert found is not None
    assert (found.status, found.reason, words in found.message) == (status, "BatchOverdue", True)


@pytest.mark.parametrize("expected", ROWS, ids=str)
def test_clients_read_of_a_view_what_a_person_would_say(expected: Row) -> None:
    """Flux and others (kstatus), and Argo CD's health check, which has a word of its own for what a person has stopped, once it has."""
    deleted = {"deletionTimestamp": "2026-11-22T12:00:00Z"} if expected.view.resource.deleting else {}
    body = {"metadata": {"generation": 1, **deleted}, "status": dump_status(rules.plan(expected.view).status)}
    in_words, health = (kstatus.TERMINATING, "Progressing") if deleted else CLIENTS[expected.plan.health]
    stopped = expected.plan.reason == "Paused" or (expected.plan.reason, expected.plan.ready) == ("Suspended", "True")
    assert (kstatus.kstatus(body), argo_health(body)) == (in_words, "Suspended" if stopped else health)


def test_every_rule_has_a_row_in_the_order_of_the_rules() -> None:
    assert list(dict.fromkeys(expected.rule for expected in ROWS)) == [*RULES, *AMENDMENTS]


@pytest.mark.parametrize("expected", [row for row in ROWS if row.rule in RULES[:-1]], ids=str)
def test_a_row_fails_without_its_rule(expected: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no exception: no other rule gives the same plan."""
    monkeypatch.setattr(rules, "RULES", tuple(rule for rule in rules.RULES if rule.__name__ != expected.rule))
    assert shown(expected.view) != expected.plan


@pytest.mark.parametrize("expected", [row for row in ROWS if row.rule == RULES[-1]], ids=str)
def test_without_the_last_rule_there_is_no_plan(expected: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """`running` applies to every view, so that one rule always does."""
    monkeypatch.setattr(rules, "RULES", rules.RULES[:-1])
    with pytest.raises(StopIteration):
        shown(expected.view)


@pytest.mark.parametrize("expected", [row for row in ROWS if row.rule in AMENDMENTS], ids=str)
def test_a_row_fails_without_its_amendment(expected: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes the step as its last argument."""
    monkeypatch.setattr(rules, expected.rule, lambda *given: given[-1])
    assert shown(expected.view) != expected.plan

"""What goes wrong in docs/runbooks.md, let happen to the operator in its simulation; a program's words are made by the code that says them.

Each function of TROUBLES gives the cluster as an on-call engineer finds it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "operator"))
sys.path.append(str(Path(__file__).parents[1] / "sim" / "operator"))

from botocore.exceptions import ClientError
from pool_scene import Scene as PoolScene
from pool_troubles import TROUBLES as OF_POOLS
from scenarios import started
from scene import Scene
from simulated_cluster import KEY, MIGRATING, SPEC, SimulatedCluster, ready
from steering.load import Demand

from sluice_checkpoints.aws import denials
from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.dynamodb import table
from sluice_checkpoints.errors import AccessDenied, LeaseHeld, Refused
from sluice_checkpoints.protocol import copies, owners
from sluice_checkpoints.protocol.lease import Heartbeat, Watcher
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_consumer.batches import retention
from sluice_consumer.checks import stream
from sluice_consumer.kinesis import failures
from sluice_consumer.poison import exclusions, isolator
from sluice_consumer.process import session, supervisor
from sluice_consumer.shards import ranges
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe import parse
from sluice_operator.run.refusals import report_failing
from sluice_operator.untrusted.values import Unreadable

DEADLINE = {**SPEC, "progressDeadlineSeconds": 60}
COLUMNS = 110  # of a screen that is read beside a table of contents
TROUBLES: dict[str, Callable[[], SimulatedCluster | PoolScene]] = {**OF_POOLS}


def trouble(make: Callable[[], SimulatedCluster]) -> Callable[[], SimulatedCluster]:
    """A row of TROUBLES, under the function's name."""
    TROUBLES[make.__name__] = make
    return make


def scene(name: str) -> Scene:
    world = TROUBLES[name]()
    return Scene(world.memory, world.now, COLUMNS)


def until(world: SimulatedCluster, reason: str, condition: str = "Stalled", seconds: int = 900) -> SimulatedCluster:
    found = world.run(seconds, until=lambda: world.condition(condition).get("reason") == reason and world.condition(condition)["status"] == "True")
    assert found, (reason, world.status)
    return world


def beset(reason: str, spec: dict[str, Any], **habits: Any) -> SimulatedCluster:
    """A consumer is applied to a cluster with these habits, and gets no further than this reason."""
    world = SimulatedCluster()
    for name, value in habits.items():
        setattr(world.habits, name, value)
    world.apply(spec)
    return until(world, reason)


def ended(code: int, reason: str, message: str, spec: dict[str, object] = SPEC) -> SimulatedCluster:
    world = started(dict(spec))
    world.habits.exits, world.habits.words = [code], {"reason": reason, "message": message}
    assert world.run(60, until=lambda: world.status["restarts"].get("reason") == reason), world.status
    return world


def said(call: Callable[[], object]) -> str:
    try:
        call()
    except (Refused, LeaseHeld) as error:
        return str(error)
    raise AssertionError(call)


def quoted(module: ModuleType, text: str) -> str:
    """The text, if a string of that module says it with some values filled in."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        pattern = "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in parts)
        if isinstance(node, ast.JoinedStr) and re.fullmatch(pattern, text):
            return text
    raise AssertionError((module.__name__, text))


@trouble
def spec_invalid() -> SimulatedCluster:
    """An edit of a running consumer that cannot be carried out."""
    world = started()
    world.apply({**SPEC, "sparkConf": {"spark.master": "local[2]"}})
    return until(world, "SpecInvalid")


@trouble
def start_ignored() -> SimulatedCluster:
    world = started()
    world.apply({**SPEC, "start": {"position": "LATEST"}})
    return until(world, "Edited", "StartIgnored")


@trouble
def position_refused() -> SimulatedCluster:
    """A move that would give up an open batch; the consumer works again."""
    world = started()
    world.habits.position = "refused"
    world.apply({**SPEC, "position": {"id": "2026-11-21-bad-deploy", "to": {"timestamp": "2026-11-21T09:00:00Z"}}})
    until(world, "Refused", "PositionRefused")
    assert world.run(60, until=lambda: ready(world)), world.status
    return world


@trouble
def rolled_back() -> SimulatedCluster:
    """A version that raises in its first batch; the one before works again."""
    world = started()
    rollout = {"trial": {"batches": 2, "seconds": 300}}
    world.apply({**SPEC, "rollout": rollout})
    assert world.run(120, until=lambda: "proven" in world.status), world.status
    bad = "registry.example/orders:1.5.0"
    world.habits.bad[bad] = "raises"
    world.apply({**SPEC, "rollout": rollout, "pipeline": {**SPEC["pipeline"], "image": bad}})
    assert world.run(120, until=lambda: bool(world.condition("RolledBack"))), world.status
    assert world.run(60, until=lambda: ready(world)), world.status
    return world


@trouble
def without_standby() -> SimulatedCluster:
    """No node has room for a standby. The driver works."""
    world = SimulatedCluster()
    world.habits.standby = "pending"
    world.apply({**SPEC, "rollout": {"strategy": "Standby", "standby": "Always"}})
    assert world.run(120, until=lambda: world.condition("StandbyReady").get("reason") == "Unschedulable"), world.status
    return world


@trouble
def reconcile_failed() -> SimulatedCluster:
    """Somebody wrote into the status, which is the operator's; its loop tells it when it has failed for a minute."""
    world = started()
    world.memory.set_status(CONSUMER_KIND, *KEY, {"driver": {**world.status["driver"], "startedAt": "9999-12-31T23:59:59Z"}})
    body = world.must()
    try:
        parse.view(body, world.context.cache.observed(KEY), world.now)
    except Unreadable as error:
        report_failing(world.context, KEY, str(error), world.now)
    return world


@trouble
def api_refused() -> SimulatedCluster:
    """The namespace has no service account for drivers."""
    return beset("ApiRefused", SPEC, no_account=True)


@trouble
def image() -> SimulatedCluster:
    """A registry does not have the image."""
    return beset("ImagePullBackOff", {**DEADLINE, "pipeline": {**SPEC["pipeline"], "image": "missing"}})


@trouble
def pending() -> SimulatedCluster:
    """No node has room for executors."""
    return beset("Unschedulable", DEADLINE, executors="pending")


@trouble
def no_executors() -> SimulatedCluster:
    """Spark's requests for executors are refused."""
    return beset("ExecutorsPending", DEADLINE, executors="refused")


@trouble
def refused_stream() -> SimulatedCluster:
    """There is no stream of that name."""
    return ended(
        65, "StreamNotFound", quoted(stream, "stream orders does not exist in eu-west-1: Stream orders under account 111122223333 not found.")
    )


@trouble
def kinesis_denied() -> SimulatedCluster:
    """The executor's role lacks a right."""
    stream = "arn:aws:kinesis:eu-west-1:111122223333:stream/orders"
    denied = (
        f"User: arn:aws:sts::111122223333:assumed-role/orders/s is not authorized to perform: kinesis:GetRecords on resource: {stream} "
        "because no identity-based policy allows the kinesis:GetRecords action"
    )
    reply = failures.Failure.of(400, "AccessDeniedException", {"message": denied})
    refusal = failures.failure(reply)
    return ended(65, type(refusal).__name__, str(refusal))


@trouble
def role_denied() -> SimulatedCluster:
    """The role of a stream of another account does not trust the driver's."""
    role = AssumedRole("arn:aws:iam::444455556666:role/orders-reader", "shop-orders")
    denied = f"User: arn:aws:sts::111122223333:assumed-role/sluice-driver/s is not authorized to perform: sts:AssumeRole on resource: {role.arn}"
    return ended(65, AccessDenied.__name__, denials.of_role(role, denied))


@trouble
def dynamodb_denied() -> SimulatedCluster:
    """The driver's role lacks a right."""
    denied = "User: arn:aws:sts::111122223333:assumed-role/orders/s is not authorized to perform: dynamodb:UpdateItem"
    answer: Any = {"Error": {"Code": "AccessDeniedException", "Message": denied}, "ResponseMetadata": {"HTTPStatusCode": 400}}

    def call() -> None:
        raise ClientError(answer, "UpdateItem")

    return ended(65, "Refused", said(lambda: table.attempt(call)))


@trouble
def table_gone() -> SimulatedCluster:
    return ended(65, "Refused", f"table sluice_default_orders {supervisor.GONE}")


@trouble
def table_restored() -> SimulatedCluster:
    row = ConsumerRow("c", "arn:aws:kinesis:eu-west-1:111122223333:stream/orders", 0, table_id="4f1c")
    return ended(65, "Refused", said(lambda: copies.check_copy("sluice_default_orders", row, "9a02")))


@trouble
def other_owner() -> SimulatedCluster:
    """A manifest was copied to another namespace, with the table's name in it."""
    row = ConsumerRow("c", "arn:aws:kinesis:eu-west-1:111122223333:stream/orders", 0, owner="test/orders", cluster="prod-eu")
    ours = Owner("default/orders", ("prod-eu",))
    return ended(65, "Refused", said(lambda: owners.check("sluice_test_orders", row, ours)))


@trouble
def lease_held() -> SimulatedCluster:
    beats = iter(range(40, 60))
    watcher = Watcher(clock=lambda: 0.0, sleep=lambda _seconds: None)
    words = said(lambda: watcher.wait_out(lambda: Heartbeat(7, next(beats), 20_000, released=False, holder="laptop-of-ann/4711")))
    return ended(75, "LeaseHeld", words)


@trouble
def fails() -> SimulatedCluster:
    """`process` raises, in one driver after the other."""
    world = started()
    world.habits.exits, world.habits.words = [1] * 4, {"reason": "Failed", "message": "batch 7: KeyError: 'amount' at /opt/sluice/app/orders.py:2"}
    assert world.run(600, until=lambda: world.status["restarts"].get("count") == 3 and not world.drivers())
    return world


@trouble
def batch_overdue() -> SimulatedCluster:
    world = started(DEADLINE)
    world.habits.hangs = True
    return until(world, "BatchOverdue")


@trouble
def silent() -> SimulatedCluster:
    """The driver's node is cut off; nobody asked the driver to end."""
    world = started(DEADLINE)
    world.lose_nodes()
    return until(world, "ReportStale")


@trouble
def node_lost() -> SimulatedCluster:
    """The driver's node is gone while the driver is asked to end."""
    world = started()
    world.lose_nodes()
    world.ask_restart()
    return until(world, "DriverOverdue")


@trouble
def held() -> SimulatedCluster:
    """The driver's node is gone, its pod was given up, and another program keeps the object."""
    world = started()
    (driver,) = world.drivers()
    world.memory.edit(driver, {"metadata": {"finalizers": ["mesh.example.com/drain"]}})
    world.lose_nodes()
    world.ask_restart()
    until(world, "DriverOverdue")
    world.annotate(force=driver["metadata"]["uid"])
    return until(world, "PodHeld")


@trouble
def migration_failed() -> SimulatedCluster:
    """A row of the source table cannot be read."""
    return beset("MigrationFailed", MIGRATING, source="bad")


@trouble
def source_active() -> SimulatedCluster:
    return beset("SourceActive", {**MIGRATING, "progressDeadlineSeconds": 60}, source="active")


def warned(warning: str) -> SimulatedCluster:
    world = started()
    world.habits.warnings = [warning]
    kind = warning.split(":", maxsplit=1)[0]
    assert world.run(60, until=lambda: bool(world.condition(kind)))
    return world


@trouble
def retention_near() -> SimulatedCluster:
    """A shard was not read for most of the retention."""
    told = (
        "shardId-000000000002 read up to 2026-11-20T14:02:11+00:00, 83% of the 24 h that the stream keeps "
        "records have passed since: raise its retention or the number of executors, or unread records expire"
    )
    return warned(f"RetentionNear: {quoted(retention, told)}")


@trouble
def scaling_limited() -> SimulatedCluster:
    """All records come on one shard, and one task reads it."""
    world = SimulatedCluster()
    world.habits.demand = Demand(3.0, useful=1, hot=True)
    world.apply({**SPEC, "replicas": 1, "autoscale": {"min": 2, "max": 8}})
    return until(world, "HotShard", "ScalingLimited")


@trouble
def executors_overdue() -> SimulatedCluster:
    """`spec.autoscale` asked for two more executors, and no node has room for them."""
    world = SimulatedCluster()
    world.habits.demand = Demand(2.0)
    world.apply({**DEADLINE, "replicas": 1, "autoscale": {"min": 2, "max": 8}})
    assert world.run(60, until=lambda: len(world.executors()) == 2)
    world.habits.executors, world.habits.demand = "pending", Demand(3.5)
    return until(world, "ExecutorsOverdue", "ScalingLimited")


@trouble
def data_lost() -> SimulatedCluster:
    """A part of the open batch expired before it was processed."""
    told = (
        "batch 42 was begun and never finished, and since then a part of it has gone from the stream, mostly because it expired: "
        f"{quoted(retention, 'shardId-000000000002: 310 of the 500 records from 4959…31 to 4959…88')}. "
        "If your sink has stored the batch (7c1e, 42), or you can do without these records, continue with what is left. "
        "To do so, set acceptLossOfBatch to 42 in the driver's configuration (on Kubernetes: kubectl annotate the KinesisConsumer with "
        "sluice.dev/accept-loss=42). It is good for this batch only. Nothing was changed so far"
    )
    return ended(65, "DataLost", quoted(retention, told))


@trouble
def data_loss_suspected() -> SimulatedCluster:
    place = "shardId-000000000002"
    told = quoted(ranges, "it expired before it was read to its end: unread after 4959…31, last read up to 2026-11-19T10:02:11Z")
    return warned(f"DataLossSuspected: {place}: {told}")


@trouble
def source_moved() -> SimulatedCluster:
    """The old consumer was started again after the migration."""
    told = "the consumer of table orders-kcl still works: 3 positions moved there between two looks"
    return warned(f"SourceMoved: {quoted(session, told)}")


@trouble
def isolating_a_record() -> SimulatedCluster:
    """`process` raises on one record of a batch, and `spec.onError` is set."""
    told = "batch 42 failed (ValueError at pipeline.py:17); 500 of its 1000 records of 1 shard come again at once"
    return warned(f"Isolating: {quoted(isolator, told)}")


@trouble
def too_much_poison() -> SimulatedCluster:
    """A release of the producer writes what `process` cannot read."""
    told = (
        "onError.maxExcludedPerHour: 100 records went to the dead letters within an hour, and shardId-000000000003 has another one at "
        "4959…12; find out what is wrong with them, or raise the limit"
    )
    return ended(65, "TooMuchPoison", quoted(exclusions, told))


@trouble
def deleting() -> SimulatedCluster:
    """A resource is deleted, and its driver's node does not answer."""
    world = started()
    world.lose_nodes()
    world.delete()
    assert world.run(300, until=lambda: "sluice.dev/force" in world.condition("Ready")["message"])
    return world

"""What goes wrong, let happen to the operator in its simulation; a program's words are made by the code that says them.

Each function of TROUBLES gives the cluster as an on-call engineer finds it. Pages show it (`screens`), or a test looks at it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "operator"))
sys.path.append(str(Path(__file__).parents[1] / "sim" / "operator"))

from scenarios import started
from scene import Scene
from simulated_cluster import SPEC, SimulatedCluster, ready
from steering.load import Demand

from sluice_consumer.batches import retention
from sluice_consumer.kinesis import failures
from sluice_consumer.process import session
from sluice_consumer.shards import ranges

DEADLINE = {**SPEC, "progressDeadlineSeconds": 60}
COLUMNS = 110  # of a screen that is read beside a table of contents
TROUBLES: dict[str, Callable[[], SimulatedCluster]] = {}


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


def ended(code: int, reason: str, message: str, spec: dict[str, object] = SPEC) -> SimulatedCluster:
    world = started(dict(spec))
    world.habits.exits, world.habits.words = [code], {"reason": reason, "message": message}
    assert world.run(60, until=lambda: world.status["restarts"].get("reason") == reason), world.status
    return world


def quoted(module: ModuleType, text: str) -> str:
    """The text, if a string of that module says it with some values filled in."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        pattern = "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in parts)
        if isinstance(node, ast.JoinedStr) and re.fullmatch(pattern, text):
            return text
    raise AssertionError((module.__name__, text))


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

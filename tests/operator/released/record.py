"""Writes what a release leaves in a cluster.

In that release: `PYTHONPATH=operator:tests:tests/operator:tests/sim/operator python tests/operator/released/record.py FILE`.
One entry a situation: the resource, its pods and Jobs, as that operator made them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulated_cluster import MIGRATING, SimulatedCluster, ready

from sluice_operator.resource.changes import DesiredSpec, migration_hash
from sluice_operator.resource.fields import parse

Json = dict[str, Any]

FULL: Json = {
    "stream": {"name": "orders", "region": "eu-west-1", "kinesisEndpoint": "http://k:1", "dynamodbEndpoint": "http://d:2"},
    "start": {"position": "AT_TIMESTAMP", "timestamp": "2026-01-01T00:00:00Z"},
    "checkpoints": {"table": "orders-checkpoints"},
    "migrateFrom": {"table": "orders-kcl", "format": "KCL", "unstarted": "Now", "quietSeconds": 30},
    "replicas": 3,
    "pipeline": {"image": "orders:1", "entrypoint": "orders.pipeline:process", "args": {"path": "s3a://b/o", "none": None}},
    "batch": {"intervalSeconds": 2, "maxRecordsPerShard": 500, "maxBytesPerShard": 1048576, "shardsPerTask": 2},
    "leaseDurationSeconds": 30,
    "drainTimeoutSeconds": 60,
    "restart": {"backoffSeconds": 5, "maxBackoffSeconds": 50, "resetAfterSeconds": 100},
    "suspend": False,
    "serviceAccountName": "orders",
    "driver": {"resources": {"requests": {"cpu": 1}}, "podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}},
    "executor": {"cores": 2, "resources": {"limits": {"memory": "2Gi"}}, "podTemplate": {"spec": {"tolerations": []}}},
    "sparkConf": {"spark.sql.shuffle.partitions": "8"},
}
KINDS = ("KinesisConsumer", "Pod", "Job")


def running() -> SimulatedCluster:
    world = SimulatedCluster()
    world.apply(MIGRATING)
    reach(world, lambda: ready(world) and len(world.executors()) == 2)
    return world


def migrating() -> SimulatedCluster:
    world = SimulatedCluster()
    world.apply(MIGRATING)
    reach(world, lambda: bool(list(world.memory.all("Job"))))
    return world


def refused() -> SimulatedCluster:
    world = SimulatedCluster()
    world.habits.job_exits = [65]
    world.apply(MIGRATING)
    reach(world, lambda: world.status.get("phase") == "Failed")
    return world


def draining() -> SimulatedCluster:
    world = running()
    world.apply({**MIGRATING, "batch": {"intervalSeconds": 9}})
    reach(world, lambda: any("deletionTimestamp" in pod["metadata"] for pod in world.drivers()))
    return world


def backing_off() -> SimulatedCluster:
    world = running()
    world.habits.exits = [1]
    reach(world, lambda: world.status["phase"] == "BackingOff" and not world.drivers())
    return world


def suspended() -> SimulatedCluster:
    world = running()
    world.apply({**MIGRATING, "suspend": True})
    reach(world, lambda: world.status["phase"] == "Suspended")
    return world


def reach(world: SimulatedCluster, goal: Callable[[], bool]) -> None:
    if not world.run(240, until=goal):
        raise SystemExit(f"not reached: {world.status}")


SITUATIONS = (running, migrating, refused, draining, backing_off, suspended)


def hashes(raw: Json) -> Json:
    wanted = DesiredSpec(parse(raw), raw)
    return {"driver": wanted.driver_hash, "job": wanted.job_hash, "migration": migration_hash("default", "orders", wanted)}


def main(file: str) -> None:
    found: Json = {"spec": {"raw": FULL, "hashes": hashes(FULL)}}
    for situation in SITUATIONS:
        world = situation()
        objects = [body for kind in KINDS for body in world.memory.all(kind)]
        found[situation.__name__] = {"now": world.now.isoformat(), "objects": objects}
    Path(file).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])

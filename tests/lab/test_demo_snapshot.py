"""What the demo shows of a consumer: from Kubernetes' objects, and from the checkpoint table."""

import dataclasses
from typing import Any

from rich.console import Console

from sluice_lab.scenario import observed
from sluice_lab.scenario.live_view import LiveView
from sluice_lab.scenario.observed import ConsumerSnapshot

RESOURCE: dict[str, Any] = {
    "spec": {"replicas": 3},
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Consuming", "message": "batch 41, 4 open shards, 2 executors"},
            {"type": "Migrated", "status": "True", "reason": "MigrationComplete", "message": ""},
            {"type": "Reconciling", "status": "True", "reason": "Consuming", "message": "2 of 3 executors."},
        ],
        "driver": {"pod": "demo-driver-2", "attempt": 2, "generation": 3},
        "migration": {"state": "Complete", "rows": 7, "warnings": 1},
        "draining": [{"pod": "demo-2-exec-4", "since": "2026-11-21T10:00:00Z"}],
        "stream": {"openShards": 4, "endedShards": 5, "heldShards": 9, "batch": 41, "millisBehindLatest": 1200, "recordsPerSecond": 52.1},
    },
}


def pod(name: str, phase: str = "Running", role: str = "executor", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"sluice.dev/role": role}, **metadata}, "status": {"phase": phase}}


PODS = [
    pod("demo-2-exec-2"),
    pod("demo-2-exec-1"),
    pod("demo-2-exec-3", "Pending"),
    pod("demo-2-exec-4", deletionTimestamp="2026-11-21T10:00:00Z"),
    pod("demo-driver-2", role="driver"),
]


def event(second: int, reason: str) -> dict[str, Any]:
    return {"metadata": {}, "reason": reason, "message": "…", "lastTimestamp": f"2026-11-21T10:00:{second:02d}Z"}


def test_a_running_consumer() -> None:
    seen = observed.of_resource(RESOURCE, PODS, [event(5, "Scaling"), event(1, "Accepted")])
    assert (seen.phase, seen.migration, seen.driver) == ("Running", "Complete · 7 rows · 1 warning", "demo-driver-2 · epoch 3")
    assert seen.shards == "4 open · 5 ended · 9 held"
    assert seen.executors == "3 wanted · 2 running · 1 draining (4)"
    assert seen.running == ("demo-2-exec-1", "demo-2-exec-2")
    assert seen.events == ("10:00:01 Accepted: …", "10:00:05 Scaling: …")
    assert (seen.batch, seen.behind_millis, seen.per_second, seen.driver_pod) == (41, 1200, 52.1, "demo-driver-2")


def test_executors_of_a_standby_are_not_those_of_the_driver() -> None:
    pods = [*PODS, pod("demo-3-exec-1", ownerReferences=[{"uid": "u-3"}])]
    for state, named in (("Starting", ""), ("Ready", "demo-driver-3")):
        status = RESOURCE["status"] | {"standby": {"pod": "demo-driver-3", "uid": "u-3", "state": state}}
        seen = observed.of_resource(RESOURCE | {"status": status}, pods, [])
        assert (seen.standby_pod, seen.running) == (named, ("demo-2-exec-1", "demo-2-exec-2"))


def test_ready_is_not_settled_while_the_operator_has_work_left() -> None:
    conditions = RESOURCE["status"]["conditions"]
    settled = RESOURCE | {"status": RESOURCE["status"] | {"conditions": conditions[:2]}}
    assert not observed.of_resource(RESOURCE, PODS, []).settled
    assert observed.of_resource(settled, PODS, []).settled
    assert observed.of_resource(RESOURCE, PODS, []).migrated


def test_a_resource_that_nobody_has_looked_at_yet() -> None:
    seen = observed.of_resource({"spec": {"replicas": 1}}, [], [])
    assert (seen.phase, seen.migrated, seen.settled, seen.executors) == ("Pending", False, False, "1 wanted · 0 running")


def test_a_stalled_resource_says_why() -> None:
    stalled = {"status": {"conditions": [{"type": "Stalled", "status": "True", "message": "the source has a row nobody knows"}]}}
    assert observed.of_resource(stalled, [], []).stalled == "the source has a row nobody knows"


def test_a_consumer_without_kubernetes() -> None:
    shards = {"shardId-000000000000": {"at": "END"}, "shardId-000000000004": {"at": "AFTER", "sequence": "1"}}
    migration = {"state": "COMPLETE", "rows": 7}
    seen = observed.of_table({"released": False, "generation": 2, "committed": 9, "migration": migration, "shards": shards})
    assert seen.state() == ("lease held", "migration COMPLETE, 7 rows", "driver epoch 2", "shards 1 open (4) · 1 ended")
    assert seen.batch == 9


def test_a_log_gets_a_line_for_a_change_of_state_and_none_for_a_batch() -> None:
    """Where no terminal is, hundreds of redraws would hide the changes."""
    running = ConsumerSnapshot(phase="Running", batch=1, driver="a")
    snapshots = iter([ConsumerSnapshot(phase="Starting"), running, dataclasses.replace(running, batch=2), dataclasses.replace(running, driver="")])
    out = Console(force_terminal=False, record=True, width=100)
    view = LiveView(lambda: next(snapshots), lambda: 5, out)
    for _ in range(4):
        view.refresh()
    lines = out.export_text().splitlines()
    assert [line.split("s  ", 1)[1] for line in lines] == ["Starting", "Running, driver a  (batch 1)"]
    assert view.snapshot.produced == 5


def test_a_read_that_fails_leaves_the_last_snapshot() -> None:
    def fail() -> ConsumerSnapshot:
        raise OSError

    view = LiveView(fail, lambda: 0, Console(force_terminal=False))
    assert view.refresh() == ConsumerSnapshot()

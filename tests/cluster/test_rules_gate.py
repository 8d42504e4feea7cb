"""The gate: no driver before the migration, whose failure waits for a person and whose source must stand still; and what can be deleted meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_bench import Bench
from operating import kill, taken_over
from rules_world import Subject, World, table, world

from sluice_lab.scenario import kcl_table

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

STREAM = "rules-gate"
FAILED, BUSY, LEAVING = "gate-failed", "gate-busy", "gate-leaving"
BAD = {"checkpoint": {"S": "YESTERDAY"}}


class OldConsumer(threading.Thread):
    """The KCL application that nobody has stopped yet: it renews its leases."""

    def __init__(self, dynamodb: Any, name: str, lease: str) -> None:
        super().__init__(name="old consumer", daemon=True)
        self._dynamodb, self._table, self._lease = dynamodb, name, lease
        self._ended = threading.Event()

    def run(self) -> None:
        add = {"UpdateExpression": "ADD leaseCounter :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
        while not self._ended.wait(0.2):
            self._dynamodb.update_item(TableName=self._table, Key={"leaseKey": {"S": self._lease}}, **add)

    def stop(self) -> None:
        self._ended.set()
        self.join()


@pytest.fixture(scope="module")
def tables(bench: Bench) -> Iterator[World]:
    """Three tables to take over: with a bad row, of an application that still runs, and one that will be waited for long."""
    with world(bench, STREAM, shards=2) as found:
        rows = found.leases()
        for name in (FAILED, BUSY, LEAVING):
            first = rows[0] | BAD if name == FAILED else rows[0]
            kcl_table.write(bench.aws.dynamodb, source(name), kcl_table.dump()["description"], [first, *rows[1:]])
        yield found


@pytest.fixture(scope="module")
def old(tables: World) -> Iterator[OldConsumer]:
    found = OldConsumer(tables.bench.aws.dynamodb, source(BUSY), tables.leases()[1]["leaseKey"]["S"])
    found.start()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def gate(tables: World, old: OldConsumer) -> World:
    assert old.is_alive()
    tables.bench.apply(
        tables.manifest(FAILED, migrateFrom={"table": source(FAILED), "quietSeconds": 1}),
        tables.manifest(BUSY, migrateFrom={"table": source(BUSY), "quietSeconds": 3}, replicas=0),
        tables.manifest(LEAVING, migrateFrom={"table": source(LEAVING), "quietSeconds": 300}),
    )
    return tables


def source(name: str) -> str:
    return f"{name}-kcl"


def failed(subject: Subject, tries: int) -> bool:
    migration = subject.status.get("migration") or {}
    return (migration.get("tries"), migration.get("state")) == (tries, "Failed") and subject.condition("Stalled").get("reason") == "MigrationFailed"


def test_a_consumer_can_be_deleted_in_the_middle_of_its_migration(gate: World) -> None:
    subject = gate.subject(LEAVING)
    gate.bench.until("the migration's pod runs", lambda: [p for p in subject.pods("migration") if p["status"].get("phase") == "Running"])
    subject.delete()
    assert consumer_row(gate, LEAVING) is None


def test_a_failed_migration_stalls_and_starts_nothing(gate: World) -> None:
    subject = gate.subject(FAILED)
    gate.bench.until("Stalled by the first try", lambda: failed(subject, 1))
    said = subject.condition("Stalled")["message"]
    assert "YESTERDAY" in said
    assert "sluice.dev/retry" in said
    assert subject.condition("Migrated")["status"] == "False"
    assert subject.attempts() == 0


def test_a_new_value_of_the_annotation_asks_for_one_new_try(gate: World) -> None:
    subject = gate.subject(FAILED)
    subject.annotate("retry=first")
    gate.bench.until("Stalled by the second try", lambda: failed(subject, 2))
    assert subject.attempts() == 0


def test_once_the_table_is_repaired_a_retry_passes_the_gate(gate: World) -> None:
    subject = gate.subject(FAILED)
    gate.bench.aws.dynamodb.put_item(TableName=source(FAILED), Item=gate.leases()[0])
    subject.annotate("retry=second")
    gate.bench.until("migrated", lambda: subject.condition("Migrated").get("status") == "True")
    assert subject.status["migration"]["tries"] == 3
    assert not subject.condition("Stalled")
    gate.bench.until("the first driver", lambda: subject.attempts() == 1)


def test_a_consumer_can_be_deleted_while_its_driver_starts_also_if_the_leader_dies(gate: World) -> None:
    subject = gate.subject(FAILED)
    gate.bench.until("the driver's container runs", lambda: [p for p in subject.pods("driver") if p["status"].get("phase") == "Running"])
    assert subject.status["phase"] == "Starting"
    died = kill(gate.bench)
    subject.delete()
    taken_over(gate.bench, died)
    assert consumer_row(gate, FAILED) is not None


def test_a_source_that_is_still_written_is_waited_for(gate: World) -> None:
    subject = gate.subject(BUSY)
    gate.bench.until("SourceActive, twice", lambda: subject.condition("Reconciling").get("reason") == "SourceActive" and tries(subject) >= 2)
    assert not subject.condition("Stalled")
    assert subject.condition("Migrated")["status"] == "False"
    assert consumer_row(gate, BUSY) is None


def test_once_the_old_consumer_has_stopped_its_place_is_taken_over(gate: World, old: OldConsumer) -> None:
    subject, before = gate.subject(BUSY), tries(gate.subject(BUSY))
    old.stop()
    gate.bench.until("migrated", lambda: subject.condition("Migrated").get("status") == "True")
    assert before <= tries(subject) <= before + 2
    assert consumer_row(gate, BUSY) is not None
    gate.bench.until("idle, for nobody is wanted", lambda: subject.status["phase"] == "Idle")
    assert subject.attempts() == 0


def consumer_row(gate: World, name: str) -> Any:
    """The row that makes a table a consumer's; None as long as nobody may start from it."""
    dynamodb = gate.bench.aws.dynamodb
    if table(name) not in dynamodb.list_tables()["TableNames"]:
        return None
    return dynamodb.get_item(TableName=table(name), Key={"id": {"S": "consumer"}}, ConsistentRead=True).get("Item")


def tries(subject: Subject) -> int:
    return int((subject.status.get("migration") or {}).get("tries", 0))

"""What the operator writes into the pod of a pool is what its driver reads, and the other way round (docs/pools.md)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from sluice_checkpoints import termination_log
from sluice_consumer.exits.ending import Ending, report
from sluice_consumer.group import pool_program
from sluice_consumer.group import seats as driver_side
from sluice_consumer.group.pool_program import PoolSeats
from sluice_consumer.group.seats import BeginSeat, DrainSeat, SeatBook, SeatKey
from sluice_operator.observe import parse
from sluice_operator.observe import seats as operator_side
from sluice_operator.state.objects import Pod
from sluice_operator.state.seats import Seat

POD, CONSUMER = "pod-uid-1", "7f3c2a10-0000-4000-8000-000000000001"
CONFIG = {"stream": {"name": "s", "region": "r"}, "checkpoints": {"table": "table"}, "pipeline": {"entrypoint": "m:f"}}
HOST = Pod(name="small-pool-1", uid=POD, role="pool", attempt=1, owner="p", owner_kind=operator_side.POOL_KIND, owner_name="small", phase="Running")
WANTED = Seat(consumer=CONSUMER, name="orders", attempt=3, spec_hash="51e7", leave_by=datetime(2026, 11, 27, tzinfo=UTC))


class Leases:
    def __init__(self) -> None:
        self.link = self
        self.gone, self.begun = False, list[Any]()

    def begin(self, lease: Any) -> None:
        self.begun.append(lease)

    def ended(self) -> list[Any]:
        return []


class Notes:
    def __init__(self, notes: dict[str, str]) -> None:
        self.notes = notes

    def read(self) -> dict[str, str]:
        return self.notes

    def write(self, annotations: Any) -> None:
        self.notes = {name: value for name, value in (self.notes | dict(annotations)).items() if value is not None}


def test_a_seat_that_the_operator_puts_begins_and_one_that_it_asks_to_leave_drains() -> None:
    assert (driver_side.SEAT, driver_side.LEAVE, driver_side.REPORT) == (operator_side.SEAT, operator_side.LEAVE, operator_side.REPORT)
    book, notes = SeatBook(POD), operator_side.put(WANTED, POD, CONFIG)
    (begun,) = book.changes(notes)
    assert isinstance(begun, BeginSeat)
    assert (begun.seat.key, begun.seat.spec_hash, begun.seat.config.name) == (SeatKey(CONSUMER, 3), "51e7", "orders")
    assert book.changes(notes | operator_side.leave(WANTED)) == [DrainSeat(SeatKey(CONSUMER, 3))]


def test_the_operator_reads_the_report_of_a_seat_and_its_end(tmp_path: Path) -> None:
    notes = Notes(operator_side.put(WANTED, POD, CONFIG) | {f"{driver_side.SEAT}{CONSUMER}.2": "{"})
    now, leases = 0.0, Leases()
    seats = PoolSeats(SeatBook(POD), cast("Any", leases), notes, tmp_path, clock=lambda: now)
    seats.step()
    (tmp_path / f"{CONSUMER}.3").write_text(json.dumps({"number": 0, "phase": "Running", "batch": 7, "executors": 2}))
    now = 10.0
    seats.step()
    (found,) = operator_side.seats({"metadata": {"annotations": notes.notes}}, HOST)
    assert (found.attempt, found.spec_hash, found.exit) == (3, "51e7", None)
    assert found.report is not None
    assert (found.report.phase, found.report.batch, found.report.executors, found.report.number) == ("Running", 7, 2, 2)
    assert found.began is not None
    leases.ended = lambda: [leases.begun[0]]  # type: ignore[method-assign]
    leases.begun[0].ending = Ending(76, "Fenced", "another epoch took over")
    now = 20.0
    seats.step()
    (found,) = operator_side.seats({"metadata": {"annotations": notes.notes}}, HOST)
    assert found.exit is not None
    assert (found.exit.code, found.exit.reason, found.exit.message) == (76, "Fenced", "another epoch took over")
    assert json.loads(notes.notes[f"{driver_side.REPORT}{CONSUMER}.2"])["exit"]["code"] == 65


def test_an_end_fits_into_what_the_operator_reads() -> None:
    """A message that is longer is no message there."""
    said = pool_program._exit(Ending(1, "ValueError", "x" * 3000), seats=1)
    found = operator_side._exit(said)
    assert found is not None
    assert found.message == said["message"]


def test_the_members_that_an_exit_message_names_are_those_that_the_operator_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that names nobody clears all of them. One without room for all, and a pod that the kernel ended, say nothing of them."""
    found = []
    for number, ending in enumerate(
        (
            Ending(1, "SparkGone", "Spark has ended", working=("orders", "clicks")),
            Ending(1, "SparkGone", "Spark has ended", working=tuple(f"{'orders' * 10}-{at}" for at in range(100))),
            Ending(1, "SparkGone", "so it is"),
            None,
        )
    ):
        log = tmp_path / str(number)
        monkeypatch.setenv(termination_log.VARIABLE, str(log))
        if ending is not None:
            report(ending)
        ended = {"exitCode": 1 if ending else 137, "reason": "Error", "message": log.read_text() if ending else ""}
        pool = {"apiVersion": "sluice.dev/v1alpha1", "kind": operator_side.POOL_KIND, "name": "small", "uid": "p", "controller": True}
        meta = {"name": "small-pool-1", "namespace": "shop", "uid": POD, "ownerReferences": [pool]}
        status = {"phase": "Failed", "containerStatuses": [{"name": "driver", "state": {"terminated": ended}}]}
        found.append(parse.pod({"metadata": meta, "status": status}).working)
    assert found == [("orders", "clicks"), None, (), None]

"""Seats in the annotations of a pool's pod (docs/pools.md, "A seat")."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from sluice_operator.observe import parse, seats
from sluice_operator.state.seats import Seat
from sluice_operator.state.status import Exit

Json = dict[str, Any]
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
ORDERS = Seat(consumer="uid-of-orders", name="orders", attempt=3, spec_hash="abc")
KEY = "uid-of-orders.3"
OWNER: Json = {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumerPool", "name": "small", "uid": "pool-uid", "controller": True}
ENDED = '{"exit": {"code": 1, "reason": "Failed", "message": "sink is full", "at": "2026-11-27T12:00:00Z"}}'


def host(notes: Json, owner: Json = OWNER, uid: str = "host") -> Json:
    meta = {"namespace": "shop", "name": "small-pool-1", "uid": uid, "annotations": notes, "ownerReferences": [owner]}
    return {"metadata": meta, "status": {"phase": "Running"}}


def found(raw: Json) -> tuple[Seat, ...]:
    return seats.seats(raw, parse.pod(raw))


def of_consumer(uid: str, raws: list[Json]) -> seats.SeatsFound:
    return seats.of(uid, ((pod, seats.seats(raw, pod)) for raw in raws for pod in [parse.pod(raw)]))


def test_what_is_written_is_read() -> None:
    notes: Json = seats.put(ORDERS, "host", {"format": 1})
    assert found(host(notes)) == (ORDERS,)
    (leaving,) = found(host(notes | {seats.LEAVE + KEY: NOW.isoformat()}))
    assert leaving.leave_by == NOW
    assert notes | seats.leave(leaving) == notes | {seats.LEAVE + KEY: NOW.isoformat()}
    whole = of_consumer("uid-of-orders", [host(notes | seats.leave(leaving))])
    assert [pod.name for pod in whole.drivers] == ["orders-driver-3"]
    over = of_consumer("uid-of-orders", [host(notes | seats.leave(leaving) | {seats.REPORT + KEY: ENDED})])
    assert (over.drivers, [end.reason for end in over.exits.values()]) == ((), ["Failed"])
    assert of_consumer("uid-of-clicks", [host(notes)]).drivers == ()


def test_a_late_write_of_a_seat_takes_no_leave_back() -> None:
    assert not {*seats.put(ORDERS, "host", {})} & {*seats.leave(ORDERS)}


@pytest.mark.parametrize(
    "raw",
    [
        host(seats.put(ORDERS, "host", {}), {**OWNER, "apiVersion": "example.org/v1"}),
        host(seats.put(ORDERS, "host", {}), {**OWNER, "kind": "ReplicaSet"}),
        host(seats.put(ORDERS, "host", {}), {**OWNER, "controller": False}),
        host(seats.put(ORDERS, "host", {}), uid="copy"),
        host({seats.SEAT + "uid-of-orders.0": '{"name": "orders", "pod": "host"}'}),
        host({seats.SEAT + "..": '{"name": "orders", "pod": "host"}'}),
        host({seats.SEAT + KEY: '{"name": "Ördërs/..", "pod": "host"}'}),
        host({seats.SEAT + KEY: '{"name": 7, "pod": "host"}'}),
        host({seats.SEAT + KEY: "["}),
        host({seats.SEAT + KEY: "7"}),
        host({seats.SEAT + KEY: 7}),
        host({seats.LEAVE + KEY: NOW.isoformat(), seats.REPORT + KEY: ENDED}),
    ],
)
def test_what_a_stranger_writes_is_no_seat(raw: Json) -> None:
    assert found(raw) == ()


@pytest.mark.parametrize("words", ["[", '{"exit": 7}', '{"exit": {"code": 1}}', '{"exit": {"reason": ""}}', "x" * 100_000])
def test_an_end_that_cannot_be_read_is_no_end(words: str) -> None:
    notes: Json = {**seats.put(ORDERS, "host", {}), seats.REPORT + KEY: words}
    assert [seat.exit for seat in found(host(notes))] == [None]


def ended(code: int, reason: str) -> Exit:
    answer = json.dumps({"exit": {"code": code, "reason": reason, "message": "no room", "at": "2026-11-27T12:00:00Z"}})
    (seat,) = found(host({**seats.put(ORDERS, "host", {}), seats.REPORT + KEY: answer}))
    assert seat.exit is not None
    return seat.exit


NO_REASONS = ["Drained", "EndReached", "Evicted", "DriverLost", "OOMKilled", "PoolMissing", "_Full", "Überlauf", "two words", "x" * 65]


@pytest.mark.parametrize("reason", NO_REASONS)
def test_an_exception_is_named_as_it_likes_and_its_name_counts_as_a_failure(reason: str) -> None:
    """It is one of `process`. One called EndReached would end a consumer for good, and one called Drained would never count."""
    end = ended(1, reason)
    assert (end.reason, end.message) == ("Failed", f"{reason}: no room")


@pytest.mark.parametrize(
    ("code", "reason", "read"),
    [(0, "Drained", "Drained"), (0, "EndReached", "EndReached"), (1, "SinkGone", "SinkGone"), (65, "Refused", "Refused"), (76, "Evicted", "Fenced")],
)
def test_a_run_that_did_what_it_was_asked_to_says_so(code: int, reason: str, read: str) -> None:
    """With code 0, which no exception has."""
    assert ended(code, reason).reason == read


def test_only_seats_that_are_over_in_a_pod_that_runs_are_to_be_cleared() -> None:
    left = {**seats.put(ORDERS, "host", {}), seats.LEAVE + KEY: NOW.isoformat()}
    over = left | {seats.REPORT + KEY: ENDED}
    assert of_consumer("uid-of-orders", [host(left)]).over == {}
    ((_, seat),) = of_consumer("uid-of-orders", [host(over)]).over.values()
    assert seats.cleared(seat) == dict.fromkeys((seats.SEAT + KEY, seats.LEAVE + KEY, seats.REPORT + KEY))

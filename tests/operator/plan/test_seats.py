"""A consumer of a pool: the rules of a driver's pod, over its seat (docs/pools.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plan.views import NOW, RESOURCE, UID, attempt, gone, seconds, view, wanted

from sluice_operator.plan.seats import plan_member, takes_seats
from sluice_operator.state.actions import CreateDriver, DeletePod
from sluice_operator.state.objects import Observed, Pod, Report, Trouble
from sluice_operator.state.seats import ClearSeat, EndSeat, Place, PutSeat, Seat, Seating, seat_uid
from sluice_operator.state.status import Exit, Leaving, RestartStatus, Status

HOST = Pod(name="small-pool-1", uid="host", role="pool", owner="pool-uid", phase="Running", started_at=seconds(-7200))
HERE = Place("small", HOST)
SPEC = wanted(replicas=1, executor={"inDriver": True})
REPORT = Report(number=9, phase="Running", open_shards=4, held_shards=4, executors=2)
SEAT = Seat(consumer=UID, name="orders", attempt=1, spec_hash=SPEC.driver_hash, report=REPORT, began=seconds(-60))
PRESENT = attempt(uid=seat_uid("host", UID, 1), spec_hash=SPEC.driver_hash)


def planned(seat: Seat | None, place: Place | None = HERE, *, host: Pod = HOST, **fields: object) -> tuple[Status, tuple[object, ...]]:
    uid = seat_uid("host", UID, 1)
    drivers = () if seat is None or seat.is_over(host) else (seat.as_pod(host),)
    exits = {uid: end} if seat and (end := seat.end_in(host)) else {}
    given = {"spec": SPEC, "status": Status(observed_generation=1, driver=PRESENT), "observed": Observed(drivers=drivers, exits=exits), **fields}
    seating = Seating(place, {uid: (host, seat)} if seat and drivers else {})
    intent = plan_member(replace(view(**given), seating=seating))  # type: ignore[arg-type]  # as given
    return intent.status, intent.actions


def test_a_member_that_works_is_ready_and_nothing_is_done() -> None:
    status, actions = planned(SEAT)
    ready = status.condition("Ready")
    assert ready is not None
    assert (ready.status, actions, status.replicas) == ("True", (), 1)


def test_an_edit_ends_the_seat_and_the_next_one_is_written_when_nothing_is_left() -> None:
    edited = wanted(replicas=1, executor={"inDriver": True}, batch={"intervalSeconds": 9})
    status, (end,) = planned(SEAT, spec=edited)
    assert isinstance(end, EndSeat)
    assert (end.host, end.uid, end.seat.attempt, end.seat.leave_by) == ("small-pool-1", "host", 1, seconds(150))
    assert (status.driver.pod, status.driver.leaving and status.driver.leaving.attempt) == ("orders-driver-2", 1)
    drains = replace(SEAT, leave_by=seconds(150))
    assert planned(drains, spec=edited, status=status)[1] == ()
    over = replace(drains, exit=Exit(code=0, reason="Drained", at=NOW))
    _, (put,) = planned(over, spec=edited, status=status)
    assert put == PutSeat("small-pool-1", "host", Seat(consumer=UID, name="orders", attempt=2, spec_hash=edited.driver_hash))


def test_a_member_that_leaves_its_pool_gets_a_pod_when_its_seat_is_over() -> None:
    outside = wanted(replicas=1)
    status, (end,) = planned(SEAT, None, spec=outside)
    assert isinstance(end, EndSeat)
    drains = replace(SEAT, leave_by=seconds(150))
    assert planned(drains, None, spec=outside, status=status)[1] == ()
    over = replace(drains, exit=Exit(code=0, reason="Drained", at=NOW))
    named = replace(status, driver=replace(status.driver, host="small-pool-1"))
    after, actions = planned(over, None, spec=outside, status=named)
    assert (after.driver.host, actions) == (None, (CreateDriver(),))


def test_a_driver_of_its_own_drains_before_a_seat_is_written() -> None:
    pod = Pod(name="orders-driver-1", uid="driver-1", role="driver", attempt=1, owner=UID, phase="Running", report=REPORT)
    stored = Status(observed_generation=1, driver=attempt())
    status, actions = planned(None, status=stored, observed=Observed(drivers=(pod,)))
    assert actions == (DeletePod("orders-driver-1", "driver-1"),)
    leaving = replace(pod, gone_by=seconds(100))
    assert planned(None, status=status, observed=Observed(drivers=(leaving,)))[1] == ()
    assert isinstance(planned(None, status=status, observed=Observed())[1][0], PutSeat)


def test_a_seat_that_fails_soon_is_waited_for_however_long_its_pod_has_run() -> None:
    failed = replace(SEAT, exit=Exit(code=1, reason="Failed", message="sink is full", at=NOW))
    status, (end,) = planned(failed)
    assert isinstance(end, EndSeat)
    over = replace(failed, leave_by=seconds(150))
    status, actions = planned(over, status=status)
    assert (status.restarts.count, status.restarts.next_at, actions) == (1, seconds(10), ())


def test_the_end_of_the_pool_s_pod_is_no_fault_of_its_members() -> None:
    ended = replace(HOST, phase="Failed", exit=Exit(code=137, reason="OOMKilled", at=NOW))
    over = replace(SEAT, leave_by=seconds(150))
    status, _ = planned(over, Place("small", None), host=ended)
    assert status.driver.exit is not None
    assert (status.driver.exit.reason, status.restarts.count, status.restarts.interruptions) == ("DriverLost", 0, 1)
    assert status.driver.exit.message == "small-pool-1 of the pool ended: OOMKilled"


@pytest.mark.parametrize(("reason", "stalled"), [("PoolMissing", True), ("PoolFull", True), ("PoolSuspended", False), ("PoolNotReady", False)])
def test_a_member_without_a_place_says_why(reason: str, stalled: bool) -> None:  # noqa: FBT001 - pytest passes by name
    place = Place("small", None, Trouble(reason, "so it is"))
    status, actions = planned(None, place, status=Status(observed_generation=1, driver=gone(), restarts=RestartStatus()))
    ready, there = status.condition("Ready"), status.condition("Stalled")
    assert ready is not None
    assert (ready.reason, ready.message.partition(".")[0], actions) == (reason, "pool small: so it is", ())
    assert (there is not None and there.status == "True") is stalled


def test_a_seat_cannot_be_given_up_alone() -> None:
    late = replace(SEAT, leave_by=seconds(-60))
    about = replace(RESOURCE, force=seat_uid("host", UID, 1), restart="now")
    status, actions = planned(late, resource=about, status=Status(observed_generation=1, driver=replace(PRESENT, stopping="Suspended")))
    stalled = status.condition("Stalled")
    assert stalled is not None
    assert (stalled.reason, actions) == ("DriverOverdue", ())
    assert "sluice.dev/force=host removes it" in stalled.message


def test_a_seat_that_is_over_is_cleared_when_the_status_names_it_no_more() -> None:
    uid, over = seat_uid("host", UID, 1), replace(SEAT, leave_by=seconds(-9), exit=Exit(code=0, reason="Drained", at=NOW))
    left = Leaving(attempt=1, pod="orders-driver-1", uid=uid, why="SpecChanged")
    for leaving, clears in ((left, False), (None, True)):
        status = Status(observed_generation=1, driver=attempt(2, uid=None, spec_hash=SPEC.driver_hash, leaving=leaving))
        seen = replace(view(spec=SPEC, status=status, observed=Observed()), seating=Seating(HERE, over={uid: (HOST, over)}))
        assert (ClearSeat("small-pool-1", "host", over) in plan_member(seen).actions) is clears


def test_only_a_pod_that_works_takes_seats() -> None:
    ended = Exit(code=0, reason="Completed", at=NOW)
    cases = (HOST, replace(HOST, gone_by=seconds(9)), replace(HOST, exit=ended), replace(HOST, phase="Succeeded"))
    assert [takes_seats(host) for host in cases] == [True, False, False, False]

"""Moves of positions, `spec.position`: the operator's machine with a user who asks for them, changes and drops them at any moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from kstatus import CURRENT, IN_PROGRESS, kstatus
from steering.machine import Operating, seconds
from test_ending import QUICK, begun

IDS = st.sampled_from(["one", "two", "two", "three", None])


class Moving(Operating):
    """And positions that are moved."""

    @rule(id_=IDS, to=st.sampled_from(["trimHorizon", "latest"]), seconds=seconds)
    def moves(self, id_: str | None, to: str, seconds: int) -> None:
        super().moves(id_, to, seconds)

    @rule(position=st.sampled_from(["ok", "ok", "refused", "failing"]))
    def mover(self, position: str) -> None:
        super().mover(position)

    @rule(at=st.sampled_from(["at noon", "nowhere"]), seconds=seconds)
    def ends(self, at: str, seconds: int) -> None:
        super().ends(at, seconds)


def moved(operating: Operating) -> list[str]:
    return [id_ for table in operating.world.tables.values() for id_ in table.moved]


def test_a_move_is_carried_out_once_through_anything() -> None:
    run_state_machine_as_test(Moving, settings=QUICK)  # type: ignore[no-untyped-call]  # hypothesis


def test_a_move_drains_the_driver_and_the_next_one_reads_from_there() -> None:
    operating = begun()
    operating.moves("one", "trimHorizon", 6)
    world = operating.world
    assert (world.status["phase"], world.condition("Ready")["reason"], kstatus(world.must())) == ("Draining", "Resetting", IN_PROGRESS)
    operating.wait(60)
    position = world.status["position"]
    assert (position["state"], position["id"], position["moved"]["digest"], position["moved"]["recordsAgain"]) == ("Complete", "one", "ab12", 12)
    assert (world.status["phase"], kstatus(world.must()), moved(operating)) == ("Running", CURRENT, ["one"])
    assert [reason for reason in world.reasons() if "Reset" in reason] == ["ResetStarted", "ResetComplete"]
    assert world.status["restarts"]["count"] == 0
    operating.teardown()


def test_a_used_or_a_removed_id_moves_nothing_and_another_one_does() -> None:
    """GitOps applies the same again, reverts, and reverts the revert: no driver is drained for that."""
    operating = begun()
    operating.moves("one", "trimHorizon", 60)
    operating.moves("two", "latest", 60)
    attempt = operating.world.status["driver"]["attempt"]
    for id_, to in ((None, "latest"), ("two", "latest"), ("one", "trimHorizon"), ("two", "trimHorizon")):
        operating.moves(id_, to, 30)
        assert (operating.world.status["driver"]["attempt"], moved(operating)) == (attempt, ["one", "two"])
    assert operating.world.reasons().count("PositionIgnored") == 2
    operating.moves("three", "trimHorizon", 60)
    assert moved(operating) == ["one", "two", "three"]
    operating.teardown()


def test_a_refused_move_lets_the_driver_read_on_and_says_why() -> None:
    operating = begun()
    operating.mover("refused")
    operating.moves("one", "trimHorizon", 60)
    world = operating.world
    assert (world.status["phase"], kstatus(world.must()), moved(operating)) == ("Running", CURRENT, [])
    condition = world.condition("PositionRefused")
    assert condition["message"].startswith("the move one was not made: batch 42 is open; name it by position.giveUpBatch 42.")
    assert "spec.position" in condition["message"]
    attempt = world.status["driver"]["attempt"]
    operating.mover("ok")
    operating.wait(700)
    assert (world.status["driver"]["attempt"], moved(operating)) == (attempt, [])
    operating.ask("retry", 1)
    operating.wait(60)
    assert (moved(operating), world.condition("PositionRefused")) == (["one"], {})
    assert world.reasons().count("PositionRefused") == 1
    operating.teardown()


def test_a_move_waits_for_a_driver_that_will_not_go_and_says_so() -> None:
    """Its node is lost, and nobody knows whether it reads on: no Job and no driver is made beside it, until the node is taken out of the cluster."""
    operating = begun()
    world = operating.world
    operating.lose_node(node=world.drivers()[0]["spec"]["nodeName"], how="dead", seconds=1)
    operating.moves("one", "trimHorizon", 300)
    assert (world.condition("Stalled")["reason"], moved(operating), world.pods("migration")) == ("DriverOverdue", [], [])
    operating.mover("refused")  # its batch is open
    operating.end_of_outage(how="remove", seconds=120)
    assert "batch 42 is open" in world.condition("PositionRefused")["message"]
    operating.wait(120)
    assert (world.status["phase"], moved(operating)) == ("Running", [])
    operating.teardown()


def test_a_move_that_fails_is_tried_three_times_and_then_the_driver_starts() -> None:
    operating = begun()
    operating.mover("failing")
    operating.moves("one", "trimHorizon", 200)
    world = operating.world
    assert (world.status["phase"], world.status["position"]["state"], world.status["position"]["failures"]) == ("Running", "Refused", 3)
    assert "failed 3 times: DynamoDB did not answer" in world.condition("PositionRefused")["message"]
    operating.teardown()


def test_a_move_whose_job_is_refused_does_not_stop_the_consumer_for_ever() -> None:
    operating = begun()
    world = operating.world
    world.admission.policies["create", "Job"] = (world.now + timedelta(seconds=120), "Forbidden")
    operating.moves("one", "trimHorizon", 30)
    assert world.status["phase"] == "Draining"
    operating.wait(70)
    said = world.condition("PositionRefused")["message"]
    assert (world.status["phase"], kstatus(world.must()), moved(operating)) == ("Running", CURRENT, [])
    assert said.startswith("the move one did not come to its end: no pod carried it out within 60 s (spec.progressDeadlineSeconds): ")
    operating.wait(60)
    operating.ask("retry", 1)
    operating.wait(60)
    assert (moved(operating), world.status["phase"], world.condition("PositionRefused")) == (["one"], "Running", {})
    operating.teardown()


def test_a_move_whose_image_cannot_be_pulled_is_given_up_in_time() -> None:
    operating = begun()
    operating.spec["pipeline"] = {**operating.spec["pipeline"], "image": "missing"}
    operating.moves("one", "trimHorizon", 100)
    assert "within 60 s" in operating.world.condition("PositionRefused")["message"]
    assert not operating.world.pods("migration")
    operating.edit(edit="back", seconds=60)
    assert (moved(operating), operating.world.status["phase"]) == (["one"], "Running")
    operating.teardown()


def failing(operating: Operating) -> None:
    """Its Jobs fail after they have named their plan."""
    operating.mover("failing")
    operating.moves("one", "trimHorizon", 200)


def dropped(operating: Operating) -> None:
    """The spec asks for it no more, while its Job runs."""
    operating.moves("one", "trimHorizon", 1)
    assert operating.world.run(60, until=lambda: bool(operating.world.pods("migration")))
    operating.moves(None, "latest", 120)


def replaced(operating: Operating) -> None:
    """The first Job failed after it had named its plan. The move that follows is refused."""
    operating.mover("failing")
    operating.moves("one", "trimHorizon", 1)
    assert operating.world.run(60, until=lambda: operating.world.status["position"]["state"] == "Failing")
    operating.mover("refused")
    operating.moves("two", "latest", 200)


def suspended(operating: Operating) -> None:
    """Its plan was written down when the consumer was suspended, and it is dropped before the consumer resumes."""
    operating.moves("one", "trimHorizon", 1)
    assert operating.world.run(60, until=lambda: any(table.moving for table in operating.world.tables.values()))
    operating.suspend(30)
    assert operating.world.status["position"]["state"] == "Stopped"
    operating.moves(None, "latest", 10)
    operating.suspend(60)


@pytest.mark.parametrize(
    ("leave", "id_", "state"), [(failing, "one", "Refused"), (dropped, "one", "Stopped"), (replaced, "two", "Refused"), (suspended, "one", "Stopped")]
)
def test_a_plan_that_is_left_is_completed_though_the_run_had_reached_its_end(leave: Callable[[Operating], None], id_: str, state: str) -> None:
    operating = begun()
    operating.ends("at noon", 60)
    attempt = operating.world.status["driver"]["attempt"]
    leave(operating)
    for _ in range(2):
        assert (operating.world.status["position"]["id"], operating.world.status["position"]["state"]) == (id_, state)
        assert (operating.world.status["phase"], operating.world.status["driver"]["attempt"]) == ("Completed", attempt + 1)
        operating.wait(60)
    operating.teardown()


@pytest.mark.parametrize("how", ["evict", "kill"])
def test_a_move_whose_pod_is_taken_away_goes_on(how: str) -> None:
    operating = begun()
    operating.moves("one", "trimHorizon", 1)
    assert operating.world.run(60, until=lambda: bool(operating.world.pods("migration")))
    operating.wait(2)
    operating.pod_ends(role="migration", how=how, seconds=120)
    assert moved(operating) == ["one"]
    assert operating.world.status["phase"] == "Running"
    operating.teardown()


@pytest.mark.parametrize("rest", ["suspend", "scale"])
def test_a_move_of_a_consumer_at_rest(rest: str) -> None:
    operating = begun()
    operating.suspend(30) if rest == "suspend" else operating.scale(0, 30)
    operating.moves("one", "trimHorizon", 30)
    assert moved(operating) == ([] if rest == "suspend" else ["one"])
    operating.suspend(60) if rest == "suspend" else operating.scale(2, 60)
    assert moved(operating) == ["one"]
    operating.teardown()


@pytest.mark.parametrize("write", range(1, 9))
@pytest.mark.parametrize("how", ["crash", "lose"])
def test_an_operator_that_dies_after_any_write_moves_once(write: int, how: str) -> None:
    operating = begun()
    operating.call_fails(who=0, what=how, at=write, times=1, seconds=0)
    operating.moves("one", "trimHorizon", 120)
    assert moved(operating) == ["one"]
    operating.teardown()

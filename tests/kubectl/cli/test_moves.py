"""Moves of positions, `spec.position`, as a person sees them."""

from __future__ import annotations

import troubles
from scenarios import started
from scene import Scene
from simulated_cluster import SPEC


def test_retry_asks_for_another_try_of_a_move_that_the_spec_asks_for() -> None:
    scene = troubles.scene("position_refused")
    answer = scene.run("retry", "orders")
    assert (answer.exit_code, answer.said) == (0, "orders retries the move 2026-11-21-bad-deploy of its positions\n")
    body = scene.get()
    scene.cluster.edit(body, {"spec": {"position": None}})
    assert scene.run("retry", "orders").exit_code == 65


def test_status_shows_what_became_of_the_last_move() -> None:
    world = started()
    world.apply({**SPEC, "position": {"id": "one", "to": {"trimHorizon": True}}})
    assert world.run(120, until=lambda: world.status.get("position", {}).get("state") == "Complete")
    said = Scene(world.memory, world.now, 110).run("status", "orders").said
    assert "position     one: Complete 0s ago, to trimHorizon, 12 records again, digest ab12" in said

"""Trials of a version, `spec.rollout.trial`, as a person sees them."""

from __future__ import annotations

import troubles
from scenarios import started
from scene import Scene
from simulated_cluster import SPEC


def test_status_shows_the_version_on_trial_and_then_that_it_is_proven() -> None:
    world = started()
    world.apply({**SPEC, "rollout": {"trial": {"batches": 3, "seconds": 60}}})
    assert world.run(60, until=lambda: "base" in world.status.get("trial", {}))
    said = Scene(world.memory, world.now, 250).run("status", "orders").said
    assert ": Forward since " in said
    assert "; 0 of 3 batches; NoneProven, no version has passed a trial yet; no version is proven" in said
    assert world.run(120, until=lambda: "proven" in world.status)
    version = world.status["proven"]["hash"]
    assert f"trial        version {version} is proven\n" in Scene(world.memory, world.now, 250).run("status", "orders").said


def test_restart_tries_a_version_again_that_was_rolled_back() -> None:
    """Nothing else does, but another spec. So the status offers it, though the proven version works."""
    scene = troubles.scene("rolled_back")
    said = scene.run("status", "orders").said
    assert "RolledBack since 26s; Failed, attempt 2 ended: ValueError" in said
    assert "\nnext         restart orders (tries the version that was rolled back again as it is" in said
    assert scene.run("restart", "orders").exit_code == 0

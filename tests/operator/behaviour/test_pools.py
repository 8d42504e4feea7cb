"""Pools as their users see them (docs/pools.md): the product's loops over the in-memory API server."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from pool_scene import POOL, SPACE, Scene, pooled

from sluice_operator.apply.execute import ActionContext, apply
from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND, Conflict
from sluice_operator.observe import seats
from sluice_operator.observe.cache import ResourceKey
from sluice_operator.run.live_read import cached_view
from sluice_operator.state.seats import ClearSeat, EndSeat, PutSeat, Seat

Json = dict[str, Any]


def notes(scene: Scene, pod: str = "small-pool-1") -> Json:
    found: Json = scene.get("Pod", pod)["metadata"]["annotations"]
    return found


def test_two_consumers_work_in_one_pod() -> None:
    scene = pooled()
    assert scene.pods() == ["small-pool-1", "small-pool1-exec-1"]
    for name in ("orders", "clicks"):
        driver = scene.get(CONSUMER_KIND, name)["status"]["driver"]
        assert (driver["pod"], driver["host"]) == (f"{name}-driver-1", "small-pool-1")
        assert scene.ready(CONSUMER_KIND, name)[:2] == ("True", "Consuming")
    status = scene.get(POOL_KIND, "small")["status"]
    assert (status["members"], status["readyMembers"], status["replicas"]) == (2, 2, 1)
    assert scene.ready(POOL_KIND, "small")[0] == "True"
    assert {item["type"] for item in status["conditions"]} == {"Ready", "Draining", "SpecValid", "DriverHealthy"}


def test_the_pod_and_its_seats_are_as_the_driver_reads_them() -> None:
    """The contract of docs/pools.md."""
    scene = pooled()
    pod = scene.get("Pod", "small-pool-1")
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["python", "-m", "sluice_consumer", "pool", "--config", "/etc/sluice/config.json"]
    assert container["image"] == "shop/streams:7"
    named = {item["name"] for item in container["env"]}
    assert {"SLUICE_POD_UID", "SLUICE_IMAGE"} <= named
    assert not named & {"SLUICE_OWNER", "SLUICE_TABLE_MADE", "SLUICE_SPEC_HASH"}
    assert (pod["metadata"]["labels"]["sluice.dev/role"], pod["metadata"]["labels"]["sluice.dev/pool"]) == ("pool", "small")
    config = json.loads(pod["metadata"]["annotations"]["sluice.dev/config"])
    assert set(config) == {"format", "name", "slotShare", "drainTimeoutSeconds", "executors", "sparkConf"}
    (key,) = [key for key in notes(scene) if key.startswith("seat.") and json.loads(notes(scene)[key])["name"] == "orders"]
    seat = json.loads(notes(scene)[key])
    assert (seat["pod"], seat["config"]["checkpoints"]["table"]) == (pod["metadata"]["uid"], "orders")
    assert not {"executors", "sparkConf", "metrics"} & set(seat["config"])
    assert seat["config"]["pipeline"] == {"entrypoint": "shop.orders:process", "args": {}}


def test_another_image_of_the_pool_restarts_each_member() -> None:
    scene = pooled()
    scene.edit(POOL_KIND, "small", pipeline={"image": "shop/streams:8"})
    scene.on(40)
    assert scene.pods("pool") == ["small-pool-2"]
    hosts = {scene.get(CONSUMER_KIND, name)["status"]["driver"]["host"] for name in ("orders", "clicks")}
    assert (hosts, scene.get(POOL_KIND, "small")["status"]["readyMembers"]) == ({"small-pool-2"}, 2)


def test_executors_of_a_pod_that_is_gone_are_waited_for() -> None:
    """They may still run a task of any member: no pod of its own is made before they are gone."""
    scene = pooled()
    scene.edit(CONSUMER_KIND, "orders", pool=None)
    scene.end("small-pool-1", 137)
    raw = scene.get("Pod", "small-pool-1")
    scene.memory.remove("Pod", SPACE, "small-pool-1", raw["metadata"]["uid"], 0)
    scene.on(8)
    assert scene.pods() == ["small-pool1-exec-1"]
    assert scene.ready(CONSUMER_KIND, "orders")[0] == "False"
    scene.memory.collect_garbage()
    scene.on(30)
    assert scene.ready(CONSUMER_KIND, "orders")[0] == "True"
    assert "orders-driver-2" in scene.pods()


@pytest.mark.parametrize(("change", "reason", "words", "stalled"), [
    ({"pool": "none"}, "PoolMissing", "there is no KinesisConsumerPool none in this namespace", True),
    ({}, "PoolSuspended", "pool small: it is suspended", False),
])  # fmt: skip
def test_a_member_without_a_place_says_why(change: Json, reason: str, words: str, stalled: bool) -> None:  # noqa: FBT001 - pytest passes by name
    scene = pooled()
    scene.edit(CONSUMER_KIND, "orders", **change)
    scene.edit(POOL_KIND, "small", suspend=not change)
    scene.on(30)
    status, why, message = scene.ready(CONSUMER_KIND, "orders")
    assert (status, why) == ("False", reason)
    assert words in message
    assert ("Stalled" in {item["type"] for item in scene.get(CONSUMER_KIND, "orders")["status"]["conditions"]}) is stalled


@pytest.mark.parametrize("kind", [PutSeat, EndSeat, ClearSeat])
def test_a_seat_is_not_written_into_a_pod_that_was_replaced(kind: type[PutSeat | EndSeat | ClearSeat]) -> None:
    scene = pooled()
    key = ResourceKey(SPACE, "orders")
    view = cached_view(scene.context, key, scene.context.cache.body(key) or {}, scene.now)
    before = notes(scene)
    seat = Seat(consumer=view.resource.uid, name="orders", attempt=7, leave_by=scene.now + timedelta(seconds=9))
    with pytest.raises(Conflict):
        apply(ActionContext(scene.memory, view, scene.context.settings), kind("small-pool-1", "another-uid", seat))
    assert notes(scene) == before


def test_a_pool_without_members_has_no_pod() -> None:
    scene = Scene()
    scene.make(POOL_KIND, "small", POOL)
    scene.on(4)
    assert scene.pods() == []
    assert scene.ready(POOL_KIND, "small")[:2] == ("True", "NoMembers")


def test_a_field_of_the_pool_is_refused_on_a_member_and_it_continues() -> None:
    scene = pooled()
    scene.edit(CONSUMER_KIND, "orders", pipeline={"image": "mine:1"}, sparkConf={"spark.executor.memory": "1g"})
    scene.on(8)
    valid = next(item for item in scene.get(CONSUMER_KIND, "orders")["status"]["conditions"] if item["type"] == "SpecValid")
    assert (valid["status"], seats.SEAT in "".join(notes(scene))) == ("False", True)
    assert "spec.pipeline.image: belongs to the pool small; remove it here, or remove spec.pool" in valid["message"]
    assert scene.ready(CONSUMER_KIND, "orders")[0] == "True"

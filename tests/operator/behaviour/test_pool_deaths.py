"""A member that ends the process of its pool gets a driver of its own, and the others work on (docs/pools.md, "A member that ends the process")."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from pool_scene import MEMBER, POOL, SPACE, Scene, pooled
from pools.programs import PoolDriver
from prometheus_client import CollectorRegistry

from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND
from sluice_operator.observe import seats
from sluice_operator.telemetry.gauges import Gauges, Sources

Json = dict[str, Any]
OTHERS = ("clicks", "carts")


def three() -> Scene:
    scene = pooled()
    scene.make(CONSUMER_KIND, "carts", {**MEMBER, "checkpoints": {"table": "carts"}})
    scene.on()
    return scene


def dies(scene: Scene, *working: str, times: int = 1, said: bool = True) -> Scene:
    for _ in range(times):
        host = scene.get(POOL_KIND, "small")["status"]["driver"]["pod"]
        scene.end(host, 137 if not said else 1, {"reason": "SparkGone", "message": "Spark has ended", "working": list(working)} if said else None)
        on(scene, 40, until=host)
    return scene


def on(scene: Scene, steps: int, until: str = "") -> None:
    """Time passes. Kubernetes ends the executors of a pod that is gone. At most until all work, without this pod."""
    for _ in range(steps):
        scene.memory.collect_garbage()
        scene.on(1)
        if until and until not in scene.pods() and all(scene.ready(CONSUMER_KIND, name)[0] == "True" for name in ("orders", *OTHERS)):
            return


def condition(scene: Scene, name: str, kind: str = "OutOfPool", of: str = CONSUMER_KIND) -> Json | None:
    return next((item for item in scene.get(of, name)["status"]["conditions"] if item["type"] == kind), None)


def seated(scene: Scene) -> set[str]:
    notes = scene.get("Pod", scene.get(POOL_KIND, "small")["status"]["driver"]["pod"])["metadata"]["annotations"]
    return {json.loads(note)["name"] for key, note in notes.items() if key.startswith(seats.SEAT)}


def test_a_member_that_each_death_names_gets_a_driver_of_its_own_and_returns_when_it_is_restarted() -> None:
    scene = dies(three(), "orders", times=2)
    assert (condition(scene, "orders"), seated(scene)) == (None, {"orders", *OTHERS})
    dies(scene, "orders")
    assert seated(scene) == set(OTHERS)
    own = scene.get("Pod", scene.get(CONSUMER_KIND, "orders")["status"]["driver"]["pod"])
    assert (own["spec"]["containers"][0]["image"], own["spec"]["serviceAccountName"]) == ("shop/streams:7", "streams")
    config = json.loads(own["metadata"]["annotations"]["sluice.dev/config"])
    assert (config["executors"], config["pipeline"]["entrypoint"]) == (1, "shop.orders:process")
    said = condition(scene, "orders")
    assert said is not None
    assert (said["reason"], "the last 3 ends of the pool small" in said["message"]) == ("DriverDeaths", True)
    assert "kubectl sluice restart orders" in said["message"]
    assert scene.ready(CONSUMER_KIND, "orders")[0] == "True"
    scene.memory.edit(scene.get(CONSUMER_KIND, "orders"), {"metadata": {"annotations": {"sluice.dev/restart": "now"}}})
    on(scene, 30)
    assert (condition(scene, "orders"), seated(scene), scene.pods("driver")) == (None, {"orders", *OTHERS}, [])


def figures(scene: Scene) -> tuple[list[float | None], list[float | None]]:
    registry = CollectorRegistry()
    registry.register(Gauges(Sources(scene.context.cache.snapshots, lambda: True, dict, scene.context.pools.snapshots)))
    pool, keys = {"namespace": SPACE, "name": "small"}, ("members", "ready_members", "members_out", "deaths", "stalled")
    members = [{"namespace": SPACE, "name": name} for name in ("orders", *OTHERS)]
    of_pool = [registry.get_sample_value(f"sluice_pool_{key}", pool) for key in keys]
    return of_pool, [registry.get_sample_value("sluice_consumer_out_of_pool", member) for member in members]


def test_the_operators_metrics_have_the_deaths_of_a_pool_and_the_member_that_is_out() -> None:
    scene = three()
    assert figures(scene) == ([3, 3, 0, 0, 0], [0, 0, 0])
    dies(scene, "orders", times=2)
    assert figures(scene) == ([3, 3, 0, 2, 0], [0, 0, 0])
    dies(scene, "orders")
    assert figures(scene) == ([3, 3, 1, 0, 0], [1, 0, 0])


RESTART: Json = {"metadata": {"annotations": {"sluice.dev/restart": "now"}}}
RETURNS: dict[str, Json] = {"edited": {"spec": {"batch": {"intervalSeconds": 9}}}, "restarted": RESTART, "moved": {"spec": {"pool": "large"}}}


@pytest.mark.parametrize("works", [True, False])
@pytest.mark.parametrize("how", RETURNS)
def test_the_pool_knows_at_once_that_a_member_returned(how: str, works: bool) -> None:  # noqa: FBT001 - pytest passes by name
    """In its status and in the metric, and whether or not the member's own driver works: the alert would stay for minutes."""
    scene = dies(three(), "orders", times=3)
    if not works:
        scene.end(scene.get(CONSUMER_KIND, "orders")["status"]["driver"]["pod"], 1, {"reason": "Failed", "message": "again"})
        on(scene, 2)
        assert scene.ready(CONSUMER_KIND, "orders")[0] == "False"
    assert figures(scene)[0][2] == 1
    scene.memory.edit(scene.get(CONSUMER_KIND, "orders"), RETURNS[how])
    on(scene, 1)
    assert (scene.get(POOL_KIND, "small")["status"]["deaths"]["out"], figures(scene)[0][2]) == ([], 0)


def ended(scene: Scene) -> dict[str, float]:
    samples = (sample for family in scene.metrics.registry.collect() for sample in family.samples)
    return {sample.labels["cause"]: sample.value for sample in samples if sample.name == "sluice_restarts_total"}


def test_a_death_of_a_pool_counts_once_with_its_own_cause_however_many_members_it_has() -> None:
    """One process ended. The alert on drivers that fail would fire for every single death of a pool with four members."""
    scene = dies(three(), said=False)
    assert ended(scene) == {"OOMKilled": 1}
    dies(scene, "orders")
    assert ended(scene) == {"OOMKilled": 1, "SparkGone": 1}


@pytest.mark.parametrize(("how", "counted"), [("evicted", {"Evicted": 1}), ("gone", {"DriverLost": 1}), ("deleted", {"Drained": 1})])
def test_a_pool_whose_pod_is_taken_away_counts_as_the_driver_of_one_consumer_does(how: str, counted: dict[str, float]) -> None:
    scene = three()
    host = scene.get("Pod", scene.get(POOL_KIND, "small")["status"]["driver"]["pod"])
    name, uid = host["metadata"]["name"], host["metadata"]["uid"]
    if how == "evicted":
        scene.running.pop(uid)
        scene.memory.set_status("Pod", SPACE, name, {"phase": "Failed", "reason": "Evicted", "containerStatuses": []})
    else:
        scene.memory.delete("Pod", SPACE, name, uid)
    if how == "gone":
        scene.memory.finish_deletion(host)
    on(scene, 40, until=name)
    assert (ended(scene), seated(scene)) == (counted, {"orders", *OTHERS})


def test_a_member_names_the_pod_of_its_pool_as_what_is_gone() -> None:
    scene = three()
    host = scene.get(POOL_KIND, "small")["status"]["driver"]["pod"]
    dies(scene, "orders")
    said = [event["message"] for event in scene.memory.all("Event") if event["reason"] == "DriverDisrupted"]
    assert (len(said), {host in message for message in said}) == (3, {True})


def test_a_pool_and_a_member_that_are_asked_to_restart_count_nothing() -> None:
    scene = three()
    host = scene.get(POOL_KIND, "small")["status"]["driver"]["pod"]
    scene.memory.edit(scene.get(CONSUMER_KIND, "orders"), RESTART)
    on(scene, 30)
    scene.memory.edit(scene.get(POOL_KIND, "small"), RESTART)
    on(scene, 60, until=host)
    assert (ended(scene), seated(scene)) == ({}, {"orders", *OTHERS})


def test_a_member_that_fails_by_itself_and_one_that_is_out_count_as_any_consumer() -> None:
    scene = three()
    host = scene.get("Pod", scene.get(POOL_KIND, "small")["status"]["driver"]["pod"])
    program = scene.running[host["metadata"]["uid"]]
    assert isinstance(program, PoolDriver)
    program.fails.add(scene.get(CONSUMER_KIND, "orders")["metadata"]["uid"])
    on(scene, 30)
    assert ended(scene) == {"Failed": 1}
    dies(scene, "orders", times=3)
    assert ended(scene) == {"Failed": 1, "SparkGone": 3}
    scene.end(scene.get(CONSUMER_KIND, "orders")["status"]["driver"]["pod"], 137)
    on(scene, 30)
    assert ended(scene) == {"Failed": 1, "SparkGone": 3, "OOMKilled": 1}


def test_events_of_a_pool_are_counted_and_its_phases_are_not_those_of_a_consumer() -> None:
    """`sluice_phase_seconds` and `sluice_consumers` are about consumers; one of them may have the pool's name."""
    scene = three()
    scene.make(CONSUMER_KIND, "small", {**MEMBER, "checkpoints": {"table": "small"}, "suspend": True})
    on(scene, 30)
    value = scene.metrics.registry.get_sample_value
    before = value("sluice_events_total", {"reason": "DriverFailed"}), value("sluice_phase_seconds_count", {"phase": "Suspended"})
    dies(scene, "orders")
    after = value("sluice_events_total", {"reason": "DriverFailed"}), value("sluice_phase_seconds_count", {"phase": "Suspended"})
    assert (before, after) == ((None, None), (1, None))


@pytest.mark.parametrize("how", ["works", "moved"])
def test_deaths_are_forgotten_after_an_hour_of_work_and_when_the_member_is_gone(how: str) -> None:
    """Not only with the next death, which may never come: the metric and the report would accuse it for ever."""
    scene = dies(three(), "orders", times=2)
    assert figures(scene)[0][3] == 2
    if how == "moved":
        scene.edit(CONSUMER_KIND, "orders", pool="large")
        on(scene, 1)
    else:
        scene.now += timedelta(hours=1)
        on(scene, 4)
    assert figures(scene)[0][3] == 0
    deaths = scene.get(POOL_KIND, "small")["status"]["deaths"]
    on(scene, 20)
    assert scene.get(POOL_KIND, "small")["status"]["deaths"] == deaths == {"pod": deaths["pod"], "named": [], "out": []}


@pytest.mark.parametrize("busy", [True, False])
def test_a_kernel_that_leaves_no_message_names_the_members_with_an_open_batch(busy: bool) -> None:  # noqa: FBT001 - pytest passes by name
    scene = three()
    for _ in range(3):
        pod = scene.get("Pod", scene.get(POOL_KIND, "small")["status"]["driver"]["pod"])
        notes = pod["metadata"]["annotations"]
        key = next(key for key, note in notes.items() if key.startswith(seats.SEAT) and json.loads(note)["name"] == "orders")
        report = key.replace(seats.SEAT, seats.REPORT)
        words = json.loads(notes[report]) | ({"openBatch": 7} if busy else {})
        scene.memory.edit(pod, {"metadata": {"annotations": {report: json.dumps(words)}}})
        dies(scene, said=False)
    assert seated(scene) == ({*OTHERS} if busy else {"orders", *OTHERS})


def test_two_suspects_of_three_members_stay_and_the_pool_names_them() -> None:
    scene = three()
    dies(scene, "orders", "carts", times=2)
    host = scene.get(POOL_KIND, "small")["status"]["driver"]["pod"]
    scene.end(host, 1, {"reason": "SparkGone", "message": "Spark has ended", "working": ["orders", "carts"]})
    on(scene, 4)
    stalled = condition(scene, "small", "Stalled", POOL_KIND)
    assert stalled is not None
    assert figures(scene)[0][2:] == [0, 3, 1]
    assert (stalled["reason"], "carts, orders" in stalled["message"], "kubectl patch kc MEMBER" in stalled["message"]) == ("PoolFailing", True, True)
    on(scene, 40)
    assert seated(scene) == {"orders", *OTHERS}
    dies(scene, "carts")
    assert seated(scene) == {"orders", "clicks"}
    assert condition(scene, "small", "Stalled", POOL_KIND) is None


@pytest.mark.parametrize("change", [{"suspend": True}, {"batch": {"intervalSeconds": 9}}])
def test_an_edit_returns_a_member_and_a_suspension_does_not(change: Json) -> None:
    scene = dies(three(), "orders", times=3)
    scene.edit(CONSUMER_KIND, "orders", **change)
    on(scene, 30)
    scene.edit(CONSUMER_KIND, "orders", suspend=False)
    on(scene, 30)
    assert ("orders" in seated(scene)) is ("batch" in change)
    assert (condition(scene, "orders") is None) is ("batch" in change)


@pytest.mark.parametrize("rest", [{"suspend": True}, {"replicas": 0}])
def test_a_pool_that_is_suspended_stops_the_member_that_is_out_as_well(rest: Json) -> None:
    scene = dies(three(), "orders", times=3)
    scene.edit(POOL_KIND, "small", **rest)
    on(scene, 30)
    assert (scene.pods(), scene.ready(CONSUMER_KIND, "orders")[1]) == ([], "PoolSuspended")
    assert condition(scene, "orders") is not None
    scene.edit(POOL_KIND, "small", suspend=False, replicas=1)
    on(scene, 40)
    assert (seated(scene), scene.ready(CONSUMER_KIND, "orders")[0]) == ({*OTHERS}, "True")


def test_a_pool_that_is_deleted_stops_the_member_that_is_out_and_one_of_the_same_name_takes_it() -> None:
    scene = dies(three(), "orders", times=3)
    body = scene.get(POOL_KIND, "small")
    scene.memory.delete(POOL_KIND, SPACE, "small", body["metadata"]["uid"])
    on(scene, 40)
    assert (scene.pods(), scene.ready(CONSUMER_KIND, "orders")[1]) == ([], "PoolMissing")
    scene.make(POOL_KIND, "small", POOL)
    on(scene, 40)
    assert (seated(scene), scene.pods("driver")) == ({"orders", *OTHERS}, [])


def test_a_member_that_the_status_of_the_pool_does_not_name_any_more_returns() -> None:
    """Somebody restored a copy of the pool, for example. It is in the pool or out of it, and says which."""
    scene = dies(three(), "orders", times=3)
    scene.memory.edit(scene.get(POOL_KIND, "small"), {"status": {"deaths": None}})
    on(scene, 40)
    assert (seated(scene), scene.pods("driver"), condition(scene, "orders")) == ({"orders", *OTHERS}, [], None)


def test_an_edit_that_is_refused_returns_nobody() -> None:
    scene = dies(three(), "orders", times=3)
    scene.edit(CONSUMER_KIND, "orders", batch={"intervalSeconds": -5})
    on(scene, 100)
    assert (seated(scene), scene.ready(CONSUMER_KIND, "orders")[0], condition(scene, "orders") is None) == ({*OTHERS}, "True", False)
    scene.edit(CONSUMER_KIND, "orders", batch={"intervalSeconds": 9})
    on(scene, 40)
    assert (seated(scene), scene.pods("driver")) == ({"orders", *OTHERS}, [])


def test_a_pool_without_another_member_that_shall_run_has_no_pod_until_one_returns() -> None:
    scene = dies(three(), "orders", times=3)
    for name in OTHERS:
        scene.edit(CONSUMER_KIND, name, suspend=True)
    on(scene, 20)
    assert (scene.pods("pool"), scene.ready(POOL_KIND, "small")[1]) == ([], "NoMembers")
    assert scene.ready(CONSUMER_KIND, "orders")[0] == "True"
    scene.memory.edit(scene.get(CONSUMER_KIND, "orders"), {"metadata": {"annotations": {"sluice.dev/restart": "now"}}})
    on(scene, 40)
    assert (seated(scene), scene.pods("driver")) == ({"orders"}, [])

"""What others write into pools, and what long use leaves in them, stops nobody (docs/pools.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from loop_cases import Deaf
from pool_scene import MEMBER, SPACE, Scene, pooled
from prometheus_client import CollectorRegistry

from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND, Unavailable
from sluice_operator.observe import parse, pools, seats
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.hosts import Hosts
from sluice_operator.observe.watch_health import Freshness
from sluice_operator.observe.watch_state import WatchEvent
from sluice_operator.run.handlers import EventSink
from sluice_operator.run.pool_events import PoolSink
from sluice_operator.run.reconcile import reconcile
from sluice_operator.telemetry.gauges import Gauges, Sources
from sluice_operator.telemetry.metrics import OperatorMetrics
from sluice_operator.untrusted.decoding import NOT_READ

Json = dict[str, Any]
LABELS = {parse.MANAGED: "sluice", parse.CONSUMER: "orders"}


class Lister:
    def versions(self, kind: str, _namespace: str, _selector: str) -> dict[str, str]:
        return {"u1": "5"} if kind == "Pod" else {}


@pytest.mark.parametrize("more", [{parse.ROLE: "driver"}, {parse.ROLE: "driver", parse.POOL: "small"}, {parse.ROLE: "executor", parse.POOL: "small"}])
def test_a_pod_with_any_labels_counts_as_shown(more: Json) -> None:
    """An audit lists drivers by their labels. One that the watch has shown, and that was not noted, would restart the operator every two minutes."""
    now = [0.0]
    freshness, cache, pools_cache, deaf = Freshness(lambda: now[0]), Cache(), Cache(POOL_KIND), Deaf()
    consumers = EventSink(cache, deaf, freshness, OperatorMetrics())  # type: ignore[arg-type]  # no loops
    sink = PoolSink(cache, pools_cache, Hosts(), deaf, deaf, consumers)  # type: ignore[arg-type]  # no loops
    meta = {"name": "mine", "namespace": SPACE, "uid": "u1", "resourceVersion": "5", "labels": LABELS | more}
    sink.see("Pod", WatchEvent({"metadata": meta, "spec": {}, "status": {}}, gone=False))
    for now[0] in (30.0, 60.0, 130.0):
        freshness.audit(Lister(), ())
    assert freshness.stuck() == []


def test_a_pool_keeps_the_pod_in_which_members_work_that_are_too_large_to_be_read() -> None:
    scene = pooled()
    pods = scene.pods("pool")
    for name in ("orders", "clicks"):
        meta = scene.get(CONSUMER_KIND, name)["metadata"] | {"resourceVersion": "99"}
        scene.sink.see(CONSUMER_KIND, WatchEvent({"metadata": meta, "spec": NOT_READ, "status": NOT_READ}, gone=False))
    for seconds in range(0, 60, 5):
        reconcile(scene.of_pools, ResourceKey(SPACE, "small"), scene.now + timedelta(seconds=seconds), force_refresh=True)
    assert scene.pods("pool") == pods
    assert scene.ready(POOL_KIND, "small")[:2] == ("True", "Consuming")


def keys(scene: Scene, prefix: str) -> list[str]:
    return [key for key in scene.get("Pod", "small-pool-1")["metadata"]["annotations"] if key.startswith(prefix)]


def test_attempts_leave_nothing_in_the_pod() -> None:
    """A pod lives for months: a member that fails or is edited often would fill it, and nobody would get a seat any more."""
    scene = pooled()
    for seconds in (61, 62, 63, 64):
        scene.edit(CONSUMER_KIND, "orders", batch={"intervalSeconds": seconds})
        scene.on(20)
    assert scene.get(CONSUMER_KIND, "orders")["status"]["driver"]["attempt"] == 5
    assert scene.ready(CONSUMER_KIND, "orders")[0] == "True"
    assert [len(keys(scene, kind)) for kind in (seats.SEAT, seats.LEAVE, seats.REPORT)] == [2, 0, 2]


def test_consumers_that_were_deleted_leave_nothing_in_the_pod() -> None:
    scene = pooled()
    for _ in range(3):
        scene.make(CONSUMER_KIND, "carts", {**MEMBER, "checkpoints": {"table": "carts"}})
        scene.on()
        scene.memory.delete(CONSUMER_KIND, SPACE, "carts", scene.get(CONSUMER_KIND, "carts")["metadata"]["uid"])
        scene.on(20)
    assert scene.memory.get(CONSUMER_KIND, SPACE, "carts") is None
    scene.make(CONSUMER_KIND, "last", {**MEMBER, "checkpoints": {"table": "last"}})
    scene.on()
    assert len(keys(scene, seats.SEAT)) == 3


def test_a_seat_that_would_fill_the_pod_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reports of all members are written in one patch: without room for it all would fall silent."""
    scene = pooled()
    size = scene.context.hosts.of_namespace(SPACE)[0].size
    monkeypatch.setattr(pools, "MOST_BYTES", size + 20_000)
    large = {"entrypoint": "shop.carts:process", "args": {"words": "x" * 30_000}}
    scene.make(CONSUMER_KIND, "carts", {**MEMBER, "checkpoints": {"table": "carts"}, "pipeline": large})
    scene.make(CONSUMER_KIND, "last", {**MEMBER, "checkpoints": {"table": "last"}})
    scene.on()
    assert scene.ready(CONSUMER_KIND, "carts")[:2] == ("False", "PoolFull")
    assert {name: scene.ready(CONSUMER_KIND, name)[0] for name in ("orders", "clicks", "last")} == dict.fromkeys(("orders", "clicks", "last"), "True")


@pytest.mark.parametrize("change", [{"replicas": 5}, {"replicas": 5, "pool": None, "pipeline": None}, {"batch": {"words": 1}}])
def test_a_pool_runs_for_a_member_whose_new_spec_is_refused(change: Json) -> None:
    scene = pooled()
    scene.edit(CONSUMER_KIND, "clicks", suspend=True)
    scene.on(20)
    scene.edit(CONSUMER_KIND, "orders", **change)
    scene.on(40)
    valid = next(item for item in scene.get(CONSUMER_KIND, "orders")["status"]["conditions"] if item["type"] == "SpecValid")
    assert valid["status"] == "False"
    assert scene.ready(CONSUMER_KIND, "orders")[0] == "True"
    assert scene.get(POOL_KIND, "small")["status"]["members"] == 2


def test_a_pool_whose_consumers_could_not_be_listed_is_not_stopped() -> None:
    """A watch that is refused counts as empty, as while the API server reads its permissions. All members would stop."""
    scene = pooled()
    for name in ("orders", "clicks"):
        scene.context.cache.forget(ResourceKey(SPACE, name))
    with pytest.raises(Unavailable, match="has not shown all KinesisConsumers"):
        reconcile(scene.of_pools, ResourceKey(SPACE, "small"), scene.now)
    assert "deletionTimestamp" not in scene.get("Pod", "small-pool-1")["metadata"]


def test_the_operators_metrics_have_the_figures_of_a_member() -> None:
    scene = pooled()
    found = {one.body["metadata"]["name"]: one.driver for one in scene.context.hosts.drivers(scene.context.cache.snapshots())}
    assert {name: driver.report.open_shards for name, driver in found.items() if driver and driver.report} == {"orders": 1, "clicks": 1}
    registry = CollectorRegistry()
    drivers = scene.context.hosts.drivers
    registry.register(Gauges(Sources(lambda: drivers(scene.context.cache.snapshots()), lambda: True, dict)))
    assert registry.get_sample_value("sluice_consumer_report_age_seconds", {"namespace": SPACE, "name": "orders"}) is not None


def test_the_seat_of_a_consumer_that_is_gone_is_drained() -> None:
    """Somebody removed its finalizer. A driver's pod goes with its consumer; the seat would hold the lease for ever."""
    scene = pooled()
    uid = scene.get(CONSUMER_KIND, "orders")["metadata"]["uid"]
    scene.memory.edit(scene.get(CONSUMER_KIND, "orders"), {"metadata": {"finalizers": None}})
    scene.memory.delete(CONSUMER_KIND, SPACE, "orders", uid)
    scene.on(2)
    assert scene.memory.get(CONSUMER_KIND, SPACE, "orders") is None
    scene.on(300)
    assert len(keys(scene, seats.SEAT)) == 1
    assert scene.ready(CONSUMER_KIND, "clicks")[0] == "True"

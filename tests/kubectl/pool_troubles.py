"""What goes wrong with pools in docs/runbooks.md, let happen to the operator over models of what runs in pods (`pool_scene`).

Each function of TROUBLES gives the cluster as an on-call engineer finds it. `troubles` has those of consumers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pool_scene import MEMBER, POOL, Scene

from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND

MEMBERS = ("carts", "clicks", "orders", "views")
LONG = 100  # steps of a scene: some minutes
TROUBLES: dict[str, Callable[[], Scene]] = {}


def trouble(make: Callable[[], Scene]) -> Callable[[], Scene]:
    """A row of TROUBLES, under the function's name."""
    TROUBLES[make.__name__] = make
    return make


def started(**wrong: Any) -> Scene:
    """A pool with four members that work; but one for each of `wrong`, whose spec has that, too."""
    scene = Scene(space="default")
    scene.make(POOL_KIND, "small", POOL)
    for name in MEMBERS:
        scene.make(CONSUMER_KIND, name, member(name) | wrong.get(name, {}))
    scene.on()
    return scene


def member(name: str) -> dict[str, Any]:
    return {**MEMBER, "stream": {**MEMBER["stream"], "name": name}, "pipeline": {"entrypoint": f"shop.{name}:process"}}


def until(scene: Scene, kind: str, name: str, condition: str, reason: str) -> Scene:
    for _ in range(LONG):
        found = [(each["type"], each["status"], each["reason"]) for each in scene.get(kind, name)["status"]["conditions"]]
        if (condition, "True", reason) in found:
            return scene
        scene.memory.collect_garbage()
        scene.on(1)
    raise AssertionError(found)


def dies(scene: Scene, *working: str, times: int) -> Scene:
    """The process of the pool ends while these work. All work again before it ends the next time."""
    for number in range(times):
        host = scene.get(POOL_KIND, "small")["status"]["driver"]["pod"]
        scene.end(host, 1, {"reason": "SparkGone", "message": "Spark has ended", "working": [*working]})
        for _ in range(LONG if number < times - 1 else 0):
            scene.memory.collect_garbage()
            scene.on(1)
            if all(scene.ready(CONSUMER_KIND, name)[0] == "True" for name in MEMBERS):
                break
    return scene


@trouble
def pool_missing() -> Scene:
    """A member names a pool that there is not. The others work."""
    scene = started(orders={"pool": "smal"})
    return until(scene, CONSUMER_KIND, "orders", "Stalled", "PoolMissing")


@trouble
def pool_failing() -> Scene:
    """Each end of the process names the same two members of four, which are too many to put out."""
    scene = until(dies(started(), "carts", "orders", times=3), POOL_KIND, "small", "Stalled", "PoolFailing")
    for _ in range(LONG):  # until its executors are gone, and it waits for its next start
        if "attempt 4 at" in (said := scene.ready(POOL_KIND, "small")[2]):
            return scene
        scene.memory.collect_garbage()
        scene.on(1)
    raise AssertionError(said)


@trouble
def out_of_pool() -> Scene:
    """One member was put out, and works in a driver of its own."""
    scene = until(dies(started(), "orders", times=3), CONSUMER_KIND, "orders", "OutOfPool", "DriverDeaths")
    return until(scene, CONSUMER_KIND, "orders", "Ready", "Consuming")

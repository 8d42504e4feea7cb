"""A KinesisConsumerPool on a real cluster: several consumers in one driver, each with a place and a status of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_bench import Bench
from rules_world import MODULE, World, world

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

POOL = "small"
LEASE = 20  # seconds; the least in a pool, unless that says otherwise
MEMBERS = ("first", "second", "third")
OF_POOL = ("executor", "driver", "replicas", "serviceAccountName", "sparkConf")


def pool(found: World) -> dict[str, Any]:
    spec = found.manifest(POOL)["spec"]
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "KinesisConsumerPool",
        "metadata": {"name": POOL},
        "spec": {"replicas": 1, "driver": spec["driver"], "executor": spec["executor"], "restart": spec["restart"]},
    }


def member(found: World, name: str, **spec: Any) -> dict[str, Any]:
    manifest = found.manifest(name, args={"label": "pooled"}, **spec)
    for field in OF_POOL:
        manifest["spec"].pop(field, None)
    manifest["spec"] |= {"pool": POOL, "leaseDurationSeconds": LEASE}
    return manifest


@pytest.fixture(scope="module")
def pooled(bench: Bench) -> Iterator[World]:
    with world(bench, "pooled", shards=2) as found:
        bench.apply(pool(found), *(member(found, name) for name in MEMBERS))
        found.put()
        bench.until("all have all", lambda: all(found.subject(name).ready() and not found.missing(name) for name in MEMBERS))
        yield found
        bench.kubectl("delete", "kinesisconsumerpool", POOL, "--timeout=300s")


def hosts(bench: Bench) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in bench.get("pods", "--selector=sluice.dev/role=pool")}


def attempts(found: World) -> dict[str, int]:
    return {name: found.subject(name).attempts() for name in MEMBERS}


def test_three_consumers_work_in_one_driver_pod_and_each_says_where(pooled: World) -> None:
    bench = pooled.bench
    assert list(hosts(bench)) == [f"{POOL}-pool-1"]
    assert bench.get("pods", "--selector=sluice.dev/role=driver") == []
    assert {pooled.subject(name).status["driver"]["host"] for name in MEMBERS} == {f"{POOL}-pool-1"}
    assert {row["by"] for name in MEMBERS for row in pooled.kept(name)} == {f"{POOL}-pool-1"}
    found = json.loads(bench.kubectl("get", "kinesisconsumerpool", POOL, "--output=json"))["status"]
    assert (found["members"], found["readyMembers"], found["replicas"]) == (3, 3, 1)


def test_an_edit_and_a_suspension_of_one_disturb_no_other(pooled: World) -> None:
    bench, pod, before = pooled.bench, hosts(pooled.bench), attempts(pooled)
    first, second = pooled.subject("first"), pooled.subject("second")
    first.patch(pipeline={"args": pooled.args(label="edited")})
    second.patch(suspend=True)
    bench.until("the second rests", lambda: second.status.get("phase") == "Suspended")
    pooled.put()
    bench.until("the edited one works", lambda: "edited" in [row["label"] for row in pooled.kept("first")])
    bench.until("those that run have all", lambda: not pooled.missing("first") and not pooled.missing("third"))
    assert pooled.missing("second")
    second.patch(suspend=False)
    bench.until("the second has all", lambda: second.ready() and not pooled.missing("second"))
    assert hosts(bench) == pod
    assert attempts(pooled) == before | {"first": before["first"] + 1, "second": before["second"] + 1}
    assert [pooled.twice(name) for name in MEMBERS] == [[], [], []]


def test_a_consumer_leaves_the_pool_and_returns_without_losing_its_place(pooled: World) -> None:
    bench, pod = pooled.bench, hosts(pooled.bench)
    third = pooled.subject("third")
    alone = pooled.manifest("third", args={"label": "alone"})
    bench.kubectl("patch", "kinesisconsumer", "third", "--type=json", '--patch=[{"op": "remove", "path": "/spec/pool"}]')
    bench.apply(alone)
    bench.until("a driver of its own works", lambda: third.settled(1))
    assert "host" not in third.status["driver"]
    pooled.put()
    bench.until("it has all", lambda: not pooled.missing("third"))
    bench.kubectl("patch", "kinesisconsumer", "third", "--type=merge", f"--patch={json.dumps({'spec': back(pooled)})}")
    bench.until("it is back", lambda: third.ready() and third.status["driver"].get("host") == f"{POOL}-pool-1" and not third.pods("driver"))
    pooled.put()
    bench.until("it has all", lambda: not pooled.missing("third"))
    assert hosts(bench) == pod
    assert pooled.twice("third") == []


def back(found: World) -> dict[str, Any]:
    return {**dict.fromkeys(OF_POOL), **member(found, "third")["spec"]}


def test_a_member_that_ends_the_process_works_in_a_driver_of_its_own_until_it_is_restarted(pooled: World) -> None:
    bench, second, before = pooled.bench, pooled.subject("second"), set(hosts(pooled.bench))
    bench.kubectl("patch", "kinesisconsumerpool", POOL, "--type=merge", '--patch={"spec": {"maxDriverDeaths": 2}}')
    fatal = max(record.n for record in pooled.producer.produced) + 1
    second.patch(pipeline={"entrypoint": f"{MODULE}:die", "args": pooled.args(label="deadly", fatal=fatal)})
    bench.until("it is in the pool with its edit", second.ready)
    pooled.put()
    bench.until("it was put out", lambda: second.condition("OutOfPool").get("reason") == "DriverDeaths")
    bench.until("all have all", lambda: all(pooled.subject(name).ready() and not pooled.missing(name) for name in MEMBERS))
    (own,), (host,) = second.uids("driver"), hosts(bench)
    assert (host in before, [row["by"] for row in pooled.kept("second") if fatal in row["numbers"]]) == (False, [own])
    assert [pooled.subject(name).status["driver"]["host"] for name in ("first", "third")] == [host, host]
    second.annotate("restart=again")
    bench.until("it is back", lambda: second.ready() and second.status["driver"].get("host") == host and not second.pods("driver"))
    pooled.put()
    bench.until("all have all again", lambda: not any(pooled.missing(name) for name in MEMBERS))
    assert (list(hosts(bench)), second.condition("OutOfPool")) == ([host], {})
    assert [pooled.twice(name) for name in MEMBERS] == [[], [], []]


def test_a_killed_pool_takes_up_every_member_where_it_was(pooled: World) -> None:
    bench, before = pooled.bench, hosts(pooled.bench)
    bench.kubectl("exec", next(iter(before)), "--container=driver", "--", "sh", "-c", "kill -9 -1")
    pooled.put()
    bench.until("the next pod", lambda: set(hosts(bench)) - set(before))
    bench.until("all have all", lambda: all(pooled.subject(name).ready() and not pooled.missing(name) for name in MEMBERS))
    assert [pooled.twice(name) for name in MEMBERS] == [[], [], []]


def test_a_deleted_member_is_gone_and_a_deleted_pool_stops_the_others_and_says_so(pooled: World) -> None:
    bench = pooled.bench
    bench.kubectl("delete", "kinesisconsumer", "second", "--timeout=120s")
    bench.kubectl("delete", "kinesisconsumerpool", POOL, "--timeout=300s")
    first = pooled.subject("first")
    bench.until("it says why", lambda: first.condition("Ready").get("reason") == "PoolMissing")
    assert hosts(bench) == {}
    pooled.put()
    bench.apply(pool(pooled))
    bench.until("they have all", lambda: all(pooled.subject(name).ready() and not pooled.missing(name) for name in ("first", "third")))
    assert [pooled.twice(name) for name in ("first", "third")] == [[], []]

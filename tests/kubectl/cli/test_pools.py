"""Pools, and consumers in them, as a person sees them."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from pooled import pooled
from scene import Elsewhere, Scene

from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND, Conflict, Rejected


@pytest.fixture(name="pooled")
def pooled_() -> Scene:
    return pooled()


def test_status_lists_the_pools_below_the_consumers(pooled: Scene) -> None:
    said = pooled.run("status").said
    assert said.index("orders") < said.index("Pools")
    large, small = (line for line in said.partition("Pools")[2].splitlines() if line.split()[:1] in (["large"], ["small"]))
    assert large.split()[:6] == ["large", "BackingOff", "False", "0/2", "0/2", "-"]
    assert "PoolFailing: each of its last ends" in large
    assert small.split()[:6] == ["small", "Running", "True", "2/3", "2/2", "small-pool-1"]
    assert small.rstrip().endswith("out of it: views")


def test_a_script_gets_the_pools_that_the_screen_shows(pooled: Scene) -> None:
    out = [{"uid": f"u-{n}", "name": f"views-{n}", "deaths": 3} for n in range(125)]
    pooled.cluster.set_status(POOL_KIND, "default", "small", {"deaths": {"pod": "p", "named": [], "out": out}})
    large, small = json.loads(pooled.run("status", "--pools", "-o", "json").said)
    assert (large["name"], large["ready"], large["reason"], large["stalled"]) == ("large", "False", "PoolFailing", True)
    assert (small["namespace"], small["name"], small["phase"], small["pod"]) == ("default", "small", "Running", "small-pool-1")
    assert (small["members"], small["readyMembers"], small["executors"], small["desired"]) == (3, 2, 2, 2)
    assert small["out"] == [f"views-{n}" for n in range(125)]
    assert [(condition["type"], condition["status"]) for condition in large["conditions"]] == [("Ready", "False"), ("Stalled", "True")]
    assert [one["name"] for one in json.loads(pooled.run("status", "-o", "json").said)] == ["orders"]


def test_status_of_pools_alone_shows_what_it_shows_below_the_consumers(pooled: Scene) -> None:
    said = pooled.run("status", "--pools").said
    assert said == pooled.run("status").said.partition("\n\n")[2].partition("\n\n")[2]
    assert said.startswith("Pools\n")


def test_where_there_are_no_pools_a_script_gets_an_empty_list_and_a_person_a_hint() -> None:
    hint = "no KinesisConsumerPools here; next: run `kubectl sluice status --pools -A`, or apply one (docs: pools.md)\n"
    assert Scene().run("status", "--pools").said == hint
    assert json.loads(Scene().run("status", "--pools", "-o", "json").said) == []


def test_pools_that_may_not_be_listed_are_no_empty_list(pooled: Scene) -> None:
    """A script would take it for `all is well`."""

    def refuse(*_: object) -> None:
        raise Rejected("Forbidden", "it is forbidden")

    answer = pooled.run("status", "--pools", "-o", "json", cluster=Elsewhere(pooled.cluster, list=refuse))
    assert (answer.exit_code, answer.said) == (65, "")
    assert "list KinesisConsumerPools" in answer.told


def test_a_name_is_that_of_a_consumer(pooled: Scene) -> None:
    answer = pooled.run("status", "orders", "--pools")
    assert (answer.exit_code, "a NAME and --pools exclude each other" in answer.told) == (2, True)


def test_of_many_members_that_are_out_status_names_a_few(pooled: Scene) -> None:
    """A quarter of a large pool would fill the screen. `-o yaml` of the pool has all of them."""
    out = [{"uid": f"u-{n}", "name": f"views-{n}", "deaths": 3} for n in range(125)]
    pooled.cluster.set_status(POOL_KIND, "default", "small", {"members": 500, "deaths": {"pod": "p", "named": [], "out": out}})
    said = " ".join(pooled.run("status").said.partition("Pools")[2].split())
    assert "out of it: views-0, views-1, views-2, views-3, views-4 and 120 more" in said


def test_a_member_names_its_pool_and_the_pod_that_it_runs_in(pooled: Scene) -> None:
    said = pooled.run("status", "orders").said
    assert "pool         small\n" in said
    assert ", orders-driver-3 in the pod small-pool-1 of a pool, since " in said
    assert "small-pool-1" in said.partition("Pods\n")[2]
    found: dict[str, Any] = json.loads(pooled.run("status", "orders", "-o", "json").said)
    assert (found["pool"], found["driver"]["host"], [pod["name"] for pod in found["pods"]]) == (
        *("small", "small-pool-1"),
        ["small-pool-1", "small-pool1-exec-1"],
    )


def lines(*consumers: str | None) -> list[str]:
    """Of the log of a pool's driver, as JSON; without a consumer, Spark's."""
    return [json.dumps({"message": f"line {n}", **({"consumer": name} if name else {})}) for n, name in enumerate(consumers)]


def test_logs_of_a_member_are_those_of_its_pools_driver_without_the_others(pooled: Scene) -> None:
    """Lines that name no consumer are about all. With --pod nothing is left out."""
    said = [*lines("orders", "clicks", None, "orders"), "26/11/27 WARN TaskSetManager: Lost task", '{"consumer"', '{"consumer": []}']
    pooled.texts.logs["small-pool-1"] = said
    assert pooled.run("logs", "orders").said.splitlines() == [said[0], *said[2:6]]
    assert pooled.texts.asked[-1].container == "driver"
    assert pooled.run("logs", "orders", "--pod", "small-pool-1").said.splitlines() == said
    pooled.texts.logs["small-pool1-exec-1"] = ["a task"]
    assert pooled.run("logs", "orders", "--role", "executor").said == "a task\n"


def test_shards_of_a_member_are_its_own(pooled: Scene) -> None:
    name = "sluice_shard_millis_behind_latest"
    samples = [f'{name}{{shard="s-{n}",consumer="{one}"}} {n}000.0' for n, one in enumerate(("orders", "clicks", "orders"))]
    pooled.texts.scrapes["small-pool-1"] = "\n".join([f"# TYPE {name} gauge", *samples, ""])
    found = json.loads(pooled.run("shards", "orders", "-o", "json").said)["shards"]
    assert [(shard["id"], shard["lagMillis"]) for shard in found] == [("s-2", 2000), ("s-0", 0)]


def test_a_report_of_a_member_has_its_pool(pooled: Scene, tmp_path: Path) -> None:
    pod = pooled.cluster.get("Pod", "default", "small-pool-1")
    seat = {"name": "orders", "pod": "u", "config": {"pipeline": {"entrypoint": "a:b", "args": {"key": "hunter2"}}}}
    notes = {"seat.sluice.dev/u.1": json.dumps(seat), "report.sluice.dev/u.1": json.dumps({"phase": "Running"})}
    assert pod is not None
    pooled.cluster.edit(pod, {"metadata": {"annotations": notes}})
    for name in ("small-pool-1", "small-pool1-exec-1"):
        pooled.texts.logs[name] = lines("orders", "clicks")
    answer = pooled.run("report", "orders", "--logs", "--file", str(tmp_path / "r.tar.gz"))
    assert (answer.exit_code, answer.told) == (0, "")
    with tarfile.open(tmp_path / "r.tar.gz") as tar:
        found = {member.name.partition("/")[2]: file.read().decode() for member in tar if (file := tar.extractfile(member))}
    assert {"pool.json", "logs/small-pool-1.log", "logs/small-pool1-exec-1.log"} <= set(found)
    assert found["logs/small-pool-1.log"].count("line") == 2
    assert json.loads(found["pool.json"])["status"]["deaths"]["out"][0]["name"] == "views"
    there = next(pod for pod in json.loads(found["pods.json"]) if pod["metadata"]["name"] == "small-pool-1")
    assert json.loads(there["metadata"]["annotations"]["report.sluice.dev/u.1"]) == {"phase": "Running"}
    assert "hunter2" not in "".join(found.values())


def notes(scene: Scene, kind: str, name: str) -> dict[str, str]:
    found = scene.cluster.get(kind, "default", name)
    assert found is not None
    return found["metadata"].get("annotations") or {}


def test_force_of_a_member_gives_the_pools_pod_up(pooled: Scene) -> None:
    """A seat cannot be given up alone. It says so, and asks for the pod; another pool is left alone."""
    asked: list[str] = []
    pooled.ask = lambda question: asked.append(question) or False
    pod = pooled.cluster.get("Pod", "default", "small-pool-1")
    assert pod is not None
    uid = pod["metadata"]["uid"]
    refused = pooled.run("force", "orders")
    assert (refused.exit_code, asked) == (65, [f"Remove small-pool-1 with uid {uid}?"])
    told = " ".join(refused.told.split())
    assert "It runs all members of the pool small. Force removes it" in told
    assert "`kubectl annotate kcp small --overwrite sluice.dev/restart=VALUE` does that without force" in told
    assert notes(pooled, POOL_KIND, "small") == {}
    answer = pooled.run("force", "orders", "--yes")
    assert (answer.exit_code, answer.said.split()[0]) == (0, "small-pool-1")
    found = [notes(pooled, kind, name) for kind, name in ((POOL_KIND, "small"), (POOL_KIND, "large"), (CONSUMER_KIND, "orders"))]
    assert found == [{"sluice.dev/force": uid}, {}, {}]


def test_force_of_a_pool_that_changed_in_between_is_decided_on_anew(pooled: Scene) -> None:
    changes = iter([{"replicas": 1}, {"replicas": 2}])

    def changed(*_: object) -> None:
        small = pooled.cluster.get(POOL_KIND, "default", "small")
        if small is not None and (change := next(changes, None)):
            pooled.cluster.edit(small, {"spec": change})

    assert pooled.run("force", "orders", "--yes", cluster=Elsewhere(pooled.cluster, patch=changed)).exit_code == 0
    pod = pooled.cluster.get("Pod", "default", "small-pool-1")
    assert pod is not None
    pooled.cluster.finish_deletion(pod)
    answer = pooled.run("force", "orders", "--yes")
    assert (answer.exit_code, "small-pool-1 is already gone" in answer.told) == (65, True)


FORBIDDEN = "pools are not shown: the API server refused to list KinesisConsumerPools"


@pytest.mark.parametrize(("error", "told"), [(Rejected("Forbidden", "it is forbidden"), FORBIDDEN), (Conflict("no CRD"), "")])
def test_consumers_are_shown_to_somebody_who_sees_no_pools(pooled: Scene, error: Exception, told: str) -> None:
    def refuse(kind: str, *_: object) -> None:
        if kind == POOL_KIND:
            raise error

    answer = pooled.run("status", cluster=Elsewhere(pooled.cluster, list=refuse))
    assert (answer.exit_code, "orders" in answer.said, "Pools\n" in answer.said) == (0, True, False)
    assert (told in answer.said) if told else ("pools" not in answer.said)

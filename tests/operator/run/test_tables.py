"""A checkpoint table has one consumer: who has worked on it, else the one whose name it has. To name it, or to be older, takes it from nobody."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_cases import sink, until
from odd_values import ODD
from simulated_cluster import BEGIN, SPEC

from sluice_operator.cluster.memory import MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.tables import table
from sluice_operator.observe.watch_state import WatchEvent
from sluice_operator.resource.policy import Policy
from sluice_operator.run.loops import Loops
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings

Json = dict[str, Any]
OLD, NEW = ResourceKey("shop", "orders"), ResourceKey("lab", "copy")
NAMED: Json = {"checkpoints": {"table": "sluice_shop_orders"}}


class Scene:
    """Two resources, a minute apart."""

    def __init__(self, **younger: Any) -> None:
        self.now = BEGIN
        self.memory = MemoryCluster(lambda: self.now)
        self.context = ReconcileContext(self.memory, Cache(), Settings())
        self.make(OLD, SPEC)
        self.now += timedelta(minutes=1)
        self.make(NEW, {**SPEC, **NAMED, **younger})

    def make(self, key: ResourceKey, spec: Json) -> None:
        """A resource, which the watch shows."""
        self.see(self.memory.create({"kind": CONSUMER_KIND, "metadata": {"namespace": key.namespace, "name": key.name}, "spec": spec}))

    def edit(self, key: ResourceKey, changes: Json) -> None:
        """A user edits it, which the watch shows."""
        self.memory.edit(self.body(key), changes)
        self.see(self.body(key))

    def body(self, key: ResourceKey) -> Json:
        """As it is stored."""
        body = self.memory.get(CONSUMER_KIND, *key)
        assert body is not None
        return body

    def see(self, body: Json, *, gone: bool = False) -> None:
        """An event of the watch."""
        self.context.cache.see(CONSUMER_KIND, body, self.now, gone=gone)

    def passes(self, key: ResourceKey) -> Json:
        """Until it has a status and nothing more is done at once; its condition SpecValid."""
        for _ in range(6):
            reconcile(self.context, key, self.now, force_refresh=True)
        conditions = (self.memory.get(CONSUMER_KIND, *key) or {})["status"]["conditions"]
        return next(item for item in conditions if item["type"] == "SpecValid")

    def works(self, key: ResourceKey) -> Json:
        """Its driver has taken the lease; its condition SpecValid."""
        found = self.passes(key)
        body = self.body(key)
        body["status"]["driver"]["generation"] = 1
        self.see(self.memory.replace_status(body))
        return found

    def fails(self, key: ResourceKey) -> None:
        """Its driver ended, and never reached the table."""
        body = self.body(key)
        body["status"]["restarts"] = {"count": 1}
        self.see(self.memory.replace_status(body))

    def pods(self, key: ResourceKey) -> list[str]:
        """Names."""
        return [pod["metadata"]["name"] for pod in self.memory.list("Pod", key.namespace, {})]


def test_the_younger_of_two_with_one_table_is_refused_and_the_other_namespace_is_not_named() -> None:
    """It would take the lease in turns with the older one; nothing of it is started."""
    scene = Scene()
    assert scene.passes(OLD)["status"] == "True"
    refused = scene.passes(NEW)
    assert refused["status"] == "False"
    assert refused["message"].startswith("spec.checkpoints.table: belongs to a KinesisConsumer in another namespace")
    assert not {"shop", "orders"} & set(refused["message"].replace("/", " ").split())
    assert scene.pods(OLD) == ["orders-driver-1"]
    assert scene.pods(NEW) == []


@pytest.mark.parametrize(
    "other",
    [
        {"checkpoints": {"table": "another"}},
        {"checkpoints": {}},
        {"stream": {**SPEC["stream"], "region": "eu-west-2"}},
        {"stream": {"arn": "arn:aws:kinesis:eu-west-2:444455556666:stream/orders"}},
        {"stream": {**SPEC["stream"], "dynamodbEndpoint": "http://elsewhere:8000"}},
    ],
)
def test_another_table_or_region_or_endpoint_is_another_table(other: Json) -> None:
    """Both run."""
    scene = Scene(**other)
    assert [scene.passes(key)["status"] for key in (OLD, NEW)] == ["True", "True"]
    assert scene.pods(NEW) == ["copy-driver-1"]


def test_a_table_is_in_the_region_of_the_streams_arn() -> None:
    """And in the account of the pods, whatever account the stream is in."""
    scene = Scene(stream={"arn": f"arn:aws:kinesis:{SPEC['stream']['region']}:444455556666:stream/orders"})
    assert [scene.passes(key)["status"] for key in (OLD, NEW)] == ["True", "False"]


def test_the_other_is_named_in_its_own_namespace() -> None:
    """There its name is no secret."""
    scene = Scene()
    scene.passes(OLD)
    near = ResourceKey("shop", "copy")
    scene.make(near, {**SPEC, **NAMED})
    assert "KinesisConsumer shop/orders" in scene.passes(near)["message"]


def test_a_younger_one_that_runs_already_keeps_its_table() -> None:
    """The older one, which the operator sees later, is refused."""
    scene = Scene()
    body = scene.body(OLD)
    scene.see(body, gone=True)
    scene.works(NEW)
    scene.see(body)
    scene.context.cache._tables._granted.clear()  # the operator is restarted
    assert scene.passes(OLD)["status"] == "False"
    assert scene.passes(NEW)["status"] == "True"
    assert (scene.pods(OLD), scene.pods(NEW)) == ([], ["copy-driver-1"])


SQUATTERS: dict[str, Json] = {
    "suspended": {"spec": {"suspend": True}},
    "invalid": {"spec": {"sparkConf": {"spark.master": "x"}}},
    "scaled to zero": {"spec": {"replicas": 0}},
    "paused": {"metadata": {"annotations": {"sluice.dev/paused": "true"}}},
    "unreadable": {"spec": {"pipeline": {"args": {"a": 1e300}, "entrypoint": 7}}},
}


@pytest.mark.parametrize("looked_at", [True, False])
@pytest.mark.parametrize("how", sorted(SQUATTERS))
def test_one_that_never_started_takes_the_table_from_nobody(how: str, *, looked_at: bool) -> None:
    """An attack: an older resource that is not even valid names another tenant's table, whose consumer is never started."""
    scene = Scene()
    scene.edit(OLD, SQUATTERS[how])
    if looked_at:
        reconcile(scene.context, OLD, scene.now)
    assert scene.works(NEW)["status"] == "True"
    assert scene.pods(NEW) == ["copy-driver-1"]
    scene.edit(OLD, {"spec": {**SPEC, "suspend": False, "sparkConf": None}, "metadata": {"annotations": {"sluice.dev/paused": None}}})
    assert scene.passes(OLD)["status"] == "False"
    assert scene.pods(OLD) == []


@pytest.mark.parametrize("restarted", [True, False])
def test_the_table_of_a_consumers_own_name_is_squatted_by_nobody(*, restarted: bool) -> None:
    """An attack: a stranger's resource names it before the consumer is made. Its driver starts, and has no right to the table."""
    scene = Scene()
    old = scene.body(OLD)
    scene.see(old, gone=True)
    assert scene.passes(NEW)["status"] == "True"
    if restarted:
        scene.context.cache._tables._granted.clear()
    scene.see(old)
    assert scene.passes(OLD)["status"] == "True"
    assert scene.pods(OLD) == ["orders-driver-1"]
    assert scene.passes(NEW)["status"] == "False"


SHARED: Json = {"checkpoints": {"table": "shared"}}


def test_one_whose_driver_never_reaches_the_table_gives_way_to_one_that_is_to_start() -> None:
    """Of two that write the same name into their spec; with the second it is over, who fails then is the older one again."""
    scene = Scene()
    first, second = ResourceKey("a", "first"), ResourceKey("b", "second")
    scene.make(first, {**SPEC, **SHARED})
    scene.passes(first)
    scene.make(second, {**SPEC, **SHARED})
    assert scene.passes(second)["status"] == "False"
    scene.fails(first)
    assert scene.passes(second)["status"] == "True"
    assert scene.pods(second) == ["second-driver-1"]
    assert scene.passes(first)["status"] == "False"
    scene.works(second)
    assert scene.passes(first)["status"] == "False"


@pytest.mark.parametrize("started", [True, False])
def test_one_that_is_being_deleted_and_runs_nothing_holds_up_nobody(*, started: bool) -> None:
    """An attack: another program's finalizer keeps it for ever."""
    scene = Scene()
    scene.edit(OLD, {"metadata": {"finalizers": ["example.com/backup"]}})
    if started:
        scene.passes(OLD)
    scene.memory.remove(CONSUMER_KIND, *OLD, scene.body(OLD)["metadata"]["uid"])
    scene.see(scene.body(OLD))
    assert started is (scene.passes(NEW)["status"] == "False")
    for pod in scene.memory.list("Pod", OLD.namespace, {}):
        scene.memory.finish_deletion(pod)
    scene.passes(OLD) if started else None
    assert scene.passes(NEW)["status"] == "True"
    assert scene.pods(NEW) == ["copy-driver-1"]


ELSEWHERE: Json = {"stream": {**SPEC["stream"], "dynamodbEndpoint": "https://elsewhere.example.com"}}


def test_who_edits_its_endpoint_to_a_table_that_is_taken_is_refused_and_goes_on() -> None:
    """An attack: the endpoint can be edited. What runs is not taken away: neither from the other one, nor from the editor."""
    scene = Scene(**ELSEWHERE)
    assert [scene.works(key)["status"] for key in (OLD, NEW)] == ["True", "True"]
    for editor, other, edited in ((NEW, OLD, {"stream": {"dynamodbEndpoint": None}}), (OLD, NEW, ELSEWHERE)):
        scene.edit(editor, {"spec": edited})
        assert scene.passes(editor)["status"] == "False"
        assert scene.passes(other)["status"] == "True"
        assert (scene.pods(OLD), scene.pods(NEW)) == (["orders-driver-1"], ["copy-driver-1"])
        scene.edit(editor, {"spec": ELSEWHERE if editor == NEW else {"stream": {"dynamodbEndpoint": None}}})
        assert scene.passes(editor)["status"] == "True"


@pytest.mark.parametrize("asked", [{"suspend": True}, {"replicas": 0}, None])
@pytest.mark.parametrize("edited", [True, False])
def test_one_that_is_refused_is_suspended_scaled_and_deleted_all_the_same(asked: Json | None, *, edited: bool) -> None:
    """Whether it goes on with another table, or was started by an operator of before this rule with the same one."""
    scene = Scene(**ELSEWHERE)
    for key in (OLD, NEW):
        scene.passes(key)
    scene.edit(NEW, {"spec": {"stream": {"dynamodbEndpoint": None}}})
    if not edited:
        body = scene.body(NEW)
        scene.see(scene.memory.replace_status({**body, "status": {**body["status"], "lastGoodSpec": body["spec"]}}))
    assert scene.passes(NEW)["status"] == "False"
    if asked is None:
        scene.memory.remove(CONSUMER_KIND, *NEW, scene.body(NEW)["metadata"]["uid"])
        scene.see(scene.body(NEW))
    else:
        scene.edit(NEW, {"spec": asked})
    for _ in range(4):
        reconcile(scene.context, NEW, scene.now, force_refresh=True)
    assert all("deletionTimestamp" in pod["metadata"] for pod in scene.memory.list("Pod", NEW.namespace, {}))


def test_a_migration_has_the_table_too() -> None:
    """It writes there before any driver does. One that is refused migrates nothing."""
    scene = Scene(migrateFrom={"table": "old"}, replicas=0)
    scene.edit(OLD, {"spec": {"suspend": True}})
    scene.passes(NEW)
    body = scene.body(NEW)
    body["status"]["migration"]["state"] = "Complete"
    scene.see(scene.memory.replace_status(body))
    scene.context.cache._tables._granted.clear()
    scene.edit(OLD, {"spec": {"suspend": False, "migrateFrom": {"table": "old"}, "replicas": 0}})
    assert scene.passes(OLD)["status"] == "False"
    assert (len(scene.memory.list("Job", NEW.namespace, {})), scene.memory.list("Job", OLD.namespace, {})) == (1, [])


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://dynamodb.eu-west-1.amazonaws.com",
        "https://DynamoDB.eu-west-1.amazonaws.com/",
        "https://dynamodb.eu-west-1.amazonaws.com:443",
        "http://dynamodb.eu-west-1.amazonaws.com",
        "https://dynamodb.eu-west-1.amazonaws.com.",
        "https://dynamodb.eu-west-1.api.aws",
        "https://dynamodb-fips.eu-west-1.amazonaws.com",
        "https://123456789012.ddb.eu-west-1.amazonaws.com",
        "https://vpce-1a2b-3c4d.dynamodb.eu-west-1.vpce.amazonaws.com",
    ],
)
def test_an_endpoint_of_aws_is_aws_however_it_is_written(endpoint: str) -> None:
    """An attack: both started on one table."""
    scene = Scene(stream={**SPEC["stream"], "dynamodbEndpoint": endpoint})
    assert [scene.passes(key)["status"] for key in (OLD, NEW)] == ["True", "False"]


@pytest.mark.parametrize("written", ["http://Local:8000/", "http://local:8000", "HTTP://LOCAL:8000//"])
def test_an_endpoint_of_ones_own_is_the_same_however_it_is_written(written: str) -> None:
    """Case, and a slash at its end."""
    key = ResourceKey("a", "b")
    assert table(key, {"stream": {"dynamodbEndpoint": written}}) == table(key, {"stream": {"dynamodbEndpoint": "http://local:8000"}})


def test_the_younger_one_is_taken_when_the_older_is_gone() -> None:
    """At once, not with the next live read."""

    async def scene() -> None:
        world = Scene()
        loops = Loops(world.context)
        events = sink(world.context, loops)
        for key in (OLD, NEW):
            events.see(CONSUMER_KIND, WatchEvent(world.memory.get(CONSUMER_KIND, *key) or {}))
        await until(lambda: (world.memory.get(CONSUMER_KIND, *NEW) or {}).get("status"))
        gone = world.memory.get(CONSUMER_KIND, *OLD)
        assert gone is not None
        world.memory.finish_deletion(gone)
        events.see(CONSUMER_KIND, WatchEvent(gone, gone=True))
        await until(lambda: world.pods(NEW))
        await loops.stop()

    asyncio.run(scene())


def test_what_changes_no_claim_wakes_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred resources that name one table, each edit of one would be a hundred passes."""

    async def scene() -> None:
        world = Scene()
        loops = Loops(world.context)
        events = sink(world.context, loops)
        woken: list[ResourceKey] = []
        monkeypatch.setattr(loops, "wake", lambda key, **_: woken.append(key))

        def edited(changes: Json) -> set[ResourceKey]:
            woken.clear()
            world.memory.edit(world.body(OLD), changes)
            events.see(CONSUMER_KIND, WatchEvent(world.body(OLD)))
            return set(woken)

        assert edited({"metadata": {"annotations": {"note": "x"}}}) == {OLD}
        assert edited({"metadata": {"annotations": {"sluice.dev/paused": "true"}}}) == {OLD, NEW}
        assert edited({"spec": {"suspend": True}}) == {OLD, NEW}
        assert edited({"metadata": {"labels": {"a": "b"}}}) == {OLD}

    asyncio.run(scene())


KEYS = [ResourceKey("a", "x"), ResourceKey("b", "y"), ResourceKey("c", "z")]
TABLES = ["t", "u", None, "gone", "forget", *ODD[:6]]
STATES: dict[str, Json] = {"fresh": {}, "suspended": {"suspend": True}, "invalid": {"sparkConf": {"spark.master": "x"}}}


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KEYS), st.sampled_from(["t", "u", None, "gone", "forget", *ODD[:6]]), st.integers(0, 3), st.sampled_from([*STATES])
        ),
        max_size=20,
    )
)
def test_whatever_comes_and_goes_two_never_start_with_one_table(events: list[tuple[ResourceKey, Any, int, str]]) -> None:
    """Who was let through has worked, and keeps its table as long as it is there and names it."""
    cache, begun = Cache(), dict[ResourceKey, tuple[str, Json]]()
    for number, (key, what, age, state) in enumerate(events):
        if what == "forget":
            cache.forget(key)
            begun.pop(key, None)
            continue
        spec = {**SPEC, "checkpoints": {"table": what} if isinstance(what, str) else {}, **STATES[state]}
        meta = {"namespace": key.namespace, "name": key.name, "uid": str(key), "resourceVersion": str(number)}
        body: Json = {"metadata": meta | {"creationTimestamp": f"2026-11-21T10:00:0{age}Z"}, "spec": spec}
        if key in begun:
            body["status"] = {"driver": {"attempt": 1, "generation": 1}, "lastGoodSpec": begun[key][1]}
        cache.see(CONSUMER_KIND, body, BEGIN, gone=what == "gone")
        if what == "gone":
            begun.pop(key, None)
        elif state == "fresh" and cache.holder(key, body, Policy()) is None:
            named = _table(key, body)
            assert named not in {other for one, (other, _) in begun.items() if one != key}
            begun[key] = named, spec
            cache.see(CONSUMER_KIND, {**body, "status": {"driver": {"attempt": 1, "generation": 1}, "lastGoodSpec": spec}}, BEGIN)


def _table(key: ResourceKey, body: Json) -> str:
    named = body["spec"]["checkpoints"].get("table")
    return named if isinstance(named, str) and named else f"sluice_{key.namespace}_{key.name}"

"""One object of any form hides no other one: each command that reads shows what it can, and names what it cannot read."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_values import places, put
from scene import Answer, Scene, resource

from sluice_operator.cluster.port import CONSUMER_KIND

Json = dict[str, Any]
Path = tuple[str | int, ...]
TIMES = ("0000-01-01T00:00:00Z", "2026-11-26t01:00:00z", "2026-01-01T00:00:00+99:99", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00")
ODD = st.one_of(
    st.sampled_from((*TIMES, None, True, "", "x", -1, 2**70, -(2**63), 1e308, [], {}, [None], [[]], [{}], [3], {"a": None}, {"a": [1]}, "\ud800")),
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4), lambda one: st.lists(one, max_size=2)),
)
READING = (("status", "-A"), ("status", "-A", "-o", "json"), ("lag", "-A"), ("lag", "-A", "-o", "json"))
OF_ONE = (
    *(("status", "orders"), ("status", "orders", "-o", "json"), ("shards", "orders"), ("events", "orders"), ("events", "orders", "-o", "json")),
    *(("logs", "orders"), ("pause", "orders"), ("drain", "orders"), ("resume", "orders"), ("restart", "orders"), ("retry", "orders")),
    *(("force", "orders", "--yes"), ("dead-letters", "redrive", "orders"), ("dead-letters", "show", "orders", "x")),
)
SPEC = {"onError": {"deadLetter": {"path": "file:///letters"}}, "sparkConf": {"a": "b"}, "suspend": False, "checkpoints": {"table": "t"}}
EVENT = {"type": "Warning", "reason": "r", "message": "m", "count": 2, "lastTimestamp": "2026-11-21T10:00:03Z", "eventTime": None}


class Holding:
    def __init__(self, bodies: list[Json]) -> None:
        self._bodies = bodies

    def list(self, kind: str, *_where: Any) -> list[Json]:
        return [body for body in self._bodies if body["kind"] == kind]

    def get(self, kind: str, *_where: Any) -> Json | None:
        return next(iter(self.list(kind)), None)

    def patch(self, *_arguments: Any) -> None:
        pass

    def create(self, body: Json) -> Json:
        return body | {"metadata": body["metadata"] | {"uid": "made"}}

    delete = patch


def bodies() -> list[Json]:
    scene = Scene()
    scene.put(resource("running"))
    scene.driver("orders")
    one = scene.get() | {"kind": CONSUMER_KIND}
    at = "2026-11-21T10:00:00Z"
    one["spec"] |= SPEC
    one["metadata"]["annotations"] = {"sluice.dev/paused": "false"}
    one["status"] |= {"restarts": {"count": 1, "nextAt": at}, "migration": {"state": "Failed", "nextAt": at}, "replicas": 1}
    one["status"]["driver"] |= {"leaving": {"pod": "p", "uid": "u"}, "exit": {"reason": "r", "message": "m", "code": 1, "at": at}, "startedAt": at}
    pods = [body | {"kind": "Pod"} for body in scene.cluster.all("Pod")]
    pods[0]["status"]["containerStatuses"] = [{"name": "redrive", "restartCount": 1, "state": {"terminated": {"reason": "Error", "exitCode": 1}}}]
    about = {"kind": CONSUMER_KIND, "uid": one["metadata"]["uid"]}
    event = {"kind": "Event", "metadata": {"name": "e", "uid": "e", "creationTimestamp": at}, "involvedObject": about, **EVENT}
    return [one, *pods, event, copy.deepcopy(one) | {"metadata": one["metadata"] | {"name": "bystander", "uid": "other"}}]


WHOLE = bodies()
PLACES = [(number, place) for number, body in enumerate(WHOLE[:-1]) for place in places(body) if place not in {(), ("kind",)}]


def with_odd(number: int, place: Path, odd: Any) -> list[Json]:
    return [put(body, place, odd) if at == number else body for at, body in enumerate(copy.deepcopy(WHOLE))]


def said(found: list[Json], *arguments: str) -> Answer:
    scene = Scene(width=200)
    scene.texts.logs = {"orders-driver-1": ["x"]}
    return scene.run(*arguments, cluster=Holding(found))


@settings(max_examples=120)
@given(st.sampled_from(PLACES), ODD)
def test_an_object_of_any_form_hides_no_other_one(at: tuple[int, Path], odd: Any) -> None:
    found = with_odd(*at, odd)
    for command in READING:
        answer = said(found, *command)
        assert answer.exit_code == 0
        assert "bystander" in answer.said


@settings(max_examples=120)
@given(st.sampled_from(PLACES), ODD, st.sampled_from(OF_ONE))
def test_no_command_ends_in_an_exception(at: tuple[int, Path], odd: Any, command: tuple[str, ...]) -> None:
    answer = said(with_odd(*at, odd), *command)
    assert answer.exit_code in {0, 1, 65, 75}
    assert answer.said + answer.told


@pytest.mark.parametrize("time", TIMES)
def test_a_time_that_cannot_be_read_is_named_in_its_row(time: str) -> None:
    found = with_odd(0, ("status", "restarts", "nextAt"), time)
    assert "unreadable: status.restarts.nextAt" in said(found, "status", "-A").said
    assert "unreadable: status.restarts.nextAt" in said(found, "status", "orders").said
    one, other = sorted(json.loads(said(found, "status", "-A", "-o", "json").said), key=lambda each: str(each["name"]), reverse=True)
    assert one["unreadable"] == ["status.restarts.nextAt"]
    assert one["nextStart"] is None
    assert other["unreadable"] == []


def test_an_event_without_a_readable_time_is_shown() -> None:
    number = next(number for number, body in enumerate(WHOLE) if body["kind"] == "Event")
    for command in (("events", "orders"), ("status", "orders")):
        assert "unreadable: lastTimestamp" in said(with_odd(number, ("lastTimestamp",), TIMES[0]), *command).said


def test_a_sound_object_has_nothing_unreadable() -> None:
    for command in (("status", "-A"), ("status", "orders"), ("events", "orders")):
        assert "unreadable" not in said(WHOLE, *command).said

"""What strangers write into a namespace: refusals in any words, forged reports and last words, labels of ours. None of it is believed."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from simulated_cluster import KEY, MIGRATING, SPEC, SimulatedCluster, assert_nothing_left, ready

from sluice_operator.cluster.client import failure
from sluice_operator.cluster.port import ApiError, Conflict, Exists, Rejected, Unavailable
from sluice_operator.plan import known_words
from sluice_operator.state.serialization import load_report

Json = dict[str, Any]
POLICY = "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'theirs' with binding 'b' denied request: metadata.uid stays"
WEBHOOK = 'admission webhook "theirs.example.com" denied the request: no'


def causes(field: str) -> Json:
    return {"reason": "Invalid", "message": f"{field}: Invalid value", "details": {"causes": [{"field": field}]}}


@pytest.mark.parametrize(
    ("method", "status", "answer", "means"),
    [
        ("PATCH", 422, causes("metadata.uid"), Conflict),
        ("PATCH", 422, causes("metadata.resourceVersion"), Conflict),
        ("PATCH", 422, causes("metadata.finalizers"), Conflict),
        ("PATCH", 422, causes("spec.replicas"), Rejected),
        ("PATCH", 422, {"reason": "Invalid", "message": POLICY}, Rejected),
        ("POST", 422, causes("metadata.uid"), Rejected),
        ("PUT", 409, {"reason": "Conflict", "message": "the object has been modified"}, Conflict),
        ("PUT", 409, {"reason": "Conflict", "message": WEBHOOK}, Rejected),
        ("POST", 409, {"reason": "AlreadyExists", "message": "x"}, Exists),
        ("DELETE", 401, {"reason": "Unauthorized", "message": POLICY}, Rejected),
        ("DELETE", 401, {"reason": "Unauthorized", "message": "Unauthorized"}, Unavailable),
        ("POST", 500, {"message": WEBHOOK}, Rejected),
        ("POST", 503, {"message": "no endpoints"}, Unavailable),
        ("GET", 404, {"reason": "NotFound", "message": "x"}, Conflict),
    ],
)
def test_an_answer_is_a_lost_race_only_if_it_names_our_condition(method: str, status: int, answer: Json, means: type[ApiError]) -> None:
    """A policy may answer with any code and in any words; what it refuses is not tried again in a second."""
    assert type(failure(method, status, answer)) is means


@pytest.mark.parametrize("said", ["Evicted", "DriverLost", "Scaling", "Consuming", "two words", "x" * 65, "", "1st", {"a": 1}, None])
def test_a_program_has_no_word_for_what_others_did_nor_for_anything_but_a_word(said: object) -> None:
    assert known_words.reason(said, "Failed") == "Failed"
    assert not said or str(said) in known_words.message(said, "text")


def test_a_program_has_words_of_its_own() -> None:
    assert [known_words.reason(word, "Failed") for word in ("LeaseHeld", "SinkGone")] == ["LeaseHeld", "SinkGone"]
    assert [known_words.cause(word) for word in ("LeaseHeld", "SinkGone", "Evicted")] == ["LeaseHeld", "Other", "Evicted"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"number": 1, "phase": "Running", "batch": 2**63}),
        json.dumps({"number": -(2**60), "phase": "Running"}),
        json.dumps({"number": 1, "phase": "Running", "warnings": ["x" * 200_000]}),
    ],
    ids=["more than a number", "less than a number", "more than a report"],
)
def test_a_report_that_no_driver_could_mean_is_none(text: str) -> None:
    assert load_report(text) is None


def test_a_report_of_any_length_makes_a_status_of_a_bounded_one() -> None:
    drains = [{"pod": f"p{n}" * 300, "since": "2026-11-21T10:00:00"} for n in range(20)]
    report = load_report(json.dumps({"number": 1, "phase": "P" * 999, "warnings": ["w" * 2000] * 30, "draining": drains}))
    assert report is not None
    assert (len(report.phase), len(report.warnings), max(map(len, report.warnings))) == (64, 16, 1024)
    assert {(len(drain.pod), drain.since.tzinfo is None) for drain in report.draining if drain.since} == {(253, False)}


def written(world: SimulatedCluster, status: Json) -> None:
    body = world.must()
    world.memory.replace_status({**body, "status": {**body.get("status", {}), **status}})


HOST: Json = {"hostNetwork": True, "hostPID": True, "volumes": [{"name": "root", "hostPath": {"path": "/"}}]}


def test_the_policy_is_asked_for_the_last_good_spec_too() -> None:
    """An attack: an invalid spec, and a last good one in the status that a policy would never let through."""
    world = SimulatedCluster()
    world.apply({**SPEC, "sparkConf": {"spark.master": "x"}})
    world.run(5)
    written(world, {"lastGoodSpec": {**SPEC, "driver": {"podTemplate": {"spec": HOST}}}})
    world.run(30)
    assert not list(world.memory.all("Pod"))
    assert world.condition("Stalled")["reason"] == "SpecInvalid"


def test_a_foreign_pod_of_our_name_is_refused_and_named() -> None:
    world = SimulatedCluster()
    meta = {"namespace": KEY.namespace, "name": "orders-driver-1", "labels": {"sluice.dev/role": "nobody's"}}
    theirs = world.memory.create({"kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "theirs", "image": "theirs"}]}})
    world.ledger.foreign.add(theirs["metadata"]["uid"])
    world.apply(SPEC)
    world.run(20)
    assert world.condition("Stalled")["reason"] == "ApiRefused"
    assert "orders-driver-1" in world.condition("Stalled")["message"]
    world.delete_pod("orders-driver-1")
    assert world.run(90, until=lambda: ready(world))


@pytest.mark.parametrize("name", ["other-teams-db", "orders-driver-7", "orders-drivers"])
@pytest.mark.parametrize("place", ["driver", "leaving"])
def test_a_foreign_pod_that_the_status_names_is_not_deleted(name: str, place: str) -> None:
    """An attack: who may write a status has the operator delete a pod of somebody else."""
    world = SimulatedCluster()
    world.apply(SPEC)
    assert world.run(60, until=lambda: ready(world))
    theirs = world.memory.create({"kind": "Pod", "metadata": {"namespace": KEY.namespace, "name": name}, "spec": {"containers": [{"name": "db"}]}})
    uid = theirs["metadata"]["uid"]
    world.ledger.foreign.add(uid)
    driver = world.status["driver"]
    named = {"attempt": 7, "pod": name, "uid": uid}
    written(world, {"driver": {**driver, **named} if place == "driver" else {**driver, "uid": None, "leaving": {**named, "why": "SpecChanged"}}})
    world.apply({**SPEC, "suspend": True})
    world.run(60)
    there = world.memory.get("Pod", KEY.namespace, name)
    assert there is not None
    assert "deletionTimestamp" not in there["metadata"]
    assert world.status["phase"] == "Suspended"


@pytest.mark.parametrize(
    "status",
    [
        {"driver": {"attempt": 2**63 - 1}},
        {"driver": {"attempt": -5}},
        {"driver": {"attempt": 10**9}},
        {"driver": {"attempt": 3, "pod": "any-name-at-all"}},
        {"restarts": {"count": 2**63 - 1, "interruptions": 2**63 - 1}},
    ],
    ids=str,
)
def test_a_number_in_the_status_that_nothing_follows_is_gone_on_from(status: Json) -> None:
    """An attack: the API server stores no larger one, so nothing was ever started."""
    world = SimulatedCluster()
    world.apply({**SPEC, "replicas": 0})
    world.run(5)
    written(world, status)
    world.habits.exits = [1]
    world.apply(SPEC)
    assert world.run(500, until=lambda: ready(world) and world.status["restarts"]["count"] > 0), world.status
    assert world.status["driver"]["pod"].startswith("orders-driver-")
    assert world.status["driver"]["attempt"] < 10**9
    assert world.status["restarts"]["count"] < 2**53


@pytest.mark.parametrize("since", [0, 20])
@pytest.mark.parametrize("spec", [SPEC, MIGRATING])
def test_a_deletion_goes_through_though_nothing_can_be_said_in_the_status(spec: Json, since: int) -> None:
    """An attack: a policy that refuses statuses kept the driver of a deleted resource running. Nothing is started meanwhile."""
    world = SimulatedCluster()
    world.apply(spec)
    world.run(60 if spec is SPEC else 3)
    world.admission.policies["status", "KinesisConsumer"] = (world.now + timedelta(days=1), "Forbidden")
    world.run(since)
    world.delete()
    assert world.run(90, until=lambda: world.resource() is None), world.status
    world.run(10)  # the garbage collector's time
    assert_nothing_left(world)

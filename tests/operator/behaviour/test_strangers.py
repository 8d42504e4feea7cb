"""What strangers write into a namespace: refusals in any words, forged reports and last words, labels of ours. None of it is believed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from simulated_cluster import SPEC, SimulatedCluster

from sluice_operator.cluster.client import failure
from sluice_operator.cluster.port import ApiError, Conflict, Exists, Rejected, Unavailable
from sluice_operator.plan import known_words
from sluice_operator.state.serialization import load_report

Json = dict[str, Any]
POLICY = "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'theirs' with binding 'b' denied request: metadata.uid stays"
WEBHOOK = 'admission webhook "theirs.example.com" denied the request: no'


def causes(field: str) -> Json:
    """As a server names fields that it refuses."""
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
    """It would dodge the count of failures, or break the status; what was said stays in the message."""
    assert known_words.reason(said, "Failed") == "Failed"
    assert not said or str(said) in known_words.message(said, "text")


def test_a_program_has_words_of_its_own() -> None:
    """Sluice's, and a pipeline's."""
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
    """The status would have to hold it."""
    assert load_report(text) is None


def test_a_report_of_any_length_makes_a_status_of_a_bounded_one() -> None:
    """Words, warnings and drains are cut."""
    drains = [{"pod": f"p{n}" * 300, "since": "2026-11-21T10:00:00"} for n in range(20)]
    report = load_report(json.dumps({"number": 1, "phase": "P" * 999, "warnings": ["w" * 2000] * 30, "draining": drains}))
    assert report is not None
    assert (len(report.phase), len(report.warnings), max(map(len, report.warnings))) == (64, 16, 1024)
    assert {(len(drain.pod), drain.since.tzinfo is None) for drain in report.draining if drain.since} == {(253, False)}


def test_a_typo_in_the_executors_template_is_refused_before_a_driver_is_made() -> None:
    """Spark would tell the driver's log alone, again and again."""
    world = SimulatedCluster()
    asked: list[Json] = []

    def admission(body: Json) -> None:
        if body["kind"] == "Pod" and body["metadata"]["labels"].get("sluice.dev/role") == "executor":
            asked.append(body)
            raise Rejected("BadRequest", 'strict decoding error: unknown field "spec.nodeselector"')

    world.twin.admission = admission
    world.apply({**SPEC, "executor": {"podTemplate": {"spec": {"nodeselector": {"disk": "fast"}}}}})
    assert world.run(60, until=lambda: world.condition("Ready").get("reason") == "ApiRefused")
    assert 'unknown field "spec.nodeselector"' in world.condition("Ready")["message"]
    assert not list(world.twin.all("Pod"))
    (container,) = asked[0]["spec"]["containers"]
    assert container["image"]
    assert asked[0]["metadata"]["ownerReferences"][0]["kind"] == "KinesisConsumer"

"""The rules of the CRD, as a real API server judges by them. Each rule refuses something here, and lets through what it is not about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from admission_scene import ADMIN, Caller
from crd_server import CONSUMERS, document, install
from kstatus import IN_PROGRESS, kstatus
from simulated_cluster import SPEC

from sluice_lab import places
from sluice_lab.machine import apiserver
from sluice_operator.state.serialization import load_status
from sluice_operator.state.status import Status

pytestmark = pytest.mark.apiserver

Json = dict[str, Any]

MERGE = "application/merge-patch+json"
LONGEST = "a" * 45
FILES, QUEUE = {"path": "s3a://lake/letters"}, {"sqs": "https://sqs.eu-west-1.amazonaws.com/1/letters"}


@dataclass(frozen=True)
class Change:
    """What a spec has beside SPEC, and what a merge patch of it says then."""

    before: Json
    patch: Json


def letters(**given: str) -> Json:
    """A spec whose dead letters go there."""
    return {"onError": {"deadLetter": given}}


REFUSED: list[tuple[str, Change]] = [
    ("stream.name is immutable", Change({}, {"stream": {"name": "another"}})),
    ("stream.region is immutable", Change({}, {"stream": {"region": "eu-west-2"}})),
    ("checkpoints.table is immutable", Change({}, {"checkpoints": {"table": "another"}})),
    ("checkpoints.table is immutable", Change({"checkpoints": {"table": "mine"}}, {"checkpoints": {"table": "another"}})),
    ("checkpoints.table is immutable", Change({"checkpoints": {"table": "mine"}}, {"checkpoints": None})),
    ("start.timestamp belongs to position AT_TIMESTAMP", Change({}, {"start": {"position": "AT_TIMESTAMP"}})),
    ("start.timestamp belongs to position AT_TIMESTAMP", Change({}, {"start": {"timestamp": "2026-11-24T00:00:00Z"}})),
    ("until must have exactly one of tip and timestamp", Change({}, {"until": {}})),
    ("until must have exactly one of tip and timestamp", Change({"until": {"tip": True}}, {"until": {"timestamp": "2026-11-24T00:00:00Z"}})),
    ("onError.deadLetter: required", Change({}, {"onError": {}})),
    ("onError.deadLetter: required", Change(letters(**FILES), {"onError": {"deadLetter": None}})),
    ("deadLetter must have exactly one of path, sqs and kinesis", Change({}, letters())),
    ("deadLetter must have exactly one of path, sqs and kinesis", Change({}, letters(**FILES, **QUEUE))),
    ("deadLetter must have exactly one of path, sqs and kinesis", Change(letters(**FILES), letters(**QUEUE))),
]
TAKEN = [
    Change({}, {"stream": SPEC["stream"], "replicas": 3}),
    Change({"checkpoints": {"table": "mine"}}, {"checkpoints": {"table": "mine"}}),
    Change({}, {"checkpoints": {}}),
    Change({}, letters(**FILES)),
    Change(letters(**FILES), {"onError": {"deadLetter": {"path": None, **QUEUE}}}),
    Change({}, letters(kinesis="letters")),
    Change({}, {"start": {}}),
    Change({}, {"start": {"position": "AT_TIMESTAMP", "timestamp": "2026-11-24T00:00:00Z"}}),
    Change({}, {"until": {"tip": True}}),
    Change({"until": {"tip": True}}, {"until": {"tip": None, "timestamp": "2026-11-24T00:00:00Z"}}),
    Change({}, {"onError": {"isolate": False}}),
]
NAMES = {"orders": True, LONGEST: True, f"{LONGEST}a": False, "7up": False, "or.ders": False}


@pytest.fixture(scope="module")
def admin() -> Iterator[Caller]:
    """A server that has nothing but the CRD."""
    with apiserver.running(places.work(), (ADMIN,)) as server:
        caller = Caller(server)
        install(caller.call)
        yield caller


def consumer(name: str, spec: Json) -> Json:
    """A resource."""
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": {"name": name}, "spec": {**SPEC, **spec}}


def change(admin: Caller, name: str, asked: Change) -> None:
    """Make a resource, and patch it."""
    admin.call("POST", CONSUMERS, consumer(name, asked.before))
    try:
        admin.call("PATCH", f"{CONSUMERS}/{name}", {"spec": asked.patch}, MERGE)
    finally:
        admin.call("DELETE", f"{CONSUMERS}/{name}")


@pytest.mark.parametrize(("message", "asked"), REFUSED)
def test_a_change_that_a_rule_is_about_is_refused_in_its_words(admin: Caller, message: str, asked: Change) -> None:
    """422, and the message of the rule."""
    with pytest.raises(AssertionError, match=f" 422 .*{message}"):
        change(admin, "orders", asked)


@pytest.mark.parametrize("asked", TAKEN)
def test_a_change_that_no_rule_is_about_is_taken(admin: Caller, asked: Change) -> None:
    """Fields that are as they were, and one kind of dead letters in the place of another."""
    change(admin, "orders", asked)


@pytest.mark.parametrize("spec", [letters(), letters(**FILES, **QUEUE)])
def test_a_new_resource_is_judged_too(admin: Caller, spec: Json) -> None:
    """Not only a change."""
    with pytest.raises(AssertionError, match=r" 422 .*deadLetter must have exactly one"):
        admin.call("POST", CONSUMERS, consumer("orders", spec))


@pytest.mark.parametrize("amount", ["abc", "-1", "", "1Zi", "1e9999999", "9" * 65, "1 Gi", -1])
@pytest.mark.parametrize("place", ["driver", "executor"])
def test_a_quantity_that_is_none_is_refused_at_once(admin: Caller, place: str, amount: str | int) -> None:
    """By Kubernetes' own pattern, without a sign; one of such a size that nobody could compute it, too."""
    with pytest.raises(AssertionError, match=r" 422 .*spec\.\w+\.resources\.requests\.cpu"):
        admin.call("POST", CONSUMERS, consumer("orders", {place: {"resources": {"requests": {"cpu": amount}}}}))


@pytest.mark.parametrize("amount", ["500m", "2Gi", "1.5", "+1", ".5", "1e3", "1E-3", 2, "2147483648", "12345678901234567890"])
def test_a_quantity_is_taken_as_kubernetes_takes_it(admin: Caller, amount: str | int) -> None:
    """In every form."""
    change(admin, "orders", Change({"driver": {"resources": {"limits": {"cpu": amount}}}}, {"replicas": 3}))


@pytest.mark.parametrize(("name", "taken"), NAMES.items())
def test_a_name_leaves_room_for_the_suffixes_of_pods(admin: Caller, name: str, taken: bool) -> None:  # noqa: FBT001 - a table
    """At most 45 characters, and a label of DNS that begins with a letter."""
    if taken:
        change(admin, name, Change({}, {"replicas": 3}))
        return
    with pytest.raises(AssertionError, match=r" 422 .*metadata\.name: at most 45 characters"):
        change(admin, name, Change({}, {}))


def test_a_resource_that_no_operator_has_seen_is_in_progress_for_kstatus(admin: Caller) -> None:
    """Else Flux, which asks a moment after it has applied it, goes on as if it worked."""
    made = admin.call("POST", CONSUMERS, consumer("unseen", {}))
    admin.call("DELETE", f"{CONSUMERS}/unseen")
    assert kstatus(made) == IN_PROGRESS


def test_the_operator_reads_a_resource_that_it_has_not_seen_as_one_without_status(admin: Caller) -> None:
    """The default of the schema is its own."""
    made = admin.call("POST", CONSUMERS, consumer("unread", {}))
    admin.call("DELETE", f"{CONSUMERS}/unread")
    assert load_status(made.get("status")) == Status()


def test_every_rule_refuses_something_here() -> None:
    """A rule without a row would be one that nobody has seen to work."""
    rows = {message for message, _ in REFUSED} | {"metadata.name: at most 45 characters"}
    rules = set(messages(document()))
    assert {row for row in rows if not any(row in rule for rule in rules)} == set()
    assert {rule for rule in rules if not any(row in rule for row in rows)} == set()


def messages(document: Any) -> Iterator[str]:
    """Of all rules, wherever they stand."""
    if isinstance(document, dict):
        yield from (rule["message"] for rule in document.get("x-kubernetes-validations", ()))
        document = document.values()
    if not isinstance(document, str) and hasattr(document, "__iter__"):
        for each in document:
            yield from messages(each)

"""`spec.rollout.trial` on a real cluster: a version that raises goes back to the one before, and the sink holds each record once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cluster_bench import Bench
from rules_world import MODULE, Subject, World, world

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

NAME = "trying"
HOW: dict[str, Any] = {"batch": {"intervalSeconds": 2}, "rollout": {"trial": {"batches": 2, "seconds": 600}}}


@pytest.fixture(scope="module")
def trying(bench: Bench) -> Iterator[World]:
    with world(bench, "trial", shards=1) as found:
        bench.apply(found.manifest(NAME, args={"label": "one"}, **HOW))
        bench.until("one is proven", lambda: found.put(1) and "proven" in found.subject(NAME).status)
        yield found


@pytest.fixture(scope="module")
def back(trying: World) -> Subject:
    subject = trying.subject(NAME)
    poison = max(record.n for record in trying.producer.produced) + 1
    subject.patch(pipeline={"entrypoint": f"{MODULE}:refuse", "args": trying.args(label="two", poison=poison)})
    trying.bench.until("the version before is gone, which would take the record", lambda: f"{NAME}-driver-2" in subject.uids("driver"))
    trying.bench.until("it was rolled back", lambda: trying.put(1) and subject.condition("RolledBack"))
    trying.bench.until("one works again", lambda: trying.put(1) and subject.status["trial"]["passed"])
    return subject


def test_a_version_that_raises_goes_back_and_says_why(back: Subject) -> None:
    """With both hashes; kstatus and Argo CD go by Stalled."""
    condition, status = back.condition("RolledBack"), back.status
    assert (condition["reason"], back.condition("Stalled")["reason"]) == ("ValueError", "RolledBack")
    assert "has no temperature" in condition["message"]
    assert status["trial"]["hash"] in condition["message"]
    assert status["proven"]["hash"] in condition["message"]
    assert any(each.startswith("RolledBack") for each in back.bench.events(NAME))
    assert back.bench.resource(NAME)["spec"]["pipeline"]["entrypoint"] == f"{MODULE}:refuse"


def test_nothing_is_lost_or_kept_twice_and_the_bad_version_is_not_tried_again(trying: World, back: Subject) -> None:
    """The version before committed the very batch on which the new one raised."""
    attempts = back.attempts()
    trying.bench.until("the sink has all", lambda: not trying.missing(NAME))
    assert trying.twice(NAME) == []
    assert (back.attempts(), attempts) == (3, 3)
    assert back.ready()


def test_a_corrected_version_is_tried_at_once_and_proven(trying: World, back: Subject) -> None:
    back.patch(pipeline={"args": trying.args(label="three", poison=None)})
    trying.bench.until("three is proven", lambda: trying.put(1) and "trial" not in back.status)
    assert not back.condition("RolledBack")
    trying.bench.until("the sink has all", lambda: not trying.missing(NAME))
    assert trying.twice(NAME) == []

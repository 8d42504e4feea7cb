"""What the watches showed and what a live look shows, together."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sluice_operator import observe
from sluice_operator.cache import Cache, Key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = Key("default", "orders")


def executor(uid: str, phase: str = "Running") -> dict[str, Any]:
    """An executor pod."""
    labels = {observe.CONSUMER: "orders", observe.ROLE: "executor"}
    meta = {"name": "orders-1-exec-4", "namespace": "default", "uid": uid, "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"kind": "Pod", "metadata": meta, "status": {"phase": phase}}


@pytest.fixture
def cache() -> Cache:
    """Has seen one executor, and a look has begun."""
    found = Cache()
    found.see("Pod", executor("a"), NOW)
    found.begin_look(KEY)
    return found


def executors(cache: Cache) -> list[tuple[str, str]]:
    """Uid and phase of each executor as last seen."""
    return [(pod.uid, pod.phase) for pod in cache.observed(KEY).executors]


def test_a_pod_whose_deletion_was_seen_during_a_look_does_not_come_back(cache: Cache) -> None:
    """The list was made before it went, and arrives after. No further event would ever remove it."""
    cache.see("Pod", executor("a"), NOW, gone=True)
    live = cache.live(KEY, [executor("a")], [], NOW)
    assert [pod.uid for pod in live.executors] == ["a"]
    assert executors(cache) == []


def test_a_change_seen_during_a_look_is_not_overwritten_by_the_older_list(cache: Cache) -> None:
    """The watch tells each change once."""
    cache.see("Pod", executor("a", "Failed"), NOW)
    cache.live(KEY, [executor("a")], [], NOW)
    assert executors(cache) == [("a", "Failed")]


def test_a_pod_made_during_a_look_is_not_forgotten(cache: Cache) -> None:
    """Nor is one of the same name taken for the one before."""
    cache.see("Pod", executor("a"), NOW, gone=True)
    cache.see("Pod", executor("b", "Pending"), NOW)
    cache.live(KEY, [executor("a")], [], NOW)
    assert executors(cache) == [("b", "Pending")]


def test_a_look_corrects_what_an_interrupted_watch_never_told(cache: Cache) -> None:
    """Deletions during a gap come as no event at all."""
    cache.live(KEY, [], [], NOW)
    assert executors(cache) == []

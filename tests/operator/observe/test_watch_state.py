"""What a watch knows: lists and changes are one story, however they are cut into pieces."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_operator.observe.parse import CONSUMER
from sluice_operator.observe.watch_state import Lines, WatchEvent, WatchState

Json = dict[str, Any]


def pod(name: str, version: int = 1) -> Json:
    meta = {"name": name, "namespace": "a", "uid": f"uid-{name}", "resourceVersion": str(version), "labels": {CONSUMER: "orders"}}
    return {"metadata": meta}


def line(verb: str, body: Json) -> bytes:
    return json.dumps({"type": verb, "object": body}).encode()


def listed(state: WatchState, *names: str, version: str = "10") -> list[WatchEvent]:
    state.begin()
    pages = [event for name in names for event in state.page({"items": [pod(name)]})]
    return pages + list(state.end(version))


@pytest.fixture
def state() -> WatchState:
    found = WatchState()
    listed(found, "x", "y")
    return found


def test_what_a_second_list_does_not_show_is_told_as_gone(state: WatchState) -> None:
    *_, gone = listed(state, "x", "z", version="20")
    meta = gone.body["metadata"]
    assert gone.gone
    assert (meta["namespace"], meta["name"], meta["uid"], meta["labels"]) == ("a", "y", "uid-y", {CONSUMER: "orders"})
    assert [event.gone for event in listed(state, "x", "z")] == [False, False]


def test_what_the_watch_showed_counts_like_what_was_listed(state: WatchState) -> None:
    state.line(line("ADDED", pod("new")))
    state.line(line("DELETED", pod("x")))
    assert [event.body["metadata"]["name"] for event in listed(state, "y") if event.gone] == ["new"]


def test_a_name_that_was_given_anew_is_another_object(state: WatchState) -> None:
    """The old one went, the new one is there: both are told, the new one first, for pages come before their end."""
    state.begin()
    anew = pod("x")
    anew["metadata"]["uid"] = "uid-2"
    told = [*state.page({"items": [anew, pod("y")]}), *state.end("20")]
    assert [(event.body["metadata"]["uid"], event.gone) for event in told] == [("uid-2", False), ("uid-y", False), ("uid-x", True)]


def test_an_empty_list_may_be_null(state: WatchState) -> None:
    """Go writes it so."""
    state.begin()
    assert list(state.page({"items": None})) == []


def test_changes_go_on_after_the_last_one_that_was_shown(state: WatchState) -> None:
    """A bookmark counts and tells nothing; a list that was not finished does not."""
    assert state.version == "10"
    assert state.line(line("MODIFIED", pod("x", 12))) == WatchEvent(pod("x", 12))
    assert state.version == "12"
    assert state.line(line("BOOKMARK", {"metadata": {"resourceVersion": "15"}})) is None
    assert state.version == "15"
    assert state.line(line("DELETED", pod("x", 16))) == WatchEvent(pod("x", 16), gone=True)
    state.begin()
    assert state.version is None


@given(st.lists(st.binary(min_size=1).filter(lambda one: b"\n" not in one)), st.lists(st.integers(0, 200)))
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], cuts: list[int]) -> None:
    text = b"".join(one + b"\n" for one in lines)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    feeder = Lines()
    pieces = [text[begin:end] for begin, end in itertools.pairwise(places)]
    assert [one for piece in pieces for one in feeder.feed(piece)] == lines
    assert feeder.feed(b"half") == []

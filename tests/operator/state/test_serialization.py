"""What the operator writes into a status, it can read: whatever a spec, a report or an exit holds."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_values import ODD, deep, specs
from simulated_cluster import BEGIN, SPEC

from sluice_operator.observe import parse
from sluice_operator.plan.rules import plan
from sluice_operator.resource.fields import MAX_BYTES, InvalidSpec
from sluice_operator.resource.fields import parse as accepted
from sluice_operator.state.objects import Observed
from sluice_operator.state.serialization import dump_status, load_status
from sluice_operator.state.status import Exit, Phase, Status
from sluice_operator.untrusted.bounds import DEPTH
from sluice_operator.untrusted.values import Unreadable, moment

Json = dict[str, Any]
META: Json = {"namespace": "default", "name": "orders", "uid": "u", "resourceVersion": "7", "generation": 3, "finalizers": ["sluice.dev/operator"]}
SHOWN = Status(observed_generation=3)


def with_args(args: Any) -> Json:
    return {**SPEC, "pipeline": {**SPEC["pipeline"], "args": args}}


def comes_back(spec: Json) -> bool:
    view = parse.view({"metadata": META, "spec": spec}, Observed(), BEGIN)
    status = plan(view).status
    document = dump_status(status)
    assert load_status(document) == status
    assert load_status(orjson.loads(orjson.dumps(document))) == status
    return status.last_good_spec is not None


@pytest.mark.parametrize("levels", range(DEPTH - 6, DEPTH + 3))
def test_the_status_of_a_nested_spec_is_readable(levels: int) -> None:
    """One level less than what is refused was accepted, and its status could not be read from then on."""
    comes_back(with_args(deep(levels)))
    comes_back({**SPEC, "executor": {"podTemplate": {"spec": {"affinity": deep(levels)}}}})


@pytest.mark.parametrize(
    "args",
    [
        {"list": [0] * 20_000},
        {"list": [[]] * 15_000},
        {"a": 2**64 - 1},
        {"a": -(2**63)},
        {"a": -(2**63) - 1},
        {"a": 2**64},
        {"a": -0.0, "b": 5e-324, "c": 1e308},
        {"": None, "\u2028": ["\x00"], "x" * 300: "\U0001f300" * 1000},
    ],
    ids=lambda args: repr(args)[:30],
)
def test_the_status_of_a_spec_at_the_bounds_is_readable(args: Json) -> None:
    comes_back(with_args(args))


@settings(max_examples=100)
@given(st.one_of(specs(), st.sampled_from(ODD).map(lambda odd: with_args({"a": odd}))))
def test_the_status_of_any_spec_is_readable(spec: Json) -> None:
    comes_back(spec)


def test_a_last_good_spec_adds_no_more_to_a_status_than_a_driver_can_have() -> None:
    """The object holds the spec twice, so a spec is far smaller than the 1.5 MB of an object."""
    room = MAX_BYTES - len(json.dumps(with_args({"a": ""})))
    assert comes_back(with_args({"a": "x" * room}))
    assert not comes_back(with_args({"a": "x" * (room + 1)}))
    view = parse.view({"metadata": META, "spec": with_args({"a": "\U0001f300" * (room // 12)})}, Observed(), BEGIN)
    assert view.problem is None
    assert len(orjson.dumps(dump_status(plan(view).status)["lastGoodSpec"])) <= MAX_BYTES < 1_500_000 / 20


def test_a_last_good_spec_that_is_no_spec_counts_as_none() -> None:
    for odd in [*(odd for odd in ODD if not isinstance(odd, dict)), deep(100), {"a": deep(900)}]:
        status = load_status({**dump_status(SHOWN), "driver": {"attempt": 7}, "lastGoodSpec": odd})
        assert (status.driver.attempt, status.last_good_spec) == (7, None)
        body = {"metadata": META, "spec": SPEC, "status": {"driver": {"attempt": 7}, "lastGoodSpec": odd}}
        assert plan(parse.view(body, Observed(), BEGIN)).status.last_good_spec == SPEC


@pytest.mark.parametrize("time", ["2200-01-01T00:00:00Z", "2199-12-31T23:59:59Z", "2000-01-01T00:00:00Z", "1999-12-31T23:59:59Z"])
def test_a_time_that_is_taken_from_a_pod_can_be_read_again(time: str) -> None:
    at = moment(time)
    if at is not None:
        status = replace(SHOWN, driver=replace(SHOWN.driver, attempt=1, exit=Exit(reason="Failed", at=at)), progressing_since=at - timedelta())
        assert load_status(dump_status(status)) == status


def test_a_spec_that_is_refused_is_not_kept() -> None:
    with pytest.raises(InvalidSpec):
        accepted(with_args(deep(DEPTH)))
    assert not comes_back(with_args(deep(DEPTH)))
    assert comes_back(SPEC)


@pytest.mark.parametrize(("phase", "read"), [("Running", Phase.RUNNING), ("Resetting", Phase.PENDING), (None, Phase.PENDING)])
def test_a_phase_of_a_later_operator_counts_as_pending(phase: str | None, read: Phase) -> None:
    assert load_status({"phase": phase} if phase else {}).phase is read


def test_a_standby_in_a_state_of_a_later_operator_counts_as_none() -> None:
    standby = {"attempt": 7, "pod": "orders-driver-7", "specHash": "0123456789ab", "since": "2026-11-27T12:00:00Z"}
    assert load_status({"standby": standby | {"state": "Starting"}, "attempts": 7}).standby is not None
    found = load_status({"standby": standby | {"state": "Watching"}, "attempts": 7, "driver": {"attempt": 6}})
    assert (found.standby, found.attempts, found.driver.attempt) == (None, 7, 6)
    with pytest.raises(Unreadable, match=r"status\.standby\.state"):
        load_status({"standby": standby | {"state": "no state"}})


def test_a_trial_in_a_state_of_a_later_operator_counts_as_none() -> None:
    trial = {"hash": "0123456789ab", "since": "2026-11-27T12:00:00Z"}
    proven = {"hash": "ba9876543210", "since": "2026-11-26T12:00:00Z"}
    assert load_status({"trial": trial | {"state": "Forward"}}).trial is not None
    found = load_status({"trial": trial | {"state": "Comparing"}, "proven": proven})
    assert found.trial is None
    assert found.proven is not None
    with pytest.raises(Unreadable, match=r"status\.trial\.state"):
        load_status({"trial": trial | {"state": "no state"}})


def test_what_is_no_word_is_no_phase_of_any_operator() -> None:
    with pytest.raises(Unreadable, match=r"status\.phase"):
        load_status({"phase": "no phase"})

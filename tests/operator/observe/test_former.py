"""The proven version of a status, in place of that of the spec: what a rollback returns to, and what it may not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sluice_operator.observe import parse
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse as parsed
from sluice_operator.state.objects import Observed
from sluice_operator.state.view import View

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
Json = dict[str, Any]
TRIAL: Json = {"rollout": {"strategy": "Recreate", "trial": {"batches": 2}}}


def spec(image: str, **fields: Any) -> Json:
    stream = {"name": "orders", "region": "eu-west-1"}
    return {"stream": stream, "replicas": 2, "pipeline": {"entrypoint": "orders:process", "image": image}, **TRIAL, **fields}


def version(raw: Json) -> tuple[Json, str]:
    wanted = DesiredSpec(parsed(raw), raw)
    return wanted.version, wanted.driver_hash


def seen(asked: Json, proven: Json, *, proven_hash: str | None = None, state: str | None = None) -> View:
    fields, known = version(proven)
    status: Json = {"proven": {"hash": proven_hash or known, "since": "2026-11-27T11:00:00Z"}, "provenSpec": fields}
    if state:
        status["trial"] = {"hash": version(asked)[1], "since": "2026-11-27T11:30:00Z", "state": state}
    meta = {"namespace": "shop", "name": "orders", "uid": "consumer-uid", "resourceVersion": "7", "generation": 3}
    return parse.view({"metadata": meta, "spec": asked, "status": status}, Observed(), NOW)


def test_a_rollback_brings_the_fields_of_the_version_back_and_nothing_else() -> None:
    asked = spec("bad", replicas=7, restart={"backoffSeconds": 5}, sparkConf={"spark.executor.memory": "1g"}, progressDeadlineSeconds=99)
    wanted = seen(asked, spec("good", batch={"intervalSeconds": 9}), state="RolledBack").wanted
    assert wanted is not None
    expected = asked | {"pipeline": spec("good")["pipeline"], "batch": {"intervalSeconds": 9}}
    del expected["sparkConf"]
    assert wanted.raw == expected
    assert wanted.is_hash(version(spec("good", batch={"intervalSeconds": 9}))[1])


@pytest.mark.parametrize("state", ["Running", "Forward", None])
def test_in_any_other_state_the_spec_is_carried_out(state: str | None) -> None:
    asked = spec("bad")
    view = seen(asked, spec("good"), state=state)
    assert (view.wanted and view.wanted.raw, view.former is not None) == (asked, True)


def test_a_trial_of_another_version_decides_nothing() -> None:
    view = seen(spec("bad"), spec("good"), state="RolledBack")
    other = parse.view(
        {"metadata": {"namespace": "shop", "name": "orders", "uid": "u", "resourceVersion": "8"}, "spec": spec("other"), "status": {}},
        Observed(),
        NOW,
    )
    assert view.rolled_back is not None
    assert other.rolled_back is None


SECRET = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "orders-1", "key": "password"}}}
ENVIRONMENT: dict[str, Json] = {
    "variables": {"env": [{"name": "LEVEL", "value": "2"}, SECRET]},
    "Secrets and ConfigMaps": {
        "envFrom": [{"secretRef": {"name": "orders-1"}}, {"configMapRef": {"name": "levels-1", "optional": True}, "prefix": "L_"}]
    },
    "volumes": {"volumes": [{"name": "keys", "secret": {"secretName": "orders-1"}}], "volumeMounts": [{"name": "keys", "mountPath": "/keys"}]},
    "modules": {"source": {"configMap": "modules-1"}},
    "pull secrets": {"imagePullSecrets": ["registry-1"]},
}


@pytest.mark.parametrize("part", ENVIRONMENT)
def test_a_rollback_brings_the_environment_back_by_name_and_nothing_of_the_refused_one(part: str) -> None:
    before = {"entrypoint": "orders:process", "image": "good"}
    proven = spec("good", pipeline=before | ENVIRONMENT[part])
    asked = spec("bad", pipeline=before | {"env": [{"name": "NEW", "value": "x"}], "envFrom": [{"secretRef": {"name": "orders-2"}}]})
    wanted = seen(asked, proven, state="RolledBack").wanted
    assert wanted is not None
    assert wanted.raw["pipeline"] == proven["pipeline"]
    assert wanted.is_hash(version(proven)[1])


def test_a_version_that_is_written_another_way_is_the_same() -> None:
    """The proven one is named again, so nothing is on trial and nothing restarts."""
    proven = spec("good", pipeline={"entrypoint": "orders:process", "image": "good", "envFrom": [{"secretRef": {"name": "orders-1"}}]})
    again = spec("good", pipeline=proven["pipeline"] | {"envFrom": [{"secretRef": {"name": "orders-1", "optional": False}}], "env": []})
    view = seen(again, proven)
    assert view.asked is not None
    assert view.asked.is_hash(version(proven)[1])


IN_DRIVER = spec("good", replicas=1, executor={"inDriver": True})


@pytest.mark.parametrize("number", [0, 1, 3])
def test_scaling_does_not_end_a_rollback_to_a_version_whose_tasks_run_in_the_driver(number: int) -> None:
    """The refused version may have more executors than one; the proven one has one, whatever is asked for. 0 is a stop for both."""
    view = seen(spec("bad", replicas=number), IN_DRIVER, state="RolledBack")
    assert view.wanted is not None
    assert (view.wanted.raw["pipeline"]["image"], view.executors, view.stopped) == ("good", min(number, 1), number == 0)


def test_autoscale_does_not_end_a_rollback_to_a_version_whose_tasks_run_in_the_driver() -> None:
    view = seen(spec("bad", replicas=1, autoscale={"max": 4}), IN_DRIVER, state="RolledBack")
    assert view.wanted is not None
    assert (view.wanted.raw["pipeline"]["image"], view.wanted.spec.autoscale, view.executors) == ("good", None, 1)


ENDING = {key: value for key, value in spec("good", until={"tip": True}).items() if key != "rollout"}
PRIVILEGED = {"podTemplate": {"spec": {"hostNetwork": True}}}


@pytest.mark.parametrize(
    ("asked", "proven", "given"),
    [
        (spec("bad"), spec("good", driver=PRIVILEGED), {}),  # the operator's policy, or somebody who may write a status and no more
        (spec("bad"), spec("good"), {"proven_hash": "123456789abc"}),  # fields and hash disagree
        (spec("bad"), ENDING, {}),  # it does not fit the rest: a run with an end has no trial
    ],
    ids=["not allowed", "not what was proven", "does not fit"],
)
def test_a_version_that_may_not_run_is_none(asked: Json, proven: Json, given: Json) -> None:
    view = seen(asked, proven, state="RolledBack", **given)
    assert (view.former, view.wanted and view.wanted.raw) == (None, asked)


def test_an_unreadable_version_counts_as_none() -> None:
    body = {"metadata": {"namespace": "shop", "name": "orders", "uid": "u", "resourceVersion": "8"}, "spec": spec("bad")}
    status = {"proven": {"hash": "123456789abc", "since": "2026-11-27T11:00:00Z"}, "provenSpec": "nonsense"}
    assert parse.view(body | {"status": status}, Observed(), NOW).former is None

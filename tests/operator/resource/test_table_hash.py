"""What decides which checkpoint table a driver finds under its name. A standby is made only beside a driver of the same table."""

from __future__ import annotations

from typing import Any

import pytest
from plan.test_failover import ALWAYS, alone
from plan.views import attempt, driver, view, wanted

from sluice_operator.plan.rules import plan
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.state.actions import CreateStandby, DeletePod
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import Status

Json = dict[str, Any]
CODE: Json = {"entrypoint": "orders.pipeline:process"}
ENDPOINT = {"name": "AWS_ENDPOINT_URL_DYNAMODB", "value": "https://dynamodb.elsewhere.example"}
KEY = {"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": {"secretKeyRef": {"name": "aws", "key": "secret"}}}
OTHER_KEY = {"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": {"secretKeyRef": {"name": "other", "key": "secret"}}}


def pipeline(**fields: Any) -> Json:
    return {"pipeline": CODE | fields}


def template(**fields: Any) -> Json:
    return {"driver": {"podTemplate": {"spec": {"containers": [{"name": "driver", **fields}]}}}}


MOVES: dict[str, tuple[Json, Json]] = {
    "an endpoint of the pipeline": ({}, pipeline(env=[ENDPOINT])),
    "keys of another Secret": (pipeline(env=[KEY]), pipeline(env=[OTHER_KEY])),
    "variables from another Secret": (pipeline(envFrom=[{"secretRef": {"name": "aws"}}]), pipeline(envFrom=[{"secretRef": {"name": "other"}}])),
    "an endpoint of the driver's template": ({}, template(env=[ENDPOINT])),
    "keys of the driver's template": (template(env=[KEY]), template(env=[OTHER_KEY])),
    "variables from a Secret of the driver's template": ({}, template(envFrom=[{"secretRef": {"name": "aws"}}])),
    "another account": ({}, {"serviceAccountName": "other"}),
}


def deploy(before: Json, after: Json) -> tuple[DesiredSpec, DesiredSpec, Any]:
    rollout = {"rollout": {"strategy": "Standby"}}
    one, other = wanted(**rollout, **before), wanted(**rollout, **after)
    status = Status(observed_generation=1, driver=attempt(spec_hash=one.driver_hash), attempts=1)
    return one, other, plan(view(spec=other, status=status, observed=Observed(drivers=(driver(table_hash=one.table_hash),))))


@pytest.mark.parametrize("case", MOVES)
def test_a_change_that_may_move_the_table_is_made_as_recreate(case: str) -> None:
    """In the other table the lease is free: a standby would take it at once, and both drivers would work."""
    one, other, made = deploy(*MOVES[case])
    assert one.driver_hash != other.driver_hash
    assert made.actions == (DeletePod("orders-driver-1", "driver-1"),)


STAYS: dict[str, tuple[Json, Json]] = {
    "a variable of the user": ({}, pipeline(env=[{"name": "LEVEL", "value": "2"}])),
    "a variable of the user in the template": ({}, template(env=[{"name": "LEVEL", "value": "2"}])),
    "a variable of executors": ({}, {"executor": {"podTemplate": {"spec": {"containers": [{"name": "executor", "env": [ENDPOINT]}]}}}}),
    "an image": ({}, pipeline(image="orders:2")),
}


@pytest.mark.parametrize("case", STAYS)
def test_any_other_change_gets_a_standby(case: str) -> None:
    """Both find the one lease."""
    assert deploy(*STAYS[case])[2].actions == (CreateStandby(),)


SAME: dict[str, tuple[Json, Json]] = {
    "optional": (pipeline(envFrom=[{"secretRef": {"name": "aws"}}]), pipeline(envFrom=[{"secretRef": {"name": "aws", "optional": False}}])),
    "prefix": (pipeline(envFrom=[{"configMapRef": {"name": "aws"}}]), pipeline(envFrom=[{"configMapRef": {"name": "aws"}, "prefix": ""}])),
    "value": (pipeline(env=[{"name": "AWS_PROFILE"}]), pipeline(env=[{"name": "AWS_PROFILE", "value": ""}])),
    "empty list": (template(), template(envFrom=[])),
}


@pytest.mark.parametrize("case", SAME)
def test_another_way_to_write_the_same_costs_no_standby(case: str) -> None:
    """Nothing restarts for it, so the driver would have none until somebody restarts it. The reason that is said would be another one."""
    before, after = (wanted(**ALWAYS, **each) for each in SAME[case])
    assert before.is_hash(after.driver_hash)
    known = alone().status
    found = view(
        spec=after,
        status=Status(observed_generation=1, driver=attempt(spec_hash=before.driver_hash), attempts=known.attempts),
        observed=Observed(drivers=(driver(table_hash=before.table_hash),)),
    )
    assert plan(found).actions == (CreateStandby(),)


def test_drivers_of_the_former_operator_keep_their_hash() -> None:
    """It knew nothing of templates. A hash that changed would cost a standby of each consumer, until it is restarted."""
    usual = {"env": [{"name": "LEVEL", "value": "2"}, KEY], "envFrom": [{"secretRef": {"name": "aws"}}]}
    assert (wanted().table_hash, wanted(**pipeline(**usual)).table_hash) == ("acc3b38db814", "ca8bab103f47")

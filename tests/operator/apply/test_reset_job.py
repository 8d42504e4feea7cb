"""The Job that moves positions: made as a migration's, but for what it runs and whose table it is told to expect."""

from __future__ import annotations

from typing import Any

import pytest
from manifest_cases import RESOURCE, SETTINGS, TEMPLATE, Json
from simulated_cluster import MIGRATING, SPEC

from sluice_operator.apply.jobs import migration_job, reset_job
from sluice_operator.plan.position import FIELDS, in_fields
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse
from sluice_operator.state.status import MigrationStatus, PositionStatus

MOVE: Json = {"id": "2026-11-27-bad-deploy", "to": {"timestamp": "2026-11-26T14:00:00Z"}}
TRIED = PositionStatus(id=MOVE["id"], hash="a1b2c3", spec_hash="s", job="orders-reset-a1b2c3-1", tries=1)


def job(position: Json = MOVE, **spec: Any) -> Json:
    raw = {**SPEC, "position": position, **spec}
    return reset_job(RESOURCE, DesiredSpec(parse(raw), raw), TRIED, SETTINGS, ("prod", "uid"))


def words(made: Json) -> str:
    return " ".join(made["spec"]["template"]["spec"]["containers"][0]["args"])


def test_it_runs_the_command_with_the_arguments_of_the_page() -> None:
    """docs/interfaces.md, "Reset Job"."""
    assert words(job(leaseDurationSeconds=30)) == (
        "python -m sluice_checkpoints reset --table sluice_default_orders --stream orders --region eu-west-1 --id 2026-11-27-bad-deploy"
        " --to 2026-11-26T14:00:00Z --lease-seconds 30 --yes --json"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"to": {"trimHorizon": True}}, "--to trimHorizon"),
        ({"to": {"latest": True}}, "--to latest"),
        ({"to": {"batch": 1041}}, "--to-batch 1041"),
        ({"giveUpBatch": 42}, "--give-up-batch 42"),
        ({"acceptExpired": True}, "--accept-expired"),
        ({"shards": ["shardId-000000000000", "shardId-000000000001"]}, "--shard shardId-000000000000 --shard shardId-000000000001"),
    ],
)
def test_each_field_of_the_spec_is_an_option(given: Json, said: str) -> None:
    assert said in words(job({**MOVE, **given}))
    assert said not in words(job())


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("or add --give-up-batch 42, and it counts as processed", "or add position.giveUpBatch 42, and it counts as processed"),
        ("Add --accept-expired to begin at the oldest record", "Add position.acceptExpired to begin at the oldest record"),
        ("--to-batch 5: it does of 1. Name a time with --to", "position.to.batch 5: it does of 1. Name a time with position.to"),
        ("--id one: this id was carried out", "position.id one: this id was carried out"),
        ("add --shard shardId-1 --shard shardId-2, or leave --shard out", "add shardId-1 shardId-2, or leave position.shards out"),
        ("sluice show --table orders --to-day --token", "sluice show --table orders --to-day --token"),
    ],
)
def test_what_it_says_names_fields_of_the_spec(said: str, shown: str) -> None:
    """Whoever wrote a resource knows no options."""
    assert in_fields(said) == shown
    own = {
        word
        for word in words(job({**MOVE, "giveUpBatch": 1, "acceptExpired": True, "shards": ["shardId-000000000001"]})).split()
        if word.startswith("--")
    }
    assert own - {"--table", "--stream", "--region", "--lease-seconds", "--yes", "--json"} <= FIELDS.keys()


def test_it_is_made_as_a_migrations_job() -> None:
    """Security, volumes, resources, template: whatever is not named here is the same. The account is the driver's: it writes what drivers write."""
    raw = {**MIGRATING, "position": MOVE, "driver": {"podTemplate": TEMPLATE}}
    asked = DesiredSpec(parse(raw), raw)
    other = migration_job(RESOURCE, asked, MigrationStatus(hash="h", spec_hash="s", job=TRIED.job, tries=1), SETTINGS)
    mine = reset_job(RESOURCE, asked, TRIED, SETTINGS)
    for body in (mine, other):
        (container,) = body["spec"]["template"]["spec"]["containers"]
        container.pop("args")
        body["spec"]["template"]["spec"].pop("serviceAccountName")
        container["env"] = [each for each in container["env"] if each["name"] not in {"SLUICE_OWNER", "SLUICE_CLUSTER"}]
        for meta in (body["metadata"], body["spec"]["template"]["metadata"]):
            meta["labels"] = {key: value for key, value in meta["labels"].items() if key not in {"sluice.dev/migration", "sluice.dev/position"}}
    assert mine == other


@pytest.mark.parametrize("spec", [{}, {"serviceAccountName": "orders"}])
def test_it_has_the_drivers_account_without_its_api_token(spec: Json) -> None:
    """Policies for executors allow no lease and no row of a shard to be replaced."""
    pod = job(**spec)["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == (spec.get("serviceAccountName", "sluice-consumer"), False)


def test_it_is_told_whose_table_it_has_to_be() -> None:
    (container,) = job()["spec"]["template"]["spec"]["containers"]
    named = {each["name"]: each.get("value") for each in container["env"]}
    assert (named["SLUICE_OWNER"], named["SLUICE_CLUSTER"]) == ("default/orders", "prod uid")


def test_a_move_restarts_no_driver() -> None:
    raw = {**SPEC, "position": MOVE}
    assert DesiredSpec(parse(raw), raw).driver_hash == DesiredSpec(parse(SPEC), SPEC).driver_hash

"""What the operator writes into a driver's pod or a migration's Job is what the program in it reads (docs/interfaces.md)."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sluice_checkpoints import termination_log
from sluice_checkpoints.aws import role
from sluice_checkpoints.cli.main import main as tables
from sluice_checkpoints.cli.options import CLUSTER
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.detect import AUTO, FORMATS
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.stream import address
from sluice_consumer import config as configs
from sluice_consumer.process import configmap_code, pod, supervisor
from sluice_operator import names
from sluice_operator.apply import jobs, manifests
from sluice_operator.apply.jobs import reset_job
from sluice_operator.names import CONFIG, LETTER_PLACES
from sluice_operator.observe import parse
from sluice_operator.resource import stream as stream_fields
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import DEAD_LETTER_STREAM, DeadLetterSpec, InvalidSpec, MigrateFromSpec
from sluice_operator.resource.fields import parse as spec_of
from sluice_operator.settings import Settings
from sluice_operator.state.objects import Resource
from sluice_operator.state.status import DriverStatus, MigrationStatus, PositionStatus

Json = dict[str, Any]
ROOT = Path(__file__).parents[3]
RESOURCE = Resource(namespace="team-a", name="orders", uid="u-1", version="7", generation=3)
DRIVER = DriverStatus(attempt=3, pod="orders-driver-3", spec_hash="abc", generation=2)
SPEC: Json = {
    "stream": {"name": "orders", "region": "eu-west-1"},
    "replicas": 2,
    "pipeline": {"entrypoint": "orders:process", "source": {"configMap": "code"}},
    "onError": {"deadLetter": {"kinesis": "letters"}},
    "drainTimeoutSeconds": 60,
}


def made(clusters: tuple[str, ...] = (), **change: Any) -> Json:
    raw = {**SPEC, **change}
    return manifests.driver_pod(RESOURCE, DesiredSpec(spec_of(raw), raw), DRIVER, Settings(image="i"), clusters)


def environment(pod_made: Json) -> dict[str, str]:
    fields = {"metadata.name": "orders-driver-3", "metadata.namespace": "team-a", "metadata.uid": "u", "status.podIP": "10.0.0.7"}
    (container,) = pod_made["spec"]["containers"]
    return {e["name"]: e["value"] if "value" in e else fields[e["valueFrom"]["fieldRef"]["fieldPath"]] for e in container["env"]}


def test_a_drivers_annotations_have_one_name() -> None:
    assert (pod.TARGET, pod.REPORT) == (parse.TARGET, parse.REPORT)


def test_a_driver_follows_the_target_that_the_operator_wrote() -> None:
    notes = made()["metadata"]["annotations"]

    class Own:
        def read(self) -> dict[str, str]:
            return dict(notes)

        def write(self, annotations: Mapping[str, str | None]) -> None:
            raise AssertionError(annotations)

    assert pod.wanted_executors(Own()) == 2


def test_a_driver_finds_its_pod_its_table_and_its_code_in_the_environment_of_its_pod() -> None:
    given = environment(made())
    here = pod.from_environment(given)
    assert here is not None
    assert (here.name, here.namespace, here.uid, here.ip) == ("orders-driver-3", "team-a", "u", "10.0.0.7")
    assert pod.table_made(given)
    assert given[configmap_code.CONFIG_MAP] == "code"
    assert termination_log.VARIABLE in given


@pytest.mark.parametrize("clusters", [(), ("uid-1",), ("prod-eu", "uid-1")], ids=["cluster not known", "by uid", "by name and uid"])
def test_a_driver_is_told_whose_the_table_is(clusters: tuple[str, ...]) -> None:
    """The resource, and by what its cluster is known. A resource that is made again is the same owner: its uid is not in it."""
    found = pod.owner("orders", environment(made(clusters)))
    assert (found, str(RESOURCE.uid) in str(found)) == (Owner("team-a/orders", clusters), False)


def test_what_the_chart_takes_for_a_name_of_a_cluster_the_command_takes() -> None:
    pattern = json.loads((ROOT / "charts/sluice/values.schema.json").read_text())["properties"]["clusterName"]["pattern"]
    for name in ("prod", "arn:aws:eks:eu-west-1:111122223333:cluster/prod", "6f1c1a2e-0f63-4a7e-8d53-0a8a4f5a2c11", "a b", "-a", "a\n", "prod "):
        assert bool(re.search(pattern, name, re.ASCII)) == bool(CLUSTER.fullmatch(name)) or name.endswith("\n")
        assert not CLUSTER.fullmatch(name) or name.split() == [name]


def test_a_driver_reads_the_configuration_that_the_operator_wrote() -> None:
    (container,) = made()["spec"]["containers"]
    found = configs.parse(made()["metadata"]["annotations"][CONFIG])
    assert (found.name, found.stream.name, found.executors, found.drain_timeout_seconds) == ("orders", "orders", 2, 60)
    assert container["args"][:3] == ["python", "-m", configs.__name__.partition(".")[0]]
    assert container["name"] == parse.CONTAINERS["driver"]


def test_a_driver_that_is_told_to_stop_has_ended_before_its_pod_is_killed() -> None:
    """Else nobody hears why it ended."""
    assert made()["spec"]["terminationGracePeriodSeconds"] > 60 + supervisor.STOP_SECONDS


@pytest.mark.parametrize(
    "arn",
    [
        "letters",
        "arn:aws:kinesis:eu-west-1:123456789012:stream/letters",
        "arn:aws-cn:kinesis:cn-north-1:123456789012:stream/letters",
        "arn:aws-us-gov:kinesis:us-gov-west-1:123456789012:stream/letters",
        "arn:aws:sqs:eu-west-1:123456789012:letters",
        "a b",
        "",
    ],
)
def test_what_the_crd_takes_for_a_stream_of_letters_the_driver_takes(arn: str) -> None:
    assert bool(re.search(DEAD_LETTER_STREAM, arn)) is bool(configs.STREAM.fullmatch(arn))


STREAM_ARN, ROLE_ARN = "arn:aws:kinesis:eu-west-1:444455556666:stream/orders", "arn:aws:iam::444455556666:role/orders-reader"
OF_STREAM: list[Json] = [
    {"name": "orders", "region": "eu-west-1"},
    {"name": "orders"},
    {"region": "eu-west-1"},
    {"arn": STREAM_ARN},
    {"arn": STREAM_ARN, "name": "orders"},
    {"arn": STREAM_ARN + "/"},
    {"arn": STREAM_ARN + "\n"},
    {"arn": "orders"},
    {"arn": "arn:aws-us-gov:kinesis:us-gov-west-1:444455556666:stream/orders"},
    *(
        {"arn": STREAM_ARN, "roleArn": arn}
        for arn in (ROLE_ARN, ROLE_ARN.replace("role/", "role/a/b/"), "r", ROLE_ARN + "/", "arn:aws:iam::1:role/r")
    ),
    *({"arn": STREAM_ARN, "roleArn": ROLE_ARN, "externalId": given} for given in ("ab", "a", "a b", "a:/b", "x" * 1224, "x" * 1225, "")),
    *({"arn": STREAM_ARN, "roleArn": ROLE_ARN, "sessionName": given} for given in ("ab", "a", "a/b", "a@b", "x" * 64, "x" * 65, "")),
    {"arn": STREAM_ARN, "externalId": "ab"},
    {"arn": STREAM_ARN, "sessionName": "ab"},
]


def accepted(read: Any, given: Any) -> bool:
    try:
        read(given)
    except (InvalidSpec, Refused):
        return False
    return True


@pytest.mark.parametrize("stream", OF_STREAM, ids=json.dumps)
def test_what_the_crd_takes_for_a_stream_the_driver_takes(stream: Json) -> None:
    """And nothing else: else a driver would end for what `kubectl apply` could have said."""
    document = {"stream": stream, "checkpoints": {"table": "table"}, "pipeline": {"entrypoint": "orders:process"}}
    assert accepted(spec_of, {"stream": stream, "pipeline": {"entrypoint": "a:b"}}) is accepted(configs.parse, json.dumps(document))


def test_letters_have_the_same_places_at_both_ends() -> None:
    assert tuple(DeadLetterSpec.model_fields) == tuple(each.name for each in dataclasses.fields(configs.DeadLetterConfig)) == LETTER_PLACES


def test_a_migration_is_asked_for_a_format_that_the_migrator_has() -> None:
    (given,) = (typing.get_args(f.annotation) for name, f in MigrateFromSpec.model_fields.items() if name == "format")
    assert set(jobs.FORMATS) == set(given)
    assert set(jobs.FORMATS.values()) == {AUTO, *(each.name for each in FORMATS)}
    option: Any = next(p for p in tables.commands["migrate"].params if p.name == "format_")
    assert set(jobs.FORMATS.values()) == set(option.type.choices)


@pytest.mark.parametrize("format_", sorted(jobs.FORMATS))
def test_the_migrator_takes_the_arguments_of_its_job(format_: str) -> None:
    old = {
        "table": "old",
        "format": format_,
        "quietSeconds": 60,
        "ignoreAttributes": ["x"],
        "ignoreRows": ["y"],
        "places": ["shardId-000000000001=END"],
    }
    raw = {**SPEC, "migrateFrom": old}
    migration = MigrationStatus(hash="h", spec_hash="s", job="orders-migrate-h-1", tries=1)
    job = jobs.migration_job(RESOURCE, DesiredSpec(spec_of(raw), raw), migration, Settings(image="i"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][:4] == ["python", "-m", "sluice_checkpoints", "migrate"]
    assert tables.commands["migrate"].make_context("migrate", list(container["args"][4:])).params["format_"] == jobs.FORMATS[format_]
    assert container["name"] == parse.CONTAINERS["migration"]


ARN = "arn:aws:kinesis:eu-west-1:444455556666:stream/orders"
THEIRS = {"arn": ARN, "roleArn": "arn:aws:iam::444455556666:role/orders-reader", "externalId": "shop", "sessionName": "orders"}


def test_operator_and_driver_have_one_form_of_a_stream_and_of_a_role() -> None:
    of_driver = re.sub(r"\(\?P<\w+>([^)]*)\)", r"\1", address.STREAM_ARN.pattern)
    assert of_driver == names.STREAM_ARN
    assert all(configs.REGION.fullmatch(region) for region in ("eu-west-1", "a" * 32))
    assert not any(address.STREAM_ARN.fullmatch(ARN.replace("eu-west-1", region)) for region in ("-", "-a", "a-", "a" * 33, ""))
    assert f"^{role.ROLE_ARN.pattern}$" == stream_fields.ROLE_ARN
    schema = stream_fields.StreamSpec.model_json_schema()["properties"]
    for field, form in (("externalId", role.EXTERNAL_ID), ("sessionName", role.SESSION)):
        found = schema[field]["anyOf"][0]
        assert form.pattern == f"{found['pattern'][1:-2]}{{{found['minLength']},{found['maxLength']}}}"


@pytest.mark.parametrize("stream", [SPEC["stream"], THEIRS], ids=["its own account's", "another account's"])
@pytest.mark.parametrize("to", [{"latest": True}, {"trimHorizon": True}, {"batch": 1041}, {"timestamp": "2026-11-26T14:00:00.123+01:00"}])
def test_the_reset_command_takes_the_arguments_of_its_job(to: dict[str, Any], stream: dict[str, Any]) -> None:
    move = {
        "id": "one",
        "to": to,
        "shards": ["shardId-000000000001"],
        "giveUpBatch": 42,
        "acceptExpired": not to.keys().isdisjoint({"timestamp", "batch"}),
    }
    raw = {**SPEC, "stream": stream, "position": move}
    tried = PositionStatus(id="one", hash="h", spec_hash="s", job="orders-reset-h-1", tries=1)
    wanted = DesiredSpec(spec_of(raw), raw)
    job = reset_job(RESOURCE, wanted, tried, Settings(image="i"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][:4] == ["python", "-m", "sluice_checkpoints", "reset"]
    words = list(container["args"][4:])
    asked = {option: value for option, value in wanted.spec.stream.options.items() if value is not None}
    assert {option: words[words.index(option) + 1] for option in asked} == asked
    given = tables.commands["reset"].make_context("reset", words).params
    assert (given["id_"], given["shard"], given["give_up_batch"], given["yes"]) == ("one", ("shardId-000000000001",), 42, True)

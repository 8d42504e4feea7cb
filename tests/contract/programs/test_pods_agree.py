"""What the operator writes into a driver's pod or a migration's Job is what the program in it reads (docs/interfaces.md)."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from pathlib import Path
from typing import Any

import pytest

from sluice_checkpoints import termination_log
from sluice_checkpoints.cli.main import main as tables
from sluice_checkpoints.cli.options import CLUSTER
from sluice_checkpoints.formats.detect import AUTO, FORMATS
from sluice_checkpoints.protocol.owners import Owner
from sluice_consumer import config as configs
from sluice_consumer.process import configmap_code, pod, supervisor
from sluice_operator.apply import manifests, migration_job
from sluice_operator.names import CONFIG, LETTER_PLACES
from sluice_operator.observe import parse
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import DEAD_LETTER_STREAM, DeadLetterSpec, MigrateFromSpec
from sluice_operator.resource.fields import parse as spec_of
from sluice_operator.settings import Settings
from sluice_operator.state.objects import Resource
from sluice_operator.state.status import DriverStatus, MigrationStatus

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
    """The driver's pod, as the operator makes it."""
    raw = {**SPEC, **change}
    return manifests.driver_pod(RESOURCE, DesiredSpec(spec_of(raw), raw), DRIVER, Settings(image="i"), clusters)


def environment(pod_made: Json) -> dict[str, str]:
    """What the kubelet gives the driver's container."""
    fields = {"metadata.name": "orders-driver-3", "metadata.namespace": "team-a", "metadata.uid": "u", "status.podIP": "10.0.0.7"}
    (container,) = pod_made["spec"]["containers"]
    return {e["name"]: e["value"] if "value" in e else fields[e["valueFrom"]["fieldRef"]["fieldPath"]] for e in container["env"]}


def test_a_drivers_annotations_have_one_name() -> None:
    """Wanted executors one way, the report the other."""
    assert (pod.TARGET, pod.REPORT) == (parse.TARGET, parse.REPORT)


def test_a_driver_follows_the_target_that_the_operator_wrote() -> None:
    """The replicas of the spec."""
    notes = made()["metadata"]["annotations"]

    class Own:
        """The annotations of its pod."""

        def read(self) -> dict[str, str]:
            """See `pod.Annotations`."""
            return dict(notes)

        def write(self, name: str, value: str) -> None:
            """See `pod.Annotations`."""
            raise AssertionError((name, value))

    assert pod.wanted_executors(Own()) == 2


def test_a_driver_finds_its_pod_its_table_and_its_code_in_the_environment_of_its_pod() -> None:
    """Under the operator's names."""
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


def test_a_driver_of_an_older_operator_finds_the_same_owner() -> None:
    """After `helm rollback` of the operator, an image of this version goes on with the table that it owns."""
    given = {name: value for name, value in environment(made(("uid-1",))).items() if name not in {pod.OWNER, pod.CLUSTER}}
    name = configs.parse(made()["metadata"]["annotations"][CONFIG]).name
    assert pod.owner(name, given) == Owner("team-a/orders")


def test_what_the_chart_takes_for_a_name_of_a_cluster_the_command_takes() -> None:
    """And it is one word of a variable."""
    pattern = json.loads((ROOT / "charts/sluice/values.schema.json").read_text())["properties"]["clusterName"]["pattern"]
    for name in ("prod", "arn:aws:eks:eu-west-1:111122223333:cluster/prod", "6f1c1a2e-0f63-4a7e-8d53-0a8a4f5a2c11", "a b", "-a", "a\n", "prod "):
        assert bool(re.search(pattern, name, re.ASCII)) == bool(CLUSTER.fullmatch(name)) or name.endswith("\n")
        assert not CLUSTER.fullmatch(name) or name.split() == [name]


def test_a_driver_reads_the_configuration_that_the_operator_wrote() -> None:
    """From the file that its arguments name."""
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
    """And nothing else."""
    assert bool(re.search(DEAD_LETTER_STREAM, arn)) is bool(configs.STREAM.fullmatch(arn))


def test_letters_have_the_same_places_at_both_ends() -> None:
    """The resource's fields, the driver's settings, and what rules and screens name."""
    assert tuple(DeadLetterSpec.model_fields) == tuple(each.name for each in dataclasses.fields(configs.DeadLetterConfig)) == LETTER_PLACES


def test_a_migration_is_asked_for_a_format_that_the_migrator_has() -> None:
    """Each of the spec's."""
    (given,) = (typing.get_args(f.annotation) for name, f in MigrateFromSpec.model_fields.items() if name == "format")
    assert set(migration_job.FORMATS) == set(given)
    assert set(migration_job.FORMATS.values()) == {AUTO, *(each.name for each in FORMATS)}
    option: Any = next(p for p in tables.commands["migrate"].params if p.name == "format_")
    assert set(migration_job.FORMATS.values()) == set(option.type.choices)


@pytest.mark.parametrize("format_", sorted(migration_job.FORMATS))
def test_the_migrator_takes_the_arguments_of_its_job(format_: str) -> None:
    """Whatever is set."""
    old = {"table": "old", "format": format_, "quietSeconds": 60, "ignoreAttributes": ["x"], "places": ["shardId-000000000001=END"]}
    raw = {**SPEC, "migrateFrom": old}
    migration = MigrationStatus(hash="h", spec_hash="s", job="orders-migrate-h-1", tries=1)
    job = migration_job.migration_job(RESOURCE, DesiredSpec(spec_of(raw), raw), migration, Settings(image="i"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][:4] == ["python", "-m", "sluice_checkpoints", "migrate"]
    assert tables.commands["migrate"].make_context("migrate", list(container["args"][4:])).params["format_"] == migration_job.FORMATS[format_]
    assert container["name"] == parse.CONTAINERS["migration"]

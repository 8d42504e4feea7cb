"""What a manifest may say, and what its author is told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_cluster import SPEC

from sluice_lab.generate import crd
from sluice_operator.resource import wording
from sluice_operator.resource.changes import CHANGES, DesiredSpec, migration_hash
from sluice_operator.resource.fields import ExecutorSpec, InvalidSpec, Spec, parse
from sluice_operator.resource.quantities import quantity
from sluice_operator.resource.sizes import executor_settings

Json = dict[str, Any]

QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/letters.fifo"
ELSEWHERE = "spec.stream: roleArn is of another partition than region; name a role of the partition of the stream"
NOT_AWS = ["us-gov-west-1", "cn-north-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "us-isof-south-1", "eusc-de-east-1"]
ARN, ROLE = "arn:aws:kinesis:eu-west-1:444455556666:stream/orders", "arn:aws:iam::444455556666:role/readers/orders"

NOON = "2026-11-26T12:00:00Z"
ONE: Json = {"replicas": 1}
MEMBER: Json = {**ONE, "pool": "small"}
MOVE: Json = {"id": "one", "to": {"latest": True}}


def read_as(role: str, region: str) -> Json:
    return {"name": "orders", "region": region, "roleArn": role}


ACCEPTED: list[Json] = [
    {},
    {"start": {"position": "AT_TIMESTAMP", "timestamp": "2026-01-31T00:00:00Z"}},
    {"until": {"tip": True}},
    {"start": {"position": "AT_TIMESTAMP", "timestamp": "2026-01-31T00:00:00Z"}, "until": {"timestamp": "2026-01-31T01:00:01+01:00"}},
    {"replicas": 0, "suspend": True},
    {"onError": {"deadLetter": {"path": "s3a://lake/letters"}}},
    {"onError": {"deadLetter": {"sqs": QUEUE}}},
    {"onError": {"deadLetter": {"kinesis": "letters", "path": None}}},
    {"onError": {"deadLetter": {"kinesis": "arn:aws:kinesis:eu-west-1:123456789012:stream/letters"}}},
    {"onError": {"attempts": 1, "isolate": False}},
    {"stream": {"name": "orders", "region": "eu-west-1", "probeShare": 1}},
    {"stream": {"name": "orders", "region": "eu-west-1", "probeShare": 0.6}},
    {"stream": {"arn": ARN}},
    {"stream": {"arn": ARN, "roleArn": ROLE}},
    {"stream": {"arn": ARN, "roleArn": ROLE, "externalId": "shop:orders", "sessionName": "them"}},
    {"stream": {"name": "orders", "region": "eu-west-1", "roleArn": ROLE}},
    {"stream": read_as(ROLE.replace("aws", "aws-us-gov"), "us-gov-west-1")},
    {"stream": read_as(ROLE.replace("aws", "aws-iso"), "us-iso-east-1")},
    {"stream": {"arn": ARN, "roleArn": ROLE}, "onError": {"deadLetter": {"kinesis": "orders"}}},
    {"stream": {"name": "orders", "region": "r", "roleArn": ROLE}, "onError": {"deadLetter": {"kinesis": "orders"}}},
    {"pipeline": {"entrypoint": "a:b", "imagePullPolicy": "Always", "imagePullSecrets": ["registry"]}, "executor": {"serviceAccountName": "idle"}},
    {"pipeline": {"entrypoint": "a:b", "env": [{"name": "SLUICE_LOG_LEVEL", "value": "debug"}], "envFrom": [{"secretRef": {"name": "lake"}}]}},
    {"checkpoints": {"table": None}, "migrateFrom": None},
    {"executor": {"cores": 2, "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": 3_000_000_000}}}},
    {"sparkConf": {"spark.sql.shuffle.partitions": "8", "spark.speculation": "false"}},
    {"pipeline": {"entrypoint": "a.b:c", "args": {"nested": {"list": [1, None]}}}},
    {"driver": {"podTemplate": {"spec": {"containers": [{"name": "driver", "env": [{"name": "A", "value": "b"}]}]}}}},
    {"leaseDurationSeconds": 19},
    {**MEMBER, "leaseDurationSeconds": 20},
]
REFUSED: list[tuple[Json, str]] = [
    ({"pipelin": {}}, "spec.pipelin: unknown field; did you mean pipeline?"),
    ({"batch": {"interval": 5}}, "spec.batch.interval: unknown field"),
    ({"batch": {"maxSeconds": 29}}, "maxSeconds: must be 0 (no limit), or 30 or more"),
    ({"pipeline": {"entrypoint": "a:b", "img": "x"}}, "spec.pipeline.img: unknown field"),
    ({"stream": {"name": "orders"}}, "spec.stream: region: required; name and region are required, or arn instead"),
    ({"stream": {}}, "spec.stream: name: required; name and region are required, or arn instead"),
    ({"stream": {"arn": ARN, "region": "eu-west-1"}}, "spec.stream: arn holds name and region; give either arn, or name and region"),
    ({"stream": {"arn": ARN, "externalId": "shop"}}, "spec.stream: externalId belongs to roleArn, and only to it"),
    ({"stream": {"arn": ARN, "sessionName": "them"}}, "spec.stream: sessionName belongs to roleArn, and only to it"),
    ({"stream": {"arn": "orders"}}, "spec.stream.arn: must be the ARN of a stream, such as arn:aws:kinesis:"),
    ({"stream": {"arn": ARN + "\n"}}, "spec.stream.arn: must be the ARN of a stream"),
    ({"stream": {"arn": ARN, "roleArn": ROLE.replace("aws", "aws-cn")}}, "spec.stream: roleArn is of another partition than arn"),
    *(({"stream": read_as(ROLE, region)}, ELSEWHERE) for region in NOT_AWS),
    ({"stream": read_as(ROLE.replace("aws", "aws-cn"), "eu-west-1")}, ELSEWHERE),
    ({"stream": read_as(ROLE.replace("aws", "aws-iso-b"), "us-iso-east-1")}, ELSEWHERE),
    ({"stream": {"arn": ARN.replace("eu-west-1", "cn-north-1"), "roleArn": ROLE}}, "spec.stream: roleArn is of another partition than region"),
    ({"stream": {"arn": ARN, "roleArn": "reader"}}, "spec.stream.roleArn: must be the ARN of a role, such as arn:aws:iam::"),
    ({"stream": {"arn": ARN, "roleArn": ROLE, "externalId": "a b"}}, "spec.stream.externalId: must be an external id"),
    ({"stream": {"arn": ARN, "roleArn": ROLE, "externalId": "a"}}, "spec.stream.externalId: "),
    ({"stream": {"arn": ARN, "roleArn": ROLE, "sessionName": "a/b"}}, "spec.stream.sessionName: must be the name of a session"),
    ({"stream": {"arn": ARN}, "onError": {"deadLetter": {"kinesis": ARN}}}, "spec: onError.deadLetter.kinesis is the same as stream.arn"),
    ({"stream": {"name": "orders", "region": "r", "probeShare": 0}}, "spec.stream.probeShare: must be greater than or equal to 0.05"),
    ({"stream": {"name": "orders", "region": "r", "probeShare": 2}}, "spec.stream.probeShare: must be less than or equal to 1"),
    ({"stream": {"name": "orders", "region": "r", "probeShare": "1"}}, "spec.stream.probeShare: must be a valid number"),
    ({"drainTimeoutSeconds": "2m"}, "spec.drainTimeoutSeconds: must be a valid integer"),
    ({"drainTimeoutSeconds": 0}, "spec.drainTimeoutSeconds: must be greater than or equal to 1"),
    ({"onError": {"attempts": 3}}, "spec.onError: deadLetter: required; it stores the records that are left out"),
    ({"onError": {"deadLetter": {"path": "lake/letters"}}}, "spec.onError.deadLetter.path: must begin with s3a://, hdfs:// or file://"),
    ({"onError": {"deadLetter": {}}}, "spec.onError.deadLetter: must have exactly one of path, sqs and kinesis"),
    ({"onError": {"deadLetter": {"path": "s3a://lake/l", "sqs": QUEUE}}}, "spec.onError.deadLetter: must have exactly one of path, sqs and kinesis"),
    ({"onError": {"deadLetter": {"sqs": "letters"}}}, "spec.onError.deadLetter.sqs: must be the URL of a queue"),
    (
        {"onError": {"deadLetter": {"kinesis": "arn:aws:sqs:eu-west-1:123456789012:q"}}},
        "spec.onError.deadLetter.kinesis: must be the name or the ARN of a stream",
    ),
    ({"onError": {"deadLetter": {"kinesis": SPEC["stream"]["name"]}}}, "spec: onError.deadLetter.kinesis is the same as stream.name"),
    ({"onError": {"isolate": False, "attempts": 0}}, "spec.onError.attempts: must be greater than or equal to 1"),
    ({"onError": {"isolate": False, "deadLetters": {}}}, "spec.onError.deadLetters: unknown field; did you mean deadLetter?"),
    ({"restart": {"backoffSeconds": 60, "maxBackoffSeconds": 30}}, "spec.restart: maxBackoffSeconds is shorter"),
    ({"start": {"position": "AT_TIMESTAMP"}}, "spec.start: timestamp belongs to position AT_TIMESTAMP"),
    ({"start": {"timestamp": "2026-01-31T00:00:00Z"}}, "spec.start: timestamp belongs"),
    ({"start": {"position": "AT_TIMESTAMP", "timestamp": "2026-01-31T00:00:00"}}, "spec.start.timestamp: needs a time zone"),
    ({"until": {}}, "spec.until: must have exactly one of tip and timestamp"),
    ({"until": {"tip": True, "timestamp": "2026-01-31T00:00:00Z"}}, "spec.until: must have exactly one of tip and timestamp"),
    ({"until": {"tip": False}}, "spec.until.tip: must be true; to have no end, remove until"),
    ({"until": {"timestamp": "2026-01-31T00:00:00"}}, "spec.until.timestamp: needs a time zone"),
    (
        {"start": {"position": "AT_TIMESTAMP", "timestamp": "2026-01-31T00:00:00Z"}, "until": {"timestamp": "2026-01-31T01:00:00+01:00"}},
        "until.timestamp is not after start.timestamp",
    ),
    ({"pipeline": {"entrypoint": "process"}}, "spec.pipeline.entrypoint: must be module:function, such as orders.pipeline:process"),
    ({"sparkConf": {"spark.master": "local"}}, "spec.sparkConf: spark.master is set by the operator"),
    ({"sparkConf": {"spark.kubernetes.authenticate.driver.oauthToken": "x"}}, "would change the account of the pods"),
    ({"sparkConf": {"spark.kubernetes.container.image.pullPolicy": "Always"}}, "is set by a field: pipeline.imagePullPolicy"),
    ({"sparkConf": {"spark.kubernetes.container.image.pullSecrets": "a"}}, "is set by a field: pipeline.imagePullSecrets"),
    ({"sparkConf": {"spark.kubernetes.container.image": "a"}}, "is set by a field: pipeline.image"),
    ({"sparkConf": {"spark.kubernetes.authenticate.executor.serviceAccountName": "a"}}, "use serviceAccountName and executor.serviceAccountName"),
    ({"pipeline": {"entrypoint": "a:b", "imagePullPolicy": "Sometimes"}}, "spec.pipeline.imagePullPolicy: must be 'Always'"),
    ({"pipeline": {"entrypoint": "a:b", "imagePullSecrets": [{"name": "a"}]}}, "spec.pipeline.imagePullSecrets.0: must be a valid string"),
    ({"pipeline": {"entrypoint": "a:b", "env": [{"name": "SLUICE_POD_IP"}]}}, "spec.pipeline.env: SLUICE_POD_IP: names starting with SLUICE_"),
    ({"pipeline": {"entrypoint": "a:b", "env": [{"name": "A", "vlaue": "b"}]}}, "spec.pipeline.env.0.vlaue: unknown field; did you mean value?"),
    ({"pipeline": {"entrypoint": "a:b", "volumeMounts": [{"name": "a"}]}}, "spec.pipeline.volumeMounts.0.mountPath: required"),
    ({"executor": {"serviceAccountName": "A"}}, "spec.executor.serviceAccountName: must be a name of a-z"),
    ({"sparkConf": {"spark.speculation": "true"}}, "spec.sparkConf: spark.speculation runs a task twice"),
    ({"sparkConf": {"spark.executor.decommission.signal": "KILL"}}, "the protocol depends on it"),
    ({"sparkConf": {"hadoop.x": "1"}}, "names start with 'spark.'"),
    ({"executor": {"resources": {"requests": {"memory": "lots"}}}}, "spec.executor.resources.requests.memory"),
    ({"driver": {"resources": {"limits": {"memory": "inf"}}}}, "spec.driver.resources.limits.memory: 'inf' is not a valid quantity"),
    ({"executor": {"resources": {"requests": {"memory": "256Mi"}}}}, "spec.executor.resources"),
    ({"executor": {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "833Mi"}}}}, "at least 834Mi"),
    ({"driver": {"podTemplate": {"spec": {"restartPolicy": "Always"}}}}, "spec.driver.podTemplate: spec.restartPolicy: is set by"),
    ({"driver": {"podTemplate": {"status": {}}}}, "only metadata and spec"),
    ({"driver": {"podTemplate": {"spec": {"containers": [{"name": "proxy"}]}}}}, "only 'driver' is allowed here"),
    ({"driver": {"podTemplate": {"spec": {"containers": "x"}}}}, "must be a list"),
    ({"driver": {"podTemplate": {"spec": {"containers": [{"name": "driver", "image": "x"}]}}}}, "containers.driver.image"),
    ({"executor": {"podTemplate": {"metadata": {"labels": {"sluice.dev/role": "x"}}}}}, "belongs to the operator"),
    ({"executor": {"inDriver": True}, "replicas": 2}, "spec: replicas: must be 0 or 1 with executor.inDriver"),
    (
        {"executor": {"inDriver": True, "resources": {"limits": {"memory": "2Gi"}}, "serviceAccountName": "a"}, "replicas": 1},
        "spec.executor: inDriver: there are no executor pods, so resources and serviceAccountName would have no effect; use spec.driver",
    ),
    ({"checkpoints": {"table": "same"}, "migrateFrom": {"table": "same"}}, "a source is only read, so name another table"),
    ({"pipeline": {"entrypoint": "a:b", "args": {"big": "x" * 70_000}}}, "spec: larger than 65536 bytes or 8192 values"),
    ({"pipeline": {"entrypoint": "a:b", "args": {"many": [[]] * 9_000}}}, "spec: larger than 65536 bytes or 8192 values"),
    ({**MEMBER, "leaseDurationSeconds": 19}, "spec.leaseDurationSeconds: must be 20 or more with pool; raise it, or remove spec.pool"),
    ({"rollout": {"standby": "Always"}}, "spec.rollout: standby: must be Rollout, or omitted, unless rollout.strategy is Standby"),
    *(({"replicas": number, "autoscale": {"max": 4}}, "spec: replicas: omit it, or set it to 1") for number in (0, 2)),
    ({**ONE, "autoscale": {"min": 5, "max": 4}}, "spec.autoscale: min is larger than max"),
    ({**ONE, "autoscale": {"max": 4}, "executor": {"inDriver": True}}, "spec: autoscale: must be omitted with executor.inDriver"),
    ({**ONE, "autoscale": {}}, "spec.autoscale.max: required"),
    ({**ONE, "autoscale": {"min": 0, "max": 4}}, "spec.autoscale.min: must be greater than or equal to 1"),
    ({"position": {**MOVE, "to": {}}}, "spec.position.to: must have exactly one of timestamp, batch, trimHorizon and latest"),
    ({"position": {**MOVE, "acceptExpired": True}}, "spec.position: acceptExpired belongs to to.timestamp and to.batch"),
    ({"position": {**MOVE, "to": {"timestamp": "2026-11-26T14:00:00"}}}, "spec.position.to.timestamp: must be a time with a zone"),
    ({"position": {**MOVE, "to": {"batch": 0}}}, "spec.position.to.batch: must be greater than or equal to 1"),
    ({"position": {**MOVE, "id": "a b"}}, "spec.position.id: must be 1 to 63 of"),
    ({"position": {**MOVE, "to": {"timestamp": NOON}}, "until": {"timestamp": NOON}}, "so there is nothing to read"),
    ({"position": {**MOVE, "shard": []}}, "spec.position.shard: unknown field; did you mean shards?"),
    (
        {"checkpoints": {"tags": {"aws:team": "x"}}},
        "spec.checkpoints.tags: 'aws:team': must have 1 to 128 characters without =",
    ),
    ({"checkpoints": {"tags": {"a=b": "x"}}}, "spec.checkpoints.tags: 'a=b': must have"),  # DynamoDB takes it; a migration reads it as another name
    ({"checkpoints": {"tags": {"team": "x" * 257}}}, "spec.checkpoints.tags: 'team': must have"),
    ({"checkpoints": {"tags": {f"t{number}": "" for number in range(51)}}}, "spec.checkpoints.tags: must have at most 50 tags"),
    ({"checkpoints": {"kmsKeyArn": "alias/orders"}}, "spec.checkpoints.kmsKeyArn: must be the ARN of a KMS key"),
    *(
        ({"migrateFrom": {"table": "old", "places": [place]}}, "spec.migrateFrom.places.0: must be SHARD=")
        for place in ("shardId-3=END", "shardId-000000000003=LATEST", "shardId-000000000003=01", "END")
    ),
]


@pytest.mark.parametrize("change", ACCEPTED)
def test_a_good_manifest_is_accepted(change: Json) -> None:
    assert parse({**SPEC, **change})


@pytest.mark.parametrize(("change", "told"), REFUSED)
def test_a_bad_manifest_is_refused_by_the_name_of_its_field(change: Json, told: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse({**SPEC, **change})
    assert told in str(caught.value)


def patterned(schema: Json, path: str = "") -> Iterator[str]:
    """Fields whose text has to match a pattern; quantities have words of their own."""
    if "pattern" in schema and "x-kubernetes-int-or-string" not in schema:
        yield path
    for name, each in schema.get("properties", {}).items():
        yield from patterned(each, f"{path}.{name}".removeprefix("."))
    yield from patterned(schema["items"], path) if "items" in schema else ()


def test_no_message_is_a_regular_expression() -> None:
    schema = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert set(patterned(schema)) == set(wording.FORMS)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"stream": {"name": "arn:aws:kinesis:eu-west-1:1:stream/a", "region": "r"}},
            "spec.stream.name: must be the stream's name; its ARN goes into stream.arn",
        ),
        ({"stream": {"name": "a", "region": "EU"}}, "spec.stream.region: must be an AWS region, such as eu-west-1"),
        ({"migrateFrom": {"table": "old", "places": ["7"]}}, "spec.migrateFrom.places.0: must be SHARD=trim-horizon, SHARD=END or SHARD=NUMBER"),
        ({"pipeline": {"entrypoint": "a:b", "image": ""}}, "spec.pipeline.image: must have at least 1 character"),
    ],
)
def test_a_message_is_all_that_is_said_of_its_field(change: Json, told: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse({**SPEC, **change})
    assert str(caught.value) == told


def test_several_faults_are_all_named() -> None:
    """Nobody should have to apply five times to learn of five faults."""
    with pytest.raises(InvalidSpec) as caught:
        parse({**SPEC, "x": 1, "replicas": -1})
    assert "spec.x" in str(caught.value)
    assert "spec.replicas" in str(caught.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.dictionaries(
            st.sampled_from(["stream", "driver", "podTemplate", "spec", "containers", "metadata", "labels", "sparkConf", "resources", "requests"]),
            inner,
        ),
    )
)
def test_whatever_is_written_the_answer_is_a_spec_or_a_message(anything: Any) -> None:
    try:
        parse({**SPEC, "driver": anything, "sparkConf": anything})
    except InvalidSpec as error:
        assert str(error).startswith("spec")  # noqa: PT017


def test_every_field_has_a_class_of_change() -> None:
    assert set(CHANGES) == {field.alias for field in Spec.model_fields.values()}


def hashed(**change: Any) -> str:
    raw = {**SPEC, **change}
    return DesiredSpec(parse(raw), raw).driver_hash


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 7},
        {"suspend": True},
        {"restart": {"backoffSeconds": 9}},
        {"migrateFrom": {"table": "abc"}},
        {"stream": {**SPEC["stream"], "kinesisEndpoint": None}},
        {"batch": {"intervalSeconds": 5, "maxRecordsPerShard": 10_000}, "executor": {"cores": 1}, "leaseDurationSeconds": 20},
    ],
)
def test_what_the_driver_does_not_read_restarts_nothing(change: Json) -> None:
    assert hashed(**change) == hashed()


def test_what_the_driver_reads_restarts_it() -> None:
    pulled = {**SPEC["pipeline"], "imagePullPolicy": "Always"}
    others = (hashed(pipeline=pulled), hashed(executor={"serviceAccountName": "idle"}))
    assert len({hashed(), hashed(batch={"intervalSeconds": 6}), hashed(sparkConf={"spark.a": "1"}), *others}) == 5
    assert hashed(batch={"intervalSeconds": 6, "shardsPerTask": 8}) == hashed(batch={"intervalSeconds": 6}) != hashed(batch={"shardsPerTask": 6})


def test_the_migration_is_named_by_source_format_and_target() -> None:
    def name(**change: Any) -> str | None:
        raw = {**SPEC, "migrateFrom": {"table": "old"}, **change}
        return migration_hash("default", "orders", DesiredSpec(parse(raw), raw))

    written_out = name(migrateFrom={"table": "old", "format": "Auto", "unstarted": "TrimHorizon"})
    same = {name(), written_out, name(pipeline={"entrypoint": "a:b", "image": "x"}), name(migrateFrom={"table": "old", "quietSeconds": 3})}
    others = {name(migrateFrom={"table": "older"}), name(migrateFrom={"table": "old", "format": "KCL"}), name(checkpoints={"table": "t-1"})}
    assert len(same) == 1
    assert len(same | others) == 4
    assert name(migrateFrom=None) is None


QUANTITIES = [
    *[("2Gi", 2 * 2**30), ("1500M", 1_500_000_000), (7, 7), ("500m", 0), ("1e3", 1000), ("1E3", 1000), ("+.5e1", 5)],
    *[("1Ei", 2**60), ("0.Ei", 0), ("1E", 10**18), ("2Pi", 2**51), ("1.", 1), ("1e-2", 0)],
]


@pytest.mark.parametrize(("text", "value"), QUANTITIES)
def test_quantities_are_read_as_kubernetes_writes_them(text: str | int, value: int) -> None:
    assert quantity(text) == value


def test_heap_and_overhead_fill_the_executor_pod() -> None:
    pod = ExecutorSpec.model_validate({"cores": 2, "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}}})
    settings = executor_settings(pod)
    assert settings["spark.executor.memory"] == "1229m"
    assert settings["spark.executor.memoryOverhead"] == "819m"
    assert settings["spark.kubernetes.executor.request.cores"] == "1"

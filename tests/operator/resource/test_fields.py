"""What a manifest may say, and what its author is told otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_cluster import SPEC

from sluice_operator.resource.changes import CHANGES, ChangeCost, DesiredSpec, digest, migration_hash
from sluice_operator.resource.fields import ExecutorSpec, InvalidSpec, Spec, parse
from sluice_operator.resource.quantities import quantity
from sluice_operator.resource.sizes import executor_settings

Json = dict[str, Any]

QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/letters.fifo"
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
    {"pipeline": {"entrypoint": "a:b", "imagePullPolicy": "Always", "imagePullSecrets": ["registry"]}, "executor": {"serviceAccountName": "idle"}},
    {"pipeline": {"entrypoint": "a:b", "env": [{"name": "SLUICE_LOG_LEVEL", "value": "debug"}], "envFrom": [{"secretRef": {"name": "lake"}}]}},
    {"checkpoints": {"table": None}, "migrateFrom": None},
    {"executor": {"cores": 2, "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": 3_000_000_000}}}},
    {"sparkConf": {"spark.sql.shuffle.partitions": "8", "spark.speculation": "false"}},
    {"pipeline": {"entrypoint": "a.b:c", "args": {"nested": {"list": [1, None]}}}},
    {"driver": {"podTemplate": {"spec": {"containers": [{"name": "driver", "env": [{"name": "A", "value": "b"}]}]}}}},
]
REFUSED: list[tuple[Json, str]] = [
    ({"pipelin": {}}, "spec.pipelin: unknown field; did you mean pipeline?"),
    ({"batch": {"interval": 5}}, "spec.batch.interval: unknown field"),
    ({"batch": {"maxSeconds": 29}}, "maxSeconds: must be 0 (no limit), or 30 or more"),
    ({"batch": {"maxSeconds": 0, "maxSecondsMoving": 60}}, "maxSecondsMoving: is for a batch that maxSeconds does not end"),
    ({"pipeline": {"entrypoint": "a:b", "img": "x"}}, "spec.pipeline.img: unknown field"),
    ({"stream": {"name": "orders"}}, "spec.stream.region: required"),
    ({"stream": {"name": "orders", "region": "r", "probeShare": 0}}, "spec.stream.probeShare: input should be greater than or equal to 0.05"),
    ({"stream": {"name": "orders", "region": "r", "probeShare": 2}}, "spec.stream.probeShare: input should be less than or equal to 1"),
    ({"stream": {"name": "orders", "region": "r", "probeShare": "1"}}, "spec.stream.probeShare: input should be a valid number"),
    ({"drainTimeoutSeconds": "2m"}, "spec.drainTimeoutSeconds: input should be a valid integer"),
    ({"drainTimeoutSeconds": 0}, "spec.drainTimeoutSeconds: input should be greater than or equal to 1"),
    ({"onError": {"attempts": 3}}, "spec.onError: deadLetter: required; it stores the records that are left out"),
    ({"onError": {"deadLetter": {"path": "lake/letters"}}}, "spec.onError.deadLetter.path: string should match"),
    ({"onError": {"deadLetter": {}}}, "spec.onError.deadLetter: must have exactly one of path, sqs and kinesis"),
    ({"onError": {"deadLetter": {"path": "s3a://lake/l", "sqs": QUEUE}}}, "spec.onError.deadLetter: must have exactly one of path, sqs and kinesis"),
    ({"onError": {"deadLetter": {"sqs": "letters"}}}, "spec.onError.deadLetter.sqs: string should match"),
    ({"onError": {"deadLetter": {"kinesis": "arn:aws:sqs:eu-west-1:123456789012:q"}}}, "spec.onError.deadLetter.kinesis: string should match"),
    ({"onError": {"deadLetter": {"kinesis": SPEC["stream"]["name"]}}}, "spec: onError.deadLetter.kinesis is the same as stream.name"),
    ({"onError": {"isolate": False, "attempts": 0}}, "spec.onError.attempts: input should be greater than or equal to 1"),
    ({"onError": {"isolate": False, "deadLetters": {}}}, "spec.onError.deadLetters: unknown field; did you mean deadLetter?"),
    ({"restart": {"backoffSeconds": 60, "maxBackoffSeconds": 30}}, "spec.restart: maxBackoffSeconds is shorter"),
    ({"start": {"position": "AT_TIMESTAMP"}}, "spec.start: timestamp belongs to position AT_TIMESTAMP"),
    ({"start": {"timestamp": "2026-01-31T00:00:00Z"}}, "spec.start: timestamp belongs"),
    ({"start": {"position": "AT_TIMESTAMP", "timestamp": "2026-01-31T00:00:00"}}, "spec.start.timestamp: needs a time zone"),
    ({"until": {}}, "spec.until: must have exactly one of tip and timestamp"),
    ({"until": {"tip": True, "timestamp": "2026-01-31T00:00:00Z"}}, "spec.until: must have exactly one of tip and timestamp"),
    ({"until": {"tip": False}}, "spec.until.tip: input should be True"),
    ({"until": {"timestamp": "2026-01-31T00:00:00"}}, "spec.until.timestamp: needs a time zone"),
    (
        {"start": {"position": "AT_TIMESTAMP", "timestamp": "2026-01-31T00:00:00Z"}, "until": {"timestamp": "2026-01-31T01:00:00+01:00"}},
        "until.timestamp is not after start.timestamp",
    ),
    ({"pipeline": {"entrypoint": "process"}}, "spec.pipeline.entrypoint: string should match"),
    ({"sparkConf": {"spark.master": "local"}}, "spec.sparkConf: spark.master is set by the operator"),
    ({"sparkConf": {"spark.kubernetes.authenticate.driver.oauthToken": "x"}}, "would change the account of the pods"),
    ({"sparkConf": {"spark.kubernetes.container.image.pullPolicy": "Always"}}, "is set by a field: pipeline.imagePullPolicy"),
    ({"sparkConf": {"spark.kubernetes.container.image.pullSecrets": "a"}}, "is set by a field: pipeline.imagePullSecrets"),
    ({"sparkConf": {"spark.kubernetes.container.image": "a"}}, "is set by a field: pipeline.image"),
    ({"sparkConf": {"spark.kubernetes.authenticate.executor.serviceAccountName": "a"}}, "use serviceAccountName and executor.serviceAccountName"),
    ({"pipeline": {"entrypoint": "a:b", "imagePullPolicy": "Sometimes"}}, "spec.pipeline.imagePullPolicy: input should be 'Always'"),
    ({"pipeline": {"entrypoint": "a:b", "imagePullSecrets": [{"name": "a"}]}}, "spec.pipeline.imagePullSecrets.0: input should be a valid string"),
    ({"pipeline": {"entrypoint": "a:b", "env": [{"name": "SLUICE_POD_IP"}]}}, "spec.pipeline.env: SLUICE_POD_IP: names starting with SLUICE_"),
    ({"pipeline": {"entrypoint": "a:b", "env": [{"name": "A", "vlaue": "b"}]}}, "spec.pipeline.env.0.vlaue: unknown field; did you mean value?"),
    ({"pipeline": {"entrypoint": "a:b", "volumeMounts": [{"name": "a"}]}}, "spec.pipeline.volumeMounts.0.mountPath: required"),
    ({"executor": {"serviceAccountName": "A"}}, "spec.executor.serviceAccountName: string should match"),
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
    ({"pipeline": {"entrypoint": "a:b", "args": {"big": "x" * 70_000}}}, "larger than 65536 bytes"),
]


@pytest.mark.parametrize("change", ACCEPTED)
def test_a_good_manifest_is_accepted(change: Json) -> None:
    """As written by users."""
    assert parse({**SPEC, **change})


@pytest.mark.parametrize(("change", "told"), REFUSED)
def test_a_bad_manifest_is_refused_by_the_name_of_its_field(change: Json, told: str) -> None:
    """One sentence per field."""
    with pytest.raises(InvalidSpec) as caught:
        parse({**SPEC, **change})
    assert told in str(caught.value)


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
    """No other error may come out of it."""
    try:
        parse({**SPEC, "driver": anything, "sparkConf": anything})
    except InvalidSpec as error:
        assert str(error).startswith("spec")  # noqa: PT017


def test_every_field_has_a_class_of_change() -> None:
    """A new field cannot be forgotten in the table."""
    assert set(CHANGES) == {field.alias for field in Spec.model_fields.values()}


def hashed(**change: Any) -> str:
    """Driver hash of SPEC with changes."""
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
    """Nor does a null where nothing was, or a default that the API server or the user writes out."""
    assert hashed(**change) == hashed()


EMPTY: tuple[Json, ...] = (
    {"sparkConf": {}},
    {"driver": {}},
    {"driver": {"resources": {}}},
    {"driver": {"resources": {"requests": {}, "limits": {}}, "podTemplate": {}}},
    {"executor": {"podTemplate": {}}},
    {"executor": {"cores": 1, "resources": {"limits": {}}}},
    {"batch": {}},
    {"pipeline": {**SPEC["pipeline"], "args": {}}},
    {"pipeline": {**SPEC["pipeline"], "env": [], "envFrom": [], "volumes": [], "volumeMounts": [], "imagePullSecrets": []}},
)


@pytest.mark.parametrize("change", EMPTY, ids=json.dumps)
def test_an_empty_map_or_list_restarts_nothing(change: Json) -> None:
    """A new version of the user's own chart writes one out: the driver would get the very same."""
    assert hashed(**change) == hashed()


@pytest.mark.parametrize(
    "change",
    [
        {"pipeline": {**SPEC["pipeline"], "args": {"columns": {}}}},
        {"pipeline": {**SPEC["pipeline"], "args": {"columns": []}}},
        {"executor": {"podTemplate": {"spec": {"volumes": [{"name": "a", "emptyDir": {}}]}}}},
        {"executor": {"podTemplate": {"spec": {"affinity": {"podAffinity": {"x": [{"labelSelector": {}}]}}}}}},
    ],
    ids=json.dumps,
)
def test_an_empty_map_that_may_mean_something_restarts(change: Json) -> None:
    """An argument of the pipeline, or what Kubernetes reads."""
    assert hashed(**change) != hashed()


@pytest.mark.parametrize("change", EMPTY, ids=json.dumps)
def test_a_driver_of_an_operator_that_told_empty_from_absent_is_not_restarted(change: Json) -> None:
    """Its hash is still one of this spec; that of another spec is not."""
    raw = {**SPEC, **change}
    restarting = {key: value for key, value in raw.items() if CHANGES[key] is ChangeCost.RESTART}
    cut = {key: value for key, value in restarting.items() if key != "batch"}  # it was dropped as a default
    if cut.get("executor", {}).get("cores") == 1:
        cut["executor"] = {key: value for key, value in cut["executor"].items() if key != "cores"}
    wanted = DesiredSpec(parse(raw), raw)
    assert wanted.is_hash(digest(cut, 12))
    assert wanted.is_hash(wanted.driver_hash)
    assert not wanted.is_hash(hashed(batch={"intervalSeconds": 6}))
    assert not wanted.is_hash(None)


def test_what_the_driver_reads_restarts_it() -> None:
    """Whatever differs from a default, and one more field beside it."""
    pulled = {**SPEC["pipeline"], "imagePullPolicy": "Always"}
    others = (hashed(pipeline=pulled), hashed(executor={"serviceAccountName": "idle"}))
    assert len({hashed(), hashed(batch={"intervalSeconds": 6}), hashed(sparkConf={"spark.a": "1"}), *others}) == 5
    assert hashed(batch={"intervalSeconds": 6, "shardsPerTask": 8}) == hashed(batch={"intervalSeconds": 6}) != hashed(batch={"shardsPerTask": 6})


def test_the_migration_is_named_by_source_format_and_target() -> None:
    """Not by image, nonce, or the default of a field."""

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
    """Whole units."""
    assert quantity(text) == value


def test_heap_and_overhead_fill_the_executor_pod() -> None:
    """Users say what the pod may take."""
    pod = ExecutorSpec.model_validate({"cores": 2, "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}}})
    settings = executor_settings(pod)
    assert settings["spark.executor.memory"] == "1229m"
    assert settings["spark.executor.memoryOverhead"] == "819m"
    assert settings["spark.kubernetes.executor.request.cores"] == "1"

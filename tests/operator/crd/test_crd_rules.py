"""The rules of the CRD, as a real API server judges by them. Each rule refuses something here, and lets through what it is not about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from admission_scene import Caller
from crd_server import CONSUMERS, document
from kstatus import IN_PROGRESS, kstatus
from simulated_cluster import SPEC

from sluice_operator.resource.fields import InvalidSpec, parse
from sluice_operator.resource.spark_conf import EXACT
from sluice_operator.state.serialization import dump_status, load_status
from sluice_operator.state.status import AutoscaleStatus, ScaleSample, ScaleTrial, Status

pytestmark = pytest.mark.built

Json = dict[str, Any]

MERGE = "application/merge-patch+json"
LONGEST = "a" * 45
FILES, QUEUE = {"path": "s3a://lake/letters"}, {"sqs": "https://sqs.eu-west-1.amazonaws.com/1/letters"}


@dataclass(frozen=True)
class Change:
    """What a spec has beside SPEC, and what a merge patch of it says then."""

    before: Json
    patch: Json


def letters(**given: str) -> Json:
    return {"onError": {"deadLetter": given}}


ARN, NO_NAME = "arn:aws:kinesis:eu-west-1:444455556666:stream/orders", {"name": None, "region": None}
AS_ROLE = {"roleArn": "arn:aws:iam::444455556666:role/orders-reader", "externalId": "shop"}
GOV_ROLE = "arn:aws-us-gov:iam::444455556666:role/orders-reader"
NOT_AWS = ["us-gov-west-1", "cn-north-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "us-isof-south-1", "eusc-de-east-1"]
LATEST: Json = {"latest": True}
MEMBER: Json = {"pool": "small", "replicas": 1}


def in_region(region: str, role: str = AS_ROLE["roleArn"]) -> Json:
    return {"stream": {"name": "orders", "region": region, "roleArn": role}}


def move(to: Json, **given: Any) -> Json:
    return {"position": {"id": "one", "to": to, **given}}


def scaled(**bounds: int) -> Json:
    return {"replicas": 1, "autoscale": bounds}


REFUSED: list[tuple[str, Change]] = [
    ("stream.name is immutable", Change({}, {"stream": {"name": "another"}})),
    ("stream.region is immutable", Change({}, {"stream": {"region": "eu-west-2"}})),
    ("stream.name is immutable", Change({}, {"stream": {**NO_NAME, "arn": ARN.replace("/orders", "/another")}})),
    ("stream.region is immutable", Change({}, {"stream": {**NO_NAME, "arn": ARN.replace("eu-west-1", "eu-west-2")}})),
    ("stream.arn is immutable", Change({"stream": {"arn": ARN}}, {"stream": {"arn": ARN.replace("444455556666", "777788889999")}})),
    ("stream.name is immutable", Change({"stream": {"arn": ARN}}, {"stream": {"arn": None, "name": "another", "region": "eu-west-1"}})),
    ("stream: name and region are required, or arn instead", Change({}, {"stream": {"region": None}})),
    ("stream: name and region are required, or arn instead", Change({}, {"stream": NO_NAME})),
    ("stream.arn holds name and region", Change({}, {"stream": {"arn": ARN}})),
    ("stream.externalId belongs to roleArn", Change({}, {"stream": {"externalId": "shop"}})),
    ("stream.sessionName belongs to roleArn", Change({}, {"stream": {"sessionName": "them"}})),
    ("stream.externalId belongs to roleArn", Change({"stream": {"arn": ARN, **AS_ROLE}}, {"stream": {"roleArn": None}})),
    ("stream.roleArn is of another partition than arn", Change({}, {"stream": {**NO_NAME, "arn": ARN, "roleArn": GOV_ROLE}})),
    ("stream.roleArn is of another partition than arn", Change({"stream": {"arn": ARN, **AS_ROLE}}, {"stream": {"roleArn": GOV_ROLE}})),
    *(("stream.roleArn is of another partition than region", Change(in_region(region), {})) for region in NOT_AWS),
    ("stream.roleArn is of another partition than region", Change(in_region("eu-west-1"), {"stream": {"roleArn": GOV_ROLE}})),
    ("stream.roleArn is of another partition than region", Change(in_region("us-isob-east-1", GOV_ROLE), {})),
    ("checkpoints.table is immutable", Change({}, {"checkpoints": {"table": "another"}})),
    ("checkpoints.table is immutable", Change({"checkpoints": {"table": "mine"}}, {"checkpoints": {"table": "another"}})),
    ("checkpoints.table is immutable", Change({"checkpoints": {"table": "mine"}}, {"checkpoints": None})),
    ("start.timestamp belongs to position AT_TIMESTAMP", Change({}, {"start": {"position": "AT_TIMESTAMP"}})),
    ("start.timestamp belongs to position AT_TIMESTAMP", Change({}, {"start": {"timestamp": "2026-11-24T00:00:00Z"}})),
    ("until must have exactly one of tip and timestamp", Change({}, {"until": {}})),
    ("until must have exactly one of tip and timestamp", Change({"until": {"tip": True}}, {"until": {"timestamp": "2026-11-24T00:00:00Z"}})),
    *((f"sparkConf: {key} {why}", Change({}, {"sparkConf": {key: "1", "spark.executor.memory": "1g"}})) for key, why in EXACT.items()),
    ("position.to must have exactly one of timestamp, batch, trimHorizon and latest", Change({}, move({}))),
    ("position.to must have exactly one of timestamp, batch, trimHorizon and latest", Change(move(LATEST), move({"trimHorizon": True}))),
    ("position.acceptExpired belongs to to.timestamp and to.batch", Change({}, move(LATEST, acceptExpired=True))),
    ("autoscale.min is larger than max", Change({}, scaled(min=3, max=2))),
    ("autoscale.min is larger than max", Change(scaled(min=3, max=4), {"autoscale": {"max": 2}})),
    ("replicas: omit it, or set it to 1, while autoscale is set", Change({}, {**scaled(max=4), "replicas": 3})),
    ("replicas: omit it, or set it to 1, while autoscale is set", Change({"replicas": 3}, {"autoscale": {"max": 4}})),
    ("replicas: omit it, or set it to 1, while autoscale is set", Change(scaled(max=4), {"replicas": 0})),
    ("autoscale: must be omitted with executor.inDriver", Change(scaled(max=4), {"executor": {"inDriver": True}})),
    ("rollout.strategy: must be Recreate with until", Change({}, {"until": {"tip": True}, "rollout": {"strategy": "Standby"}})),
    ("rollout.strategy: must be Recreate with until", Change({"rollout": {"strategy": "Standby"}}, {"until": {"tip": True}})),
    ("rollout.standby: must be Rollout, or omitted", Change({}, {"rollout": {"standby": "Always"}})),
    ("rollout.standby: must be Rollout, or omitted", Change({"rollout": {}}, {"rollout": {"strategy": "Recreate", "standby": "Always"}})),
    ("rollout.trial: must be omitted with until", Change({}, {"until": {"tip": True}, "rollout": {"trial": {}}})),
    ("rollout.trial: must be omitted with until", Change({"rollout": {"trial": {}}}, {"until": {"tip": True}})),
    ("rollout.trial.seconds: must be 120 or more with maxSlowdown", Change({}, {"rollout": {"trial": {"seconds": 60, "maxSlowdown": 2}}})),
    (
        "rollout.trial.seconds: must be 120 or more with maxSlowdown",
        Change({"rollout": {"trial": {"maxSlowdown": 2}}}, {"rollout": {"trial": {"seconds": 119}}}),
    ),
    ("pipeline.image: belongs to the pool named in spec.pool", Change(MEMBER, {"pipeline": {"image": "shop:1"}})),
    (
        "pipeline.image: belongs to the pool named in spec.pool",
        Change({"replicas": 1, "pipeline": {**SPEC["pipeline"], "image": "shop:1"}}, {"pool": "small"}),
    ),
    ("pipeline.imagePullPolicy: belongs to the pool", Change(MEMBER, {"pipeline": {"imagePullPolicy": "Always"}})),
    ("pipeline.source: belongs to the pool", Change(MEMBER, {"pipeline": {"source": {"configMap": "code"}}})),
    ("serviceAccountName: belongs to the pool", Change(MEMBER, {"serviceAccountName": "streams"})),
    ("sparkConf: belongs to the pool", Change(MEMBER, {"sparkConf": {"spark.sql.shuffle.partitions": "2"}})),
    ("autoscale: belongs to the pool", Change(MEMBER, scaled(max=2))),
    ("rollout: belongs to the pool", Change(MEMBER, {"rollout": {"strategy": "Recreate"}})),
    ("replicas: must be 0 or 1 with pool", Change(MEMBER, {"replicas": 2})),
    ("leaseDurationSeconds: must be 20 or more with pool", Change(MEMBER, {"leaseDurationSeconds": 19})),
    ("onError.deadLetter: required", Change({}, {"onError": {}})),
    ("onError.deadLetter: required", Change(letters(**FILES), {"onError": {"deadLetter": None}})),
    ("deadLetter must have exactly one of path, sqs and kinesis", Change({}, letters())),
    ("deadLetter must have exactly one of path, sqs and kinesis", Change({}, letters(**FILES, **QUEUE))),
    ("deadLetter must have exactly one of path, sqs and kinesis", Change(letters(**FILES), letters(**QUEUE))),
]
FORMS: list[tuple[str, str]] = [
    *(
        ("arn", arn)
        for arn in ("orders", f"{ARN}\n", f" {ARN}", ARN.upper(), f"{ARN}/consumer/c:1", f"{ARN}*", f"{ARN}é", ARN.replace("eu-west-1", "-"))
    ),
    *(("roleArn", f"arn:aws:iam::444455556666:{role}") for role in ("user/u", "role/", "role/r\n", "role/a b/r", "role/é/r", f"role/{'p' * 511}/r")),
    *(("externalId", text) for text in ("a b", "a", "$(id)", "a\nb", "a" * 1225)),
    *(("sessionName", text) for text in ("a/b", "a", "a\n", "`id`", "a" * 65)),
]
TAKEN = [
    Change({}, {"stream": {**NO_NAME, "arn": ARN}}),
    Change({"stream": {"arn": ARN}}, {"stream": {"arn": None, "name": "orders", "region": "eu-west-1"}}),
    Change({"stream": {"arn": ARN}}, {"stream": {**AS_ROLE, "sessionName": "them"}}),
    Change({"stream": {"arn": ARN, **AS_ROLE}}, {"stream": {"externalId": None, "roleArn": "arn:aws:iam::444455556666:role/a/b"}}),
    Change({}, {"stream": {**NO_NAME, "arn": ARN.replace("aws", "aws-us-gov"), "roleArn": GOV_ROLE}}),
    Change({}, {"stream": AS_ROLE}),
    Change({}, {"stream": SPEC["stream"], "replicas": 3}),
    Change({"checkpoints": {"table": "mine"}}, {"checkpoints": {"table": "mine"}}),
    Change({}, {"checkpoints": {}}),
    Change(in_region("eu-west-1"), {"stream": AS_ROLE}),
    Change(in_region("us-gov-west-1", GOV_ROLE), {"stream": {"externalId": "shop"}}),
    Change(in_region("us-iso-east-1", GOV_ROLE.replace("us-gov", "iso")), {}),
    Change({}, letters(**FILES)),
    Change(letters(**FILES), {"onError": {"deadLetter": {"path": None, **QUEUE}}}),
    Change({}, letters(kinesis="letters")),
    Change({}, {"sparkConf": {"spark.executor.memory": "1g"}}),
    Change({}, {"start": {}}),
    Change({}, {"start": {"position": "AT_TIMESTAMP", "timestamp": "2026-11-24T00:00:00Z"}}),
    Change({}, {"until": {"tip": True}}),
    Change({"until": {"tip": True}}, {"until": {"tip": None, "timestamp": "2026-11-24T00:00:00Z"}}),
    Change({}, move({"timestamp": "2026-11-26T14:00:00.123+01:00"}, acceptExpired=True, shards=["shardId-000000000000"], giveUpBatch=42)),
    Change(move(LATEST), move({"latest": None, "trimHorizon": True}, id="two")),
    Change({}, move({"batch": 1041}, acceptExpired=True)),
    Change(move(LATEST), {"position": None}),
    Change({}, {"rollout": {"strategy": "Standby", "readySeconds": 60}}),
    Change({}, {"rollout": {"strategy": "Standby", "standby": "Always"}}),
    Change({"rollout": {"strategy": "Standby", "standby": "Always"}}, {"rollout": {"strategy": "Recreate", "standby": "Rollout"}}),
    Change({}, {"rollout": {"trial": {}}}),
    Change({"rollout": {"trial": {"seconds": 60}}}, {"rollout": {"trial": {"seconds": 120, "maxSlowdown": 1.5}}}),
    Change({"until": {"tip": True}}, {"rollout": {}}),
    Change({}, {"onError": {"isolate": False}}),
    Change({}, {"pool": "small", "replicas": 0}),
    Change(MEMBER, {"pool": None, "pipeline": {"image": "shop:1"}, "replicas": 3}),
]
MALFORMED = [
    move({"timestamp": "2026-11-26T14:00:00"}),
    move({"timestamp": "2026-11-26T14:00:00.1234Z"}),
    move({"timestamp": "yesterday"}),
    move({"latest": False}),
    move(LATEST, id="a b"),
    move(LATEST, id="-a"),
    move(LATEST, id="a" * 64),
    move(LATEST, shards=["0"]),
    move(LATEST, giveUpBatch=0),
    {"position": {"to": LATEST}},
    {"position": {"id": "one"}},
]
NAMES = {"orders": True, LONGEST: True, f"{LONGEST}a": False, "7up": False, "or.ders": False}


def consumer(name: str, spec: Json) -> Json:
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": {"name": name}, "spec": {**SPEC, **spec}}


def change(admin: Caller, name: str, asked: Change) -> None:
    admin.call("POST", CONSUMERS, consumer(name, asked.before))
    try:
        admin.call("PATCH", f"{CONSUMERS}/{name}", {"spec": asked.patch}, MERGE)
    finally:
        admin.call("DELETE", f"{CONSUMERS}/{name}")


@pytest.mark.parametrize(("message", "asked"), REFUSED)
def test_a_change_that_a_rule_is_about_is_refused_in_its_words(admin: Caller, message: str, asked: Change) -> None:
    with pytest.raises(AssertionError, match=f" 422 .*{message}"):
        change(admin, "orders", asked)


@pytest.mark.parametrize(("field", "text"), FORMS)
def test_a_form_that_aws_would_not_take_is_refused_by_its_field(admin: Caller, field: str, text: str) -> None:
    """By the schema: STS would answer with a regular expression, and name no field. A resource from before the schema is refused by the operator."""
    stream = {"arn": text} if field == "arn" else {"arn": ARN, **AS_ROLE, field: text}
    with pytest.raises(AssertionError, match=rf" 422 .*spec\.stream\.{field}"):
        admin.call("POST", CONSUMERS, consumer("orders", {"stream": stream}))
    with pytest.raises(InvalidSpec, match=rf"spec\.stream\.{field}"):
        parse({**SPEC, "stream": stream})


@pytest.mark.parametrize("asked", TAKEN)
def test_a_change_that_no_rule_is_about_is_taken(admin: Caller, asked: Change) -> None:
    change(admin, "orders", asked)


@pytest.mark.parametrize("spec", [letters(), letters(**FILES, **QUEUE)])
def test_a_new_resource_is_judged_too(admin: Caller, spec: Json) -> None:
    with pytest.raises(AssertionError, match=r" 422 .*deadLetter must have exactly one"):
        admin.call("POST", CONSUMERS, consumer("orders", spec))


@pytest.mark.parametrize("amount", ["abc", "-1", "", "1Zi", "1e9999999", "9" * 65, "1 Gi", -1])
@pytest.mark.parametrize("place", ["driver", "executor"])
def test_a_quantity_that_is_none_is_refused_at_once(admin: Caller, place: str, amount: str | int) -> None:
    with pytest.raises(AssertionError, match=r" 422 .*spec\.\w+\.resources\.requests\.cpu"):
        admin.call("POST", CONSUMERS, consumer("orders", {place: {"resources": {"requests": {"cpu": amount}}}}))


@pytest.mark.parametrize("spec", MALFORMED, ids=str)
def test_a_move_of_another_form_is_refused_by_the_server_and_by_the_operator(admin: Caller, spec: Json) -> None:
    """A time needs its zone, and Kinesis counts in milliseconds."""
    with pytest.raises(AssertionError, match=r" 422 .*spec\.position"):
        change(admin, "orders", Change({}, spec))
    with pytest.raises(InvalidSpec, match=r"spec\.position"):
        parse({**SPEC, **spec})


@pytest.mark.parametrize("amount", ["500m", "2Gi", "1.5", "+1", ".5", "1e3", "1E-3", 2, "2147483648", "12345678901234567890"])
def test_a_quantity_is_taken_as_kubernetes_takes_it(admin: Caller, amount: str | int) -> None:
    change(admin, "orders", Change({"driver": {"resources": {"limits": {"cpu": amount}}}}, {"replicas": 3}))


@pytest.mark.parametrize(("name", "taken"), NAMES.items())
def test_a_name_leaves_room_for_the_suffixes_of_pods(admin: Caller, name: str, taken: bool) -> None:  # noqa: FBT001 - a table
    if taken:
        change(admin, name, Change({}, {"replicas": 3}))
        return
    with pytest.raises(AssertionError, match=r" 422 .*metadata\.name: at most 45 characters"):
        change(admin, name, Change({}, {}))


def test_a_resource_that_no_operator_has_seen_is_in_progress_for_kstatus(admin: Caller) -> None:
    """Else Flux, which asks a moment after it has applied it, goes on as if it worked."""
    made = admin.call("POST", CONSUMERS, consumer("unseen", {}))
    admin.call("DELETE", f"{CONSUMERS}/unseen")
    assert kstatus(made) == IN_PROGRESS


def test_the_operator_reads_a_resource_that_it_has_not_seen_as_one_without_status(admin: Caller) -> None:
    made = admin.call("POST", CONSUMERS, consumer("unread", {}))
    admin.call("DELETE", f"{CONSUMERS}/unread")
    assert load_status(made.get("status")) == Status()


SCALE = f"{CONSUMERS}/orders/scale"


@pytest.fixture
def chosen(admin: Caller) -> Iterator[Caller]:
    admin.call("POST", CONSUMERS, consumer("orders", {**scaled(max=8), "replicas": None}))
    yield admin
    admin.call("DELETE", f"{CONSUMERS}/orders")


@pytest.mark.parametrize("number", [0, 2, 8])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_another_autoscaler_is_refused_through_scale_in_words(chosen: Caller, method: str, number: int) -> None:
    """An HPA, KEDA and `kubectl scale` write there. What they write is refused, and stands in their events; nothing is fought over."""
    found = chosen.call("GET", SCALE)
    assert found["spec"]["replicas"] == 1
    body = {**found, "spec": {"replicas": number}} if method == "PUT" else {"spec": {"replicas": number}}
    with pytest.raises(AssertionError, match=r" 422 .*replicas: omit it, or set it to 1, while autoscale is set, because the operator chooses"):
        chosen.call(method, SCALE, body, *([MERGE] if method == "PATCH" else []))
    assert chosen.call("GET", SCALE)["spec"]["replicas"] == 1


def test_a_write_through_scale_that_asks_for_nothing_is_taken(chosen: Caller) -> None:
    assert chosen.call("PATCH", SCALE, {"spec": {"replicas": 1}}, MERGE)["spec"]["replicas"] == 1
    chosen.call("PATCH", f"{CONSUMERS}/orders", {"spec": {"autoscale": None}}, MERGE)
    assert chosen.call("PATCH", SCALE, {"spec": {"replicas": 5}}, MERGE)["spec"]["replicas"] == 5
    taken = chosen.call("PATCH", f"{CONSUMERS}/orders", {"spec": {"autoscale": {"max": 8}, "replicas": None}}, MERGE)
    assert (taken["spec"]["replicas"], taken["spec"]["autoscale"]) == (
        1,
        {"min": 1, "max": 8, "targetLagSeconds": 60, "coolDownSeconds": 600, "cap": "ActiveShards"},
    )


def test_the_memory_of_the_autoscaler_is_stored_as_it_was_written(chosen: Caller) -> None:
    """Every field of `status.autoscale`: what the CRD dropped would be decided anew after each look."""
    at = datetime(2026, 11, 27, 10, tzinfo=UTC)
    sample = ScaleSample(at=at, attempt=1, executors=2, batch=7, records=9, millis_behind_latest=0)
    trial = ScaleTrial(executors=2, seconds_per_record=0.25, steps=2)
    memory = AutoscaleStatus(
        replicas=2, reason="NoGain", message="m", changed_at=at, quiet_since=at, sample=sample, trial=trial, ceiling=2, ceiling_until=at
    )
    present = chosen.call("GET", f"{CONSUMERS}/orders")
    written = chosen.call("PUT", f"{CONSUMERS}/orders/status", {**present, "status": dump_status(Status(autoscale=memory))})
    assert load_status(written["status"]).autoscale == memory


def test_every_rule_refuses_something_here() -> None:
    """A rule without a row would be one that nobody has seen to work."""
    rows = {message for message, _ in REFUSED} | {"metadata.name: at most 45 characters"}
    rules = set(messages(document()))
    assert {row for row in rows if not any(row in rule for rule in rules)} == set()
    assert {rule for rule in rules if not any(row in rule for row in rows)} == set()


def messages(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        yield from (rule["message"] for rule in document.get("x-kubernetes-validations", ()))
        document = document.values()
    if not isinstance(document, str) and hasattr(document, "__iter__"):
        for each in document:
            yield from messages(each)


@pytest.mark.parametrize("stream", [{"name": "orders", "region": "eu-west-1"}, {"arn": ARN}])
def test_kubectl_get_shows_the_stream_as_it_was_given(admin: Caller, stream: Json) -> None:
    """Its ARN where one was given: of two accounts, both may have a stream of that name."""
    admin.call("POST", CONSUMERS, consumer("orders", {"stream": stream}))
    try:
        table = admin.call("GET", CONSUMERS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    finally:
        admin.call("DELETE", f"{CONSUMERS}/orders")
    columns = [column["name"] for column in table["columnDefinitions"]]
    assert [row["cells"][columns.index("Stream")] for row in table["rows"]] == [stream.get("arn", "orders")]

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest

from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.stream.address import StreamAddress
from sluice_consumer.config import BatchConfig, Config, DeadLetterConfig, MetricsConfig, OnErrorConfig, StartConfig, parse

QUEUE, STREAM = "https://sqs.eu-west-1.amazonaws.com/123456789012/letters", "arn:aws:kinesis:eu-west-1:123456789012:stream/orders"
LEAST: dict[str, Any] = {
    "stream": {"name": "orders", "region": "eu-central-1"},
    "checkpoints": {"table": "orders-sluice"},
    "pipeline": {"entrypoint": "app:process"},
}


def changed(path: str, value: object) -> str:
    document = json.loads(json.dumps(LEAST))
    *outer, last = path.split(".")
    where = document
    for name in outer:
        where = where.setdefault(name, {})
    where[last] = value
    return json.dumps(document)


def test_the_least_configuration_gets_the_defaults() -> None:
    config = parse(json.dumps(LEAST))
    assert (config.name, config.start, config.batch) == ("orders", StartConfig("TRIM_HORIZON"), BatchConfig(5, 10_000, 8 * 1024 * 1024, 8))
    assert (config.lease_millis, config.drain_timeout_seconds, config.executors, config.force) == (20_000, 120, None, False)
    assert (config.accept_loss_of_batch, config.metrics) == (None, None)


@pytest.mark.parametrize(
    ("path", "value", "read"),
    [
        ("name", "n", lambda c: c.name == "n"),
        ("stream.kinesisEndpoint", "http://k", lambda c: c.stream.kinesis_endpoint == "http://k"),
        ("stream.dynamodbEndpoint", "http://d", lambda c: c.stream.dynamodb_endpoint == "http://d"),
        ("migrateFrom", {"table": "old"}, lambda c: c.migrate_from.table == "old"),
        ("migrateFrom", None, lambda c: c.migrate_from is None),
        ("batch", {"intervalSeconds": 0.5}, lambda c: c.batch == BatchConfig(interval_seconds=0.5)),
        ("stream.probeShare", 1, lambda c: c.stream.probe_share == 1),
        ("stream.probeShare", 0.05, lambda c: c.stream.probe_share == 0.05),
        ("leaseDurationSeconds", 4.5, lambda c: c.lease_millis == 4500),
        ("executors", 3, lambda c: c.executors == 3),
        ("force", True, lambda c: c.force),
        ("acceptLossOfBatch", 41, lambda c: c.accept_loss_of_batch == 41),
        ("acceptLossOfBatch", None, lambda c: c.accept_loss_of_batch is None),
        ("onError", None, lambda c: c.on_error is None),
        ("onError", {"isolate": False}, lambda c: c.on_error == OnErrorConfig(isolate=False)),
        ("onError", {"attempts": 5, "deadLetter": {"path": "/l"}}, lambda c: c.on_error == OnErrorConfig(DeadLetterConfig("/l"), attempts=5)),
        ("onError.deadLetter", {"sqs": QUEUE}, lambda c: c.on_error.dead_letter == DeadLetterConfig(sqs=QUEUE)),
        ("onError.deadLetter", {"kinesis": "letters"}, lambda c: c.on_error.dead_letter == DeadLetterConfig(kinesis="letters")),
        ("onError.deadLetter", {"kinesis": STREAM, "sqs": None}, lambda c: c.on_error.dead_letter == DeadLetterConfig(kinesis=STREAM)),
        ("metrics", {"port": 9404}, lambda c: c.metrics == MetricsConfig(9404)),
        ("metrics", {"port": 0, "address": "::1"}, lambda c: c.metrics == MetricsConfig(0, "::1")),
        ("sparkConf", {"spark.x": "1"}, lambda c: c.spark_conf == {"spark.x": "1"}),
        ("pipeline.args", {"path": "s3a://b"}, lambda c: c.pipeline.args == {"path": "s3a://b"}),
        ("start", {"position": "AT_TIMESTAMP", "timestamp": "1970-01-01T01:00:01+01:00"}, lambda c: c.start.millis == 1000),
        ("until", {"timestamp": "1970-01-01T01:00:01+01:00"}, lambda c: c.until.millis == 1000),
        ("until", {"tip": True}, lambda c: c.until.tip and c.until.millis is None),
        ("start", {"position": "LATEST"}, lambda c: c.start.millis is None),
        ("start", None, lambda c: c.start == StartConfig()),
    ],
)
def test_a_setting_is_read(path: str, value: object, read: Any) -> None:
    config: Config = parse(changed(path, value))
    assert read(config)


ROLE = "arn:aws-us-gov:iam::444455556666:role/orders-reader"
THEIRS = "arn:aws-us-gov:kinesis:us-gov-west-1:444455556666:stream/orders"


def of_stream(**stream: object) -> str:
    return json.dumps(LEAST | {"stream": stream})


def test_a_stream_that_is_named_by_its_arn_has_a_name_and_a_region() -> None:
    """Everything else of a consumer is named by them; calls to Kinesis name the ARN."""
    stream = parse(of_stream(arn=THEIRS)).stream
    assert (stream.name, stream.region, stream.role) == ("orders", "us-gov-west-1", None)
    assert stream.address == StreamAddress("orders", "us-gov-west-1", arn=THEIRS)
    assert stream.address.stream == {"StreamARN": THEIRS}
    assert parse(json.dumps(LEAST)).stream.address.stream == {"StreamName": "orders"}
    assert parse(of_stream(arn=THEIRS)).name == "orders"


def test_a_role_reads_the_stream_in_a_session_of_the_consumers_name() -> None:
    document = json.loads(of_stream(arn=THEIRS, roleArn=ROLE, externalId="shop"))
    assert parse(json.dumps(document | {"name": "orders-eu"})).stream.role == AssumedRole(ROLE, "shop", "sluice-orders-eu")
    document["stream"]["sessionName"] = "them"
    stream = parse(json.dumps(document)).stream
    assert stream.address.role == AssumedRole(ROLE, "shop", "them")
    assert stream.options == f"--stream {THEIRS} --region us-gov-west-1 --role-arn {ROLE} --external-id shop --role-session-name them"


def test_the_options_of_a_command_that_is_printed_are_words_of_a_shell() -> None:
    """A role's path may hold any sign, and a person pastes what a driver says."""
    hostile = "arn:aws-us-gov:iam::444455556666:role/$(reboot);`reboot`'\"/orders-reader"
    stream = parse(of_stream(arn=THEIRS, roleArn=hostile)).stream
    assert shlex.split(stream.options)[4:6] == ["--role-arn", hostile]


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        ({}, "stream.name: missing; a stream has a name and a region, or an arn"),
        ({"name": "orders"}, "stream.region: missing"),
        ({"arn": THEIRS, "name": "orders"}, "stream.name: the stream already has an arn"),
        ({"arn": THEIRS, "region": "us-gov-west-1"}, "stream.region: the stream already has an arn"),
        ({"arn": "orders"}, "stream.arn: 'orders' is not the ARN of a stream, such as arn:aws:kinesis:"),
        ({"arn": THEIRS + "/consumer/c:1"}, "stream.arn: "),
        ({"arn": THEIRS, "externalId": "shop"}, "stream.externalId: belongs to stream.roleArn"),
        ({"arn": THEIRS, "sessionName": "them"}, "stream.sessionName: belongs to stream.roleArn"),
        ({"arn": THEIRS, "roleArn": "reader"}, "stream.roleArn: 'reader' is not the ARN of a role"),
        ({"arn": THEIRS, "roleArn": ROLE, "sessionName": "a b"}, "stream.sessionName: "),
        (
            {"arn": THEIRS, "roleArn": ROLE.replace("aws-us-gov", "aws")},
            "stream.roleArn: arn:aws:iam::444455556666:role/orders-reader is in the partition aws,",
        ),
        ({"name": "orders", "region": "eu-west-1", "roleArn": ROLE}, "is in the partition aws-us-gov, and the region eu-west-1 is not"),
        ({"name": "orders", "region": "cn-north-1", "roleArn": ROLE.replace("aws-us-gov", "aws")}, "and the region cn-north-1 is not"),
    ],
)
def test_a_stream_that_no_call_could_name_is_refused_by_its_field(stream: dict[str, str], said: str) -> None:
    with pytest.raises(Refused, match=re.escape(said)):
        parse(of_stream(**stream))


def test_dead_letters_may_go_to_a_stream_of_the_same_name_in_the_own_account() -> None:
    """Dead letters go with the pod's own identity, whatever role reads the stream."""
    document = json.loads(of_stream(arn=THEIRS, roleArn=ROLE)) | {"onError": {"deadLetter": {"kinesis": "orders"}}}
    assert parse(json.dumps(document)).on_error == OnErrorConfig(DeadLetterConfig(kinesis="orders"))
    document["onError"]["deadLetter"]["kinesis"] = THEIRS
    with pytest.raises(Refused, match=re.escape("onError.deadLetter.kinesis: is the same as stream.arn")):
        parse(json.dumps(document))


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ("colour", 1, "colour: unknown"),
        ("stream.colour", 1, r"stream\.colour: unknown"),
        ("batch.interval_seconds", 1, r"batch\.interval_seconds: unknown"),
        ("stream", None, "stream: missing"),
        ("stream.region", None, r"stream\.region: missing"),
        ("stream.region", "", r"stream\.region: missing; a stream has a name and a region, or an arn"),
        ("stream.region", "EU-WEST-1", r"stream\.region: must be an AWS region, such as eu-west-1, not 'EU-WEST-1'"),
        ("stream.region", "eu west 1", r"stream\.region: must be an AWS region, such as eu-west-1, not 'eu west 1'"),
        ("stream.region", "-", r"stream\.region: must be an AWS region"),
        ("checkpoints", {}, r"checkpoints\.table: missing"),
        ("stream", "orders", "stream.: expected an object"),
        ("stream.name", 7, r"stream\.name: must be text, not 7"),
        ("batch.maxRecordsPerShard", "7", r"batch\.maxRecordsPerShard: must be a whole number, not '7'"),
        ("batch.maxRecordsPerShard", 1.5, r"batch\.maxRecordsPerShard: must be a whole number, not 1\.5"),
        ("batch.maxRecordsPerShard", True, r"batch\.maxRecordsPerShard: must be a whole number, not True"),
        ("batch.maxRecordsPerShard", 0, r"batch\.maxRecordsPerShard: must be 1 or more, not 0"),
        ("batch.maxBytesPerShard", 0, r"batch\.maxBytesPerShard: must be 1 or more, not 0"),
        ("batch.shardsPerTask", 0, r"batch\.shardsPerTask: must be 1 or more, not 0"),
        ("stream.probeShare", 0, r"stream\.probeShare: 0 is not from 0\.05 to 1"),
        ("stream.probeShare", 1.01, r"stream\.probeShare: 1\.01 is not from 0\.05 to 1"),
        ("stream.probeShare", "1", r"stream\.probeShare: must be a number, not '1'"),
        ("batch.intervalSeconds", -1, r"batch\.intervalSeconds: must be 0 or more, not -1"),
        ("leaseDurationSeconds", 2.9, r"leaseDurationSeconds: must be 3 or more, not 2\.9"),
        ("leaseDurationSeconds", True, "leaseDurationSeconds: must be a number, not True"),
        ("drainTimeoutSeconds", 0, "drainTimeoutSeconds: must be 1 or more, not 0"),
        ("force", 1, "force: must be true or false, not 1"),
        ("format", 2, "format: 2 is not known"),
        ("sparkConf", [], r"sparkConf: must be an object, not \[\]"),
        ("pipeline.entrypoint", "app.process", r"pipeline\.entrypoint"),
        ("start", {"position": "NOW"}, r"start\.position: must be one of TRIM_HORIZON, LATEST, AT_TIMESTAMP, not 'NOW'"),
        ("start", {"position": "AT_TIMESTAMP"}, r"start\.timestamp: missing; AT_TIMESTAMP needs a time such as"),
        ("start", {"position": "LATEST", "timestamp": "2024-01-01T00:00:00Z"}, r"start\.timestamp: belongs to position AT_TIMESTAMP"),
        ("start", {"timestamp": "2024-01-01T00:00:00Z"}, r"start\.timestamp: belongs to position AT_TIMESTAMP, not to TRIM_HORIZON"),
        ("until", {}, r"until: must have exactly one of tip \(true\) and timestamp"),
        ("until", {"tip": False}, r"until: must have exactly one"),
        ("until", {"tip": True, "timestamp": "2024-01-01T00:00:00Z"}, r"until: must have exactly one"),
        ("until", {"timestamp": "2024-01-01T00:00:00"}, r"until\.timestamp.*no time zone"),
        ("until", {"timestamp": "9999-99-99T00:00:00Z"}, r"until\.timestamp.*is not an ISO 8601 time"),
        ("start", {"position": "AT_TIMESTAMP", "timestamp": "yesterday"}, r"start\.timestamp: 'yesterday'"),
        ("start", {"position": "AT_TIMESTAMP", "timestamp": "2024-01-01T00:00:00"}, r"start\.timestamp.*no time zone"),
    ],
)
def test_a_bad_setting_is_refused_by_its_key(path: str, value: object, key: str) -> None:
    with pytest.raises(Refused, match=f"^{key}"):
        parse(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ("executors", -1, "executors"),
        ("acceptLossOfBatch", 0, "acceptLossOfBatch: must be 1 or more, not 0"),
        ("acceptLossOfBatch", "41", "acceptLossOfBatch: must be a whole number, not '41'"),
        ("onError", {}, r"onError\.deadLetter: missing"),
        ("onError.deadLetter", {}, r"onError\.deadLetter: must have exactly one of path, sqs, kinesis"),
        ("onError.deadLetter", {"path": ""}, r"onError\.deadLetter: must have exactly one of"),
        ("onError.deadLetter", {"path": "/l", "sqs": QUEUE}, r"onError\.deadLetter: must have exactly one of"),
        ("onError.deadLetter", {"sqs": "letters"}, r"onError\.deadLetter\.sqs: 'letters' is not the URL of a queue"),
        ("onError.deadLetter", {"kinesis": "arn:aws:sqs:us-east-1:123456789012:q"}, r"onError\.deadLetter\.kinesis: .* neither name nor ARN"),
        ("onError.deadLetter", {"kinesis": "orders"}, r"onError\.deadLetter\.kinesis: is the same as stream\.name"),
        ("onError", {"isolate": False, "attempts": 0}, r"onError\.attempts: must be 1 or more, not 0"),
        ("onError", {"isolate": False, "maxExcludedPerHour": -1}, r"onError\.maxExcludedPerHour: must be 0 or more, not -1"),
        ("metrics", {"port": -1}, r"metrics\.port: must be 0 or more, not -1"),
        ("metrics", {"port": 65_536}, r"metrics\.port: must be 65535 or less, not 65536"),
        ("metrics", {}, r"metrics\.port: missing"),
        ("sparkConf", {"spark.x": 1}, r"sparkConf\.spark\.x"),
        ("pipeline.entrypoint", "app:", r"pipeline\.entrypoint"),
        ("pipeline.entrypoint", ":process", r"pipeline\.entrypoint"),
        ("stream.name", "", r"stream\.name"),
        ("checkpoints.table", "", r"checkpoints\.table"),
        ("checkpoints.table", "a table", r"checkpoints\.table"),
    ],
)
def test_a_senseless_setting_is_refused_by_its_key(path: str, value: object, key: str) -> None:
    with pytest.raises(Refused, match=f"^{key}"):
        parse(changed(path, value))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_what_json_does_not_know_is_refused(value: str) -> None:
    """Python reads more than JSON."""
    with pytest.raises(Refused, match=r"(?i)(inf\w*|nan) is not a number"):
        parse(changed("leaseDurationSeconds", 0).replace(": 0", f": {value}"))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null"])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="the configuration"):
        parse(text)


@pytest.mark.parametrize(
    ("endpoint", "example"),
    [
        ("localhost:4567", "http://localhost:4567"),
        ("kinesis.eu-west-1.amazonaws.com", "https://kinesis.eu-west-1.amazonaws.com"),
        ("//localhost:1", "http://localhost:1"),
        ("ftp://localhost", "http://localhost:4566"),
        ("http://", "http://localhost:4566"),
        ("http://a:99999", "http://localhost:4566"),
        ("http://a b", "http://localhost:4566"),
    ],
)
@pytest.mark.parametrize("key", ["kinesisEndpoint", "dynamodbEndpoint"])
def test_an_endpoint_that_cannot_be_called_is_refused_with_one_that_can(key: str, endpoint: str, example: str) -> None:
    """It was a KeyError in the middle of a start."""
    with pytest.raises(Refused, match=rf"^stream\.{key}: .* is not an address of a service; write it with its scheme, as in {re.escape(example)}$"):
        parse(changed(f"stream.{key}", endpoint))


@pytest.mark.parametrize(
    "endpoint", ["http://localhost:4567", "https://vpce-1.kinesis.eu-west-1.vpce.amazonaws.com", "http://[::1]:4567/", "HTTP://a"]
)
def test_an_endpoint_that_can_be_called_is_taken(endpoint: str) -> None:
    document = {
        "stream": {"name": "s", "region": "r", "kinesisEndpoint": endpoint},
        "checkpoints": {"table": "abc"},
        "pipeline": {"entrypoint": "m:f"},
    }
    assert parse(json.dumps(document)).stream.kinesis_endpoint == endpoint

"""moto's server: a Kinesis that answers CBOR with 500, and that can be told to look at credentials and rights."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from conftest_checks import REGION, Checked, made

from sluice_checkpoints.aws import credentials
from sluice_checkpoints.position import Position
from sluice_checkpoints.stream.address import StreamAddress
from sluice_consumer.checks import run
from sluice_consumer.checks.model import CheckOutcome
from sluice_consumer.kinesis import http
from sluice_consumer.kinesis.codec import ENCODING
from sluice_lab import places
from sluice_lab.aws import emulators

SAID = "does not speak CBOR: falling back to JSON; to skip this attempt, set SLUICE_KINESIS_ENCODING=json"


def test_a_service_that_does_not_speak_cbor_is_one_clear_line(on_moto: Checked) -> None:
    finding = on_moto.results()["stream"]
    assert finding.outcome is CheckOutcome.WARNING
    assert finding.message == f"the service of stream {on_moto.written['stream']['name']} {SAID}"


def test_a_start_tells_its_driver_not_to_try(on_moto: Checked, caplog: pytest.LogCaptureFixture) -> None:
    """Each process and task would find out anew, with a line of its own."""
    environment = dict(on_moto.facts().environment)
    config, of_driver = run.before_start(on_moto.path, environment)
    assert config.stream.name == on_moto.written["stream"]["name"]
    assert of_driver == {ENCODING: "json"}
    assert [said for record in caplog.records if SAID in (said := record.getMessage())] == [
        f"stream: the service of stream {on_moto.written['stream']['name']} {SAID}"
    ]


def test_the_switch_asks_in_json_from_the_first_call_on(on_moto: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENCODING, "json")
    assert on_moto.results()["stream"].outcome is CheckOutcome.OK
    stream = on_moto.written["stream"]
    client = http.connect.__wrapped__(StreamAddress(stream["name"], REGION, stream["kinesisEndpoint"]))
    monkeypatch.setattr(http, "CBOR", None)  # whoever encodes with it fails
    shards = boto3.client("kinesis", endpoint_url=stream["kinesisEndpoint"], region_name=REGION).list_shards(StreamName=stream["name"])["Shards"]
    pages = [client.get_records(shard["ShardId"], client.get_iterator(shard["ShardId"], Position("TRIM_HORIZON")), 5) for shard in shards]
    assert sum(len(page.records) for page in pages) == 1


def test_a_switch_that_means_nothing_is_refused(on_moto: Checked) -> None:
    on_moto.environment[ENCODING] = "xml"
    assert on_moto.stopped() == ("config", CheckOutcome.FAILED, f"{ENCODING}: 'xml' is neither cbor nor json")


# -- rights ------------------------------------------------------------------------------------------------------------------------

Account = Callable[..., None]


@pytest.fixture(scope="module")
def strict_endpoint() -> Iterator[str]:
    """A moto of its own, for it can be told to look at credentials, and then does so for all."""
    with emulators.moto(places.work()) as endpoint:
        yield endpoint


@pytest.fixture
def strict(strict_endpoint: str, tmp_path: Path) -> Iterator[Checked]:
    """A consumer there; credentials count once `allowed` was called."""
    yield made(tmp_path, strict_endpoint, strict_endpoint)
    _looks(strict_endpoint, "inf")
    credentials._of_environment.cache_clear()


def _looks(endpoint: str, after: str) -> None:
    """From so many calls on. A process keeps the credentials that it found first: here each test is one."""
    credentials._of_environment.cache_clear()
    asked = urllib.request.Request(f"{endpoint}/moto-api/reset-auth", data=after.encode(), headers={"Content-Type": "text/plain"})  # noqa: S310 - loopback
    urllib.request.urlopen(asked).close()  # noqa: S310


@pytest.fixture
def account(strict: Checked, strict_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Account:
    def make(*actions: str) -> None:
        iam = boto3.client("iam", endpoint_url=strict_endpoint, region_name=REGION)
        name = f"user-{strict.written['stream']['name']}"
        iam.create_user(UserName=name)
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}]}
        iam.put_user_policy(UserName=name, PolicyName="some", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
        _looks(strict_endpoint, "0")

    return make


READ = ("kinesis:DescribeStreamSummary", "kinesis:ListShards", "kinesis:GetShardIterator")


def test_wrong_credentials(strict: Checked, strict_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether AWS knows them shows at the first call."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIANOTHINGSUCH")
    _looks(strict_endpoint, "0")
    name, outcome, said = strict.stopped()
    assert (name, outcome) == ("stream", CheckOutcome.FAILED)
    assert said.startswith(f"DescribeStreamSummary of stream {strict.written['stream']['name']}: Kinesis refuses the call: HTTP 403")
    assert said.endswith("check the credentials")


def test_a_right_to_read_that_is_missing_is_found_before_a_start(strict: Checked, account: Account) -> None:
    """Without it the first batch would fail, with a table made and a lease held."""
    account(*READ)
    name, outcome, said = strict.stopped()
    assert (name, outcome) == ("stream", CheckOutcome.FAILED)
    assert said.startswith(f"GetRecords of stream {strict.written['stream']['name']}: Kinesis refuses the call: ")


def test_a_right_on_the_table_that_is_missing_is_found_before_a_start(strict: Checked, account: Account) -> None:
    strict.environment[ENCODING] = "json"
    account(*READ, "kinesis:GetRecords")
    name, outcome, said = strict.stopped()
    assert (name, outcome) == ("table", CheckOutcome.FAILED), said
    assert "DescribeTable" in said or "DynamoDB denies access" in said


def test_rights_that_suffice(strict: Checked, account: Account) -> None:
    strict.environment[ENCODING] = "json"
    account(*READ, "kinesis:GetRecords", "dynamodb:DescribeTable", "dynamodb:GetItem")
    results = strict.results()
    assert not any(finding.outcome.stops for finding in results.values()), results

"""Two accounts: the pods', and the one that has the stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
import pytest

from sluice_checkpoints.aws import credentials
from sluice_checkpoints.stream.address import StreamAddress
from sluice_consumer.config import Config, parse
from sluice_consumer.kinesis import http
from sluice_lab import places
from sluice_lab.aws.accounts import OTHER_ACCOUNT, OWN_ACCOUNT, Accounts, NotedCall, Role
from sluice_lab.aws.proxy import Upstream, proxy
from sluice_lab.machine.listening import LOOPBACK

REGION = "us-east-1"
SHARDS, RECORDS = 2, 20
EXTERNAL_ID = "shop-orders"


@dataclass
class Theirs:
    """A stream of the other account, and how it is read from here.

    Attributes:
        endpoint: of all services.
        producer: Kinesis of the other account.
    """

    name: str
    endpoint: str
    accounts: Accounts
    producer: Any

    @property
    def arn(self) -> str:
        return f"arn:aws:kinesis:{REGION}:{OTHER_ACCOUNT}:stream/{self.name}"

    @property
    def role(self) -> Role:
        return self.accounts.role

    def document(self, **stream: Any) -> dict[str, Any]:
        where = {"kinesisEndpoint": self.endpoint, "dynamodbEndpoint": self.endpoint}
        of_stream = {"arn": self.arn, "roleArn": self.role.arn, "externalId": EXTERNAL_ID, **where} | stream
        return {
            "name": "orders",
            "stream": {key: value for key, value in of_stream.items() if value is not None},
            "checkpoints": {"table": f"sluice_{self.name}"},
            "pipeline": {"entrypoint": "sluice_consumer.pipelines:console"},
        }

    def config(self, **stream: Any) -> Config:
        return parse(json.dumps(self.document(**stream)))

    @property
    def address(self) -> StreamAddress:
        return self.config().stream.address

    def put(self, records: range) -> None:
        entries = [{"Data": str(n).encode(), "PartitionKey": str(n)} for n in records]
        self.producer.put_records(StreamName=self.name, Records=entries)

    def calls(self, service: str) -> list[NotedCall]:
        return [call for call in self.accounts.calls if call.service == service]

    def check(self, *others_keys: str) -> None:
        """Each call was made with the identity that it should be made with (docs/security.md, "Streams of other accounts").

        Pods have our key, or one of `others_keys`.
        """
        reads, others = self.calls("kinesis"), [call for call in self.accounts.calls if call.service != "kinesis"]
        assert reads
        assert {call.account for call in reads} == {OTHER_ACCOUNT}
        assert {(call.named, call.arn) for call in reads} == {(frozenset({"StreamARN"}), self.arn)}
        assert {(call.account, call.key) for call in others} == {(OWN_ACCOUNT, key) for key in (self.accounts.own_key, *others_keys)}
        made = {f"{call.service}:{call.action}" for call in self.accounts.calls if call.service in {"kinesis", "sts"}}
        assert made <= granted("stream") | granted("assume")


def granted(policy: str) -> set[str]:
    document = json.loads((places.REPO / "docs" / "start" / f"iam-{policy}.json").read_text())
    return {action for statement in document["Statement"] for action in statement["Action"]}


@pytest.fixture
def theirs(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Theirs]:
    """A stream with some records, and a role that may read it. moto gives its keys to whom it likes, so its own side is asked directly."""
    sts = boto3.client("sts", endpoint_url=moto_endpoint, region_name=REGION)
    keys = sts.assume_role(RoleArn=f"arn:aws:iam::{OTHER_ACCOUNT}:role/producer", RoleSessionName="producer")["Credentials"]
    session = boto3.session.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], REGION)
    name, accounts = f"orders-{uuid4()}", Accounts(Role(external_id=EXTERNAL_ID))
    with proxy(Upstream(moto_endpoint), LOOPBACK) as front:
        front.around = accounts.around
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", accounts.own_key)  # other tests of this process may have set another
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", front.endpoint)
        monkeypatch.setenv("SLUICE_KINESIS_ENCODING", "json")
        _forget()
        made = Theirs(name, front.endpoint, accounts, session.client("kinesis", endpoint_url=moto_endpoint))
        made.producer.create_stream(StreamName=name, ShardCount=SHARDS)
        made.put(range(RECORDS))
        yield made
    _forget()


def _forget() -> None:
    """Each test is a process that has made no call yet."""
    credentials._of_environment.cache_clear()
    http.connect.cache_clear()
    http._calls.cache_clear()

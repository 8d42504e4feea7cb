"""A stream of another account is read as its role, and everything else is done as ourselves."""

from __future__ import annotations

import json
import re
import socket
import threading
from typing import Any

import boto3
import pytest
from conftest_accounts import RECORDS, REGION, Theirs

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.aws.role_sessions import credentials_of
from sluice_checkpoints.errors import AccessDenied, Refused, ServiceUnavailable
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_consumer.kinesis.http import HttpKinesis, connect
from sluice_consumer.letters.services import KinesisLetters
from sluice_lab.aws.accounts import OTHER_ACCOUNT, OWN_ACCOUNT, READ
from sluice_lab.machine.listening import LOOPBACK

EXPIRIES = 20
SESSIONS = 2  # one, and the one after it
LETTER = DeadLetter("c-1", "orders", "shardId-000000000000", "49", 0, 1_700_000_000_123, "k", b"{", 7, 3, "ValueError: no")
PAUSE = threading.Event()  # never set


def read(client: HttpKinesis, shard: str) -> list[bytes]:
    return client.get_records(shard, client.get_iterator(shard, TRIM_HORIZON), 1000).records.data


def statements(text: str) -> list[dict[str, Any]]:
    decoder = json.JSONDecoder()
    return [decoder.raw_decode(text, found.start())[0] for found in re.finditer(r'\{"Effect"', text)]


def test_a_stream_has_the_same_identity_in_every_path(theirs: Theirs) -> None:
    identity = BotoStreamCatalog(theirs.address).describe()
    assert identity.arn == theirs.arn
    assert theirs.producer.describe_stream_summary(StreamName=theirs.name)["StreamDescriptionSummary"]["StreamARN"] == theirs.arn
    theirs.check()


def test_shards_and_records_are_read_with_the_roles_key(theirs: Theirs) -> None:
    catalog = BotoStreamCatalog(theirs.address)
    client = connect(theirs.address)
    found = [data for shard in catalog.list_shards().shards for data in read(client, shard.id)]
    assert sorted(map(int, found)) == list(range(RECORDS))
    theirs.check()
    assert len(theirs.calls("sts")) == 1
    assert len({call.key for call in theirs.calls("kinesis")}) == 1


def test_a_name_and_a_region_are_enough_where_the_role_says_whose_stream_it_is(theirs: Theirs) -> None:
    """Calls name the stream by its name then; its identity is the same ARN."""
    stream = theirs.config(arn=None, name=theirs.name, region="us-east-1").stream
    assert BotoStreamCatalog(stream.address).describe().arn == theirs.arn
    assert {call.account for call in theirs.calls("kinesis")} == {OTHER_ACCOUNT}


def test_twenty_sessions_expire_under_a_reader_that_notices_none_of_it(theirs: Theirs) -> None:
    theirs.accounts.seconds = 0.3
    client, catalog = connect(theirs.address), BotoStreamCatalog(theirs.address)
    shards = [shard.id for shard in catalog.list_shards().shards]
    while len(theirs.accounts.ends) <= EXPIRIES:
        assert sum(len(read(client, shard)) for shard in shards) == RECORDS
        catalog.describe()
        PAUSE.wait(0.05)
    theirs.check()


def test_a_session_that_the_service_refuses_before_its_time_is_replaced(theirs: Theirs) -> None:
    client, catalog = connect(theirs.address), BotoStreamCatalog(theirs.address)
    (shard, *_) = catalog.list_shards().shards
    before = read(client, shard.id)
    theirs.accounts.revoke()
    assert read(client, shard.id) == before
    catalog.describe()
    assert len(theirs.calls("sts")) == SESSIONS
    theirs.check()


def test_dead_letters_are_written_as_ourselves(theirs: Theirs) -> None:
    """Into a stream of our own account, at the address of the one that is read as the role."""
    own = boto3.session.Session().client("kinesis", endpoint_url=theirs.endpoint, region_name=REGION)
    own.create_stream(StreamName=f"letters-{theirs.name}", ShardCount=1)
    theirs.accounts.own_may = frozenset({"DescribeStreamSummary"})
    identity = BotoStreamCatalog(theirs.address).describe()
    theirs.accounts.calls.clear()
    KinesisLetters(f"letters-{theirs.name}", theirs.config().stream, identity).write(LETTER)
    made = {(call.action, call.account, call.key) for call in theirs.accounts.calls}
    assert made == {(action, OWN_ACCOUNT, theirs.accounts.own_key) for action in ("DescribeStreamSummary", "PutRecord")}


@pytest.mark.parametrize("external_id", [None, "another"])
def test_a_wrong_external_id_is_refused_with_the_trust_that_is_missing(theirs: Theirs, external_id: str | None) -> None:
    with pytest.raises(AccessDenied) as refused:
        BotoStreamCatalog(theirs.config(externalId=external_id).stream.address).describe()
    trust, own = statements(str(refused.value))
    assert trust["Principal"] == {"AWS": "arn:aws:iam::123456789012:role/sluice-driver"}
    assert trust.get("Condition") == (external_id and {"StringEquals": {"sts:ExternalId": external_id}})
    assert own == {"Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"], "Resource": theirs.role.arn}
    assert ("set externalId" in str(refused.value)) == (external_id is None)
    assert not theirs.calls("kinesis")


def test_a_role_that_does_not_trust_us_is_refused_by_every_client(theirs: Theirs) -> None:
    theirs.role.trusted = False
    for call in (BotoStreamCatalog(theirs.address).describe, lambda: read(connect(theirs.address), "shardId-000000000000")):
        with pytest.raises(AccessDenied, match="the trust policy of that role needs"):
            call()
    assert not theirs.calls("kinesis")


def test_a_role_that_may_list_and_not_read_is_refused_with_the_statement_for_its_policy(theirs: Theirs) -> None:
    """All four actions: the next one that is missing would show at the next start."""
    theirs.role.may = READ - {"GetRecords"}
    client = connect(theirs.address)
    (shard, *_) = BotoStreamCatalog(theirs.address).list_shards().shards
    with pytest.raises(AccessDenied) as refused:
        read(client, shard.id)
    assert statements(str(refused.value)) == [{"Effect": "Allow", "Action": sorted(f"kinesis:{action}" for action in READ), "Resource": theirs.arn}]
    assert "a policy of arn:aws:iam::444455556666:role/orders-reader needs" in str(refused.value)


def test_an_arn_without_a_role_is_refused_with_the_resource_policy_that_is_missing(theirs: Theirs) -> None:
    with pytest.raises(AccessDenied, match=f"the resource policy of {theirs.arn} needs .*sluice-driver"):
        BotoStreamCatalog(theirs.config(roleArn=None, externalId=None).stream.address).describe()


def test_a_service_that_answers_with_another_accounts_stream_is_refused(theirs: Theirs) -> None:
    """An emulator that does not look at the account: its positions would be written as those of the stream that was asked for."""
    arn = theirs.arn.replace(OTHER_ACCOUNT, "777788889999")
    with pytest.raises(Refused):
        BotoStreamCatalog(theirs.config(arn=arn).stream.address).describe()
    with pytest.raises(Refused, match="the service answers with the stream"):
        theirs.address.check(arn)


@pytest.mark.parametrize("trouble", [("Throttling", 400), ("InternalFailure", 500), ("ExpiredTokenException", 403)])
def test_a_call_waits_for_an_sts_that_is_in_trouble(theirs: Theirs, trouble: tuple[str, int]) -> None:
    theirs.accounts.seconds = 0.2
    client = connect(theirs.address)
    (shard, *_) = BotoStreamCatalog(theirs.address).list_shards().shards
    theirs.accounts.trouble = trouble
    PAUSE.wait(0.3)
    back = threading.Timer(1.0, setattr, (theirs.accounts, "trouble", None))
    back.start()
    assert read(client, shard.id)
    back.join()
    theirs.check()


def test_an_sts_that_stays_in_trouble_is_named_with_the_role(theirs: Theirs) -> None:
    theirs.accounts.trouble = ("ExpiredTokenException", 403)
    catalog = BotoStreamCatalog(theirs.address, Patience(limit=1.0))
    with pytest.raises(ServiceUnavailable, match=f"there are no valid credentials of role {theirs.role.arn}: "):
        catalog.describe()
    assert not theirs.calls("kinesis")


def test_an_sts_that_cannot_be_reached_is_named_with_the_way_to_it(theirs: Theirs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A private network has often an endpoint of Kinesis and none of STS."""
    with socket.create_server((LOOPBACK, 0)) as nobody:
        port = nobody.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{LOOPBACK}:{port}")
    credentials_of(theirs.address.role, theirs.address.region).begun(60)  # the first attempt makes a client
    with pytest.raises(
        ServiceUnavailable, match=f"role {theirs.role.arn}: no answer from STS: .*:{port}.*; check this machine's network: .*VPC endpoint"
    ):
        BotoStreamCatalog(theirs.address, Patience(limit=1.0, cap=0.5)).describe()


def test_an_own_key_that_sts_does_not_know_ends_the_call_at_once(theirs: Theirs) -> None:
    theirs.accounts.trouble = ("InvalidClientTokenId", 403)
    with pytest.raises(Refused, match="correct the AWS credentials that assume the role: `aws sts get-caller-identity`"):
        connect(theirs.address).get_iterator("shardId-000000000000", TRIM_HORIZON)
    assert not theirs.calls("kinesis")


def test_an_sts_that_refuses_until_somebody_acts_is_not_asked_for_ever(theirs: Theirs) -> None:
    theirs.accounts.trouble = ("RegionDisabledException", 403)
    with pytest.raises(Refused, match="aws account enable-region"):
        BotoStreamCatalog(theirs.address).describe()
    assert not theirs.calls("kinesis")


def test_sessions_are_begun_again_when_the_trust_is_back(theirs: Theirs) -> None:
    theirs.accounts.seconds = 0.2
    client = connect(theirs.address)
    (shard, *_) = BotoStreamCatalog(theirs.address).list_shards().shards
    theirs.role.trusted = False
    PAUSE.wait(0.3)
    with pytest.raises(AccessDenied, match="the trust policy of"):
        read(client, shard.id)
    theirs.role.trusted = True
    PAUSE.wait(1.0)
    assert read(client, shard.id)

"""The real client: what goes over the wire, what comes back, and what a failure means."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
import urllib3
from botocore.credentials import Credentials
from botocore.exceptions import CredentialRetrievalError
from botocore.session import Session
from reading.replies import DATE_MILLIS, PASSING, RECORD, Answer, Server, error, get_records

from sluice_checkpoints.aws.connections import Connections
from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.aws.signed_http import Signer, _http
from sluice_checkpoints.errors import AccessDenied, ProtocolViolation, Refused, ServiceUnavailable
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import Child
from sluice_checkpoints.stream.address import StreamAddress
from sluice_consumer.kinesis.client import IteratorExpired, ShardNotFound
from sluice_consumer.kinesis.http import KINESIS, ONCE_SECONDS, WAITS, HttpKinesis, client, connect
from sluice_consumer.shards.request_counts import RequestCounter

POSITIONS = {
    TRIM_HORIZON: {"ShardIteratorType": "TRIM_HORIZON"},
    Position.timestamp(1_700_000_000_123): {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": 1_700_000_000.123},
    Position.after("4958"): {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": "4958"},
    Position.after("4958", 0): {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": "4958"},
}


@pytest.mark.parametrize(("position", "sent"), POSITIONS.items(), ids=map(str, POSITIONS))
def test_a_position_is_an_iterator(kinesis: HttpKinesis, server: Server, position: Position, sent: dict[str, Any]) -> None:
    server.says({"ShardIterator": "token"})
    assert kinesis.get_iterator("shard", position) == "token"
    method, url, body, headers = server.asked[0]
    assert (method, url) == ("POST", "https://kinesis.example/")
    assert body == {"StreamName": "orders", "ShardId": "shard"} | sent
    assert headers["X-Amz-Target"] == "Kinesis_20131202.GetShardIterator"
    assert headers["Content-Type"] == "application/x-amz-json-1.1"


def test_nothing_is_read_from_the_end(kinesis: HttpKinesis) -> None:
    with pytest.raises(ProtocolViolation):
        kinesis.get_iterator("shard", END)


def test_calls_are_signed(kinesis: HttpKinesis, server: Server) -> None:
    server.says({"ShardIterator": "token"})
    kinesis.get_iterator("shard", TRIM_HORIZON)
    assert "/eu-west-1/kinesis/aws4_request" in server.asked[0][3]["Authorization"]


def test_a_reply_becomes_columns(kinesis: HttpKinesis, server: Server) -> None:
    server.says({"Records": [RECORD], "NextShardIterator": "next", "MillisBehindLatest": 12})
    page = get_records(kinesis)
    assert (page.records.sequence, page.records.partition_key, page.records.data) == (["7"], ["k"], [b"\x00x"])
    assert page.records.arrival_millis == [1_700_000_000_001]
    assert (page.next_iterator, page.behind_millis, page.children, page.server_millis) == ("next", 12, None, DATE_MILLIS)
    assert server.asked[0][2] == {"ShardIterator": "iterator", "Limit": 5}


def test_a_client_of_one_try_leaves_it_to_its_caller_to_ask_again(kinesis: HttpKinesis, server: Server, requests: RequestCounter) -> None:
    once = client(kinesis._address, requests.listener("kinesis"), once=True)
    once._wire = kinesis._wire
    server.says(error("ProvisionedThroughputExceededException", "Rate exceeded"))
    with pytest.raises(Again, match="Rate exceeded"):
        get_records(once)
    assert (len(server.asked), server.timeout) == (1, ONCE_SECONDS)


@pytest.mark.parametrize("end", [{}, {"NextShardIterator": None}])
def test_the_end_of_a_shard(kinesis: HttpKinesis, server: Server, end: dict[str, Any]) -> None:
    """The iterator is null or left out; children come with their parents."""
    server.says({"Records": [], "ChildShards": [{"ShardId": "c", "ParentShards": ["a", "b"], "HashKeyRange": {}}], **end})
    page = get_records(kinesis)
    assert (page.next_iterator, page.behind_millis) == (None, 0)
    assert page.children == (Child("c", frozenset({"a", "b"})),)


def test_an_empty_list_of_children_is_none(kinesis: HttpKinesis, server: Server) -> None:
    """A shard that ends without children is an open question, not an answer."""
    server.says({"Records": [], "ChildShards": []})
    assert get_records(kinesis).children is None


def test_a_reply_without_a_date_leaves_the_time_unknown(kinesis: HttpKinesis, server: Server) -> None:
    """This machine's clock is not the service's."""
    server.headers = {}
    server.says({"Records": []})
    assert get_records(kinesis).server_millis == 0


FAILURES: dict[str, tuple[Answer, type[Exception], str]] = {
    "an expired iterator": (error("ExpiredIteratorException"), IteratorExpired, ""),
    "an unknown shard": (error("ResourceNotFoundException", "Shard x"), ShardNotFound, "Shard x"),
    "a bad argument": (error("InvalidArgumentException", "Limit"), Refused, "InvalidArgumentException: Limit"),
    "no permission": (error("AccessDeniedException", "no"), Refused, "roleArn, or the pod's role without it, needs kinesis:GetShardIterator"),
    "no permission for the key": (error("KMSAccessDeniedException"), AccessDenied, "roleArn, or the pod's role without it, needs kms:Decrypt"),
    "a wrong key": (error("InvalidSignatureException", "The request signature we calculated does not match"), Refused, "check the credentials"),
    "a page of a proxy": ((403, b"<html>"), Refused, "HTTP 403"),
}


@pytest.mark.parametrize(("answer", "raised", "text"), FAILURES.values(), ids=FAILURES.keys())
def test_what_does_not_pass_is_said_at_once(
    kinesis: HttpKinesis, server: Server, slept: list[float], answer: Answer, raised: type[Exception], text: str
) -> None:
    server.says(answer)
    with pytest.raises(raised, match=text or None):
        get_records(kinesis)
    assert slept == []


@pytest.mark.parametrize("answer", PASSING.values(), ids=PASSING.keys())
def test_what_passes_is_waited_out(kinesis: HttpKinesis, server: Server, slept: list[float], answer: Answer) -> None:
    """With pauses that grow (full jitter; the dice of this test show the most)."""
    server.says(answer, answer, answer, {"Records": []})
    assert len(get_records(kinesis).records) == 0
    assert slept == pytest.approx([0.1, 0.2, 0.4])


CAUSES = {
    "throughput": "ProvisionedThroughputExceededException",
    "key throttled": "KMSThrottlingException",
    "credentials about to be refreshed": "ExpiredTokenException",
    "internal": "InternalFailure",
    "a gateway": "HTTP 502",
    "half a reply": "NoAnswer",
    "no connection": "NoAnswer",
    "no answer": "NoAnswer",
}


@pytest.mark.parametrize(("name", "cause"), CAUSES.items(), ids=CAUSES.keys())
def test_a_retry_is_counted_by_its_cause(kinesis: HttpKinesis, server: Server, requests: RequestCounter, name: str, cause: str) -> None:
    server.says(PASSING[name], PASSING[name], {"Records": []})
    get_records(kinesis)
    assert requests.counts() == {"kinesis/GetRecords": 3, f"kinesis/GetRecords/{cause}": 2}


def test_an_iterator_that_expired_is_a_cause(kinesis: HttpKinesis, server: Server, requests: RequestCounter) -> None:
    server.says(error("ExpiredIteratorException"))
    with pytest.raises(IteratorExpired):
        get_records(kinesis)
    assert requests.counts() == {"kinesis/GetRecords": 1, "kinesis/GetRecords/ExpiredIteratorException": 1}


def test_waiting_has_an_end(kinesis: HttpKinesis, server: Server, slept: list[float]) -> None:
    server.says(error("ProvisionedThroughputExceededException", "Rate exceeded"))
    with pytest.raises(ServiceUnavailable, match=r"GetRecords of shard in stream orders.*Rate exceeded"):
        get_records(kinesis)
    assert 20 < sum(slept) <= 30


def test_calls_are_paced(kinesis: HttpKinesis, server: Server, slept: list[float]) -> None:
    server.says({"Records": []})
    for _ in range(10):
        get_records(kinesis)
    assert sum(slept) == pytest.approx(1)
    server.says({"Records": [RECORD | {"Data": base64.b64encode(bytes(4 * 1024 * 1024)).decode()}]})
    get_records(kinesis)
    get_records(kinesis)
    assert sum(slept) == pytest.approx(2.2, abs=0.05)  # 4 MiB of payload, whatever base64 makes of it; a second's worth was saved up


def test_no_credentials_are_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda _session: None)
    with pytest.raises(Refused, match="no AWS credentials"):
        Signer(KINESIS, Session(), "eu-west-1", "https://kinesis.example").headers("GetRecords", "", b"")


def test_credentials_that_come_late_are_waited_for(request: pytest.FixtureRequest, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the deadline of the call: a task has four attempts, and STS may be busy for longer than those take."""
    monkeypatch.setattr("sluice_checkpoints.aws.credentials.SHORT_PAUSE", 0.0)
    monkeypatch.setattr("sluice_checkpoints.aws.credentials.PATIENCE", 60.0)
    busy = iter([True, True, False])

    def find(_session: Session) -> Credentials:
        if next(busy):
            raise CredentialRetrievalError(provider="assume-role", error_msg="busy")
        return Credentials("key", "secret")

    monkeypatch.setattr(Session, "get_credentials", find)
    server.says({"Records": []})
    assert not len(get_records(request.getfixturevalue("kinesis")).records)
    assert next(busy, None) is None


def test_credentials_that_never_come_end_at_the_deadline_and_say_why(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_checkpoints.aws.credentials.PATIENCE", 60.0)

    def find(_session: Session) -> None:
        raise CredentialRetrievalError(provider="assume-role", error_msg="no trust")

    monkeypatch.setattr(Session, "get_credentials", find)
    with pytest.raises(ServiceUnavailable, match=r"no valid AWS credentials: .*no trust"):
        get_records(request.getfixturevalue("kinesis"))


def test_without_an_endpoint_the_regions_own_is_found(kinesis: HttpKinesis) -> None:
    assert isinstance(kinesis, HttpKinesis)
    assert Signer(KINESIS, Session(), "cn-north-1", None).url == "https://kinesis.cn-north-1.amazonaws.com.cn/"


def test_proxy_and_certificates_are_those_of_botocore(kinesis: HttpKinesis, monkeypatch: pytest.MonkeyPatch) -> None:
    """What works for every other AWS program in the pod works here."""
    assert isinstance(kinesis, HttpKinesis)
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    url = "https://kinesis.eu-west-1.amazonaws.com/"
    trusted: list[str] = []
    monkeypatch.setattr("sluice_checkpoints.aws.connections._trusting", trusted.append)
    assert isinstance(_http(Session(), url, WAITS, 1), Connections)
    monkeypatch.setenv("AWS_CA_BUNDLE", "/ca.pem")
    assert isinstance(_http(Session(), url, WAITS, 1), Connections)
    assert [path.endswith(".pem") for path in trusted] == [True, True]
    assert trusted[1] == "/ca.pem"
    monkeypatch.setenv("HTTPS_PROXY", "http://user:word@proxy.example:3128")
    pool = _http(Session(), url, WAITS, 1)
    assert isinstance(pool, urllib3.ProxyManager)
    assert pool.connection_pool_kw["ca_certs"] == "/ca.pem"
    assert (pool.proxy.host if pool.proxy else None, pool.proxy_headers["Proxy-Authorization"]) == ("proxy.example", "Basic dXNlcjp3b3Jk")
    monkeypatch.setenv("NO_PROXY", "amazonaws.com")
    assert isinstance(_http(Session(), url, WAITS, 1), Connections)


def test_a_process_has_one_client_a_stream_and_one_pool_an_endpoint(kinesis: HttpKinesis) -> None:
    """Tasks that follow each other reuse connections and keep to the pace; who counts their calls makes no difference."""
    first, second = (connect(StreamAddress(name, "eu-west-1", "http://127.0.0.1:1")) for name in ("a", "b"))
    assert connect(StreamAddress("a", "eu-west-1", "http://127.0.0.1:1")) is first
    assert first._wire is second._wire
    assert kinesis._wire is not first._wire
    other = connect(StreamAddress("a", "eu-west-1", "http://127.0.0.1:1"), RequestCounter().listener("kinesis"))
    assert (other._wire, other._pacer) == (first._wire, first._pacer)


OWN = StreamAddress("paced", "eu-west-1")
THEIRS = replace(OWN, arn="arn:aws:kinesis:eu-west-1:444455556666:stream/paced")


def test_a_stream_does_not_wait_for_the_shards_of_another_stream() -> None:
    """The first shard of every stream has the same id, and the tasks and probes of a pool read many streams in one process."""
    waited = list[float]()
    for address in (OWN, THEIRS, replace(OWN, name="clicks"), replace(OWN, region="eu-central-1")):
        pacer = connect(address)._pacer
        pacer.clock, pacer.sleep = lambda: 0.0, waited.append
        for _ in range(5):
            pacer.before("GetRecords", "shardId-000000000000")
    assert not waited


def test_two_roles_that_read_one_stream_share_its_limits() -> None:
    """Those are the shard's, whoever reads it. A name alone means another stream in each account."""
    roles = [AssumedRole(f"arn:aws:iam::{account}:role/reader") for account in ("444455556666", "777788889999")]
    assert len({id(connect(replace(THEIRS, role=role))._pacer) for role in roles}) == 1
    assert len({id(connect(replace(OWN, role=role))._pacer) for role in roles}) == 2

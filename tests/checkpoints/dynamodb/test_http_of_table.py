"""The client of a checkpoint table's rows without boto3: what failures look like. That it does what boto3's does is in tests/contract/checkpoints."""

from __future__ import annotations

import contextlib
import json
import zlib
from typing import Any

import pytest
import urllib3
from botocore.session import Session

from sluice_checkpoints.aws.retry import Again, NoListener, Patience
from sluice_checkpoints.aws.signed_http import SignedHttp, Signer
from sluice_checkpoints.dynamodb.http import DYNAMODB, DynamoHttp, http_client
from sluice_checkpoints.dynamodb.table import DynamoTable, Endpoint, client
from sluice_checkpoints.errors import AccessDenied, Refused, ServiceUnavailable, SluiceError
from sluice_checkpoints.protocol.table import Delete, Update, equals

ROW = {"Item": {"id": {"S": "a"}, "n": {"N": "1"}}}


class Service:
    def __init__(self) -> None:
        self.answers: list[Exception | tuple[int, bytes, dict[str, str]]] = []
        self.asked: list[tuple[str, dict[str, str]]] = []

    def request(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> Any:
        assert (method, url) == ("POST", "https://dynamodb.example/")
        assert b'"TableName":"orders"' in body
        self.asked.append((headers["X-Amz-Target"], headers))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, content, told = answer
        return urllib3.HTTPResponse(content, status=status, headers=told, preload_content=True)


def says(content: dict[str, Any], status: int = 200, crc: int | None = None) -> tuple[int, bytes, dict[str, str]]:
    body = json.dumps(content).encode()
    return status, body, {"x-amz-crc32": str(zlib.crc32(body) if crc is None else crc)}


@pytest.fixture
def service() -> Service:
    return Service()


class Heard(NoListener):
    def __init__(self) -> None:
        self.causes: set[str] = set()

    def again(self, operation: str, cause: str) -> None:
        assert operation
        self.causes.add(cause)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def table(service: Service, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> DynamoTable:
    """The table; its time passes only in pauses."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    slept: list[float] = []
    patience = Patience(limit=3, first=0.1, clock=lambda: sum(slept), sleep=slept.append, dice=lambda: 1.0, listener=heard)
    pool: Any = service
    signer = Signer(DYNAMODB, Session(), "eu-west-1", "https://dynamodb.example")
    return DynamoTable("orders", DynamoHttp(SignedHttp(signer, pool)), patience)


def test_a_call_is_signed_and_names_its_operation(table: DynamoTable, service: Service) -> None:
    service.answers = [says(ROW)]
    assert table.get("a") == {"id": "a", "n": 1}
    ((target, headers),) = service.asked
    assert target == "DynamoDB_20120810.GetItem"
    assert "/eu-west-1/dynamodb/aws4_request" in headers["Authorization"]
    assert headers["Content-Type"] == "application/x-amz-json-1.0"


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(says(ROW, crc=7), id="of another checksum"),
        pytest.param((200, b'{"Item":', {}), id="cut off"),
        pytest.param((200, b"[]", {}), id="no object"),
        pytest.param((200, b"<html>sign in</html>", {}), id="of a proxy"),
        pytest.param((503, b"<html>busy</html>", {}), id="of a load balancer"),
        pytest.param((429, b"local_rate_limited", {}), id="of a mesh with a rate limit"),
        pytest.param(says({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException"}, 400), id="that says not now"),
        pytest.param(says({"__type": "com.amazon.coral.service#ExpiredTokenException"}, 400), id="to credentials about to be renewed"),
        pytest.param(urllib3.exceptions.ProtocolError("Connection aborted."), id="that never came"),
    ],
)
def test_a_reply_that_is_no_answer_is_asked_for_again(table: DynamoTable, service: Service, broken: Any) -> None:
    """Never taken for "there is no such row"."""
    service.answers = [broken, says(ROW)]
    assert table.get("a") == {"id": "a", "n": 1}
    assert len(service.asked) == 2


def test_both_clients_call_one_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of credentials that know their account, botocore calls the account's. A rule of a network by names would block half of a driver's calls."""
    for name, value in {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "ACCOUNT_ID": "111122223333"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    called: list[str] = []

    def noted(request: Any, **_: Any) -> None:
        called.append(request.url)
        raise Again("not sent")

    boto = client(Endpoint("eu-west-1"))
    boto.meta.events.register("before-send", noted)
    with pytest.raises(Again, match="not sent"):
        boto.get_item(TableName="orders", Key={"id": {"S": "a"}})
    assert called == [http_client(Endpoint("eu-west-1"))._http._signer.url]


def test_what_does_not_pass_ends_at_the_limit(table: DynamoTable, service: Service) -> None:
    service.answers = [urllib3.exceptions.ReadTimeoutError(None, "/", "read timed out")]  # type: ignore[arg-type]
    with pytest.raises(ServiceUnavailable, match="GetItem on table orders"):
        table.get("a")


def test_credentials_that_stay_expired_are_named(table: DynamoTable, service: Service) -> None:
    """Nothing is wrong with the role, so the advice is another."""
    service.answers = [says({"__type": "com.amazon.coral.service#ExpiredTokenException", "message": "expired"}, 400)]
    with pytest.raises(ServiceUnavailable, match="credentials have expired") as caught:
        table.get("a")
    assert "the role it needs" not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "denied"),
    [
        ({"__type": "x#AccessDeniedException", "Message": "not authorized to perform: dynamodb:DeleteItem"}, True),
        ({"__type": "x#UnrecognizedClientException", "message": "The security token is invalid"}, False),
        ({"__type": "x#ValidationException", "message": "Item size has exceeded"}, False),
        ({"__type": "x#ThrottlingException"}, False),
        ({"__type": "x#ResourceNotFoundException"}, False),
        ({"__type": "x#TransactionCanceledException", "CancellationReasons": [{"Code": "ValidationError"}]}, False),
        ({"__type": "x#TransactionCanceledException", "CancellationReasons": [{"Code": "ThrottlingError"}]}, False),
    ],
    ids=str,
)
def test_only_a_permission_that_is_missing_is_read_as_one(table: DynamoTable, service: Service, reply: dict[str, Any], *, denied: bool) -> None:
    """Whoever is told to grant one is told so for no other reason."""
    service.answers = [says(reply, 400)]
    with pytest.raises(SluiceError) as caught:
        table.transact([Delete("a", ())])
    assert isinstance(caught.value, AccessDenied) is denied


@pytest.mark.parametrize(
    ("codes", "cause"),
    [
        (("None", "ThrottlingError"), "ThrottlingError"),
        (("TransactionConflict", "ProvisionedThroughputExceeded"), "ProvisionedThroughputExceeded"),
        (("TransactionConflict", "None"), "TransactionConflict"),
        (("ValidationError", "ConditionalCheckFailed"), None),
        (("ThrottlingError", "ConditionalCheckFailed"), None),
        (("ValidationError",), None),
    ],
    ids=str,
)
def test_a_cancelled_transaction_is_made_again_for_the_reason_in_it(
    table: DynamoTable, service: Service, heard: Heard, codes: tuple[str, ...], cause: str | None
) -> None:
    """An alert asks for throttling, and the code of the error says nothing of it. A failed condition is an answer, whatever else there is."""
    service.answers = [says({"__type": "x#TransactionCanceledException", "CancellationReasons": [{"Code": code} for code in codes]}, 400)]
    with contextlib.suppress(SluiceError):
        table.transact([Delete("a", ())])
    assert heard.causes == ({cause} if cause else set())


def test_a_failed_condition_is_an_answer_and_brings_the_row(table: DynamoTable, service: Service) -> None:
    service.answers = [says({"__type": "x#ConditionalCheckFailedException", "message": "The conditional request failed", **ROW}, 400)]
    outcome = table.write(Update("a", equals(n=2), put={("n",): 3}))
    assert (outcome.applied, outcome.row) == (False, {"id": "a", "n": 1})
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [("AccessDeniedException", Refused), ("ResourceNotFoundException", Refused), ("ValidationException", SluiceError)],
)
def test_a_refusal_is_not_asked_again_and_says_why(table: DynamoTable, service: Service, code: str, expected: type[Exception]) -> None:
    service.answers = [says({"__type": f"com.amazon.coral.service#{code}", "Message": "because"}, 400)]
    with pytest.raises(expected, match=r"because|no table orders"):
        table.get("a")
    assert len(service.asked) == 1

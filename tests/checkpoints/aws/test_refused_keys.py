"""A service refuses an access key that its source has replaced: the next try uses the new one, by whatever client and from whatever source."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore import credentials as boto
from botocore.exceptions import CredentialRetrievalError
from patience import PATIENCE

from sluice_checkpoints.aws import credentials
from sluice_checkpoints.aws.credentials import Credentials, Reloads
from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.dynamodb.http import http_client
from sluice_checkpoints.dynamodb.table import DynamoTable, Endpoint, client
from sluice_checkpoints.errors import Refused, ServiceUnavailable, SluiceError
from sluice_checkpoints.letters.folder import folder
from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_consumer.kinesis.http import connect
from sluice_consumer.letters import services
from sluice_consumer.letters.services import LetterService
from sluice_consumer.sinks.verdicts import SinkUnavailable

REGION = "us-east-1"
SUMMARY = {
    "StreamName": "orders",
    "StreamARN": f"arn:aws:kinesis:{REGION}:000000000000:stream/orders",
    "StreamCreationTimestamp": 1,
    "RetentionPeriodHours": 24,
    "StreamStatus": "ACTIVE",
}
REPLY = {"ShardIterator": "x", "StreamDescriptionSummary": SUMMARY, "Attributes": {"MaximumMessageSize": "1"}}
ROLE = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>{}</AccessKeyId>
<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>{}</Expiration></Credentials></AssumeRoleResult>
</AssumeRoleResponse>"""
LISTED = '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated></ListBucketResult>'


class Aws(http.server.ThreadingHTTPServer):
    """Kinesis, DynamoDB, SQS, S3 and STS in one, which take the key that is valid and refuse every other by one code.

    Attributes:
        asked: the keys of all requests, but for STS'.
        roles: how many sessions of roles STS has issued; of the first `revoked` no key is taken any more.
        until: when such a session ends.
        base: the only key that STS takes; None: any.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Service)
        self.valid, self.code, self.asked, self.roles = "OLD", "ExpiredTokenException", list[str](), 0
        self.revoked, self.until = 0, "2099-01-01T00:00:00Z"
        self.base: str | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, key: str, content_type: str, body: str) -> tuple[int, str, str]:
        if "Action=AssumeRole" in body and self.base not in {None, key}:
            return 403, "text/xml", "<ErrorResponse><Error><Code>InvalidClientTokenId</Code><Message>no</Message></Error></ErrorResponse>"
        if "Action=AssumeRole" in body:
            self.roles += 1
            return 200, "text/xml", ROLE.format(f"ROLE{self.roles}", self.until)
        self.asked.append(key)
        if key == self.valid or (key.startswith("ROLE") and int(key[4:]) > self.revoked):
            return (200, content_type, json.dumps(REPLY)) if content_type else (200, "text/xml", LISTED)
        if not content_type:
            return 403, "text/xml", f"<Error><Code>{self.code}</Code><Message>no</Message></Error>"
        return 400, content_type, json.dumps({"__type": f"x#{self.code}", "message": "The security token included in the request is invalid"})


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._serve("")

    def do_POST(self) -> None:
        self._serve(self.headers["Content-Type"])

    def _serve(self, content_type: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        key = self.headers["Authorization"].partition("Credential=")[2].partition("/")[0]
        status, kind, text = self.server.answer(key, content_type, body)  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    credentials._of_environment.cache_clear()
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    server = Aws()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
    yield server
    server.shutdown()
    server.server_close()
    credentials._of_environment.cache_clear()


class Source:
    """A place for credentials. `put` is what their writer does; `keys` are those that services are asked with then."""

    def __init__(self, kind: str, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.kind, self._root, self._patch = kind, root, patch
        self.runs = root / "runs"
        config = {
            "process": f"[default]\ncredential_process = {root}/issue\n",
            "role": "[default]\nrole_arn = arn:aws:iam::000000000000:role/r\nsource_profile = base\nregion = us-east-1\n",
        }
        (root / "config").write_text(config.get(kind, ""))
        (root / "issue").write_text(f"#!/bin/sh\necho run >> {self.runs}\ncat {root}/issued\n")
        (root / "issue").chmod(0o755)
        patch.setenv("AWS_CONFIG_FILE", str(root / "config"))
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(root / "credentials"))
        self.put("OLD")

    def put(self, key: str) -> None:
        if self.kind == "environment":
            self._patch.setenv("AWS_ACCESS_KEY_ID", key)
            self._patch.setenv("AWS_SECRET_ACCESS_KEY", "s")
        (self._root / "issued").write_text(json.dumps({"Version": 1, "AccessKeyId": key, "SecretAccessKey": "s", "SessionToken": "t"}))
        section = "base" if self.kind == "role" else "default"
        if self.kind in {"file", "role"}:
            (self._root / "credentials").write_text(f"[{section}]\naws_access_key_id={key}\naws_secret_access_key=s\naws_session_token=t\n")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Source]:
    return lambda kind: Source(kind, tmp_path, monkeypatch)


def caller(name: str, url: str, limit: float = 30.0) -> Callable[[], Any]:
    """A call by a client that is made now and kept; `limit` is its deadline in seconds."""
    patience, endpoint = Patience(limit=limit, first=0.05, cap=0.2), Endpoint(REGION, url)
    match name:
        case "Kinesis, own":
            stream = connect(StreamAddress("orders", REGION, url, deadline_seconds=limit))
            return partial(stream.get_iterator, "shardId-000000000000", TRIM_HORIZON)
        case "DynamoDB, own":
            return partial(DynamoTable("t", http_client(endpoint), patience).get, "x")
        case "DynamoDB, boto3":
            return partial(DynamoTable("t", client(endpoint), patience).get, "x")
        case "Kinesis, boto3":
            return BotoStreamCatalog(StreamAddress("orders", REGION, url), patience).describe
        case _:
            letters = LetterService(services.client("sqs", REGION, url), "onError.deadLetter.sqs", f"{url}/0/q", "rights", patience)
            return partial(letters.call, "GetQueueAttributes", "get_queue_attributes", {"QueueUrl": letters.place, "AttributeNames": ["All"]})


NAMES = ["Kinesis, own", "DynamoDB, own", "DynamoDB, boto3", "Kinesis, boto3", "letters"]
REPLACED = [
    ("file", "ExpiredTokenException"),
    ("file", "UnrecognizedClientException"),
    ("process", "ExpiredToken"),
    ("process", "InvalidClientTokenId"),
]


@pytest.mark.parametrize(("kind", "code"), REPLACED)
@pytest.mark.parametrize("name", NAMES)
def test_new_credentials_are_found_when_the_old_ones_are_refused(aws: Aws, source: Callable[[str], Source], name: str, kind: str, code: str) -> None:
    """Their writer has replaced them; the client was made before and is kept."""
    place = source(kind)
    call = caller(name, aws.url)
    call()
    place.put("NEW")
    aws.valid, aws.code = "NEW", code
    call()
    assert (aws.asked[:2], aws.asked[-1]) == (["OLD", "OLD"], "NEW")
    assert len(aws.asked) <= 5, "one refusal, or some more while the look was under way"


@pytest.mark.parametrize("name", NAMES)
def test_a_role_is_assumed_again_when_its_session_is_refused(aws: Aws, source: Callable[[str], Source], name: str) -> None:
    """It was revoked long before its time; the account's own key has been replaced as well."""
    place = source("role")
    call = caller(name, aws.url)
    call()
    place.put("NEW")
    aws.revoked, aws.code = aws.roles, "UnrecognizedClientException"
    call()
    assert len(set(aws.asked)) == 2
    assert len(aws.asked) <= 5


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_key_that_never_changes_ends_as_before(aws: Aws, source: Callable[[str], Source], name: str) -> None:
    """The environment of a process does not change: one look, one refusal, no loop."""
    source("environment")
    aws.valid, aws.code = "ANOTHER", "UnrecognizedClientException"
    with pytest.raises(SluiceError) as error:
        caller(name, aws.url)()
    assert isinstance(error.value, Refused)
    assert set(aws.asked) == {"OLD"}
    assert len(aws.asked) <= 3, "the first one, and at most two while the look was under way"


@pytest.mark.parametrize("first", [True, False], ids=["the first call", "a later call"])
@pytest.mark.parametrize("name", NAMES)
def test_a_credential_process_that_never_answers_ends_the_call_at_its_deadline(
    aws: Aws, source: Callable[[str], Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, first: bool
) -> None:
    """Other threads of the client wait no longer than this one."""
    source("process")
    call = caller(name, aws.url, limit=0.5)
    if not first:
        caller(name, aws.url)()
        aws.valid = "NEW"
    (tmp_path / "issue").write_text(f"#!/bin/sh\nexec sleep {2 * PATIENCE}\n")
    monkeypatch.setattr(credentials, "PATIENCE", 0.1)
    with ThreadPoolExecutor(3) as pool:
        errors = [pool.submit(call).exception(PATIENCE) for _ in range(3)]
    assert {type(error) for error in errors} <= {ServiceUnavailable, SinkUnavailable}
    assert len(aws.asked) < 60, "no loop without a pause"


@pytest.mark.parametrize("name", NAMES)
def test_a_role_whose_session_runs_out_is_assumed_with_the_key_that_replaced_its_own(
    aws: Aws, source: Callable[[str], Source], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """STS takes the old one no more. No service has refused anything before that."""
    monkeypatch.setattr(credentials, "PAUSE", 0.0)
    place = source("role")
    aws.until, aws.base = (datetime.now(UTC) + timedelta(minutes=5)).isoformat(), "OLD"
    call = caller(name, aws.url)
    call()
    place.put("NEW")
    aws.base = "NEW"
    deadline = time.monotonic() + 20
    while aws.asked[-1] == aws.asked[0] and time.monotonic() < deadline:
        call()
    assert aws.asked[-1] != aws.asked[0]


@pytest.mark.parametrize("name", NAMES)
def test_credentials_that_are_named_wrongly_are_refused_at_once(aws: Aws, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Waiting would not correct them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    with pytest.raises(Refused, match=r"AWS credentials: Partial credentials found in env.*; correct the profile"):
        caller(name, aws.url)()
    assert not aws.asked


def test_all_clients_of_a_process_share_one_look(aws: Aws, source: Callable[[str], Source]) -> None:
    place = source("process")
    calls = [caller(name, aws.url) for name in NAMES]
    for key in ("OLD", "NEW"):
        place.put(key)
        aws.valid = key
        for call in calls:
            call()
    assert place.runs.read_text().split() == ["run", "run"]


@pytest.mark.parametrize(("seconds", "most"), [(0.0, 121), (0.5, 12), (20.0, 3)])
def test_a_source_that_has_nothing_new_is_not_asked_at_every_try(seconds: float, most: int) -> None:
    """A credential_process may take seconds, and a service that refuses is tried some times a second: here a minute long, ten times a second."""
    now, asked, key = [0.0], list[float](), boto.Credentials("OLD", "s", "t")

    def load() -> boto.Credentials:
        asked.append(now[0])
        now[0] += seconds
        return key

    reloads = Reloads(lambda: now[0])
    while now[0] < 60:
        assert reloads.other_than(key.get_frozen_credentials(), load) is None
        now[0] += 0.1
    assert 2 <= len(asked) <= most


def test_a_source_that_fails_has_nothing_new() -> None:
    """The file is being written, or the process is gone: the key that is held stays."""

    def broken() -> boto.Credentials:
        raise CredentialRetrievalError(provider="custom-process", error_msg="no")

    assert Reloads().other_than(boto.Credentials("OLD", "s").get_frozen_credentials(), broken) is None


def test_threads_whose_calls_are_refused_at_once_all_get_the_new_key() -> None:
    found, begun, loads = [boto.Credentials("OLD", "s")], threading.Event(), list[str]()

    def load() -> boto.Credentials:
        loads.append(found[0].access_key)
        if len(loads) > 1:
            begun.wait(5)
        return found[0]

    held = Credentials(load)
    old = held.current()
    found[0] = boto.Credentials("NEW", "s")
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(held.refused, old) for _ in range(8)]
        begun.set()
        assert [answer.result() for answer in answers] == [True] * 8
    assert loads == ["OLD", "NEW"]
    assert held.current().access_key == "NEW"


def test_a_folder_of_letters_on_s3_is_read_with_new_credentials(aws: Aws, source: Callable[[str], Source]) -> None:
    """`list` in a program that stays, such as the kubectl plugin's screens."""
    place = source("file")
    kept = folder("s3a://bucket/letters", REGION, aws.url)
    assert list(kept.names(".json")) == []
    place.put("NEW")
    aws.valid, aws.code = "NEW", "ExpiredToken"
    assert list(kept.names(".json")) == []

"""What a pod assumes the role with, as EKS gives it: keys that end, from Pod Identity's agent or for a web identity's token (IRSA)."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest_accounts import Theirs
from test_reading import read

from sluice_checkpoints.aws import credentials
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_consumer.kinesis.http import connect
from sluice_lab.aws.accounts import OTHER_ACCOUNT, OWN_ACCOUNT
from sluice_lab.machine.listening import LOOPBACK

KEYS, POD_SECONDS, SESSION_SECONDS = 4, 1.2, 0.4
PAUSE = threading.Event()  # never set
NONE = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere"}


class Agent(http.server.ThreadingHTTPServer):
    """Pod Identity's: a new key for each question, to whoever shows the token of the mounted file."""

    daemon_threads = True

    def __init__(self, theirs: Theirs, token: Path) -> None:
        super().__init__((LOOPBACK, 0), Answering)
        self.theirs, self.token, self.issued = theirs, token, 0

    def issue(self) -> bytes:
        self.issued += 1
        key, ends = f"POD{self.issued}", datetime.now(UTC) + timedelta(seconds=POD_SECONDS)
        self.theirs.accounts.pod_ends[key] = ends
        return json.dumps({"AccessKeyId": key, "SecretAccessKey": "s", "Token": "t", "Expiration": ends.isoformat()}).encode()


class Answering(http.server.BaseHTTPRequestHandler):
    server: Agent

    def do_GET(self) -> None:
        shown = self.headers["Authorization"] == self.server.token.read_text()
        self.send_response(200 if shown else 401)
        self.end_headers()
        self.wfile.write(self.server.issue() if shown else b"{}")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def pod(theirs: Theirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    token = tmp_path / "token"
    token.write_text("token")
    agent = Agent(theirs, token)
    threading.Thread(target=agent.serve_forever, daemon=True).start()
    kinds = {
        "Pod Identity": {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://{LOOPBACK}:{agent.server_port}/v1/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token),
        },
        "IRSA": {
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
            "AWS_ROLE_ARN": f"arn:aws:iam::{OWN_ACCOUNT}:role/sluice-driver",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        },
    }

    def given(kind: str) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in (NONE | kinds[kind]).items():
            monkeypatch.setenv(name, value)
        theirs.accounts.pod_seconds, theirs.accounts.seconds = POD_SECONDS, SESSION_SECONDS
        credentials._of_environment.cache_clear()

    yield given
    agent.shutdown()
    agent.server_close()


@pytest.mark.parametrize("kind", ["Pod Identity", "IRSA"])
def test_keys_of_a_pod_are_replaced_while_its_sessions_are_renewed(theirs: Theirs, pod: Callable[[str], None], kind: str) -> None:
    pod(kind)
    client = connect(theirs.address)
    (shard, *_) = BotoStreamCatalog(theirs.address).list_shards().shards
    while len(set(theirs.accounts.begun_by.values())) < KEYS:
        assert read(client, shard.id)
        PAUSE.wait(0.05)
    assert set(theirs.accounts.begun_by.values()) <= set(theirs.accounts.pod_ends)
    assert {call.account for call in theirs.calls("kinesis")} == {OTHER_ACCOUNT}
    assert {call.key in theirs.accounts.pod_ends for call in theirs.calls("sts")} == {True}
    assert len(theirs.accounts.ends) > KEYS

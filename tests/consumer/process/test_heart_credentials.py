"""A lease is kept while the credentials of its heartbeats are renewed."""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from botocore.credentials import RefreshableCredentials
from botocore.session import Session

from sluice_checkpoints.aws.credentials import Credentials
from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.aws.signed_http import SignedHttp, Signer
from sluice_checkpoints.dynamodb.http import DYNAMODB, DynamoHttp
from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.protocol.batch_writes import Epoch
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.process.supervisor import Heartbeats

LEASE, HOUR = 6.0, datetime.timedelta(hours=1)


class Service:
    def request(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> Any:
        assert (method, url) == ("POST", "https://dynamodb.example/")
        assert headers["X-Amz-Target"].endswith("UpdateItem")
        assert json.loads(body)["TableName"] == "orders"
        return urllib3.HTTPResponse(b"{}", status=200, preload_content=True)


@pytest.fixture
def asleep() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_heart_beats_while_sts_does_not_answer(asleep: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself botocore renews a quarter of an hour before the end, and waits for STS in whatever call comes first."""
    passed = [datetime.timedelta()]
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

    def renew() -> dict[str, str]:
        asleep.wait()
        raise TimeoutError("STS")

    held = RefreshableCredentials("key", "s", "t", begin + HOUR, renew, "sts", lambda: begin + passed[0])
    monkeypatch.setattr("sluice_checkpoints.aws.credentials.PATIENCE", 60.0)
    pool: Any = Service()
    http = SignedHttp(Signer(DYNAMODB, Session(), "eu-west-1", "https://dynamodb.example", Credentials(lambda: held)), pool)
    clock = iter(range(1000))
    store = CheckpointStore(DynamoTable("orders", DynamoHttp(http), Patience(limit=LEASE / 6)))
    heart = Heartbeats(lambda promise: store.beat(Epoch(1, "token"), promise), LEASE, accepted=-1.0, clock=lambda: float(next(clock)))
    heart.once()
    passed[0] = HOUR - datetime.timedelta(minutes=14)
    beats: list[float] = []

    def beat() -> None:
        for _ in range(20):
            heart.once()
            beats.append(heart.accepted)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    thread.join(30)
    assert len(beats) == 20
    assert beats == sorted(set(beats))

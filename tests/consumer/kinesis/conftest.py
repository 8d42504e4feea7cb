"""The real client of Kinesis, before a service that answers from a list."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.session import Session
from reading.replies import Server

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.aws.signed_http import SignedHttp, Signer
from sluice_checkpoints.stream.address import StreamAddress
from sluice_consumer.kinesis.codec import CBOR, JSON
from sluice_consumer.kinesis.http import KINESIS, HttpKinesis, KinesisCalls
from sluice_consumer.kinesis.pacing import Pacer
from sluice_consumer.shards.request_counts import RequestCounter


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def requests() -> RequestCounter:
    return RequestCounter()


@pytest.fixture
def kinesis(server: Server, slept: list[float], requests: RequestCounter, monkeypatch: pytest.MonkeyPatch) -> HttpKinesis:
    """The client; its time passes only in pauses."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    address = StreamAddress("orders", "eu-west-1", "https://kinesis.example")
    patience = Patience(
        limit=30, first=0.1, cap=5, clock=lambda: sum(slept), sleep=slept.append, dice=lambda: 1.0, listener=requests.listener("kinesis")
    )
    pool: Any = server
    wire = KinesisCalls(SignedHttp(Signer(KINESIS, Session(), address.region, address.endpoint), pool), JSON)
    return HttpKinesis(address, wire, Pacer(lambda: sum(slept), slept.append), patience)


@pytest.fixture
def fluent(kinesis: HttpKinesis) -> HttpKinesis:
    """The same client as it is outside of these tests: it asks for records in CBOR."""
    kinesis._wire.codec = CBOR
    return kinesis

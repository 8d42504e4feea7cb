"""Fixtures of emulated AWS, for every folder of tests: each emulator is started once a session, when the first test asks for it.

One that cannot be started does not fail the tests over it: they are reported as skipped, with the reason (`-ra` prints it). In CI they fail
(tests/left_out.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.machine.postgres import postgres


def running(emulator: Callable[[Path], AbstractContextManager[str]]) -> Iterator[str]:
    with emulator(places.work()) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def credentials() -> Iterator[None]:
    """Emulators take any credentials, but botocore wants some."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "tests")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
        yield


@pytest.fixture(scope="session")
def dynamodb_endpoint() -> Iterator[str]:
    yield from running(emulators.dynamodb_local)


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """versitygw: conditional writes and multipart uploads."""
    yield from running(emulators.s3)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    yield from running(postgres)


@pytest.fixture(scope="session")
def dynalite_endpoint() -> Iterator[str]:
    """dynalite: a new table is CREATING for a second; no transactions."""
    yield from running(emulators.dynalite)


@pytest.fixture(scope="session")
def kinesis_local_endpoint() -> Iterator[str]:
    """kinesis-local: ChildShards at the end of a shard."""
    yield from running(emulators.kinesis_local)


@pytest.fixture(scope="session")
def kinesalite_endpoint() -> Iterator[str]:
    """kinesalite: no ChildShards, the end in a reply of its own, MillisBehindLatest always 0."""
    yield from running(emulators.kinesalite)


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """moto: SQS, and a Kinesis that knows ARNs."""
    yield from running(emulators.moto)

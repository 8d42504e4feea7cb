"""Adapters of one process share what may be shared."""

from __future__ import annotations

import pytest

from sluice_consumer import ports
from sluice_consumer.config import Checkpoints, Config, Pipeline, Stream

CONFIG = Config(Stream("s", "eu-west-1", dynamodb_endpoint="http://127.0.0.1:1"), Checkpoints("t"), Pipeline("m:f"), lease_duration_seconds=12)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients are made, and never used."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")


def test_a_process_has_one_dynamodb_client_for_everything_but_its_heartbeats() -> None:
    """Another costs a tenth of a second and 10 MB (measured)."""
    apis = [ports.store(CONFIG).table._api, ports.targets(CONFIG)._api, ports.sources(CONFIG)._api]  # type: ignore[attr-defined]
    assert len({id(api) for api in apis}) == 1
    assert ports.beating_store(CONFIG).table._api is not apis[0]  # type: ignore[attr-defined]


def test_a_heartbeat_is_answered_within_a_sixth_of_the_lease_or_not_at_all() -> None:
    """Connecting and reading each have half of it, and no try starts later."""
    table = ports.beating_store(CONFIG).table
    config = table._api.meta.config  # type: ignore[attr-defined]
    assert (config.connect_timeout, config.read_timeout, table._patience.limit) == (1.0, 1.0, 2.0)  # type: ignore[attr-defined]

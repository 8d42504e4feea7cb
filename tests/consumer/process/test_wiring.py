"""Adapters of one process share what may be shared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sluice_checkpoints.aws.connections import TimeLimits
from sluice_checkpoints.protocol.row_kinds import OwnTable
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.process import wiring

CONFIG = Config(
    StreamConfig("s", "eu-west-1", dynamodb_endpoint="http://127.0.0.1:1"), CheckpointsConfig("t"), PipelineConfig("m:f"), lease_duration_seconds=12
)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")


def test_a_process_has_one_client_of_tables_and_one_of_rows_but_for_its_heartbeats() -> None:
    """Another of boto3's costs a tenth of a second and 10 MB (measured)."""
    assert api(wiring.targets(CONFIG)) is api(wiring.sources(CONFIG))
    assert api(wiring.store(CONFIG).table) is api(wiring.store(CONFIG).table)
    assert api(wiring.beating_store(CONFIG).table) is not api(wiring.store(CONFIG).table)


def test_a_heartbeat_is_answered_within_a_sixth_of_the_lease_or_not_at_all() -> None:
    """Connecting and reading each have half of it, and no try starts later."""
    table: Any = wiring.beating_store(CONFIG).table
    waits = api(table)._http._http._make.args[-1]
    assert (waits, table._patience.limit) == (TimeLimits(connect=1.0, read=1.0), 2.0)


def test_folding_is_answered_within_three_seconds_or_not_at_all() -> None:
    """A batch waits meanwhile: a second to begin tries, then at most one each to connect and to read, and two for all of it."""
    table: Any = wiring.folding_store(CONFIG).table
    waits = api(table)._http._http._make.args[-1]
    assert (waits, table._patience.limit) == (TimeLimits(connect=1.0, read=1.0, whole=2.0), 1.0)


@pytest.mark.parametrize(("lease", "limit"), [(10, 10 / 3), (20, 20 / 3), (300, 10.0)])
def test_a_standby_knows_long_before_a_lease_ends_that_its_table_does_not_answer(lease: float, limit: float) -> None:
    """The driver whose lease ends then may have the same credentials. Connecting and reading have half of a look each."""
    table: Any = wiring.looking_store(replace(CONFIG, lease_duration_seconds=lease)).table
    waits = api(table)._http._http._make.args[-1]
    assert (waits.connect, waits.read, table._table._patience.limit) == (limit / 2, limit / 2, limit)


def api(adapter: Any) -> Any:
    table: Any = adapter._table if isinstance(adapter, OwnTable) else adapter
    return table._api

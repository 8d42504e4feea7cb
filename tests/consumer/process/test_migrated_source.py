"""A consumer that was replaced, and works again, is found out by what moves in its table."""

from __future__ import annotations

from typing import Any

import pytest

from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_checkpoints.formats.snapshot import KeySchema, TableKey
from sluice_checkpoints.migrate.store import MigrationClaim
from sluice_checkpoints.protocol.rows import MigrationRow
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.process.migrated_source import Positions, positions, watch

CREATED = 1_795_700_000_000
ORDERS = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:000000000000:stream/orders", CREATED, 86_400_000, "ACTIVE")
OURS, THEIRS = (f"000000000000:{name}:{CREATED // 1000}:shardId-000000000000" for name in ("orders", "views"))
FIRST = 49_600_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_000_007
CLAIM = MigrationClaim(MigrationRow("old", "kcl", 0), "arn", 0)


class Tables:
    """KCL's table of two streams: of each lease, how far it came since, and how often it was renewed."""

    def __init__(self, ours: int = 0, theirs: int = 0, renewals: int = 0, name: str = "old") -> None:
        self.name, self._renewals = name, renewals
        self._leases = {OURS: FIRST + ours, THEIRS: FIRST + theirs}

    def key_schema(self, table: str) -> KeySchema | None:
        return (TableKey("leaseKey", "HASH", "S"),) if table == self.name else None

    def scan(self, _table: str) -> list[dict[str, dict[str, str]]]:
        counter = {"leaseCounter": {"N": str(self._renewals)}}
        return [{"leaseKey": {"S": key}, "checkpoint": {"S": str(at)}, **counter} for key, at in self._leases.items()]


def seen(tables: Tables, **chosen: Any) -> Positions:
    return positions(tables, MigrationClaim(CLAIM.row, "arn", 0, chosen), ORDERS)


@pytest.mark.parametrize(
    ("later", "chosen", "moved"),
    [
        pytest.param(Tables(ours=1), {}, True, id="a position moves"),
        pytest.param(Tables(renewals=9), {}, False, id="a lease is renewed, and nothing is read"),
        pytest.param(Tables(theirs=1, renewals=9), {}, False, id="another stream of the table is still read"),
        pytest.param(Tables(ours=1), {"ignore-row": [OURS]}, False, id="a row that the migration ignored"),
    ],
)
def test_a_consumer_works_if_a_position_of_its_stream_moves(later: Tables, chosen: dict[str, list[str]], moved: bool) -> None:  # noqa: FBT001
    """Then records are processed twice."""
    assert (seen(later, **chosen) != seen(Tables(), **chosen)) is moved


def test_a_source_that_is_gone_is_refused_by_its_name() -> None:
    with pytest.raises(Refused, match="no source table old"):
        seen(Tables(name="another"))


def looked(*found: Tables | Exception) -> tuple[list[int], list[float]]:
    """How many positions had moved by each look but the first, and the waits before the looks, until the driver ends."""
    told, waited, left = list[int](), list[float](), iter(found)

    def ended(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) > len(found)

    watch(ended, lambda: look(next(left)), told.append)
    return told, waited


def look(found: Tables | Exception) -> Positions:
    if isinstance(found, Exception):
        raise found
    return seen(found)


def test_a_source_is_compared_with_the_look_before_until_the_driver_ends() -> None:
    """A Deployment comes back when somebody commits to its repository, is stopped, and comes back. What moved before the first look is over."""
    rest, ran, again = Tables(), Tables(ours=1), Tables(ours=2)
    assert looked(ran, ran, again, again, rest) == ([0, 1, 0, 1], [180, 180, 3600, 3600, 3600, 3600])


@pytest.mark.parametrize(("error", "wait"), [(ServiceUnavailable("no route"), 180), (Refused("no permission"), 3600)])
def test_a_look_that_fails_ends_nothing_and_is_logged_once(error: Exception, wait: float, caplog: pytest.LogCaptureFixture) -> None:
    """What a person took away on purpose is tried every hour."""
    assert looked(error, error, Tables(), Tables(ours=1)) == ([1], [180, wait, wait, 180, 3600])
    assert [record.getMessage() for record in caplog.records] == [f"whether the consumer that was replaced still works is not known: {error}"]

"""What a test asks of a migration that ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_checkpoints.migrate.migrator import MigrationResult, Migrator
from sluice_checkpoints.protocol.rows import MIGRATION, MigrationRow

SOURCE, TARGET = "orders-kcl", "sluice-orders"


def migration(bench: Any) -> MigrationRow:
    return MigrationRow.from_item(bench.table.rows[MIGRATION])


def refusal(run: Callable[[], MigrationResult]) -> str:
    with pytest.raises(Refused) as refused:
        run()
    return str(refused.value)


def lose_the_third_scan(bench: Any) -> Migrator:
    """A migrator that fails after it has written every row."""
    scans = 0

    def visit(number: int) -> None:
        nonlocal scans
        if bench.calls.log[number] == "before scan source":
            scans += 1
            if scans == 3:
                raise ServiceUnavailable("no answer")

    bench.calls.visit = visit
    migrator: Migrator = bench.migrator()
    return migrator

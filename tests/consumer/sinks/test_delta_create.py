"""Making a Delta table while another driver makes it: what Delta answers then (tests/contract/sinks/test_delta_table.py has the race)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sluice_consumer.sinks.delta import table
from sluice_consumer.sinks.delta.table import HALF_MADE, DeltaTable
from sluice_consumer.sinks.options import RowOptions


class Session:
    """Refuses the statement some times. The table is there from then on, if the other driver made it."""

    def __init__(self, refusals: int, why: str) -> None:
        self.left, self.why, self.asked = refusals, why, 0

    def sql(self, _statement: str) -> None:
        self.asked += 1
        if self.left:
            self.left -= 1
            raise RuntimeError(self.why)


@pytest.fixture
def create(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(table, "MAKING_SECONDS", 0.2)
    monkeypatch.setattr(table.rows, "columns", lambda _made: "id BIGINT")

    def run(session: Session, *, there: bool) -> None:
        monkeypatch.setattr(DeltaTable, "exists", lambda *_: there)
        made: Any = SimpleNamespace(sparkSession=session)
        DeltaTable("pipeline.args.path", "s3a://lake/orders", named=False).create(made, RowOptions())

    return run


def test_a_table_that_is_half_made_is_asked_for_again(create: Any) -> None:
    """The other driver commits a moment later, and the statement finds its table."""
    session = Session(2, f"[{HALF_MADE}] Cannot create table")
    create(session, there=False)
    assert session.asked == 3


def test_a_table_that_the_other_driver_made_is_taken(create: Any) -> None:
    session = Session(1, "concurrent")
    create(session, there=True)
    assert session.asked == 1


@pytest.mark.parametrize("why", [f"[{HALF_MADE}] for ever", "no rights"])
def test_what_stays_refused_is_raised(create: Any, why: str) -> None:
    with pytest.raises(RuntimeError, match=why.rpartition(" ")[2]):
        create(Session(1000, why), there=False)

"""The limit of an hour (docs/dead-letters.md, "What you see")."""

from __future__ import annotations

from typing import Any, cast

import pytest

from sluice_checkpoints.protocol.poison_note import IsolationNote
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.poison.exclusions import ExclusionPorts, Exclusions, TooMuchPoison

ROW = cast("ShardRow", type("Row", (), {"id": "shard", "first": "1"}))


def counted(before: IsolationNote, hour: int) -> IsolationNote:
    ports = ExclusionPorts(source=cast("Any", None), letters=cast("Any", None), most=2, hour=lambda: hour)
    return Exclusions(cast("Any", None), ports, before)._counted(ROW)


def test_a_clock_that_is_set_back_begins_no_new_hour() -> None:
    full = counted(counted(IsolationNote(), 100), 100)
    for hour in (100, 99, 3):
        with pytest.raises(TooMuchPoison):
            counted(full, hour)
    assert counted(full, 101).excluded == 1

"""The writes of an isolation, on a real table and a real folder of letters (docs/protocol.md, "Poison").

test_letter_crashes.py tries a crash before and after each of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lettered_world import HANGS, RAISES, Crashes, World, check, lived_through

from sluice_checkpoints.protocol.poison_note import noted
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import Table

WRITES = {RAISES: 19, HANGS: 35}  # of isolation, commits, letters and sink


@pytest.mark.parametrize("does", WRITES)
def test_the_isolation_makes_these_writes(table: Table, tmp_path: Path, does: str) -> None:
    """The letter is stored before the exclusion, and final after the commit."""
    world, crashes = World(table, tmp_path, does), Crashes()
    lived_through(world, crashes)
    check(world)
    assert world.final() == ["poison"]
    seen = crashes.seen
    assert set(seen) == {"shorten", "hold", "note", "exclude", "sink", "commit", "letter", "named", "drop"}
    assert [name for name in seen if name in {"hold", "exclude", "letter", "named", "drop"}] == ["hold", "exclude", "letter", "named", "drop"]
    assert seen[seen.index("exclude") + 1 : seen.index("letter")] == ["commit"]
    assert len(seen) == WRITES[does]
    assert noted(CheckpointStore(table)).ever == 1

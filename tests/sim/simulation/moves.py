"""What the observer makes of positions that a reset moves: which records come again, which are passed over, and whether the plan says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulation.stream import Stream

Row = Mapping[str, Any]


class Moves:
    """The effects of resets on what is owed.

    Attributes:
        returned: the last batch before a record's shard was moved back over it, by the record's name: it is in the sink only if a later batch has it.
        passed_over: names of records that a reset passed over.
        again: names of records that come again and were not excluded since: `process` may raise on them once more.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.returned: dict[str, int] = {}
        self.passed_over: set[str] = set()
        self.again: set[str] = set()

    @staticmethod
    def planned(rows: Mapping[str, Row]) -> dict[str, Row]:
        named = rows["consumer"].get("reset")
        chunks = (row for key, row in rows.items() if key.startswith(f"reset/{named}/"))
        return {entry["id"]: entry for row in chunks for entry in row["shards"]} if named else {}

    @staticmethod
    def problem(planned: Row | None, row: Row, former: Row, committed: int) -> str | None:
        """What is wrong with a move; None: nothing."""
        if planned is None:
            return "no plan that is named moves it"
        if (planned["batch"], planned["end"]) != (former["batch"], former["end"]) or planned["to"] != row["end"]:
            return f"the plan says {planned}"
        if row["start"] != row["end"] or row["joins"] != committed + 1 or row["batch"] > committed:
            return "it does not stand where it was moved to"
        if (row["end"]["at"] == "END") != ("children" in row) or row.get("records") or "first" in row or "onward" in row:
            return "it has something of its former range, or an end that nothing follows"
        return None

    def moved(self, created: int, shard: str, row: Row, former: Row, committed: int) -> tuple[set[str], set[str]]:
        """Names of the records that come again, and of those that are passed over."""
        log = self.stream.log.get((created, shard), [])
        at = former["end"] if former["batch"] <= committed else former["start"]
        again = {r.name for r in log if r.after(row["end"]) and not r.after(at) and not self.stream.expired(created, r)}
        passed = {r.name for r in log if r.after(at) and not r.after(row["end"])}
        # What an earlier reset passed over comes again as soon as a position lies before it.
        due = {r.name for r in log if r.after(row["end"]) and not self.stream.expired(created, r)}
        self.returned |= dict.fromkeys(again, committed)
        self.again |= again
        self.passed_over = (self.passed_over - due) | passed
        return again, passed

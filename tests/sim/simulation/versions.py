"""What the observer makes of versions: who committed a batch, and where the shards were in front of a version (docs/protocol.md, "Versions").

It shares no code with what it judges: it assembles the positions from the rows as they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sluice_checkpoints.protocol import versions
from sluice_checkpoints.protocol.rows import ConsumerRow

Row = Mapping[str, Any]
END = {"at": "END"}


class Versions:
    def __init__(self, breaks: Callable[[str], None]) -> None:
        self._breaks = breaks
        self._true: dict[int, dict[str, Row]] = {}  # by generation: positions when its version was named
        self._resets: list[int] = []  # the last committed batch of each
        self._before: dict[int, int] = {}  # by generation: how many resets there were when its version was named

    def begins(self, row: Row, rows: Mapping[str, Row]) -> None:
        """The row was written: what its last version has kept has to be so now."""
        version = row["list"][-1]
        committed = int(rows["consumer"]["committed"])
        if version["first"] != committed + 1:
            self._breaks(f"a version begins with batch {version['first']} after batch {committed}")
        self._true.setdefault(version["generation"], self._positions(rows, committed))
        self._before.setdefault(version["generation"], len(self._resets))
        self.look(rows)

    def committed(self, number: int, spec: str, rows: Mapping[str, Row]) -> None:
        """A batch was committed by a driver of this spec; of one without a hash nothing is said."""
        begun = [each for each in rows.get("versions", {"list": []})["list"] if each["first"] <= number]
        if spec and (not begun or begun[-1].get("hash") != spec):
            self._breaks(f"spec {spec} committed batch {number}, and the table says {begun[-1:]}")
        if spec and begun and begun[-1].get("reset") != rows["consumer"].get("lastReset"):
            self._breaks(f"batch {number} was committed after the reset {rows['consumer'].get('lastReset')}, and the table says {begun[-1:]}")
        self.look(rows)

    def reset(self, rows: Mapping[str, Row]) -> None:
        self._resets.append(rows["consumer"]["committed"])
        self.look(rows)

    def _within_reach(self, rows: Mapping[str, Row]) -> None:
        """What a reset may go back to has nothing behind it that was committed from positions that a reset had moved."""
        consumer = ConsumerRow.from_item(rows["consumer"])
        for version in versions.within_reach(versions.listed(rows.get("versions")), consumer):
            since = self._resets[self._before[version.generation] :]
            if since and since[0] < consumer.committed:
                self._breaks(f"{version} is within reach, and there was a reset after batch {since[0]}, and batches up to {consumer.committed}")

    def look(self, rows: Mapping[str, Row]) -> None:
        """All that is kept of versions is true."""
        self._within_reach(rows)
        for version in rows.get("versions", {"list": []})["list"]:
            keys = [f"version/{version['slot']}/{k}" for k in range(version["chunks"])]
            if not keys or any(rows.get(key, {}).get("generation") != version["generation"] for key in keys):
                continue
            kept = {
                entry["id"]: {key: value for key, value in entry.items() if key not in {"id", "readTo"}}
                for key in keys
                for entry in rows[key]["shards"]
            }
            if kept != self._true[version["generation"]]:
                self._breaks(f"in front of {version}: {kept} are kept, and it was {self._true[version['generation']]}")

    @staticmethod
    def _positions(rows: Mapping[str, Row], committed: int) -> dict[str, Row]:
        shards = {key.removeprefix("shard/"): row for key, row in rows.items() if key.startswith("shard/")}
        folded = {shard for key, row in rows.items() if key.startswith("ended/") for shard in row["shards"]}
        late = {shard for shard, row in shards.items() if shard in folded and row["end"] != END}
        return {shard: row["end"] if row["batch"] <= committed else row["start"] for shard, row in shards.items() if shard not in late}

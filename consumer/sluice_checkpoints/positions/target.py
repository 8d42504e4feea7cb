"""What a reset is asked to do: to which positions, of which shards, and what it may give up for that. Values, and how they are written."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from sluice_checkpoints.positions.positions_file import YEAR_10000, PositionsFile

OLDEST, NEWEST = "trimHorizon", "latest"
FILE = "file"  # each shard has a position of its own
FRACTION = re.compile(r"[.,]([0-9]+)")


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """Where positions are moved to: `trimHorizon`, `latest`, a time, or a batch.

    Attributes:
        millis: of a time, epoch milliseconds; None for the two words.
        batch: the first batch of a version: positions as they were in front of it.
    """

    word: str = ""
    millis: int | None = None
    batch: int | None = None

    @staticmethod
    def parse(text: str) -> ResetTarget:
        """Reads a target as people write it.

        Raises:
            ValueError: it is none; the message says what one is.
        """
        if text in {OLDEST, NEWEST}:
            return ResetTarget(text)
        return ResetTarget(millis=_millis(text))

    def __str__(self) -> str:
        if self.batch is not None:
            return f"batch {self.batch}"
        return self.word if self.millis is None else iso(self.millis)


def _millis(text: str) -> int:
    what = f"must be {OLDEST}, {NEWEST}, or a time such as 2026-11-27T10:00:00Z"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} {what}") from error
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no zone; write {moment.isoformat()}Z for UTC")
    fraction = FRACTION.search(text)
    if fraction and fraction[1][3:].strip("0"):
        raise ValueError(f"{text!r} is more exact than a millisecond, and Kinesis stamps records in milliseconds")
    since = moment - datetime.fromtimestamp(0, UTC)
    millis = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    if millis <= 0:
        raise ValueError(f"{text!r} lies before 1970, and no stream was there")
    if millis >= YEAR_10000:
        raise ValueError(f"{text!r} lies after the year 9999 in UTC")
    return millis


def iso(millis: int) -> str:
    """Epoch milliseconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """One reset as it was asked for.

    Attributes:
        id: its name. It is carried out once.
        shards: ids of the shards that are moved; empty: all.
        give_up: the number of the open batch that counts as processed, though it was not.
        accept_expired: a time may lie before the oldest record.
        file: the positions, where a file says them; `to` is `FILE` then.
        lease_millis: how long the consumer's lease is promised to be silent after this program's last heartbeat.
    """

    id: str
    to: ResetTarget
    shards: frozenset[str] = frozenset()
    give_up: int | None = None
    accept_expired: bool = False
    lease_millis: int = 60_000
    file: PositionsFile | None = None

    @property
    def asked(self) -> str:
        """A hash of what is asked for: an id stands for this and nothing else."""
        edited = {shard: str(position) for shard, position in self.file.positions.items()} if self.file else None
        what = [str(self.to), sorted(self.shards), self.give_up, edited, self.file.committed if self.file else None]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

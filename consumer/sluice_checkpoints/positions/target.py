"""What a reset is asked to do: to which positions, of which shards, and what it may give up for that. Values, and how they are written.

A file of positions is what `show --json` prints, edited. Whatever is wrong in it is refused by the name of its field.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import SEQUENCE_NUMBER, Position

YEAR_10000 = 253_402_300_800_000  # epoch milliseconds
NOTES = frozenset({"lineage", "range"})  # of a shard, for people
FIELDS: Mapping[str, frozenset[str]] = {
    "TRIM_HORIZON": frozenset(),
    "END": frozenset(),
    "TIMESTAMP": frozenset({"millis"}),
    "AFTER": frozenset({"sequence"}),
}
OLDEST, NEWEST = "trimHorizon", "latest"
FILE = "file"  # each shard has a position of its own
FRACTION = re.compile(r"[.,]([0-9]+)")


@dataclass(frozen=True)
class PositionsFile:
    """The positions of a consumer, as they were read at a batch.

    Attributes:
        consumer: the consumer's id; committed: the last committed batch when the file was printed; last_reset: the last reset then.
        positions: by shard. A shard that is left out stays where it is.
    """

    consumer: str
    committed: int
    last_reset: str | None = None
    positions: Mapping[str, Position] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> PositionsFile:
        """Reads the file.

        Raises:
            Refused: `show --json` did not print it, or a field of it is not as that prints it.
        """
        try:
            document = json.loads(text, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise Refused(f"the positions file is no JSON: {error}") from error
        if not isinstance(document, dict):
            raise Refused("the positions file must be the document that `sluice show --json` prints")
        if document.get("consistent", True) is not True:
            raise Refused("consistent: a batch was committed while the file was printed; print it again")
        shards = _of(document, "shards", dict)
        positions = {shard: _position(f"shards.{shard}", stored) for shard, stored in shards.items()}
        last = document.get("lastReset")
        if last is not None and not isinstance(last, str):
            raise Refused(f"lastReset: {last!r} must be a text")
        return PositionsFile(_of(document, "consumerId", str), _of(document, "committed", int), last, positions)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. A name that comes twice would hide an edit."""
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise Refused(f"{name}: the positions file has this name twice in one object; remove one of them")
        members[name] = value
    return members


def _of(document: Mapping[str, Any], name: str, kind: type, where: str = "") -> Any:
    """A field of this type; a bool is not a number."""
    value = document.get(name)
    if type(value) is not kind:
        raise Refused(f"{where}{name}: {value!r} must be {KINDS[kind]}, as `sluice show --json` prints it")
    return value


KINDS: Mapping[type, str] = {str: "a text", int: "a whole number", dict: "an object"}


def _position(where: str, stored: Any) -> Position:
    if not isinstance(stored, dict):
        raise Refused(f"{where}: {stored!r} must be an object with `at`")
    at = _of(stored, "at", str, f"{where}.")
    if at not in FIELDS:
        raise Refused(f"{where}.at: {at!r} must be one of {', '.join(FIELDS)}")
    sub = {"sub"} if at == "AFTER" else set[str]()
    if unknown := sorted(stored.keys() - {"at"} - FIELDS[at] - sub - NOTES):
        raise Refused(f"{where}.{unknown[0]}: a position at {at} has no such field")
    values = {name: _of(stored, name, CHECKS[name][0], f"{where}.") for name in FIELDS[at] | (sub & stored.keys())}
    for name, value in values.items():
        if not CHECKS[name][1](value):
            raise Refused(f"{where}.{name}: {value!r} must be {CHECKS[name][2]}")
    return Position.from_map({"at": at} | values)


CHECKS: Mapping[str, tuple[type, Callable[[Any], bool], str]] = {
    "millis": (int, lambda value: 0 < value < YEAR_10000, "a time in epoch milliseconds"),
    "sequence": (str, lambda value: bool(SEQUENCE_NUMBER.fullmatch(value)), "a sequence number"),
    "sub": (int, lambda value: 0 <= value < 2**31, "the index of a user record"),
}


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

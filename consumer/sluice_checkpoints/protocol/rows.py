"""Rows of the checkpoint table and the values in them (docs/protocol.md, "Rows").

Pure data: no I/O, no clock. An *item* is a plain mapping of attribute names to `str`, `int`, `bool`, `frozenset[str]`, `list` or `dict`: what
DynamoDB stores, without its type tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.names import camel
from sluice_checkpoints.position import END, TRIM_HORIZON, Position

Item = dict[str, Any]

FORMAT = 1
CONSUMER = "consumer"
MIGRATION = "migration"
ISOLATION = "isolation"
LETTERS = "letters"
VERSIONS = "versions"
SHARD_PREFIX = "shard/"
BOOTSTRAP_PREFIX = "bootstrap/"
ENDED_PREFIX = "ended/"
VERSION_PREFIX = "version/"
RESET_PREFIX = "reset/"

ACTIVE, EXPORTED = "ACTIVE", "EXPORTED"
RESETTING = "RESETTING"  # a plan to move positions is under way


@dataclass(frozen=True, slots=True)
class Child:
    """A shard that follows others after a split or merge: its id and the ids of all its parents."""

    id: str
    parents: frozenset[str]

    def to_map(self) -> Item:
        """The stored form."""
        return {"id": self.id, "parents": frozenset(self.parents)}

    @staticmethod
    def from_map(stored: Mapping[str, Any]) -> Child:
        """Reads the stored form."""
        return Child(stored["id"], frozenset(stored["parents"]))


@dataclass(frozen=True, slots=True)
class ConsumerRow:
    """The row `consumer`: identity, lease and last committed batch of one consumer.

    `retention` is the shortest in milliseconds under which what is unread may have expired; None: no epoch has written it yet.
    `holder` and `updated_at` are for people and never used to decide. `exported_to` is the table that the positions went to, once EXPORTED.
    `table_id` is the DynamoDB table that the row was written in: in a copy of that table it is another's. None: not known yet.
    `owner` is the KinesisConsumer whose table it is, and `cluster` the one that it is in: all its identities, separated by spaces.
    None: whoever comes first, or no cluster known.
    `letters` names the pending dead letters of committed batches that nobody is known to have published.
    `filled` is the last committed batch that contained shards; 0: there is none.
    `last_commit` and `last_beat` are times for people, and never used to decide: see `commit_facts` and `beat_at`.
    `reset` is the id of the plan by which positions are being moved, None without one. `last_reset` is the last one that was carried out, and
    `reset_after` the last batch that was committed then. A Structured Streaming query that is not beyond that batch does not continue.
    """

    consumer_id: str
    stream_arn: str
    stream_created: int
    generation: int = 0
    token: str = ""
    counter: int = 0
    lease_millis: int = 0
    released: bool = False
    committed: int = 0
    bootstrapped: bool = False
    state: str = ACTIVE
    plan: str | None = None
    chunks: int = 0
    retention: int | None = None
    holder: str | None = None
    updated_at: str | None = None
    exported_to: str | None = None
    table_id: str | None = None
    owner: str | None = None
    cluster: str | None = None
    letters: tuple[str, ...] = ()
    filled: int = 0
    last_commit: Mapping[str, int] = field(default_factory=dict)
    last_beat: Mapping[str, int] = field(default_factory=dict)

    @property
    def commit_facts(self) -> Mapping[str, int]:
        """Of the last committed batch: `at`, `former` (the commit before, if it was the same epoch's), both in epoch milliseconds, and `records`.

        Empty: whoever committed it says nothing of it.
        """
        return self.last_commit if self.last_commit.get("batch") == self.committed else {}

    @property
    def beat_at(self) -> int | None:
        """When the holder of this generation sent its last heartbeat, epoch milliseconds. None: it has sent none, or does not write the time."""
        return self.last_beat["at"] if self.last_beat.get("generation") == self.generation else None

    reset: str | None = None
    last_reset: str | None = None
    reset_after: int | None = None

    def to_item(self) -> Item:
        """The stored form. What says nothing is left out, unless a condition may ask for it."""
        return {"id": CONSUMER, "format": FORMAT, **_stored(self, ASKED_OF_CONSUMER)}

    @staticmethod
    def from_item(item: Mapping[str, Any]) -> ConsumerRow:
        """Reads the stored form.

        Raises:
            Refused: another format version wrote it.
        """
        if item.get("format") != FORMAT:
            raise Refused(f"row consumer has format {item.get('format')!r}; this version knows {FORMAT} only")
        return ConsumerRow(**_read(item, ConsumerRow, ASKED_OF_CONSUMER))


@dataclass(frozen=True, slots=True)
class ShardRow:
    """A row `shard/<id>`: the last range that was bound in a shard, and who may write the next.

    Attributes:
        generation: fence; a bind of another epoch is refused.
        joins: first batch this shard takes part in.
        batch: last batch that bound a range; 0 before the first.
        start, end: that range is (start, end]; before the first bind both are the starting position.
        first: sequence number of the first Kinesis record in the range; None in an empty one.
        records: user records in the range.
        read_to: server time up to which the range was read, or, before the first, the parents were; at END the last time at which the shard is known
            to have been open; epoch milliseconds; 0 when unknown (docs/protocol.md, "Ages").
        parents: ids of the shards this one follows.
        children: what followed, known as soon as `end` is END; None before.
        readers: `"<generation>.<stage id>.<partition id>"` → task attempt id of everyone who may emit this range.
        read_by: the task that read the range to bind it, as `readers` names it (or did). None: closed unread, moved, or never bound.
        replays: how often somebody registered to emit it again.
        size: bytes of the range (for metrics only).
        behind: milliseconds behind the tip when it was read; 0 only at the tip.
        calls: requests to AWS that the binding process had made since it last bound, by name (for metrics only).
        note: a possible loss of data that the reader saw; for people.
        excluded: user records of the range that went to the dead letters; they are not among `records`.
        letter: where the pending dead letter of the excluded record is; None: it was sent for good, or nothing was excluded.
        iterator: a shard iterator that continues at `end`, if the range left one. It is only a hint, and good for five minutes. It is stored with
            the batch that left it: a writer that moves `end` without knowing of it moves `batch` as well.
    """

    id: str
    start: Position
    end: Position
    generation: int = 0
    joins: int = 1
    batch: int = 0
    first: str | None = None
    records: int = 0
    read_to: int = 0
    parents: frozenset[str] = frozenset()
    children: tuple[Child, ...] | None = None
    readers: Mapping[str, int] = field(default_factory=dict)
    read_by: str | None = None
    replays: int = 0
    size: int = 0
    behind: int = 0
    note: str | None = None
    calls: Mapping[str, int] = field(default_factory=dict)
    iterator: str | None = None
    excluded: int = 0
    letter: str | None = None

    @property
    def key(self) -> str:
        """The row's key."""
        return SHARD_PREFIX + self.id

    def committed_position(self, committed: int) -> Position:
        """The position up to which the shard was processed, when `committed` is the last committed batch."""
        return self.end if self.batch <= committed else self.start

    @property
    def is_empty(self) -> bool:
        """Whether the last range held nothing when it was bound. What was excluded or given up since leaves its ends as they were."""
        return self.end == self.start or self.end.millis is not None

    @property
    def has_begun(self) -> bool:
        """Whether a batch had the shard since its row was made or moved."""
        return self.batch >= self.joins

    @property
    def was_read(self) -> bool:
        """Whether a task bound the last range. A row that was closed unread has readers, too, if its batch came again."""
        return self.read_by is not None

    @property
    def was_open(self) -> bool:
        """Whether the shard was open at `read_to`: a task came to the tip and found nothing. After records a closed shard has yet to say its end."""
        return self.was_read and self.is_empty and not self.behind

    @property
    def is_cut(self) -> bool:
        """Whether a task saw the record behind the last range: at a limit, or at the end of a run. One on its way leaves an iterator."""
        return self.was_read and self.behind > 0 and self.iterator is None

    @property
    def unread(self) -> bool:
        """Whether nobody has read the shard, and its age is that of its parents."""
        return self.end == TRIM_HORIZON and not (self.was_read and self.read_to)

    @property
    def open_at(self) -> int:
        """A time at which the shard was not closed yet, epoch milliseconds, 0 if none is known: its children's records are newer."""
        known = self.end == END or not self.batch or self.was_open or self.is_cut
        return (self.read_to if known else 0) or self.start.millis or 0

    def to_item(self) -> Item:
        """The stored form; a set may not be empty, and what is None is left out."""
        item: Item = {
            "id": self.key,
            "generation": self.generation,
            "joins": self.joins,
            "batch": self.batch,
            "start": self.start.to_map(),
            "end": self.end.to_map(),
            "records": self.records,
            "readTo": self.read_to,
            "readers": dict(self.readers),
            "bytes": self.size,
            "behind": self.behind,
        }
        optional = {"first": self.first, "note": self.note, "letter": self.letter, "readBy": self.read_by}
        item |= {key: value for key, value in optional.items() if value is not None}
        item |= {"parents": frozenset(self.parents)} if self.parents else {}
        item |= {"replays": self.replays} if self.replays else {}
        item |= {"calls": dict(self.calls)} if self.calls else {}
        item |= {"excluded": self.excluded} if self.excluded else {}
        item |= {"onward": stored_iterator(self.batch, self.iterator)} if self.iterator else {}
        return item | ({"children": [c.to_map() for c in self.children]} if self.children is not None else {})

    @staticmethod
    def from_item(item: Mapping[str, Any]) -> ShardRow:
        """Reads the stored form."""
        children, left = item.get("children"), item.get("onward", {})
        return ShardRow(
            id=item["id"].removeprefix(SHARD_PREFIX),
            start=Position.from_map(item["start"]),
            end=Position.from_map(item["end"]),
            generation=item["generation"],
            joins=item["joins"],
            batch=item["batch"],
            first=item.get("first"),
            records=item.get("records", 0),
            read_to=item.get("readTo", 0),
            parents=frozenset(item.get("parents", ())),
            children=None if children is None else tuple(Child.from_map(c) for c in children),
            readers=dict(item.get("readers", {})),
            read_by=item.get("readBy"),
            replays=item.get("replays", 0),
            size=item.get("bytes", 0),
            behind=item.get("behind", 0),
            note=item.get("note"),
            calls=dict(item.get("calls", {})),
            iterator=left["iterator"] if left.get("batch") == item["batch"] else None,
            excluded=item.get("excluded", 0),
            letter=item.get("letter"),
        )


def stored_iterator(batch: int, iterator: str) -> Item:
    """How a row keeps an iterator."""
    return {"batch": batch, "iterator": iterator}


@dataclass(frozen=True, slots=True)
class MigrationRow:
    """The row `migration`: the claim of a migrator and, once COMPLETE, the proof that this table holds another's positions."""

    source: str
    format: str
    now_millis: int
    state: str = "CLAIMED"
    generation: int = 0
    token: str = ""
    counter: int = 0
    lease_millis: int = 0
    released: bool = False
    plan_digest: str | None = None
    rows: int | None = None
    risks: Mapping[str, int] = field(default_factory=dict)

    def to_item(self) -> Item:
        """The stored form."""
        return {"id": MIGRATION, **_stored(self, ASKED)}

    @staticmethod
    def from_item(item: Mapping[str, Any]) -> MigrationRow:
        """Reads the stored form."""
        return MigrationRow(**_read(item, MigrationRow, ASKED))


def earliest_arrival_millis(parents: Iterable[ShardRow]) -> int:
    """Lower bound for the arrival of a child's records (epoch milliseconds): its parents were open then. 0: nothing is known."""
    return max((parent.open_at for parent in parents), default=0)


ASKED = frozenset({"state", "generation", "token", "counter", "leaseMillis"})
ASKED_OF_CONSUMER = ASKED | {"committed", "bootstrapped"}
"""Attributes that conditions ask for: each such row has them."""


def _stored(row: ConsumerRow | MigrationRow, asked: frozenset[str]) -> Item:
    named = ((_attribute(each), getattr(row, each.name), {} if each.default is MISSING else each.default) for each in fields(row))
    kept = {name: value for name, value, default in named if name in asked or value != default}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}


def _read(item: Mapping[str, Any], kind: type[ConsumerRow | MigrationRow], asked: frozenset[str]) -> dict[str, Any]:
    named = {each.name: _attribute(each) for each in fields(kind)}
    always = {each.name for each in fields(kind) if named[each.name] in asked or (each.default, each.default_factory) == (MISSING, MISSING)}
    values = {field: item[name] for field, name in named.items() if field in always or name in item}
    return {field: tuple(value) if isinstance(value, list) else value for field, value in values.items()}


def _attribute(of: Field[Any]) -> str:
    return "now" if of.name == "now_millis" else camel(of.name)

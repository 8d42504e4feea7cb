"""Values: another system's table, its stream, how that system behaves, and findings. Pure data.

`rules` holds the rules, `oldest_records` asks Kinesis for the oldest records, `cli.diagnose` puts them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from sluice_checkpoints.formats.nifi import InterruptedMigration
from sluice_checkpoints.formats.reader import SHARD_ID, Reading, SourceShard
from sluice_checkpoints.migrate.lineage import Lineage, MissingRows
from sluice_checkpoints.stream.model import Shard, ShardList

LATEST = "latest"  # the other initial position is placement.FROM_START


class Severity(StrEnum):
    """How bad it is, the worst first.

    The first two are losses. A loss is suspected where the table and the stream do not show whether there is one. A warning is for you to
    judge.
    """

    LOST = "LOST"
    WILL_BE_LOST = "WILL_BE_LOST"
    SUSPECTED = "SUSPECTED"
    WARNING = "WARNING"
    INFO = "INFO"

    @property
    def loss(self) -> bool:
        """Whether records are gone, or will be if the system continues from here."""
        return self in {Severity.LOST, Severity.WILL_BE_LOST}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: the rule's name, for programs.
        shard: its id; None: it is about the table.
        text: what was seen, and what follows from it; advice: what to do next.
    """

    kind: str
    severity: Severity
    shard: str | None
    text: str
    advice: str


@dataclass(frozen=True, slots=True)
class SystemBehaviour:
    """What a system does where its table says nothing (facts: each system's source, docs/migration.md, "Repairing another tool's table").

    Attributes:
        title: its name for people.
        children_at_start: a shard that follows one with a row starts at its beginning; else at the configured initial position.
        strangers_at_start: so does a shard that follows none.
        stores_ends: the table says which shards were read to their end.
    """

    title: str
    children_at_start: bool = False
    strangers_at_start: bool = False
    stores_ends: bool = True


SYSTEMS = {
    "kcl": SystemBehaviour("KCL", children_at_start=True),
    "nifi": SystemBehaviour("NiFi", stores_ends=False),
    "vmware-go-kcl": SystemBehaviour("vmware-go-kcl"),
    "kinsumer": SystemBehaviour("kinsumer"),
    "sluice": SystemBehaviour("Sluice", children_at_start=True, strangers_at_start=True),
}


@dataclass(frozen=True)
class Observation:
    """Everything the rules may look at.

    Attributes:
        reading: what the table says, problems included.
        stream: the shards there are, listed after the table was read.
        initial: the system's configured initial position: `latest`, `trim-horizon`, or None (not known: the worse is assumed).
        oldest: sequence number of the oldest record still in a shard, by shard id; a shard that was not asked, or had none, is missing.
        interrupted: the migration of NiFi's own that the tables are in the middle of.
    """

    reading: Reading
    stream: ShardList
    initial: str | None = None
    oldest: Mapping[str, str] = field(default_factory=dict)
    interrupted: InterruptedMigration | None = None

    @cached_property
    def rows(self) -> dict[str, SourceShard]:
        """Rows by shard id."""
        return {row.id: row for row in self.reading.shards}

    @cached_property
    def shards(self) -> dict[str, Shard]:
        """The stream's shards by id."""
        return {shard.id: shard for shard in self.stream.shards}

    @cached_property
    def lineage(self) -> Lineage:
        """Which shard follows which."""
        return Lineage(self.rows, self.shards)

    @cached_property
    def unread(self) -> frozenset[str]:
        """Shards whose rows are there and were refused, as far as the rows' keys say."""
        return frozenset(i for p in self.reading.problems if p.row for i in SHARD_ID.findall(p.row))

    @cached_property
    def below_rows(self) -> frozenset[str]:
        """Shards that follow one with a row."""
        return self.lineage.below(self.rows.keys() | self.unread)

    @cached_property
    def above_rows(self) -> frozenset[str]:
        """Shards that are followed by one with a row."""
        return self.lineage.above(self.rows)

    @cached_property
    def above_progress(self) -> frozenset[str]:
        """Shards that are followed by one of which something was acknowledged."""
        return self.lineage.above(i for i, row in self.rows.items() if row.stored.progress)

    @cached_property
    def missing_rows(self) -> MissingRows:
        """See `Lineage.missing_rows`; no shard if the system does not delete rows."""
        return self.lineage.missing_rows(self.rows, self.shards, self.unread) if self.reading.finished_rows_vanish else MissingRows()

    @cached_property
    def above_late_starts(self) -> frozenset[str]:
        """Shards that are followed by one that was to start at the tip, or names no position: they were passed over on purpose."""
        return self.lineage.above(i for i, row in self.rows.items() if row.stored.position is None and not row.stored.at_timestamp)

    @cached_property
    def above_times(self) -> frozenset[str]:
        """Shards that are followed by one that waits for a time. They were passed over on purpose only if they were closed before it."""
        return self.lineage.above(i for i, row in self.rows.items() if row.stored.at_timestamp)

    @property
    def system(self) -> SystemBehaviour:
        """Whose table it is. A KCL table in NiFi's hands follows KCL's ways until NiFi deletes it."""
        return SYSTEMS["kcl" if self.reading.finished_rows_vanish else self.reading.format]

"""Gives a stream back to another system: writes Sluice's positions into its table, then marks Sluice's EXPORTED (docs/migration.md, "The way back").

Any step may be repeated: a crash after any single call leads, on the next run, to the same end. No other process consumes: the lease is held, and the
other system's table must be unchanged. The last write ends Sluice's table for good; coming back is a migration into a new one.

The lease is taken as a driver does, and released on every orderly exit. No shard is fenced. A driver that was thought dead can commit nothing any
more, because a commit names its generation. What it may still bind belongs to the open batch, which is exported from its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sluice_checkpoints.errors import LeaseHeld, Refused, SluiceError, SourceActive
from sluice_checkpoints.export.plan import ExportPlan, SluiceSide, TargetSide, plan
from sluice_checkpoints.export.ports import ExportPorts, ExportRequest
from sluice_checkpoints.formats import detect, kcl
from sluice_checkpoints.formats.detect import WRITERS, check_table
from sluice_checkpoints.formats.reader import refuse
from sluice_checkpoints.formats.sluice import refusals
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.formats.writer import FormatWriter, in_transactions, write_rows
from sluice_checkpoints.migrate.migrator import CHANGES_SHOWN, READABLE
from sluice_checkpoints.migrate.overrides import SourceScan, refused
from sluice_checkpoints.migrate.store import MigrationStore
from sluice_checkpoints.migrate.stream_check import Compared, refuse_other_stream, row_labels
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.lease import LeaseRequest, TakenLease, Watcher, take_over
from sluice_checkpoints.protocol.lease_keeper import LeaseKeeper
from sluice_checkpoints.protocol.rows import EXPORTED, ConsumerRow
from sluice_checkpoints.stream.model import ShardList, ShardPlace, StreamIdentity

PLANNED = "PLANNED"
LOST = "another epoch took the consumer's lease; nothing more is exported"


@dataclass(frozen=True, slots=True)
class TargetSnapshot:
    """The other table as it was read, the clock's seconds then, and whether it exists at all."""

    snapshot: Snapshot
    at: float
    exists: bool


@dataclass(frozen=True, slots=True)
class ExportSurvey:
    """What was found before anything was written; `now_millis` is the service's clock."""

    stream: StreamIdentity
    seen: TargetSnapshot
    plan: ExportPlan
    now_millis: int


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What became of an export: `state` is PLANNED or EXPORTED; `plan` is None when it had been done before."""

    state: str
    message: str
    plan: ExportPlan | None = None
    warnings: tuple[str, ...] = ()


class Exporter:
    """One run of one export."""

    def __init__(self, request: ExportRequest, ports: ExportPorts) -> None:
        self._request, self._ports = request, ports
        self._writer: FormatWriter = WRITERS[request.format]
        self._accepted: set[ShardPlace] = set()
        check_table("table", ports.store.table.name)
        check_table("to", request.to)
        if request.to == ports.store.table.name:
            raise Refused(f"--to {request.to} is Sluice's own table; name the table of the system that gets the stream back")

    def dry_run(self) -> ExportResult:
        """The plan, as it would be now. Checks that the other table is unchanged if a quiet period was asked for. Writes nothing.

        Raises:
            Refused, SourceActive, ServiceUnavailable: as for `run`.
        """
        if done := self._done_before():
            return done
        survey = self._survey()
        if self._request.quiet_seconds and survey.seen.exists:
            self._ports.progress.waiting(self._request.quiet_seconds, "the other table must not move")
            self._ports.sleep(self._request.quiet_seconds)
            self._same(survey.seen, self._read_target())
        return ExportResult(PLANNED, f"{counted(len(survey.plan.entries), 'shard')}; nothing was written", survey.plan, survey.plan.warnings)

    def run(self) -> ExportResult:
        """All steps.

        Raises:
            Refused: a table or the stream is not what it must be, or the other format cannot store a position; nothing was written.
            LeaseHeld: the consumer runs.
            SourceActive: the other table moved; no row of it was lowered. Run it again.
            ServiceUnavailable: no answer in time; run it again.
        """
        if done := self._done_before():
            return done
        survey = self._survey()
        at = datetime.fromtimestamp(survey.now_millis / 1000, UTC).isoformat()
        self._ports.progress.step("taking the consumer's lease")
        with holding(self._ports, self._request.lease_millis, at) as held:
            warnings, made = self._export(held, survey)
        return ExportResult(EXPORTED, f"{counted(len(made.entries), 'shard')} given back to {self._request.to}", made, (*warnings, *made.warnings))

    def _done_before(self) -> ExportResult | None:
        """The result if this very export is done; refuses a table that was exported to another."""
        row = self._ports.store.consumer()
        if row is None or row.state != EXPORTED:
            return None
        if row.exported_to != self._request.to:
            raise Refused(f"table {self._ports.store.table.name} is {row.state}: its positions went to {row.exported_to or 'another table'} before")
        other = self._ports.targets.key_schema(self._request.to) not in {None, self._writer.keys}
        warning = f"--format {self._writer.name} has no effect: table {self._request.to} was written before, in another format"
        return ExportResult(EXPORTED, f"given back to {self._request.to} before; nothing was written", warnings=(warning,) if other else ())

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def _survey(self) -> ExportSurvey:
        self._ports.progress.step(f"table {self._ports.store.table.name}, and {self._request.to} as {self._writer.name}")
        stream = self._ports.catalog.describe()
        self._may_go(self._ports.store.consumer(), stream)
        if stream.status not in READABLE:
            raise Refused(f"stream {stream.name} is {stream.status}, so its shards cannot be listed; run this again once it is ACTIVE")
        seen = self._read_target()
        made, now_millis = self._plan(stream, seen)
        return ExportSurvey(stream, seen, made, now_millis)

    def _may_go(self, row: ConsumerRow | None, stream: StreamIdentity) -> None:
        for why in refusals(row, self._ports.store.table.name, stream):
            raise why

    def _read_target(self) -> TargetSnapshot:
        to, targets = self._request.to, self._ports.targets
        for ending, why in self._writer.conflicting_suffixes:
            if targets.key_schema(to + ending) is not None:
                raise Refused(f"there is a table {to}{ending}: {why}")
        if targets.key_schema(to) is None:
            if not to.endswith(self._writer.table_suffix):
                raise Refused(f"there is no table {to}, and one that is made for {self._writer.name} must be called {to}{self._writer.table_suffix}")
            return TargetSnapshot(Snapshot(to, {to: self._writer.keys}, {to: ()}), self._ports.clock(), exists=False)
        _, snapshot = detect.take_snapshot(targets, to, self._writer.name)
        return TargetSnapshot(snapshot, self._ports.clock(), exists=True)

    def _plan(self, stream: StreamIdentity, seen: TargetSnapshot) -> tuple[ExportPlan, int]:
        row = self._ports.store.consumer()
        self._may_go(row, stream)
        rows = SluiceSide(self._ports.store.contents().all, row.committed if row else 0)
        shards = self._ports.catalog.list_shards()
        sluice = self._passed(rows, shards)
        target = self._read(seen, stream, shards)
        return plan(sluice, target, stream, shards), shards.date_millis

    def _passed(self, sluice: SluiceSide, shards: ShardList) -> SluiceSide:
        """With what Kinesis says of records inside which the other format cannot name a position."""
        inside = [] if self._writer.supports_subsequence else sluice.inside(shards)
        return replace(sluice, passed=self._ports.records.passed(inside)) if inside and self._ports.records else sluice

    def _read(self, seen: TargetSnapshot, stream: StreamIdentity, shards: ShardList) -> TargetSide:
        """The rows of this stream, possibly none; every other row has to be understood too. A table of another stream belongs to another consumer."""
        if self._writer.keys == kcl.KEY and (several := kcl.multi_stream_keys(seen.snapshot)):
            raise Refused(
                f"table {seen.snapshot.table} has leases of several streams ({several[0]}): such a table is not written; name one of its own"
            )
        ignored, rows, placed = self._chosen()
        labels = frozenset(label for shard in placed for label in row_labels(shard, stream))
        snapshot = seen.snapshot.without(ignored, rows)
        reading = self._writer.reader.read(snapshot, stream)
        refuse([problem for problem in reading.problems if problem.row is not None and problem.row not in labels])
        theirs = frozenset(name for (_, label), row in snapshot.by_label.items() if label in labels for name in row) - self._writer.types.keys()
        snapshot = snapshot.without(theirs)  # which stay as they are
        reading = self._writer.reader.read(snapshot, stream)
        scan = SourceScan(self._writer.reader, snapshot, stream, shards)
        contradictions = Compared(reading, snapshot, stream, shards).contradictions() if placed else []
        wrong = frozenset(shard for shard in placed if refused(reading, scan, shard, contradictions))
        fitting = tuple(row for row in reading.shards if row.id not in wrong)
        compared = Compared(replace(reading, shards=fitting), snapshot.without(frozenset(), labels), stream, shards)
        wrong |= self._disowned(stream, compared, placed)
        there = {row.id: row for row in fitting if row.id not in wrong}
        return TargetSide(self._writer, seen.snapshot, there, reading.notes if seen.exists else (), wrong)

    def _chosen(self) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """What was said of `--to` when it was migrated: attributes and rows that do not count, and shards whose rows may say what they like."""
        claim = MigrationStore(self._ports.store.table).claim()
        if claim is None or claim.row.source != self._request.to:
            return frozenset(), frozenset(), frozenset()
        return claim.chosen("ignore-attribute"), claim.chosen("ignore-row"), frozenset(place.partition("=")[0] for place in claim.chosen("place"))

    def _disowned(self, stream: StreamIdentity, compared: Compared, placed: frozenset[str]) -> frozenset[str]:
        """The `placed` shards whose numbers Kinesis does not accept."""
        what = f"--to {self._request.to}"
        refuse_other_stream(stream, compared.contradictions(), what)
        places = set(compared.places()) - self._accepted
        answers = self._ports.catalog.disowned(sorted(places)) if places else {}
        refuse_other_stream(stream, compared.disowned({at: why for at, why in answers.items() if at[0] not in placed}), what)
        self._accepted |= places - answers.keys()
        return frozenset(shard for shard, _ in answers)

    def _same(self, before: TargetSnapshot, later: TargetSnapshot) -> None:
        ignored, rows, _ = self._chosen()
        if changes := before.snapshot.without(ignored, rows).moved(later.snapshot.without(ignored, rows)):
            first = "; ".join(changes[:CHANGES_SHOWN])
            raise SourceActive(f"table {self._request.to} is in use, stop its consumer and run this again: {first}")

    # -- writing -------------------------------------------------------------------------------------------------------------------

    def _export(self, held: HeldLease, survey: ExportSurvey) -> tuple[tuple[str, ...], ExportPlan]:
        warnings, rest = self._ready(held, survey.seen)
        if self._ports.catalog.describe().created_millis != survey.stream.created_millis:
            raise Refused(f"stream {survey.stream.name} was deleted and created again during the export")
        held.alive()
        made, _ = self._plan(survey.stream, rest)
        self._write(held, made)
        held.alive()
        self._ports.progress.step("reading what was written")
        left, _ = self._plan(survey.stream, self._read_target())
        if left.changes:
            labels = ", ".join(change.label for change in left.changes[:CHANGES_SHOWN])
            raise SourceActive(
                f"table {self._request.to} is not what was written to it ({labels}): its consumer, or a reshard, was at work; run this again"
            )
        held.finish(self._request.to)
        return warnings, made

    def _ready(self, held: HeldLease, seen: TargetSnapshot) -> tuple[tuple[str, ...], TargetSnapshot]:
        if not seen.exists:
            self._ports.progress.step(f"making table {self._request.to}")
            return self._ports.targets.create(self._request.to, self._writer.keys), self._read_target()
        seconds = self._request.quiet_seconds
        seconds = self._writer.reader.quiet_seconds(seen.snapshot) if seconds is None else seconds
        self._ports.progress.waiting(seconds, "the other table must not move")
        held.pause(seen.at + seconds)
        later = self._read_target()
        self._same(seen, later)
        return (), later

    def _write(self, held: HeldLease, made: ExportPlan) -> None:
        self._ports.progress.step(f"writing {counted(len(made.changes), 'row')}")
        written = 0
        for changes in in_transactions(made.changes):
            held.alive()
            write_rows(self._ports.targets, self._request.to, changes)
            written += len(changes)
            self._ports.progress.wrote(written, len(made.changes))


class HeldLease(LeaseKeeper):
    """A lease that is ours, and whether the table was exported under it."""

    def __init__(self, taken: TakenLease, ports: ExportPorts) -> None:
        super().__init__(ports, taken.row.lease_millis, taken.sent)
        self.row, self.epoch = taken.row, taken.epoch
        self.exported = False
        self._store = ports.store

    def beat(self) -> None:
        if not self._store.beat(self.epoch):
            raise LeaseHeld(LOST)

    def finish(self, to: str) -> None:
        """The last write: this lease cannot be taken again.

        Raises:
            LeaseHeld: it is another's already.
        """
        if not self._store.export(self.epoch, to):
            raise LeaseHeld(LOST)
        self.exported = True


@contextmanager
def holding(ports: ExportPorts, lease_millis: int, at: str) -> Iterator[HeldLease]:
    """Takes the lease; releases it in the end unless the table was exported. `at` is the time, for people.

    Raises:
        LeaseHeld: the consumer runs: suspend it, or wait until it has stopped.
    """
    watcher = Watcher(ports.clock, ports.sleep, lambda seconds: ports.progress.waiting(seconds, "the consumer's lease runs out"))
    held = HeldLease(take_over(ports.store, LeaseRequest(lease_millis, ports.holder, at), watcher), ports)
    try:
        yield held
    finally:
        if not held.exported:
            with suppress(SluiceError):  # what ended the block is what counts; an unreleased lease runs out
                ports.store.release(held.epoch)

"""Takes over where another consumer stopped: the steps of docs/migration.md, in their order, over ports.

The source is only read. Any step may be repeated at any time: a crash after any single call leads to the same end after a restart. A consumer begins
only once its row exists in the target, and that row is written last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sluice_checkpoints.errors import ProtocolViolation, Refused, SourceActive
from sluice_checkpoints.formats import detect, lease_expiry
from sluice_checkpoints.formats.detect import check_table, check_target
from sluice_checkpoints.formats.reader import SHARD_ID, Format, Problem, refuse
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.migrate import overrides
from sluice_checkpoints.migrate.claim import HeldClaim, holding
from sluice_checkpoints.migrate.overrides import SourceScan, check_chosen, understand
from sluice_checkpoints.migrate.placement import Choices
from sluice_checkpoints.migrate.plan import MigrationPlan, PlanInput, digest_of, plan
from sluice_checkpoints.migrate.ports import MigrationPorts, MigrationRequest
from sluice_checkpoints.migrate.store import CLAIMED, COMPLETE, Copy, MigrationClaim, MigrationStore, in_transactions
from sluice_checkpoints.migrate.stream_check import Compared, refuse_other_stream, row_labels
from sluice_checkpoints.migrate.summary import owner, shard_count, summarize, without_effect
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.rows import ACTIVE, ConsumerRow, MigrationRow, ShardRow
from sluice_checkpoints.protocol.table import chunks
from sluice_checkpoints.stream.model import ShardList, ShardPlace, StreamIdentity

# ListShards' Date has whole seconds, and the service's machines differ a little (docs/protocol.md, "The first start").
T0_MARGIN_MILLIS = 2000
READABLE = frozenset({"ACTIVE", "UPDATING"})
ASKED_AT_ONCE = 500  # checkpoints that Kinesis judges between two lines of progress
ROUNDS = 5  # how often a source may move after a copy before it counts as active
CHANGES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """A snapshot, and the clock's seconds when its scan ended. `moving`: without the rows and attributes that the user ignores."""

    format: Format
    snapshot: Snapshot
    moving: Snapshot
    at: float


@dataclass(frozen=True, slots=True)
class MigrationSurvey:
    """Step 0: what was found before anything was written."""

    stream: StreamIdentity
    seen: SourceSnapshot
    plan: MigrationPlan
    now_millis: int


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """What became of a migration: `state` is PLANNED or COMPLETE; `plan` is None when it had been completed before."""

    state: str
    message: str
    shards: int
    digest: str
    plan: MigrationPlan | None = None
    warnings: tuple[str, ...] = ()


class Migrator:
    """One run of one migration."""

    def __init__(self, request: MigrationRequest, ports: MigrationPorts) -> None:
        check_table("source", request.source)
        check_table("target", request.target)
        check_target(request.source, request.target)
        self._request, self._ports = request, ports
        self._ahead = 0.0  # what Kinesis' clock shows, less what ours does; seconds
        self._accepted: set[ShardPlace] = set()  # by Kinesis: each position is asked about once

    def dry_run(self) -> MigrationResult:
        """Step 0 alone, with the check of step 3 if a quiet period was asked for. Writes nothing.

        Raises:
            Refused, SourceActive, ServiceUnavailable: as for `run`.
        """
        stream = self._ports.catalog.describe()
        if done := self._done_before(stream):
            return done
        survey = self._survey(stream)
        if self._request.quiet_seconds:
            seconds = self._quiet_seconds(survey.seen, stream)
            self._ports.progress.waiting(seconds, "the source must not move")
            self._ports.sleep(seconds)
            self._same(survey.seen, self._read_source_again())
        return self._result("PLANNED", f"{summarize(survey.plan)}; nothing was written", survey.plan)

    def run(self) -> MigrationResult:
        """All steps.

        Raises:
            Refused: the source, the stream or the target is not what it must be; nothing was written unless it changed under way.
            SourceActive: the source's consumer still works.
            LeaseHeld: another migrator is at work on the target.
            ServiceUnavailable: no answer in time; run it again.
        """
        stream = self._ports.catalog.describe()
        if done := self._done_before(stream):
            return done
        survey = self._survey(stream)
        self._quiet_seconds(survey.seen, stream)
        self._ports.progress.step(f"target table {self._request.target}")
        prepared = self._ports.targets.ensure(self._request.target)
        store = MigrationStore(prepared.table)
        if done := self._done_before(stream):
            return done
        with holding(store, self._wanted(stream, survey), self._ports) as held:
            finished = self._copy(held, survey)
        return self._result(COMPLETE, f"{summarize(finished)}, taken over", finished, prepared.warnings)

    def _done_before(self, stream: StreamIdentity) -> MigrationResult | None:
        """The result if this very migration is complete; refuses a table that is another's. Reads only."""
        table = self._ports.targets.find(self._request.target)
        if table is None:
            return None
        store = MigrationStore(table)
        consumer, claim = store.consumer(), store.claim()
        if consumer is None and claim is None:
            if not store.strangers():
                return None
            consumer, claim = store.consumer(), store.claim()  # a migrator's rows come after its claim: are they one's that has just begun?
        same = claim is not None and claim.same_as(self._wanted(stream))
        if consumer is None and same:
            return None
        if claim is None or not same:
            raise Refused(f"target table {table.name} already belongs to {owner(consumer, claim)}; give this migration a target of its own")
        if consumer is not None and consumer.state != ACTIVE:
            went = f"{consumer.state}: its positions went to {consumer.exported_to or 'another system'}"
            raise Refused(f"target table {table.name} is {went}, and no driver starts on it again; migrate into a new table")
        rows, warnings = claim.row.rows or 0, tuple(without_effect(self._request, claim))
        message = f"{shard_count(rows, claim.row.risks)}, taken over before; nothing was written"
        return MigrationResult(COMPLETE, message, rows, claim.row.plan_digest or "", warnings=warnings)

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def _read_source(self) -> SourceSnapshot:
        chosen, snapshot = detect.take_snapshot(self._ports.sources, self._request.source, self._request.format)
        moving = snapshot.without(frozenset(self._request.ignored), frozenset(self._request.rows))
        return SourceSnapshot(chosen, snapshot, moving, self._ports.clock())

    def _read_source_again(self) -> SourceSnapshot:
        """A later look; what cannot be read now could be a moment ago, so another program works there."""
        try:
            return self._read_source()
        except Refused as refused:
            raise SourceActive(f"source table {self._request.source} changed under way, stop its consumer and run this again: {refused}") from refused

    def _survey(self, stream: StreamIdentity) -> MigrationSurvey:
        self._ports.progress.step(f"source table {self._request.source}, stream {stream.name}")
        if stream.status not in READABLE:
            raise Refused(f"stream {stream.name} is {stream.status}, so its shards cannot be listed; run this again once it is ACTIVE")
        seen = self._read_source()
        shards = self._ports.catalog.list_shards()  # after the rows: a row's shard was listed when the row was made, so a missing one has expired
        self._ahead = shards.date_millis / 1000 - self._ports.clock()
        now_millis = shards.date_millis - T0_MARGIN_MILLIS
        return MigrationSurvey(stream, seen, self._plan(stream, seen, shards, self._choices(now_millis)), now_millis)

    def _plan(
        self, stream: StreamIdentity, seen: SourceSnapshot, shards: ShardList, choices: Choices, earlier: frozenset[str] = frozenset()
    ) -> MigrationPlan:
        """The plan, if everything in the source is of this stream."""
        _check_time(choices.timestamp_millis, shards.date_millis)
        scan = SourceScan(seen.format, seen.snapshot, stream, shards)
        understood = understand(scan, choices)
        refuse(understood.reading.problems, overrides.for_rows(scan, choices, understood.reading.problems))
        compared = Compared(understood.reading, understood.snapshot, stream, shards, choices.places)
        _refuse_others(scan, choices, compared, compared.contradictions())
        made = plan(PlanInput(understood.reading, shards, self._request.source, earlier), choices)
        self._ask(scan, choices, compared)
        return made

    def _ask(self, scan: SourceScan, choices: Choices, compared: Compared) -> None:
        """Lets Kinesis judge the checkpoints that it was not asked about before; the first refusal of a few hundred ends it."""
        places = sorted(set(compared.places()) - self._accepted)
        for asked in chunks(places, ASKED_AT_ONCE):
            self._ports.progress.step(f"asking Kinesis about {len(asked)} of {len(places)} checkpoints")
            answers = self._ports.catalog.disowned(asked)
            check_chosen(choices, answers)
            _refuse_others(scan, choices, compared, compared.disowned(answers))
            self._accepted.update(asked)

    def _choices(self, now_millis: int) -> Choices:
        asked = self._request
        return Choices(now_millis, asked.unstarted, asked.timestamp_millis, frozenset(asked.ignored), frozenset(asked.rows), asked.places)

    def _wanted(self, stream: StreamIdentity, survey: MigrationSurvey | None = None) -> MigrationClaim:
        row = MigrationRow(
            source=self._request.source,
            format=survey.seen.format.name if survey else self._request.format,
            now_millis=survey.now_millis if survey else 0,
            state=CLAIMED,
            token=self._ports.token(),
            lease_millis=self._request.lease_millis,
        )
        return MigrationClaim.wanted(row, stream, self._request.choices)

    # -- copying -------------------------------------------------------------------------------------------------------------------

    def _copy(self, held: HeldClaim, survey: MigrationSurvey) -> MigrationPlan:
        before = survey.seen
        for _ in range(ROUNDS):
            rest = self._at_rest(held, before, survey.stream)
            wanted, stored = self._plan_again(held, survey.stream, rest)
            self._ports.progress.step(f"writing {counted(len(wanted.shards), 'row')}")
            self._write(held, wanted, stored)
            held.alive()
            before = self._read_source_again()
            if before.moving.digest == rest.moving.digest:
                self._finish(held, wanted, survey.stream)
                return wanted
            self._ports.progress.step("the source moved during the copy; once more")
        raise SourceActive(f"source table {self._request.source} moved after each of {ROUNDS} copies; stop its consumer, then run this again")

    def _at_rest(self, held: HeldClaim, before: SourceSnapshot, stream: StreamIdentity) -> SourceSnapshot:
        seconds = self._quiet_seconds(before, stream)
        self._ports.progress.waiting(seconds, "the source must not move")
        held.pause(before.at + seconds)
        later = self._read_source_again()
        self._same(before, later)
        return later

    def _quiet_seconds(self, seen: SourceSnapshot, stream: StreamIdentity) -> float:
        """Seconds for which a source must not move: as asked or as its format needs, and until the last lease in it has run out.

        The lease of a shard that the user placed does not count.
        """
        placed = frozenset(label for shard in self._request.places for label in row_labels(shard, stream))
        asked, promise = self._request.quiet_seconds, lease_expiry.latest(seen.moving.without(frozenset(), placed))
        seconds = seen.format.quiet_seconds(seen.moving) if asked is None else asked
        left = promise.until_millis / 1000 - self._ahead - seen.at if promise else 0.0
        if left <= seconds:
            return seconds
        if asked is None and left <= lease_expiry.LONGEST_SECONDS:
            return left
        way_on = "or add --place for its shard" if asked is None else "or without --quiet-seconds"
        raise SourceActive(f"{promise} for {left:.0f} s more: stop its consumer and run this again after that time, {way_on}")

    def _same(self, before: SourceSnapshot, later: SourceSnapshot) -> None:
        if changes := before.moving.moved(later.moving):
            rest = f"; and {counted(len(changes) - CHANGES_SHOWN, 'more row')}" if len(changes) > CHANGES_SHOWN else ""
            first = "; ".join(changes[:CHANGES_SHOWN])
            raise SourceActive(f"source table {self._request.source} is in use, stop its consumer and run this again: {first}{rest}")

    def _plan_again(self, held: HeldClaim, stream: StreamIdentity, seen: SourceSnapshot) -> tuple[MigrationPlan, dict[str, ShardRow]]:
        held.alive()
        if self._ports.catalog.describe().created_millis != stream.created_millis:
            raise Refused(f"stream {stream.name} was deleted and created again during the migration")
        shards = self._ports.catalog.list_shards()
        stored = held.store.shards()
        return self._plan(stream, seen, shards, self._choices(held.claim.row.now_millis), frozenset(stored)), stored

    def _write(self, held: HeldClaim, wanted: MigrationPlan, stored: dict[str, ShardRow]) -> None:
        held.claim = held.store.start_copy(held.claim, Copy(wanted.digest, len(wanted.shards), wanted.risks))
        missing = [p.row for p in wanted.shards if stored.get(p.id) != p.row]
        written = len(wanted.shards) - len(missing)
        for rows in in_transactions(missing):
            held.alive()
            held.store.write_rows(held.claim, rows, stored)
            written += len(rows)
            self._ports.progress.wrote(written, len(wanted.shards))

    def _finish(self, held: HeldClaim, wanted: MigrationPlan, stream: StreamIdentity) -> None:
        self._ports.progress.step("comparing the target with the plan")
        stored = held.store.shards()
        if len(stored) != len(wanted.shards) or digest_of(stored.values()) != wanted.digest:
            held.store.beat(held.claim)  # LeaseHeld if the rows are another migrator's, who took over while this one slept
            strange = [p.id for p in wanted.shards if stored.get(p.id) != p.row] + sorted(stored.keys() - {p.id for p in wanted.shards})
            raise ProtocolViolation(f"target table {held.store.table.name} is not what was written to it: {', '.join(strange[:10])}")
        held.alive()
        consumer = ConsumerRow(
            self._ports.token(),
            stream.arn,
            stream.created_millis,
            released=True,
            bootstrapped=True,
            retention=stream.retention_millis,
        )
        held.store.complete(held.claim, consumer)

    def _result(self, state: str, message: str, made: MigrationPlan, warnings: tuple[str, ...] = ()) -> MigrationResult:
        return MigrationResult(state, message, len(made.shards), made.digest, made, (*warnings, *made.warnings))


def _refuse_others(scan: SourceScan, choices: Choices, compared: Compared, problems: Sequence[Problem]) -> None:
    """Raises `Refused` for rows that cannot be of the stream, if there are any."""
    wrong = frozenset(i for problem in problems for i in SHARD_ID.findall(problem.row or "")[-1:])
    way_on = overrides.if_others_agree(compared.agreeing(wrong), overrides.for_rows(scan, choices, problems))
    refuse_other_stream(scan.stream, problems, way_on=way_on)


def _check_time(timestamp_millis: int | None, date_millis: int) -> None:
    """Kinesis refuses an iterator at a time to come, and a finished migration cannot be corrected."""
    if timestamp_millis is not None and timestamp_millis > date_millis:
        at, now = (datetime.fromtimestamp(millis / 1000, UTC).isoformat() for millis in (timestamp_millis, date_millis))
        raise Refused(f"--timestamp {at} has not come: the time of Kinesis is {now}; give an earlier time")

"""Moves the positions of a consumer: plans, writes the plan down, and carries it out (docs/protocol.md, "Positions are moved").

Any step may be repeated. A crash before the plan is named leaves everything as it was; after that whoever takes the lease completes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sluice_checkpoints.errors import LeaseHeld, Refused, SluiceError
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import END
from sluice_checkpoints.positions.model import BACK, FORWARD, ResetPlan, Situation
from sluice_checkpoints.positions.plan import looks, plan, records
from sluice_checkpoints.positions.ports import ResetPorts
from sluice_checkpoints.positions.target import ResetRequest
from sluice_checkpoints.protocol import copies, owners, pending_letters, reset_writes, versions
from sluice_checkpoints.protocol.lease import LeaseRequest, TakenLease, Watcher, check_state, take_over
from sluice_checkpoints.protocol.lease_keeper import LeaseKeeper
from sluice_checkpoints.protocol.reset_writes import RESET_ID, StoredReset
from sluice_checkpoints.protocol.rows import ConsumerRow

PLANNED, RESET = "PLANNED", "RESET"
SAID = 10  # warnings that the document and the row keep
LOST = "another epoch took the consumer's lease; if the reset is named by then, that one completes it"


@dataclass(frozen=True)
class ResetResult:
    """What became of a reset.

    Attributes:
        document: docs/interfaces.md, "Reset", without the plan.
        plan: None: it was carried out, or named, by an earlier run.
        warnings: all of them.
    """

    document: dict[str, Any]
    plan: ResetPlan | None = None
    warnings: tuple[str, ...] = ()


class ResetLease(LeaseKeeper):
    """The consumer's lease while its positions are moved."""

    def __init__(self, taken: TakenLease, ports: ResetPorts) -> None:
        super().__init__(ports, taken.row.lease_millis, taken.sent)
        self.row, self.epoch, self._store = taken.row, taken.epoch, ports.store

    def beat(self) -> None:
        if not self._store.beat(self.epoch):
            raise LeaseHeld(LOST)


class Resetter:
    """One run of one reset."""

    def __init__(self, request: ResetRequest, ports: ResetPorts) -> None:
        if not RESET_ID.fullmatch(request.id):
            raise Refused(f"--id {request.id!r} must have 1 to 63 of a-z, A-Z, 0-9, '.', '_' and '-', and begin with none of the last three")
        self._request, self._ports, self._store = request, ports, ports.store
        self._looked: dict[tuple[str, int], bool] = {}  # whether closed shards hold a record since a time: what is known need not be asked for again

    def dry_run(self) -> ResetResult:
        """The plan as it would be now. Writes nothing.

        Raises:
            Refused, ServiceUnavailable: as for `run`.
        """
        row = self._row()
        if done := self._done_before(row):
            return done
        if row.reset is not None:
            raise Refused(f"the reset {row.reset} is not complete, so nothing can be planned: start the consumer once, or run this without --dry-run")
        made = self._plan(row)
        return ResetResult(document(self._request, made, PLANNED), made, made.warnings)

    def run(self) -> ResetResult:
        """All steps.

        Raises:
            Refused: the table, the stream or the request is not what it must be; nothing was moved.
            LeaseHeld: the consumer runs.
            ServiceUnavailable: no answer in time; run it again with the same id.
        """
        seen = self._row()
        if done := self._done_before(seen):
            return done
        if seen.reset is None:
            self._plan(seen)  # whatever is refused is refused before a lease is taken
        self._ports.progress.step("taking the consumer's lease")
        with self._holding() as held:
            return self._carried_out(held)

    # -- looking -------------------------------------------------------------------------------------------------------------------

    def _row(self) -> ConsumerRow:
        table, row = self._store.table.name, self._store.consumer()
        if row is None:
            raise Refused(f"table {table} has no consumer row: it was never bootstrapped, or its migration was not completed")
        check_state(table, row)
        if self._ports.owner is not None:
            owners.check(table, row, self._ports.owner)
        if self._ports.table_id is not None:
            copies.check_copy(table, row, self._ports.table_id)
        if not row.bootstrapped:
            raise Refused(f"table {table} was never bootstrapped to its end: not every shard has a row; start its consumer once")
        return row

    def _done_before(self, row: ConsumerRow) -> ResetResult | None:
        """The result of a reset of this id that was carried out.

        Raises:
            Refused: the id was used for something else.
        """
        reset = None if row.reset == self._request.id else reset_writes.stored(self._store, self._request.id)
        return self._result_of(reset, changed=False) if reset else None

    def _result_of(self, reset: StoredReset, *, changed: bool) -> ResetResult:
        if reset.asked != self._request.asked:
            to, wanted = reset.result["to"], str(self._request.to)
            what = f"and not to {wanted}" if wanted != to else "with other shards, another batch that was given up, or another file"
            raise Refused(f"--id {reset.id}: this id was carried out, to {to}, {what}. Choose another id")
        warnings = reset.result["firstWarnings"]
        did = "completed" if changed else "was carried out before; nothing was written"
        empty = {"recordsAgain": None, "recordsPassedOver": None}
        return ResetResult(empty | reset.result | {"message": f"the reset {reset.id} {did}", "changed": changed}, warnings=tuple(warnings))

    def _situation(self, row: ConsumerRow) -> Situation:
        stream = self._ports.catalog.describe()
        if (row.stream_arn, row.stream_created) != (stream.arn, stream.created_millis):
            table = self._store.table.name
            raise Refused(f"table {table} is of stream {row.stream_arn} (created {row.stream_created}), not {stream.arn} ({stream.created_millis})")
        contents = self._store.contents()
        listed = self._ports.catalog.list_shards()
        if self._ports.catalog.describe().created_millis != stream.created_millis:
            raise Refused(f"stream {stream.name} was deleted and created again")
        return Situation(row, contents, stream, listed, rejected=pending_letters.waits_in(self._store, row.committed + 1))

    def _plan(self, row: ConsumerRow) -> ResetPlan:
        situation = self._situation(row)
        for millis, shards in looks(self._request, situation).items():
            left = [shard for shard in shards if (shard, millis) not in self._looked]
            with_records = self._ports.records.since(left, millis) if left else frozenset()
            self._looked |= {(shard, millis): shard in with_records for shard in left}
        recent = frozenset(shard for (shard, _), holds in self._looked.items() if holds)
        if strange := self._ports.catalog.disowned(records(self._request, situation)):
            (shard, _), why = min(strange.items())
            raise Refused(f"shards.{shard}.sequence: Kinesis does not accept it for this shard: {why}")
        return plan(self._request, self._with_kept(replace(situation, recent=recent)))

    def _with_kept(self, situation: Situation) -> Situation:
        """With the positions in front of the batch that was asked for, if one was.

        Raises:
            Refused: the table does not keep them; the message names the batches of which it does.
        """
        batch = self._request.to.batch
        if batch is None:
            return situation
        row, listed = situation.consumer, versions.known(self._store)
        known = ((version, versions.kept(self._store, version)) for version in versions.within_reach(listed, row))
        by_batch = {version.first: (version.at, kept) for version, kept in known if kept is not None}
        if batch not in by_batch:
            those = f"it does of {', '.join(map(str, sorted(by_batch)))}" if by_batch else "it does of none"
            why = "the table does not keep the positions in front of it"
            if row.last_reset and batch in {version.first for version in versions.with_positions(listed)}:
                why = "a reset has moved the positions since then, so the table does not have those to go back to"
            raise Refused(f"--to-batch {batch}: {why}, and {those}. Name one of these, or a time with --to")
        at, kept = by_batch[batch]
        return replace(situation, kept=kept, kept_at=at)

    # -- writing -------------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _holding(self) -> Iterator[ResetLease]:
        """Takes the lease, and releases it in the end: no task of this epoch ever runs."""
        ports = self._ports
        watcher = Watcher(ports.clock, ports.sleep, lambda seconds: ports.progress.waiting(seconds, "the consumer's lease runs out"))
        claim = LeaseRequest(self._request.lease_millis, ports.holder, ports.at, owner=ports.owner)
        held = ResetLease(take_over(self._store, claim, watcher), ports)
        try:
            yield held
        finally:
            with suppress(SluiceError):  # what ended the block is what counts; an unreleased lease runs out
                self._store.release(held.epoch)

    def _carried_out(self, held: ResetLease) -> ResetResult:
        row = self._row()
        if done := self._done_before(row):
            return done
        if row.reset == self._request.id:
            return self._completed(held, row)
        row = self._complete_former(held, row)
        self._fence(held, row)
        made = self._plan(row)
        held.alive()
        self._store.create_shards(held.epoch, row.committed, [replace(shard, generation=held.epoch.generation) for shard in made.missing])
        written = document(self._request, made, RESET)
        plain = {name: value for name, value in written.items() if value is not None and name not in {"changed", "message"}}
        self._ports.progress.step(f"moving {counted(len(made.moves), 'shard')}")
        reset = StoredReset(self._request.id, made.committed, made.moves, self._request.asked, plain)
        named = reset_writes.name(self._store, held.epoch, row, reset, made.letters)
        reset_writes.finish(self._store, named, held.epoch, held.alive)
        return ResetResult(written, made, made.warnings)

    def _complete_former(self, held: ResetLease, row: ConsumerRow) -> ConsumerRow:
        """The consumer row, when a plan of another id that an earlier run has named is complete."""
        if row.reset is not None:
            self._ports.progress.step(f"completing the reset {row.reset}")
        return reset_writes.finish(self._store, row, held.epoch, held.alive)

    def _completed(self, held: ResetLease, row: ConsumerRow) -> ResetResult:
        """A plan of this id that an earlier run has named."""
        self._ports.progress.step(f"completing the reset {row.reset}")
        reset = reset_writes.stored(self._store, self._request.id)
        reset_writes.finish(self._store, row, held.epoch, held.alive)
        assert reset is not None  # noqa: S101 - `finish` read it
        return self._result_of(reset, changed=True)

    def _fence(self, held: ResetLease, row: ConsumerRow) -> None:
        """Tasks of earlier epochs bind nothing any more. A row at END is not fenced: no range can follow it until it is moved."""
        rows = self._store.contents().rows.values()
        left = [r for r in rows if r.generation < held.epoch.generation and r.committed_position(row.committed) != END]
        self._store.table.side_by_side(partial(self._store.fence, held.epoch, r.id) for r in left)


def document(request: ResetRequest, made: ResetPlan, state: str) -> dict[str, Any]:
    """The document of a reset without its plan (docs/interfaces.md)."""
    counts = made.counts
    verb = "would move" if state == PLANNED else "moved"
    message = f"{verb} {counted(counts[BACK], 'shard')} back and {counts[FORWARD]} forward, after batch {made.committed}"
    return {
        "reason": state.capitalize(),
        "message": message + ("; nothing was written" if state == PLANNED else ""),
        "state": state,
        "id": request.id,
        "to": str(request.to),
        "shards": len(made.shards),
        "counts": counts,
        "recordsAgain": made.again,
        "recordsPassedOver": made.passed,
        "batch": made.committed,
        "digest": made.digest,
        "changed": state == RESET,
        "warnings": len(made.warnings),
        "firstWarnings": list(made.warnings[:SAID]),
    }

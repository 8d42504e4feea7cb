"""What is wrong with a checkpoint table: the rules, each a function of what was observed (docs/migration.md, "Repairing another tool's table").

Pure. Every rule is asked about every shard, for one fault does not hide another. Where it is not known what a system will do, the worse is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sluice_checkpoints.diagnose.model import LATEST, Finding, Observation, Severity
from sluice_checkpoints.formats.reader import SHARD_ID, OtherStream, SourceShard
from sluice_checkpoints.migrate.placement import FROM_START, problem_with
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import END
from sluice_checkpoints.stream.model import Shard

LOST, WILL_BE_LOST, SUSPECTED, WARNING, INFO = Severity

ANOTHER_STREAM = (
    "name the stream the table is of; if it was deleted and created again, give its consumer a new table: no position in this one means anything"
)
HASH_KEYS = 2**128
MIGRATE = "migrate: Sluice reads it from its beginning (give --unstarted trim-horizon)"
WAITING = (
    "A shard that followed it says AT_TIMESTAMP, so KCL did not delete it as finished, and does not read it. What it holds after that time is lost, "
    "unless it was closed before"
)
AT_THAT_TIME = "migrate with --timestamp: Sluice reads what it holds after that time"
PINNED = "migrate with --unstarted trim-horizon (all that is still there) or now (from this moment on, pinned to the time)"
GONE = "nothing brings them back from Kinesis; look for them where they came from"
IF_FROM_START = "; if it is configured to start at the beginning, give --initial-position trim-horizon"


def diagnose(observed: Observation) -> tuple[Finding, ...]:
    """All that is wrong, the worst first, then by shard and rule; nothing: all records were or will be read."""
    findings = [finding for rule in TABLE_RULES for finding in rule(observed)]
    cases = (DiagnosedShard(i, observed.rows.get(i), observed.shards.get(i), observed) for i in observed.rows.keys() | observed.shards.keys())
    findings += (finding for case in cases for rule in SHARD_RULES for finding in rule(case))
    return tuple(sorted(findings, key=lambda f: (list(Severity).index(f.severity), f.shard or "", f.kind)))


@dataclass(frozen=True, slots=True)
class DiagnosedShard:
    """One shard: its row in the table and its entry in the stream, either of which may be missing, and all the rest."""

    id: str
    row: SourceShard | None
    shard: Shard | None
    all: Observation

    def finding(self, kind: str, severity: Severity, text: str, advice: str) -> Finding:
        """A finding about this shard."""
        return Finding(kind, severity, self.id, text, advice)

    def started_late(self, kind: str, text: str) -> Finding:
        """A finding about this shard, which will start at the system's configured initial position."""
        if self.all.initial == FROM_START:
            return self.finding(kind, INFO, f"{text}, and {self.all.system.title} starts at its beginning, as it is configured", "nothing")
        known = "is configured to start" if self.all.initial == LATEST else "starts at its configured initial position; if that is LATEST, it starts"
        consequence = f"{self.all.system.title} {known} at the tip of the moment: what was put there before is lost"
        return self.finding(kind, WILL_BE_LOST, f"{text}; {consequence}", MIGRATE + ("" if self.all.initial else IF_FROM_START))


# -- the table -------------------------------------------------------------------------------------------------------------------------


def _not_understood(observed: Observation) -> Iterator[Finding]:
    """Rows, or the table as a whole, that a migration would refuse."""
    for problem in observed.reading.problems:
        where = f"table {problem.table}, row {problem.row}: " if problem.row is not None else ""
        if isinstance(problem.why, OtherStream):
            yield Finding("other-stream", WILL_BE_LOST, None, f"{where}{problem.why}", ANOTHER_STREAM)
        else:
            kind = "table" if problem.row is None else "unreadable"
            severity = SUSPECTED if SHARD_ID.search(problem.row or "") else WARNING  # where that shard continues is not known
            advice = "look at it; it blocks every migration, for it may hold a position; `sluice migrate --dry-run` says how to continue"
            yield Finding(kind, severity, None, f"{where}{problem.why}", advice)


def _table_notes(observed: Observation) -> Iterator[Finding]:
    """What the reader has to say of the table; of an interrupted migration there is a rule that knows more."""
    if observed.interrupted is None:
        for note in observed.reading.notes:
            yield Finding("table", WARNING, None, note, "make sure of it before a migration")


def _interrupted(observed: Observation) -> Iterator[Finding]:
    """NiFi's own migration, stopped half-way: which table holds what, and what its next start would do."""
    if (stopped := observed.interrupted) is None:
        return
    main, next_start = {
        "kcl": ("is still KCL's", "skips the copy, deletes the KCL table and continues with what the half-made one holds"),
        "gone": ("is gone", "creates it again, copies what the half-made one holds, and deletes that; before NiFi 2.10.0 even after a failed copy"),
        "nifi": ("was created again", "copies the half-made one over it once more and deletes that; before NiFi 2.10.0 it deletes without a copy"),
    }[stopped.main]
    state = "is complete" if stopped.complete else "is not complete"
    held = f"{stopped.half} {state} and holds {counted(stopped.held, 'position')}"
    text = f"NiFi's own migration was interrupted: the main table {main}, {held}; NiFi's next start "
    risked = stopped.not_there if stopped.main == "kcl" else stopped.only_there
    stand = "are in the KCL table alone" if stopped.main == "kcl" else f"are in {stopped.half} alone, the only copy"
    advice = "do not start NiFi; migrate now: both tables are read, and the higher position counts"
    severity = WILL_BE_LOST if risked else WARNING
    yield Finding("interrupted-migration", severity, None, f"{text}{next_start}" + (f"; {_names(risked)} {stand}" if risked else ""), advice)


def _copy_never_finished(observed: Observation) -> Iterator[Finding]:
    """The KCL table was deleted before everything had been copied out of it."""
    stopped = observed.interrupted
    if stopped and stopped.main != "kcl" and not stopped.complete:
        text = f"the KCL table was deleted though the copy into {stopped.half} was never completed: positions that are in neither table are lost"
        yield Finding("interrupted-migration", LOST, None, text, "restore the KCL table from a backup or a point in time, if there is one")


# -- shards with a row -----------------------------------------------------------------------------------------------------------------


def _another_stream(case: DiagnosedShard) -> Iterator[Finding]:
    """Its position cannot be in this shard."""
    if problem := problem_with(case.row, case.shard):
        yield case.finding("other-stream", WILL_BE_LOST, problem, ANOTHER_STREAM)


def _expired(case: DiagnosedShard) -> Iterator[Finding]:
    """The stream no longer knows the shard, and it had not been read to its end."""
    if case.shard or case.row is None or case.row.stored.position == END:
        return
    text = f"is at {case.row.stored.text}, and is gone from the stream: what it held after that is lost"
    if case.all.system.stores_ends:
        yield case.finding("expired", LOST, text, GONE)
    else:
        text = f"{text}, unless it had been read to its end, which {case.all.system.title} does not store"
        yield case.finding("expired", WARNING, text, "nothing, if its consumer was running when the shard was closed")


def _behind_retention(case: DiagnosedShard) -> Iterator[Finding]:
    """Suspected only: no number shows whether there was a record between the two."""
    position, oldest = case.row.stored.position if case.row else None, case.all.oldest.get(case.id)
    if position and position.sequence and oldest and int(position.sequence) < int(oldest):
        text = f"suspected: is at {position.sequence}, and the oldest record still there is {oldest}; records between the two, if any, are lost"
        yield case.finding("behind-retention", SUSPECTED, text, f"start its consumer before more expires, or lengthen the retention; {GONE}")


def _never_acknowledged(case: DiagnosedShard) -> Iterator[Finding]:
    """The row names no position: nothing was pinned when it was made."""
    if not case.row or not case.shard or case.row.stored.position or case.row.stored.at_timestamp:
        return
    if case.row.stored.text != LATEST.upper():
        yield case.started_late("never-acknowledged", f"was never acknowledged ({case.row.stored.text})")
        return
    text = "says LATEST, which is not a position: until its first checkpoint, whatever arrives while its consumer is stopped is lost at every start"
    yield case.finding("never-acknowledged", WILL_BE_LOST, text, PINNED)


def _waits_for_a_time(case: DiagnosedShard) -> Iterator[Finding]:
    """AT_TIMESTAMP is stored without its time."""
    if case.row and case.shard and case.row.stored.at_timestamp:
        text = "says AT_TIMESTAMP, and the time is in its consumer's configuration alone"
        yield case.finding("at-timestamp", WARNING, text, "keep that time; migrate with --timestamp")


def _behind_its_children(case: DiagnosedShard) -> Iterator[Finding]:
    """A child was started before its parent's end: the order of records is broken, and a system that drops the parent drops its rest."""
    if not case.row or not case.shard or case.row.stored.position == END:
        return
    started = [i for i in sorted(case.all.lineage.children.get(case.id, ())) if (row := case.all.rows.get(i)) and row.stored.progress]
    if not started:
        return
    if case.all.system.stores_ends:
        text = f"is not finished (is at {case.row.stored.text}), though {_names(started)} behind it started: the order is broken"
        yield case.finding(
            "order", WARNING, f"{text}, and its rest may be lost", "migrate: Sluice reads its rest before it continues with what follows it"
        )
    else:
        text = f"has {_names(started)} started behind it, and {case.all.system.title} does not store whether it was read to its end"
        yield case.finding("order", INFO, text, "nothing; a migration reads its rest, if there is one")


def _children_are_gone(case: DiagnosedShard) -> Iterator[Finding]:
    """The row names children that neither the table nor the stream knows."""
    for child in sorted(case.row.children if case.row else ()):
        if child not in case.all.rows and child not in case.all.shards and child not in case.all.unread:
            text = f"follows {case.id} in the table, but has no row and is gone from the stream: its records, if it had any, are lost"
            yield Finding("expired", LOST, child, text, GONE)


def _left_behind(case: DiagnosedShard) -> Iterator[Finding]:
    """Prepared checkpoints, hand-offs and claims. An owner is none of these: it stays after a clean stop too."""
    for note in case.row.notes if case.row else ():
        yield case.finding("left-behind", WARNING, note, "make sure its consumer is stopped; its position is the row's in any case")


def _comes_again(case: DiagnosedShard) -> Iterator[Finding]:
    """What was processed before and will be once more."""
    if case.row and case.row.stored.again:
        yield case.finding("read-again", INFO, f"{case.row.stored.again}: its records come again", "nothing, if the sink is idempotent")


# -- shards without a row --------------------------------------------------------------------------------------------------------------


def _row_is_missing(case: DiagnosedShard) -> Iterator[Finding]:
    """Closed, and what followed it has progress. KCL deletes rows of finished shards, and only by its rule; no other system does."""
    if not _rowless(case) or case.id not in case.all.above_progress or case.id in case.all.missing_rows.deleted:
        return
    if case.id in case.all.missing_rows.waiting:
        yield case.finding("row-missing", SUSPECTED, f"has no row, though what followed it has progress. {WAITING}", AT_THAT_TIME)
        return
    if case.all.reading.finished_rows_vanish:
        text = (
            "has no row, though what followed it has progress, and KCL did not delete it as finished. A shard before it still has a row, or one that "
            "followed it was not started. KCL does not read it: its records are lost unless they were read before"
        )
        yield case.finding("row-missing", WILL_BE_LOST, text, MIGRATE)
        return
    text = "has no row, though what followed it has progress: it was read to its end, or never; the table does not say"
    yield case.finding("row-missing", WARNING, text, "a migration reads it from its beginning: duplicates, but no gap")


def _child_without_row(case: DiagnosedShard) -> Iterator[Finding]:
    """It follows a shard that has a row: was it seen in time?"""
    if not _rowless(case) or case.id in case.all.above_progress or case.id not in case.all.below_rows:
        return
    parents = sorted(case.all.lineage.parents[case.id])
    finished = [i for i in parents if (row := case.all.rows.get(i)) and row.stored.position == END]
    if not case.all.system.children_at_start:
        yield case.started_late("child-without-row", f"has no row yet and follows {_names(parents)}")
    elif finished:
        text = f"has no row, though {_names(finished)} before it is finished; {case.all.system.title} gives it one at its beginning, if it runs"
        yield case.finding("child-without-row", WARNING, text, "start its consumer before that row is deleted, or migrate")


def _hole(case: DiagnosedShard) -> Iterator[Finding]:
    """Hash keys that no row answers for, nor anything that follows a row."""
    if case.shard is None or not _rowless(case) or case.id in case.all.above_progress or case.id in case.all.below_rows:
        return
    text = f"has no row and follows no shard that has one: a hole at {_hash_range(case.shard)}"
    if case.all.system.strangers_at_start:
        yield case.finding("hole", INFO, f"{text}; {case.all.system.title} starts it at its beginning", "nothing")
    elif not case.shard.closed or case.id not in case.all.above_rows:
        yield case.started_late("hole", text)
    elif case.id in case.all.above_times:
        yield case.finding("hole", SUSPECTED, f"{text}. {WAITING}", AT_THAT_TIME)
    elif case.id not in case.all.above_late_starts:
        yield _passed_over(case, text)


def _passed_over(case: DiagnosedShard, text: str) -> Finding:
    """What followed it has rows, so it is not read again where parents without a row count as finished."""
    if not case.all.system.children_at_start:
        return case.started_late("hole", text)
    return case.finding("hole", WILL_BE_LOST, f"{text}; {case.all.system.title} takes it for finished: no consumer reads its records", MIGRATE)


def _rowless(case: DiagnosedShard) -> bool:
    return case.row is None and case.shard is not None and case.id not in case.all.unread


def _hash_range(shard: Shard) -> str:
    share = 100 * (shard.ending_hash - shard.starting_hash + 1) / HASH_KEYS
    return f"hash keys {shard.starting_hash} to {shard.ending_hash} ({share:.3g} % of all)"


def _names(ids: Iterable[str], most: int = 4) -> str:
    names = list(ids)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


TABLE_RULES: tuple[Callable[[Observation], Iterator[Finding]], ...] = (
    _not_understood,  # unknown rows, attributes, values; the table of another stream; exported, never bootstrapped
    _table_notes,  # what the reader warns of
    _interrupted,  # NiFi between two tables
    _copy_never_finished,  # NiFi, after it deleted too early
)
SHARD_RULES: tuple[Callable[[DiagnosedShard], Iterator[Finding]], ...] = (
    _another_stream,  # a checkpoint outside its shard's range; an end that is none
    _expired,  # a row whose shard is gone
    _behind_retention,  # a checkpoint before the oldest record
    _never_acknowledged,  # LATEST, NULL
    _waits_for_a_time,  # AT_TIMESTAMP
    _behind_its_children,  # an unfinished parent of a started child
    _children_are_gone,  # stored as children, and nowhere to be found
    _left_behind,  # prepared checkpoints, hand-offs, claims
    _comes_again,  # an open batch
    _row_is_missing,  # no row from here on: finished long ago?
    _child_without_row,  # a child that was not seen yet
    _hole,  # nothing accounts for it
)

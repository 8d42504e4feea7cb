"""Where one shard starts, and why: the rules of a migration's plan, in the order in which they are asked (docs/migration.md, step 4). Pure.

Reading a record twice is safe, skipping one is not, so a shard in doubt starts earlier. A shard that no rule accounts for gets no position, and the
plan is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sluice_checkpoints.formats.reader import SourceShard
from sluice_checkpoints.migrate.lineage import MissingRows
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import Shard

FROM_START, FROM_NOW = "trim-horizon", "now"
OTHER_STREAM = "this is the table of another stream, or of an earlier one of the same name"


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user said, and the time.

    Attributes:
        now_millis: T0, the moment that `unstarted=now` means; epoch milliseconds.
        unstarted: where shards start that were never acknowledged: `trim-horizon`, `now`, or None (not said: at the beginning, and shards that
            nothing accounts for are refused).
        timestamp_millis: where rows start that say AT_TIMESTAMP; epoch milliseconds.
        ignored: names of attributes that count as if they were not there.
        rows: keys of rows that count as if they were not there.
        places: where these shards start, whatever the source says; by shard id.
    """

    now_millis: int
    unstarted: str | None = None
    timestamp_millis: int | None = None
    ignored: frozenset[str] = frozenset()
    rows: frozenset[str] = frozenset()
    places: Mapping[str, Position] = field(default_factory=dict)

    @property
    def start(self) -> Position:
        """The position of a shard that was never started."""
        return Position.timestamp(self.now_millis) if self.unstarted == FROM_NOW else TRIM_HORIZON


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a shard starts and why.

    Attributes:
        warning: what a person should look at.
        again: records that were processed before may be read again (beyond those since the last checkpoint, which every restart reads again).
        lost: records may be gone for good.
    """

    position: Position
    why: str
    warning: str | None = None
    again: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True)
class PlacementCase:
    """Everything the rules may look at for one shard: its row in the source and its entry in the stream, either of which may be missing.

    Attributes:
        missing: see `Lineage.missing_rows`.
    """

    id: str
    row: SourceShard | None
    shard: Shard | None
    choices: Choices
    finished_rows_vanish: bool
    rowless: str | None
    below_a_row: bool
    above_progress: bool
    missing: MissingRows


Rule = Callable[[PlacementCase], Placement | None]


def _expired(case: PlacementCase) -> Placement | None:
    if case.shard is not None:
        return None
    if case.row is not None and case.row.stored.position == END:
        return Placement(END, "finished, and no longer in the stream")
    why = "no longer in the stream" if case.row is not None else "planned by an earlier try, and no longer in the stream since"
    return Placement(END, why, "not finished, and its retention has passed: records after its checkpoint are lost", lost=True)


def _as_the_user_placed(case: PlacementCase) -> Placement | None:
    place = case.choices.places.get(case.id)
    return Placement(place, "--place says so", again=place == TRIM_HORIZON) if place else None


def _stored_place(case: PlacementCase) -> Placement | None:
    position = case.row.stored.position if case.row else None
    if not case.row or not position:
        return None
    whys = {
        "END": "finished",
        "TRIM_HORIZON": "not started, from its beginning",
        "TIMESTAMP": "not started, from the time the source pinned",
        "AFTER": "at the source's position",
    }
    again = case.row.stored.again
    return Placement(position, whys[position.at], f"{again}: its records are read again" if again else None, again=bool(again))


def _waits_for_a_time(case: PlacementCase) -> Placement | None:
    if not case.row or not case.row.stored.at_timestamp:
        return None
    if case.choices.timestamp_millis is not None:
        return Placement(Position.timestamp(case.choices.timestamp_millis), "the source names no time; --timestamp does")
    return Placement(
        TRIM_HORIZON,
        "the source names no time",
        "AT_TIMESTAMP is stored without its time, so it starts at its beginning (--timestamp names it)",
        again=True,
    )


def _never_acknowledged(case: PlacementCase) -> Placement | None:
    if not case.row:
        return None
    if case.choices.unstarted == FROM_NOW:
        return Placement(case.choices.start, "never acknowledged; --unstarted now")
    return Placement(
        TRIM_HORIZON,
        "never acknowledged",
        f"{case.row.stored.text} was never replaced by a checkpoint, so it starts at its beginning: records the source has processed come again",
        again=True,
    )


def _row_was_deleted(case: PlacementCase) -> Placement | None:
    if not case.shard or not case.shard.closed or not case.above_progress:
        return None
    if case.finished_rows_vanish and case.id in case.missing.deleted:
        return Placement(END, "closed, no row, and what followed it has progress: the source deleted it as finished")
    if case.finished_rows_vanish and case.id in case.missing.waiting:
        return _waits_with_its_children(case)
    why = "closed and no row, though what followed it has progress"
    if case.finished_rows_vanish:
        why += "; the source did not delete it as finished: a shard before it still has a row, or one that followed it was not started"
    return Placement(TRIM_HORIZON, why, "its row is missing, so it starts at its beginning", again=True)


def _waits_with_its_children(case: PlacementCase) -> Placement:
    """A table that was begun at a time has no row of a shard that was closed before: then nothing comes. If it was closed later, nobody read it."""
    why = "closed and no row, and a shard that followed it says AT_TIMESTAMP, so the source did not delete it as finished"
    if case.choices.timestamp_millis is not None:
        warning = "its row is missing, so what it holds after --timestamp is read: nothing, if it was closed before"
        return Placement(Position.timestamp(case.choices.timestamp_millis), why, warning, again=True)
    return Placement(TRIM_HORIZON, why, "its row is missing, so it starts at its beginning (--timestamp names the time of AT_TIMESTAMP)", again=True)


def _follows_a_row(case: PlacementCase) -> Placement | None:
    return Placement(TRIM_HORIZON, "no row yet; it follows a shard that has one") if case.below_a_row else None


def _as_the_user_said(case: PlacementCase) -> Placement | None:
    if case.choices.unstarted is None:
        return None
    return Placement(case.choices.start, f"no row; --unstarted {case.choices.unstarted}")


def _needs_no_row(case: PlacementCase) -> Placement | None:
    if case.rowless is None:
        return None
    return Placement(TRIM_HORIZON, "no row, and the source need not have one", f"starts at its beginning: {case.rowless}", again=True)


# The first rule with an answer decides; a shard for which none has one is refused.
RULES: tuple[Rule, ...] = (
    _expired,  # a row, or an earlier try's, for a shard the stream no longer knows
    _as_the_user_placed,  # --place
    _stored_place,  # digits, SHARD_END, TRIM_HORIZON
    _waits_for_a_time,  # AT_TIMESTAMP
    _never_acknowledged,  # LATEST, NULL
    _row_was_deleted,  # no row from here on: finished long ago?
    _follows_a_row,  # a child that the source had not seen yet
    _as_the_user_said,  # nothing accounts for it
    _needs_no_row,  # nothing but the ways of the source's system
)


def problem_with(row: SourceShard | None, shard: Shard | None) -> str | None:
    """Why a row cannot be of this stream, or None; either may be missing."""
    position = row.stored.position if row else None
    problem = contradiction(position, shard) if position else None
    return problem and f"{problem}: {OTHER_STREAM}"


def contradiction(position: Position, shard: Shard | None) -> str | None:
    """Why a position cannot be one in this shard, or None; None for a shard that the stream no longer lists, too."""
    if shard is None:
        return None
    if position == END and not shard.closed:
        return "is stored as finished, but the stream's shard is open"
    return None if position.sequence is None else _outside(int(position.sequence), shard)


def place_text(position: Position) -> str:
    """A position as `--place` takes it."""
    return FROM_START if position == TRIM_HORIZON else position.sequence or position.at


def _outside(sequence: int, shard: Shard) -> str | None:
    """Emulators give closed shards an EndingSequenceNumber below their first one, which is not a range and bounds nothing."""
    low = int(shard.starting_sequence)
    high = int(shard.ending_sequence) if shard.ending_sequence else None
    if sequence < low or (high is not None and low <= high < sequence):
        ends = "…" if high is None else str(high)
        return f"checkpoint {sequence} is outside the shard's range [{low}, {ends}]"
    return None

"""The plan of a reset, shard by shard. Pure: same input, same plan; `--dry-run` prints it (docs/protocol.md, "Positions are moved")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.positions.model import BACK, FORWARD, UNCHANGED, ResetPlan, ShardMove, Situation
from sluice_checkpoints.positions.placement import CLOCK_SLACK_MILLIS, FilePlacement, Placed, ResetPlacement, edited
from sluice_checkpoints.positions.scope import ShardGraph, check_listing, named, out_of_order, scope
from sluice_checkpoints.positions.target import NEWEST, OLDEST, ResetRequest, ResetTarget, iso
from sluice_checkpoints.protocol.rows import ShardRow, earliest_arrival_millis
from sluice_checkpoints.stream.model import ShardPlace

HOUR_MILLIS = 3_600_000


def looks(request: ResetRequest, situation: Situation) -> Mapping[int, tuple[str, ...]]:
    """Closed shards of which the plan has to know whether they hold a record since a time, by that time in epoch milliseconds.

    Raises:
        Refused: see `plan`.
    """
    graph, shards_at = ShardGraph(situation.table, situation.listed), dict[int, tuple[str, ...]]()
    times = dict.fromkeys(scope(graph, request.shards), request.to.millis)
    if request.file is not None:
        times = {shard: position.millis for shard, position in edited(request, situation.consumer, graph).items()}
    for shard in situation.listed.shards:
        millis = times.get(shard.id)
        if shard.closed and millis is not None and millis >= situation.oldest_millis:
            shards_at[millis] = (*shards_at.get(millis, ()), shard.id)
    return shards_at


def records(request: ResetRequest, situation: Situation) -> tuple[ShardPlace, ...]:
    """The records that a file moves shards to, which have to be of their shards."""
    moved = edited(request, situation.consumer, ShardGraph(situation.table, situation.listed))
    return tuple((shard, position.sequence) for shard, position in moved.items() if position.sequence is not None)


def plan(request: ResetRequest, situation: Situation) -> ResetPlan:
    """The plan.

    Raises:
        Refused: a batch is open, a time lies in the future or before the oldest record, or shards cannot be moved so. The message names the option.
        ServiceUnavailable: the listing is older than the table.
    """
    graph = ShardGraph(situation.table, situation.listed)
    check_listing(graph)
    target, expired = _target(request, situation)
    placed = _placed(request, situation, graph, target)
    wanted = frozenset(placed)
    given_up = _given_up(request, situation, wanted)
    committed = situation.consumer.committed + (1 if given_up else 0)
    missing = tuple(_made(graph, shard, committed) for shard in sorted(wanted - situation.table.rows.keys()))
    rows = dict(situation.table.rows) | {row.id: row for row in missing}
    shards = tuple(_only_forward(target, _planned(rows[shard], committed, place)) for shard, place in placed.items())
    _check_order(request, graph, situation.consumer.committed, shards)
    about = (
        *_about_expired(request, situation, graph),
        *_about_unread(situation, shards),
        *_about_folded(graph, shards),
        *_about_gone(graph, shards),
    )
    letters = (*situation.consumer.letters, *(row.letter for row in given_up if row.letter))
    return ResetPlan(shards, committed, (*_about_batch(request, situation, given_up), *expired, *about), missing, letters)


def _placed(request: ResetRequest, situation: Situation, graph: ShardGraph, target: ResetTarget) -> Mapping[str, Placed | None]:
    """Where each shard of the reset is moved to; None: it stays."""
    recent, expired = situation.recent, situation.expired_millis
    if request.file is None:
        return ResetPlacement(graph, scope(graph, request.shards), target, recent, expired, situation.kept).all()
    moved = edited(request, situation.consumer, graph)
    return FilePlacement(
        graph,
        frozenset(moved),
        target,
        recent,
        expired,
        positions=moved,
        accept_expired=request.accept_expired,
        oldest_millis=situation.oldest_millis,
    ).all()


def _check_order(request: ResetRequest, graph: ShardGraph, committed: int, shards: tuple[ShardMove, ...]) -> None:
    """Parents come before their children, in all generations: what is read must not follow a shard of which more is to be read."""
    after = graph.positions(committed) | {shard.row.id: shard.placed.to for shard in shards}
    for shard, waits in sorted(out_of_order(graph, after, frozenset(shard.row.id for shard in shards if shard.write)).items()):
        if request.file is not None:
            raise Refused(f"shards.{shard}: it would continue before {named(waits)} is read to its end; move it to TRIM_HORIZON as well")
        raise Refused(f"--shard: {shard} follows {named(waits)}, of which more is to be read, and would be passed over; name that as well, or wait")


def _given_up(request: ResetRequest, situation: Situation, wanted: frozenset[str]) -> tuple[ShardRow, ...]:
    number = situation.consumer.committed + 1
    rows = situation.open_batch
    if not rows:
        if request.give_up is not None and request.give_up != situation.consumer.committed:
            raise Refused(f"--give-up-batch {request.give_up}: that batch is not open; no batch is. Leave it out")
        return ()
    if request.give_up != number:
        raise Refused(
            f"batch {number} is open: it was begun and not committed, with {_held(rows)}, and "
            f"your sink may hold it. Start the consumer once, and it ends the batch; or add --give-up-batch {number}, and it counts as processed"
        )
    if left := frozenset(row.id for row in rows if row.records or row.end == END) - wanted:
        how = "the file leaves behind it; give them a position in front of it" if request.file else "--shard leaves out; leave --shard out"
        raise Refused(f"--give-up-batch {number}: the batch holds records of {named(left)}, which {how}")
    return rows


def _target(request: ResetRequest, situation: Situation) -> tuple[ResetTarget, tuple[str, ...]]:
    """The target, and what to say of it. A time before the oldest record is `trimHorizon`, as at a first start."""
    millis = request.to.millis
    if millis is None:
        return request.to, ()
    if millis > situation.listed.date_millis - CLOCK_SLACK_MILLIS:
        raise Refused(f"--to {request.to} lies in the future, or is now; use {NEWEST}")
    if millis >= situation.oldest_millis:
        return request.to, _about_retention(millis, situation)
    stream, oldest = situation.stream, iso(situation.oldest_millis)
    if stream.created_millis == situation.oldest_millis:
        return ResetTarget(OLDEST), (f"--to {request.to} lies before stream {stream.name} was created ({oldest}): all of it is read",)
    kept = f"stream {stream.name} keeps records for {stream.retention_millis / HOUR_MILLIS:g} h"
    if not request.accept_expired:
        raise Refused(
            f"--to {request.to} lies before the oldest record: {kept}, so records between that time and {oldest} have expired. "
            "Add --accept-expired to begin at the oldest record, or name a later time"
        )
    return ResetTarget(OLDEST), (f"{kept}: what arrived between {request.to} and {oldest} has expired and does not come again",)


def _about_expired(request: ResetRequest, situation: Situation, graph: ShardGraph) -> tuple[str, ...]:
    """What to say of positions in front of a batch that retention has passed, or whose shards have left the stream."""
    oldest, read = situation.oldest_millis, {shard: kept for shard, kept in (situation.kept or {}).items() if kept.position != END}
    late = {shard for shard, kept in read.items() if shard not in graph.shards or kept.age_millis(situation.kept_at) < oldest}
    late |= _came_and_went(situation, graph)
    if not (late := late & (request.shards or late)):
        return ()
    gone = f"records of {named(late)} that arrived in front of {iso(oldest)} may have expired since {request.to}"
    if not request.accept_expired:
        raise Refused(f"--to-batch {request.to.batch}: {gone}. Add --accept-expired to begin at the oldest record there")
    return (gone,)


def _came_and_went(situation: Situation, graph: ShardGraph) -> frozenset[str]:
    """Shards that came after the batch that was asked for, and have left the stream since: no position of them was kept."""
    if situation.kept is None:
        return frozenset()
    folded = {shard for shard, at in situation.table.folded.items() if at > situation.kept_at}
    return frozenset((folded | (situation.table.rows.keys() - graph.shards.keys())) - situation.kept.keys())


def _about_retention(millis: int, situation: Situation) -> tuple[str, ...]:
    """What to say if the retention was raised lately: what expired before that does not come back."""
    shorter = situation.consumer.retention or 0
    if not 0 < shorter < situation.stream.retention_millis or millis >= situation.listed.date_millis - shorter:
        return ()
    return (f"stream {situation.stream.name} kept records for {shorter / HOUR_MILLIS:g} h until lately: some from that time on may have expired",)


def _made(graph: ShardGraph, shard: str, committed: int) -> ShardRow:
    """The row that an audit would give a shard that nobody has read."""
    parents, rows = graph.parents[shard], graph.table.rows
    read_to = earliest_arrival_millis(rows[parent] for parent in parents if parent in rows)
    return ShardRow(shard, TRIM_HORIZON, TRIM_HORIZON, joins=committed + 2, parents=parents, read_to=read_to)


def _planned(row: ShardRow, committed: int, placed: Placed | None) -> ShardMove:
    at = row.committed_position(committed)
    if placed is None:
        return ShardMove(row, at, Placed(at, "it has left the stream"), UNCHANGED)
    if placed.to == at:
        return ShardMove(row, at, replace(placed, to=at), UNCHANGED)
    known = _is_back(row, at, placed.to)
    if known is False:
        return ShardMove(row, at, placed, FORWARD, passed=None)
    again = row.records + row.excluded if placed.to == row.start else None
    return ShardMove(row, at, placed, BACK, again=again, passed=0 if known else None)


def _only_forward(target: ResetTarget, shard: ShardMove) -> ShardMove:
    """The tip is never behind a shard: one that was read up to now stays where it is."""
    if target.word != NEWEST or shard.move != BACK or shard.passed is None:
        return shard
    return ShardMove(shard.row, shard.at, Placed(shard.at, "it was read up to now"), UNCHANGED)


def _is_back(row: ShardRow, at: Position, to: Position) -> bool | None:
    """Whether a shard moves back; None: its row does not know when its last record arrived."""
    if END in {at, to}:
        return at == END
    if TRIM_HORIZON in {at, to}:
        return to == TRIM_HORIZON
    if at.sequence is not None and to.sequence is not None:
        return _record(to) <= _record(at)
    read_to = max(at.millis or 0, row.read_to)
    return (to.millis or 0) <= read_to if read_to else None


def _record(position: Position) -> tuple[int, float]:
    """The last record in front of a position AFTER; without an index it is behind the whole of an aggregate."""
    return int(position.sequence or 0), float("inf") if position.sub is None else position.sub


def _about_batch(request: ResetRequest, situation: Situation, given_up: tuple[ShardRow, ...]) -> Iterator[str]:
    if not given_up:
        return
    shards = named(row.id for row in given_up)
    yield f"batch {request.give_up} is given up: its {_held(given_up)} count as processed, whether or not your sink holds them ({shards})"
    if situation.rejected:
        yield f"`process` rejected records of batch {request.give_up}: their dead letters, in {situation.rejected}, are dropped with the batch"


def _held(rows: tuple[ShardRow, ...]) -> str:
    return f"{counted(sum(row.records for row in rows), 'record')} of {counted(len(rows), 'shard')}"


def _about_unread(situation: Situation, shards: tuple[ShardMove, ...]) -> tuple[str, ...]:
    """Shards whose next range would have reported a possible loss, and does not once they are moved."""
    expired = situation.expired_millis
    expiring = [s.row.id for s in shards if s.write and s.at != END and 0 < (s.row.read_to or s.at.millis or 0) <= expired]
    return (f"{named(expiring)} was last read before {iso(expired)}: unread records may have expired before this reset",) if expiring else ()


def _about_folded(graph: ShardGraph, shards: tuple[ShardMove, ...]) -> tuple[str, ...]:
    """Parents that cannot be read again, of shards that begin again."""
    begun: Mapping[str, frozenset[str]] = {s.row.id: graph.parents[s.row.id] for s in shards if s.move == BACK and s.placed.to == TRIM_HORIZON}
    over = frozenset().union(*begun.values()) - graph.shards.keys()
    return (f"{named(over)} cannot be read again: the stream does not have them any more. Reading begins at their children",) if over else ()


def _about_gone(graph: ShardGraph, shards: tuple[ShardMove, ...]) -> tuple[str, ...]:
    gone = [s.row.id for s in shards if s.row.id not in graph.shards and END not in {s.at, s.placed.to}]
    return (f"{named(gone)} left the stream before it was read to its end; its consumer reports what is missing",) if gone else ()

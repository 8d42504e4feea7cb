"""`spec.position`: the positions are moved once for each id, by a Job, while no driver runs.

`note` reads the Job's end. The rule is in `reset`. Exit codes: docs/interfaces.md.

A refused move leaves everything as it was, and the driver reads on. A consumer that stands still falls behind, and its records expire. A move can be
asked for again, and nothing is lost by that.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from sluice_operator.names import END_REACHED, counted
from sluice_operator.plan import jobs
from sluice_operator.plan.jobs import MAX_TRIES, JobView
from sluice_operator.resource.changes import position_hash
from sluice_operator.state.status import PositionState, PositionStatus, Status

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.state.view import Step, View

Onto = TypeVar("Onto", "Status", "Step")
HELD = 75  # exit code: another program has the lease
MOST_FAILURES = 3  # of tries that were not refused and did not come to their end
MOST_IDS = 20
LEFT = "if its plan was written down, the next driver carries it out, and `sluice show` names it as the last reset"
OVER = {PositionState.COMPLETE, PositionState.REFUSED}
TIMED = {PositionState.RUNNING, PositionState.LOST, PositionState.FAILING}
JUDGED = {*OVER, PositionState.HELD, PositionState.FAILING}
FIELDS = {
    "--give-up-batch": "position.giveUpBatch",
    "--accept-expired": "position.acceptExpired",
    "--to-batch": "position.to.batch",
    "--to": "position.to",
    "--shard": "position.shards",
    "--id": "position.id",
}
"""Options of `sluice reset` that the operator gives its Job, and the fields that they come from."""
OPTION = re.compile(r"(?<![\w-])--shard (?=shardId-)|(?<![\w-])(" + "|".join(FIELDS) + r")(?![\w-])")


def asked(view: View) -> str | None:
    """The id of a move that the spec asks for and that is not over. None: there is none, or it was carried out, or refused as it stands."""
    wanted, before = view.wanted.spec.position if view.wanted else None, view.status.position
    if wanted is None or before is None:
        return None if wanted is None else wanted.id
    if wanted.id in before.earlier or (wanted.id == before.id and before.state is PositionState.COMPLETE):
        return None
    refused = is_present(view) and before.state is PositionState.REFUSED and not _is_runnable_now(view, before)
    return None if refused and not is_retried(view, before) else wanted.id


def _is_runnable_now(view: View, before: PositionStatus) -> bool:
    """Whether a Job that no pod could carry out runs something else now: its image was corrected, say."""
    return before.finished_at is None and view.wanted is not None and before.spec_hash != view.wanted.reset_job_hash


def is_present(view: View) -> bool:
    """Whether the status is about the move that the spec asks for, word for word."""
    before = view.status.position
    return before is not None and view.wanted is not None and before.hash == _hash(view)


def _hash(view: View) -> str | None:
    return position_hash(view.resource.namespace, view.resource.name, view.wanted) if view.wanted else None


def is_retried(view: View, before: PositionStatus) -> bool:
    """Whether a person asks for another try, by the annotation."""
    return view.resource.retry not in {None, before.retry}


def note(view: View) -> Status:
    """The move, with what its Job shows. After it a run that had reached its end has not, unless the move was refused in so many words."""
    before = view.status.position
    if before is None or before.state not in TIMED:
        return view.status
    before = replace(before, since=_waited_since(view, before))
    after = _seen(view, before) if before.state is PositionState.RUNNING else before
    begins = after.state is PositionState.COMPLETE or (after.state is PositionState.REFUSED and after.failures >= MOST_FAILURES)
    return leave(view, view.status, after) if begins else replace(view.status, position=after)


def _waited_since(view: View, move: PositionStatus) -> datetime | None:
    rests = view.resource.paused or (view.wanted is not None and (view.wanted.spec.suspend or not view.wanted.spec.replicas))
    return None if rests else move.since or view.now


def leave(view: View, onto: Onto, after: PositionStatus) -> Onto:
    """The move is left, and this one follows. A run that had reached its end has not: positions were moved, or the next driver gets the plan."""
    reached = view.driver.exit is not None and view.driver.exit.reason == END_REACHED
    return replace(onto, position=after, driver=replace(view.driver, exit=None) if reached else view.driver)


def end_of(view: View, move: PositionStatus) -> datetime | None:
    """When a move is given up unless a pod works on it. None: it is not, as no driver is wanted, or it would not get the lease either."""
    return move.since + view.deadline if move.since and move.state in TIMED else None


def overdue(view: View, move: PositionStatus) -> str | None:
    """Why a move is given up: no pod could carry it out in time. None: it has time, or a pod works on it."""
    end = end_of(view, move)
    works = move.state is PositionState.RUNNING and any(pod.owner == move.uid and pod.started_at for pod in view.observed.migrators)
    if end is None or view.now < end or works:
        return None
    refusal, trouble = view.observed.refusal, jobs.trouble(view, move)
    why = refusal.message if refusal else trouble[1] if trouble else move.message or "its pod did not start"
    return f"no pod carried it out within {view.deadline.total_seconds():.0f} s (spec.progressDeadlineSeconds): {why}"


def _seen(view: View, before: PositionStatus) -> PositionStatus:
    seen = jobs.job_view(view, before)
    after = replace(before, uid=seen.uid, podless_since=seen.podless_since)
    if seen.lost is not None:
        return _later(view, replace(after, state=PositionState.LOST, message=seen.lost))
    return _ended(view, replace(after, message=in_fields(seen.message)), seen) if seen.ended else after


def _ended(view: View, move: PositionStatus, seen: JobView) -> PositionStatus:
    move = replace(move, finished_at=view.now)
    if seen.done:
        return replace(move, state=PositionState.COMPLETE, moved=seen.pod.moved if seen.pod else None)
    if seen.end is None or seen.taken_away:
        return _later(view, replace(move, state=PositionState.LOST))
    if seen.end.code in jobs.REFUSALS:
        return replace(move, state=PositionState.REFUSED)
    if seen.end.code == HELD:
        return _later(view, replace(move, state=PositionState.HELD))
    failures = move.failures + 1
    if failures >= MOST_FAILURES:
        text = f"failed {counted(failures, 'time')}: {move.message}; {LEFT}"
        return replace(move, state=PositionState.REFUSED, failures=failures, message=text)
    return _later(view, replace(move, state=PositionState.FAILING, failures=failures))


def _later(view: View, move: PositionStatus) -> PositionStatus:
    return replace(move, next_at=view.now + view.patience.pause(move.tries - 1))


def following(view: View, wanted: str) -> PositionStatus:
    """The next try of this move."""
    before, hash_ = view.status.position, _hash(view) or ""
    same = before is not None and before.hash == hash_
    tries = before.tries % MAX_TRIES + 1 if before and same else 1
    done = (before.id, *before.earlier) if before and before.state is PositionState.COMPLETE else before.earlier if before else ()
    return PositionStatus(
        id=wanted,
        hash=hash_,
        spec_hash=view.wanted.reset_job_hash if view.wanted else "",
        job=f"{view.resource.name}-reset-{hash_}-{tries}",
        tries=tries,
        failures=before.failures if before and same and not is_retried(view, before) else 0,
        retry=view.resource.retry,
        since=before.since if before and same and end_of(view, before) and not is_retried(view, before) else view.now,
        earlier=done[:MOST_IDS],
    )


def in_fields(message: str) -> str:
    """What `sluice reset` says, with the fields of the spec instead of its options."""
    return OPTION.sub(lambda match: FIELDS[match[1]] if match[1] else "", message)

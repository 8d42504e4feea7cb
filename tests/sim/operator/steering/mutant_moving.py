"""Mutants of moves of positions, `spec.position`: when one is made, what it waits for, and what waits for it."""

from __future__ import annotations

from dataclasses import replace

from mutants import Patch
from steering.mutant import _without, do, mutant

from sluice_operator.plan import jobs, position, record, reset
from sluice_operator.plan import rules as plan
from sluice_operator.state.status import PositionState, Status
from sluice_operator.state.view import View

MOVE = do("moves", id_="one", to="trimHorizon", seconds=60)


@mutant("spec.position moves nothing", "moved_first", MOVE, do("delete_pod", role="driver", grace=None, seconds=30))
def no_move(patch: Patch) -> None:
    """The driver goes on where it was."""
    _without(patch, plan.reset)


@mutant("positions are moved beside the driver", "one_migration", MOVE)
def beside(patch: Patch) -> None:
    """The Job finds the lease held, again and again."""
    patch.setattr(reset, "stop_driver", lambda *_: None)
    patch.setattr(jobs, "clear", lambda *_: None)


@mutant(
    "a driver starts while its Job runs",
    "moved_first",
    do("moves", id_="one", to="trimHorizon", seconds=6),
    do("wait", seconds=20),
)
def not_waited_for(patch: Patch) -> None:
    """It takes the lease from under the Job."""
    real = reset._running
    patch.setattr(reset, "_running", lambda view, one: real(view, one) if one.uid is None else None)
    patch.setattr(position, "end_of", lambda *_: None)  # of a step that there is not


@mutant("an id is carried out each time", "moved_once", MOVE)
def again(patch: Patch) -> None:
    """The consumer is drained for ever."""
    patch.setattr(position, "asked", lambda view: view.wanted and view.wanted.spec.position and view.wanted.spec.position.id)


@mutant("only the last id is remembered", "moved_once", MOVE, do("moves", id_="two", to="latest", seconds=60), MOVE)
def forgets(patch: Patch) -> None:
    """A revert in git drains the consumer."""
    real = position.following
    patch.setattr(position, "following", lambda view, wanted: replace(real(view, wanted), earlier=()))


@mutant("a refused move counts as made", "status_is_true", do("mover", position="refused"), MOVE)
def refused_is_done(patch: Patch) -> None:
    """The consumer reads on where it was, and nobody is told."""
    real = position._ended
    patch.setattr(position, "_ended", lambda view, found, seen: real(view, found, replace(seen, done=True)))


@mutant(
    "a Job that was taken away has moved the positions",
    "status_is_true",
    do("moves", id_="one", to="trimHorizon", seconds=9),
    do("delete_pod", role="migration", grace=None, seconds=30),
)
def lost_is_done(patch: Patch) -> None:
    """The user believes what was not done."""
    real = position.note

    def note(view: View) -> Status:
        found = real(view)
        if found.position is None or found.position.state is not PositionState.LOST:
            return found
        return replace(found, position=replace(found.position, state=PositionState.COMPLETE))

    patch.setattr(record, "NOTES", tuple(note if each is real else each for each in record.NOTES))


@mutant(
    "a Job of a move that is dropped is left running",
    "moved_first",
    do("moves", id_="one", to="latest", seconds=7),
    do("moves", id_=None, to="latest", seconds=30),
)
def left_running(patch: Patch) -> None:
    """A driver starts beside it."""
    patch.setattr(reset, "_given_up", lambda _view: None)


@mutant(
    "a run that had reached its end stays there, whatever a move has left",
    "status_is_true",
    do("ends", at="at noon", seconds=60),
    do("moves", id_="one", to="trimHorizon", seconds=5),
    do("suspend", seconds=30),
    do("moves", id_=None, to="latest", seconds=10),
    do("suspend", seconds=60),
)
def stays_at_its_end(patch: Patch) -> None:
    """The Job was stopped when its plan was written down, and nobody reads what was moved back."""
    patch.setattr(position, "leave", lambda _view, onto, after: replace(onto, position=after))

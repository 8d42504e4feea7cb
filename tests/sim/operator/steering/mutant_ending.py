"""Mutants of runs that have an end, `spec.until`: when it was reached, and what starts a driver afterwards."""

from __future__ import annotations

from typing import Any, cast

from mutants import Patch
from steering.mutant import do, mutant

from sluice_operator.names import END_REACHED
from sluice_operator.plan import rules as plan
from sluice_operator.state.view import View

RUN = do("ends", at="at noon", seconds=60)


@mutant("a run that reached its end is started again", "spec_reached", RUN)
def restarted(patch: Patch) -> None:
    """Drivers end at once, one after another."""
    patch.setattr(plan, "RULES", tuple(rule for rule in plan.RULES if rule is not plan.completed))


@mutant("the end of a run counts for any spec", "status_is_true", RUN, do("ends", at="at one", seconds=20))
def any_spec(patch: Patch) -> None:
    """The user names a later end, and nothing happens."""

    def reached(view: View) -> bool:
        end = view.driver.exit
        return view.driver.pod is None and end is not None and end.reason == END_REACHED

    patch.setattr(View, "end_reached", property(reached))


@mutant(
    "any exit with 0 is the end of a run",
    "status_is_true",
    do("lasts", run=500),
    do("ends", at="at noon", seconds=30),
    do("driver_ends", code=0, times=1, seconds=60),
)
def any_zero(patch: Patch) -> None:
    """`os._exit(0)` of a library, or a message that was lost, looks like it."""

    def reached(view: View) -> bool:
        end, wanted = view.driver.exit, view.wanted
        if view.driver.pod is not None or end is None or wanted is None or wanted.spec.until is None:
            return False
        return end.code == 0 and wanted.is_hash(view.driver.spec_hash)

    patch.setattr(View, "end_reached", property(reached))


@mutant(
    "a restart that is asked for starts a run again that reached its end",
    "end_is_kept",
    RUN,
    do("ask", what="restart", number=1),
    do("wait", seconds=30),
)
def restart_starts(patch: Patch) -> None:
    """A tool that restarts everything reads nothing twice, and costs a driver for each consumer that is done."""
    real = cast("Any", View.end_reached).fget
    patch.setattr(View, "end_reached", property(lambda view: real(view) and view.outdated is None))

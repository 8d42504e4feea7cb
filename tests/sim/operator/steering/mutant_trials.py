"""Mutants of trials, `spec.rollout.trial`: what proves a version, what is held against it, and for how long it stays away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mutants import Patch
from steering.mutant import do, mutant

from sluice_operator.plan import trial, trial_evidence
from sluice_operator.state.view import View

TRIED = do("rolls", rollout={"strategy": "Recreate", "trial": {"batches": 2, "seconds": 60}}, standby="ok")
GOOD, BAD = do("deploys", image="one", fault=None, seconds=60), do("deploys", image="two", fault="raises", seconds=60)


@mutant("a version is proven by its start", "proven_has_committed", TRIED, GOOD, do("deploys", image="two", fault="hangs", seconds=40))
def by_its_start(patch: Patch) -> None:
    """It may hang in its first batch."""
    patch.setattr(trial, "is_good", lambda view, version, _one: version.is_hash(view.driver.spec_hash))


@mutant("what was rolled back is carried out all the same", "rolled_back_stays", TRIED, GOOD, BAD)
def carried_out(patch: Patch) -> None:
    """It fails again and again."""
    patch.setattr(View, "wanted", property(lambda view: view.asked))


@mutant("a version that was rolled back is tried again by itself", "rolled_back_stays", TRIED, GOOD, BAD)
def tried_again(patch: Patch) -> None:
    """To and fro."""
    patch.setattr(trial, "STATES", {**trial.STATES, trial.TrialState.ROLLED_BACK: lambda view, asked, _one: _anew(view, asked)})


def _anew(view: View, asked: Any) -> Any:
    return replace(view.status, trial=trial._begun(view, asked))


HUNG = do("blames", image="one", fault="hangs"), do("wait", seconds=90)


@mutant("a proven version is on trial for ever", "proven_is_kept", TRIED, GOOD, *HUNG)
def on_trial_for_ever(patch: Patch) -> None:
    """Bad records roll a version back that has worked for weeks."""
    real = trial.note

    def note(view: View) -> Any:
        one, proven = view.status.trial, view.status.proven
        if proven is None or view.asked is None or not view.asked.is_hash(proven.hash):
            return real(view)
        one = one or trial._begun(view, view.asked)
        return trial.STATES[one.state](view, view.asked, one)

    patch.setattr(trial, "note", note)


@mutant(
    "an eviction of the proven version clears the new one",
    "rolled_back_stays",
    TRIED,
    GOOD,
    do("deploys", image="two", fault="raises", seconds=22),
    do("pod_ends", role="driver", how="evict", seconds=30),
)
def evictions_count(patch: Patch) -> None:
    """A node is drained, and a bad version comes back for good."""
    patch.setattr(trial_evidence, "_is_fault", lambda _end: True)

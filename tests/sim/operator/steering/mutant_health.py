"""Mutants of what the conditions say: each makes kstatus and a person disagree, or Ready untrue."""

from __future__ import annotations

from dataclasses import replace

from steering.mutant import Patch, do, mutant

from sluice_operator.observe import cache
from sluice_operator.plan import rules, running
from sluice_operator.state.view import Rule, Step, View


def _instead(patch: Patch, rule: Rule, other: Rule) -> None:
    patch.setattr(rules, "RULES", tuple(other if each is rule else each for each in rules.RULES))


@mutant("what is suspended is not Ready", "health_is_true", do("suspend", seconds=9), do("linger", seconds=200))
def rest_is_not_ready(patch: Patch) -> None:
    """Clients wait for a state that nobody asked for."""

    def suspended(view: View) -> Step | None:
        step = rules.suspend(view)
        return step and replace(step, ready=False)

    _instead(patch, rules.suspend, suspended)


@mutant(
    "what is under way is so for ever",
    "health_is_true",
    do("executors_come", executors="pending", seconds=9),
    do("linger", seconds=700),
    run=0,
)
def no_deadline(patch: Patch) -> None:
    """Executors wait for nodes, and nobody is called."""
    patch.setattr(rules, "limited", lambda _before, _view, step: step)


@mutant("a driver without executors is Ready", "status_is_true", do("executors_come", executors="refused", seconds=9), run=0)
def executors_do_not_matter(patch: Patch) -> None:
    """It holds every shard, and nobody reads them."""
    patch.setattr(running, "_without_executors", lambda _view, _report: None)


@mutant("a batch that does not end is Ready", "health_is_true", do("batch", hangs=True, seconds=9), do("linger", seconds=400))
def batches_may_hang(patch: Patch) -> None:
    """Its driver reports as ever."""
    patch.setattr(running, "_with_one_batch", lambda _view, _pod, _report: None)


@mutant(
    "a paused resource is as its spec says",
    "health_is_true",
    do("pause", paused=True, seconds=1),
    do("edit", edit="batch 9", seconds=9),
    do("linger", seconds=200),
)
def pause_hides(patch: Patch) -> None:
    """The user waits for the new spec, and the status says that it runs."""

    def silent(view: View) -> Step | None:
        return replace(running.running(view), reason="Paused", progressing=False) if view.resource.paused else None

    _instead(patch, rules.paused, silent)


@mutant(
    "a grace period ends by the API server's clock",
    "status_is_true",
    do("clock", ahead=300, seconds=20),
    do("drain", drain=30),
    do("edit", edit="batch 9", seconds=20),
)
def grace_of_the_server(patch: Patch) -> None:
    """The operator's clock is ahead: a person is told to give up a driver that drains as it should."""
    patch.setattr(cache, "ending_here", lambda _before, pod, _raw, _now: pod)

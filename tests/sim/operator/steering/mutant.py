"""One-line mutants of the operator, each a rule taken out, and the invariant that notices.

A mutant patches the real code through pytest's `monkeypatch`. Its story is a schedule of the machine that brings it to light; without the
mutant the same story ends well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from mutants import Apply, Mutant, Patch, entering

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.apply import execute as apply
from sluice_operator.apply import manifests
from sluice_operator.observe import parse
from sluice_operator.plan import driver_succession, jobs, migration, record, running, write_policy
from sluice_operator.plan import rules as plan
from sluice_operator.run import schedule
from sluice_operator.state.objects import Report
from sluice_operator.state.status import Phase
from sluice_operator.state.view import View, progress

Json = dict[str, Any]
Chapter = tuple[str, Json]


@dataclass(frozen=True, kw_only=True)
class OperatorMutant(Mutant):
    """A rule of the operator taken out.

    Attributes:
        breaks: the invariant that notices.
        story: the machine's rules, in order, with what they are given.
    """

    breaks: str
    story: tuple[Chapter, ...]


MUTANTS: list[OperatorMutant] = []
BEGIN: Json = {"migrating": False, "leaders": 1, "source": "ok", "run": 20}


def mutant(name: str, breaks: str, *chapters: Chapter, **begin: Any) -> Callable[[Apply], Apply]:
    """Enters a function into the list. `begin` is what differs from BEGIN."""
    return entering(MUTANTS, lambda apply: OperatorMutant(name=name, apply=apply, breaks=breaks, story=(("begin", BEGIN | begin), *chapters)))


def do(what: str, /, **given: Any) -> Chapter:
    return what, given


def _without(patch: Patch, *rules: Any) -> None:
    patch.setattr(plan, "RULES", tuple(rule for rule in plan.RULES if rule not in rules))


@mutant("executors of the last driver are not waited for", "two_drivers_at_most", do("delete_pod", role="driver", grace=0, seconds=5))
def no_await_executors(patch: Patch) -> None:
    """The next driver starts beside executors that may still work."""
    _without(patch, plan.await_executors)


@mutant(
    "drivers that the status does not name are not looked for",
    "health_is_true",
    do("call_fails", who=0, what="late", at=3, times=1, seconds=1),
    do("edit", edit="batch 9", seconds=9),
    run=0,
)
def no_strays(patch: Patch) -> None:
    """A resource that was made again starts beside the driver of its earlier epoch."""
    _without(patch, plan.clear_strays)


@mutant("a driver does not wait for its migration", "migrated_first", do("wait", seconds=5), migrating=True, run=0)
def no_gate(patch: Patch) -> None:
    """It reads from the beginning what another consumer has read."""
    _without(patch, migration.migrate)


@mutant("a new try does not wait for the last one", "one_migration", do("wait", seconds=30), migrating=True, source="active")
def no_clear(patch: Patch) -> None:
    """Two migrations write."""
    patch.setattr(jobs, "clear", lambda *_: None)


@mutant("Jobs that the status does not name are left alone", "spec_reached", do("edit", edit="no source", seconds=5), migrating=True, source="bad")
def no_clear_jobs(patch: Patch) -> None:
    """A late leader's, or of a migration that is not wanted any more."""
    _without(patch, plan.clear_jobs)


@mutant("a driver is killed instead of drained", "drained_not_killed", do("edit", edit="batch 9", seconds=5))
def no_grace(patch: Patch) -> None:
    """The next one has to wait out its lease."""
    real = apply._delete_pod
    patch.setitem(apply.HANDLERS, apply.DeletePod, lambda context, action: real(context, replace(action, grace=0)))


@mutant("how a driver ended is not written before its pod goes", "exits_are_kept", do("driver_ends", code=1, times=1, seconds=9))
def no_exit(patch: Patch) -> None:
    """Nobody ever learns it."""
    real = record._seen
    patch.setattr(record, "_seen", lambda driver, pod, now: replace(real(driver, pod, now), exit=driver.exit))


@mutant(
    "every driver takes the lease by force",
    "one_worker",
    do("lose_node", node="b", how="cut", seconds=1),
    do("end_of_outage", how="remove", seconds=15),
)
def always_force(patch: Patch) -> None:
    """Also from one that still works on a node that nobody reaches."""
    real = manifests.driver_config
    patch.setattr(manifests, "driver_config", lambda *args: real(*args) | {"force": True})


@mutant("a silent driver stays Ready", "status_is_true", do("lose_node", node="b", how="dead", seconds=140))
def never_stale(patch: Patch) -> None:
    """Its node may be gone for days."""
    patch.setattr(running, "STALE", timedelta(days=1))


@mutant(
    "a restarted operator takes old reports for new",
    "status_is_true",
    do("lose_node", node="b", how="cut", seconds=80),
    do("leader_ends", who=0, down=1, seconds=25),
    do("delete_pod", role="executor", grace=None, seconds=20),
)
def born_yesterday(patch: Patch) -> None:
    """Ready stands for longer with every restart."""
    patch.setattr(View, "last_report_at", property(lambda view: view.driver_pod.reported_at or view.now))
    patch.setattr(running, "_with_one_batch", lambda _view, _pod, _report: None)  # which would notice it, too


@mutant("a driver that holds some shards is Ready", "status_is_true", do("wait", seconds=9))
def half_is_ready(patch: Patch) -> None:
    """The others are nobody's yet."""
    patch.setattr(Report, "holds_all", property(lambda report: report.phase == "Running"))


@mutant("the status is written as if nobody had changed the spec", "generation_is_honest", do("edit", edit="batch 9", seconds=5))
def stale_generation(patch: Patch) -> None:
    """Whoever waits for a generation waits for ever, or too short."""
    real = parse.resource
    patch.setattr(parse, "resource", lambda raw, *kind: replace(real(raw, *kind), generation=1))


@mutant(
    "the server takes a status written onto anything",
    "generation_is_honest",
    do("call_fails", who=0, what="late", at=1, times=1, seconds=1),
    do("scale", replicas=3, seconds=1),
    do("scale", replicas=4, seconds=9),
)
def blind_status(patch: Patch) -> None:
    """What a leader that stood still writes takes the resource back."""
    real = MemoryCluster._stored

    def stored(self: MemoryCluster, kind: str, meta: dict[str, Any]) -> dict[str, Any]:
        return real(self, kind, {key: value for key, value in meta.items() if key != "resourceVersion"})

    patch.setattr(MemoryCluster, "_stored", stored)


@mutant("a changed spec waits for the next driver", "health_is_true", do("edit", edit="batch 9", seconds=5))
def no_redeploy(patch: Patch) -> None:
    """Which never comes."""
    _without(patch, plan.redeploy)


@mutant("a restart that is asked for is not made", "health_is_true", do("ask", what="restart", number=0))
def no_restart(patch: Patch) -> None:
    """Only a changed spec restarts a driver."""
    real = vars(View)["outdated"].fget
    patch.setattr(View, "outdated", property(lambda view: real(view) if real(view) == "SpecChanged" else None))


@mutant("a restart that was made is not remembered", "no_hot_loop", do("ask", what="restart", number=0))
def restart_forgotten(patch: Patch) -> None:
    """The next driver is asked to end, too, and so on."""
    patch.setattr(driver_succession, "following", _forgets(driver_succession.following))
    patch.setattr(driver_succession, "renewed", _forgets(driver_succession.renewed))


def _forgets(real: Callable[[View], Any]) -> Callable[[View], Any]:
    return lambda view: replace(real(view), restart=None)


@mutant("a driver that is named is made beside the one before it", "two_drivers_at_most", do("edit", edit="batch 9", seconds=5), run=2)
def no_await_leaving(patch: Patch) -> None:
    """It has no executors yet, so nobody else is waited for; both read."""
    _without(patch, plan.await_leaving)


@mutant(
    "the driver before is asked to end only once",
    "spec_reached",
    do("call_fails", who=0, what="crash", at=1, times=1, seconds=1),
    do("edit", edit="batch 9", seconds=9),
)
def asked_once(patch: Patch) -> None:
    """The operator died between the status and the deletion; the next one waits for a driver that nobody told."""
    patch.setattr(driver_succession, "ends", lambda _view, _pods: ())


@mutant(
    "a deletion only waits for the driver before",
    "nothing_leaks",
    do("call_fails", who=0, what="crash", at=1, times=1, seconds=1),
    do("edit", edit="batch 9", seconds=1),
    do("delete", seconds=9, foreground=False, again=False),
)
def release_waits(patch: Patch) -> None:
    """The operator died between the status and the deletion of the pod, and the user deleted the resource meanwhile."""
    patch.setattr(driver_succession, "ends", lambda _view, _pods: ())


@mutant("the driver is not told another number of executors", "spec_reached", do("scale", replicas=3, seconds=5))
def no_rescale(patch: Patch) -> None:
    """Neither up nor down."""
    _without(patch, plan.rescale)


@mutant("a driver that was intended is not made again", "spec_reached", do("call_fails", who=0, what="crash", at=2, times=1, seconds=9), run=0)
def no_confirm(patch: Patch) -> None:
    """The operator died between the status and the pod."""
    _without(patch, plan.confirm)


@mutant(
    "an intent to drain outlives its reason",
    "spec_reached",
    do("call_fails", who=0, what="crash", at=1, times=1, seconds=1),
    do("suspend", seconds=1),
    do("suspend", seconds=9),
)
def stopping_for_ever(patch: Patch) -> None:
    """The user resumes before the pod was deleted; the status says for ever that it drains."""
    real = record._seen
    patch.setattr(record, "_seen", lambda driver, pod, now: replace(real(driver, pod, now), stopping=driver.stopping))


@mutant("the finalizer goes before the pods", "nothing_leaks", do("delete", seconds=5, foreground=False, again=False))
def lets_go_at_once(patch: Patch) -> None:
    """The resource is gone and its driver still works."""
    patch.setattr(plan, "quiesce", lambda _view, _why: None)


@mutant(
    "an overdue pod is waited for without a pause",
    "no_hot_loop",
    do("lose_node", node="b", how="cut", seconds=1),
    do("delete", seconds=170, foreground=False, again=False),
)
def overdue_for_ever(patch: Patch) -> None:
    """Seen in an earlier version: a deletion while the driver's node was lost."""
    patch.setattr(driver_succession, "leaving", lambda _view, pods, why: replace(progress(Phase.DRAINING, why, ""), wake=pods[0].gone_by))
    patch.setattr(schedule, "SOON", timedelta(0))


@mutant("every report is written at once", "no_hot_loop", do("wait", seconds=9))
def every_report(patch: Patch) -> None:
    """Thousands of consumers would write thousands of statuses every five seconds."""
    patch.setattr(write_policy, "BATCHED_EVERY", timedelta(0))

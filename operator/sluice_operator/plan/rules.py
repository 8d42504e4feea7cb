"""What to do next: an ordered list of rules, of which the first that has something to say decides.

Pure: no kopf, no API, no clock, no chance. The list below is the operator's table of contents; the same step that
decides on the actions also gives conditions and phase, so status and deeds cannot disagree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.names import FINALIZER, GROUP
from sluice_operator.plan import migration as gate
from sluice_operator.plan.conditions import judge
from sluice_operator.plan.deadline import limited
from sluice_operator.plan.driver_succession import await_executors, await_leaving, clear_strays, confirm, drain, ends, leaving, redeploy, start
from sluice_operator.plan.events import happened
from sluice_operator.plan.record import FORCED, record
from sluice_operator.plan.running import running
from sluice_operator.state.actions import Action, AddFinalizer, DeletePod, Plan, RemoveFinalizer, Retarget
from sluice_operator.state.status import MigrationState as State
from sluice_operator.state.status import Phase
from sluice_operator.state.view import NEVER, Step, View, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice_operator.state.objects import Pod
    from sluice_operator.state.view import Rule


def plan(view: View) -> Plan:
    """The new status and the actions that follow from one look."""
    seen = view.with_status(record(view))
    step = limited(view.status, seen, held_back(seen, hopeless(seen, decide(seen, RULES))))
    status = judge(seen, step)
    return Plan(status=status, actions=step.actions, events=happened(seen, view.status, status, step), wake=step.wake, look_by=step.look_by)


def decide(view: View, rules: Sequence[Rule]) -> Step:
    """What the first rule says that has something to say."""
    return next(step for rule in rules if (step := rule(view)))


def held_back(view: View, step: Step) -> Step:
    """An action that the API server refused is shown as such, and repeated only now and then."""
    refusal, until = view.observed.refusal, view.observed.refused_until
    if refusal is None or until is None or not step.actions:
        return step
    shown = replace(step, reason=refusal.reason, message=refusal.message, progressing=False, stalled=True)
    return shown if view.now >= until else replace(shown, actions=(), wake=until)


def hopeless(view: View, step: Step) -> Step:
    """A spec that a driver refused is tried again now and then; until one works that is no progress, and the user still has to do something."""
    if not view.refused or view.resource.paused or step.phase not in {Phase.STARTING, Phase.BACKING_OFF}:
        return step
    reason, said = view.status.restarts.reason or "Refused", view.status.restarts.message or ""
    text = step.message if said in step.message else f"{said}; {step.message}"
    return replace(step, phase=Phase.FAILED, reason=reason, message=text, progressing=False, stalled=True)


def force(view: View) -> Step | None:
    """The user gave up one driver pod, by its uid: it and its executors are removed without waiting for their node, once."""
    uid = view.resource.force
    theirs = [pod for pod in view.observed.executors if pod.owner == uid]
    given_up = [pod for pod in (*(pod for pod in view.observed.drivers if pod.uid == uid), *theirs) if not pod.forced]
    if not given_up:
        return None
    actions = [DeletePod(pod.name, pod.uid, 0) for pod in given_up]
    return progress(Phase.DRAINING, FORCED, f"annotation sluice.dev/force gives up {given_up[0].name}", *actions)


def release(view: View) -> Step | None:
    """The resource is deleted: end everything, keep the table, let go.

    If its namespace goes too, Kubernetes ends the pods, in their grace periods, and our rights to look at them may be gone already.
    """
    if not view.resource.deleting:
        return None
    if not view.observed.doomed and (waiting := quiesce(view, "Deleted")):
        return replace(waiting, phase=Phase.DELETING)
    text = "its namespace is being deleted" if view.observed.doomed else "nothing of it runs any more"
    actions: tuple[Action, ...] = (RemoveFinalizer(),) if FINALIZER in view.resource.finalizers else ()
    return progress(Phase.DELETING, "Deleted", f"{text}; the checkpoint table stays", *actions)


def hold(view: View) -> Step | None:
    """The user asked for hands off; looking and reporting go on. Whether something waits to be done is told by Reconciling, without a deadline."""
    if not view.resource.paused:
        return None
    behind = decide(view, RULES[RULES.index(hold) + 1 :])
    waits = bool(behind.actions) or behind.progressing
    shown = running(view) if waits else behind
    text = f"annotation {GROUP}/paused is set" + (f"; then: {behind.reason}" if waits else "")
    return Step(phase=shown.phase, reason="Paused", message=text, ready=shown.ready, progressing=waits, due=NEVER, wake=shown.wake)


def refuse(view: View) -> Step | None:
    """No spec of this resource could ever be carried out, so nothing is started."""
    if view.wanted is not None:
        return None
    return Step(phase=Phase.FAILED, reason="SpecInvalid", message=view.problem or "", stalled=True)


def enlist(view: View) -> Step | None:
    """Nothing is made before the finalizer stands, else a deletion could overlook it."""
    if FINALIZER in view.resource.finalizers:
        return None
    return progress(Phase.PENDING, "Accepted", "taken over by the operator", AddFinalizer())


def bury(view: View) -> Step | None:
    """A driver that ended: its exit is in the status now, so its pod can go."""
    pod = view.driver_pod
    if pod is None or pod.exit is None:
        return None
    actions: tuple[Action, ...] = () if pod.deleting else (DeletePod(pod.name, pod.uid),)
    if view.driver.stopping:
        return progress(Phase.DRAINING, view.driver.stopping, _ending(pod), *actions)
    return progress(Phase.BACKING_OFF, pod.exit.reason, _ending(pod), *actions)


def _ending(pod: Pod) -> str:
    code = "" if pod.exit is None or pod.exit.code is None else f" with {pod.exit.code}"
    return f"{pod.name} ended{code}: {pod.exit.message if pod.exit else ''}"


def await_exit(view: View) -> Step | None:
    """A driver on its way out is waited for; only the user may decide that it will never answer again."""
    pod = view.driver_pod
    if pod is None or pod.gone_by is None:
        return None
    return leaving(view, (pod,), view.driver.stopping or "DriverDeleted")


def suspend(view: View) -> Step | None:
    """Suspended: migration and driver are stopped, and nothing is started."""
    if view.wanted is None or not view.wanted.spec.suspend:
        return None
    return quiesce(view, "Suspended") or Step(phase=Phase.SUSPENDED, reason="Suspended", message="spec.suspend is true", ready=True)


def scale_to_zero(view: View) -> Step | None:
    """Replicas 0: no driver at all, as an autoscaler means it."""
    if view.wanted is None or view.wanted.spec.replicas > 0:
        return None
    return quiesce(view, "ScaledToZero") or Step(phase=Phase.IDLE, reason="ScaledToZero", message="spec.replicas is 0", ready=True)


def quiesce(view: View, why: str) -> Step | None:
    """Stop the migration, drain the driver, wait for every pod. None when nothing is left that could work."""
    if (step := gate.stop(view)) is not None:
        migration = view.status.migration
        stopped = migration and migration.state is State.RUNNING
        return replace(step, migration=replace(migration, state=State.STOPPED)) if migration and stopped else step
    pod = view.driver_pod
    if pod is not None:
        return drain(view, pod, why)
    if view.observed.drivers or view.observed.executors:
        step = leaving(view, (*view.observed.drivers, *view.observed.executors), why)
        return replace(step, actions=ends(view, view.observed.drivers))
    if view.driver.pod is not None:  # it was intended and never made
        return replace(progress(Phase.DRAINING, why, ""), driver=replace(view.driver, pod=None, leaving=None), wake=view.now)
    return None


def back_off(view: View) -> Step | None:
    """The last driver failed a moment ago. A changed spec is tried at once."""
    due = view.status.restarts.next_at
    if view.wanted is None or view.driver.pod is not None or due is None or view.now >= due:
        return None
    if view.driver.spec_hash != view.wanted.driver_hash:
        return None
    text = f"{view.status.restarts.message or ''}; attempt {view.driver.attempt + 1} at {due:%H:%M:%S}Z"
    return replace(progress(Phase.BACKING_OFF, view.status.restarts.reason or "DriverFailed", text), wake=due)


def rescale(view: View) -> Step | None:
    """Tell the driver the number of executors; while some of them drain it waits, and the last number wins."""
    pod = view.driver_pod
    if pod is None or view.wanted is None or view.status.draining or pod.target == str(view.wanted.spec.replicas):
        return None
    target = Retarget(pod.name, pod.uid, view.wanted.spec.replicas)
    return replace(running(view), progressing=True, actions=(target,), wake=None)


RULES: tuple[Rule, ...] = (
    force,  # a lost pod, given up by the user
    release,  # deleted
    hold,  # paused
    refuse,  # never valid
    enlist,  # our finalizer
    clear_strays,  # at most one driver
    await_leaving,  # the one before it
    bury,  # a driver that ended
    await_exit,  # a driver on its way out
    gate.clear_jobs,  # at most one migration
    suspend,
    gate.migrate,  # no driver before its migration
    scale_to_zero,
    redeploy,  # RESTART changes
    await_executors,  # nothing of the last driver works any more
    confirm,  # a driver intended, not yet seen
    back_off,
    start,
    rescale,  # SCALE changes
    running,  # nothing to do but to tell
)

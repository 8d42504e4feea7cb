"""What to do next: an ordered list of rules. The first rule that returns a step decides.

Pure: no kopf, no API, no clock, no chance. RULES is the operator's table of contents. One step gives the actions, the
conditions and the phase, so status and actions cannot disagree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.names import END_REACHED, FINALIZER, GROUP, clock
from sluice_operator.plan import jobs, migration, position, trial
from sluice_operator.plan.autoscale import decide_scale, next_look
from sluice_operator.plan.conditions import judge
from sluice_operator.plan.deadline import limited
from sluice_operator.plan.driver_succession import await_executors, await_leaving, clear_strays, confirm, leaving, redeploy, start, stop_driver
from sluice_operator.plan.events import happened
from sluice_operator.plan.record import FORCED, record
from sluice_operator.plan.reset import clear_jobs, reset
from sluice_operator.plan.running import running
from sluice_operator.plan.standby import stand_by, stand_in, unwanted
from sluice_operator.plan.standby_terms import is_spare
from sluice_operator.state.actions import Action, AddFinalizer, DeletePod, Plan, RemoveFinalizer, Retarget
from sluice_operator.state.status import MigrationState as State
from sluice_operator.state.status import Phase, PositionState
from sluice_operator.state.view import NEVER, Step, View, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice_operator.state.objects import Pod
    from sluice_operator.state.view import Rule


def plan(view: View, rules: Sequence[Rule] = ()) -> Plan:
    """The new status, actions and events for one view. `rules` replace RULES (`plan.seats`)."""
    seen = view.with_status(record(view))
    seen = seen.with_status(trial.note(seen))
    step = limited(view.status, seen, refused_by_api(seen, refused_by_driver(seen, decide(seen, rules or RULES))))
    step = trial.awaited(seen, step)
    status = judge(seen, step)
    return Plan(status=status, actions=step.actions, events=happened(seen, view.status, status, step), wake=step.wake, look_by=step.look_by)


def decide(view: View, rules: Sequence[Rule]) -> Step:
    """The step of the first rule that applies."""
    return next(step for rule in rules if (step := rule(view)))


def refused_by_api(view: View, step: Step) -> Step:
    """The API server refused the action: the step says so. The action is repeated at `refused_until`, not before.

    Of a standby, `StandbyReady` says it: the driver works on, and without room the rollout is made as `Recreate` in time. Nothing else waits for it.
    """
    refusal, until = view.observed.refusal, view.observed.refused_until
    if refusal is None or until is None or not step.actions:
        return step
    if view.observed.standby_refused:
        others = tuple(action for action in step.actions if not is_spare(view, action))
        return step if view.now >= until or others == step.actions else replace(step, actions=others, wake=min(step.wake or until, until))
    shown = replace(step, reason=refusal.reason, message=refusal.message, progressing=False, stalled=True)
    return shown if view.now >= until else replace(shown, actions=(), wake=until)


def refused_by_driver(view: View, step: Step) -> Step:
    """A driver refused this spec: the step is stalled until a driver works with it. The operator keeps trying, with backoff."""
    if not view.refused or view.resource.paused or step.phase not in {Phase.STARTING, Phase.BACKING_OFF}:
        return step
    reason, words = view.status.restarts.reason or "Refused", _last_words(view)
    text = step.message if words in step.message else f"{words}; {step.message}"
    return replace(step, phase=Phase.FAILED, reason=reason, message=text, progressing=False, stalled=True)


def force(view: View) -> Step | None:
    """The user forced one driver pod, named by its uid. The pod and its executors are deleted with no grace period, once."""
    uid = view.resource.force
    theirs = [pod for pod in view.observed.executors if pod.owner == uid]
    given_up = [pod for pod in (*(pod for pod in view.observed.drivers if pod.uid == uid), *theirs) if not pod.forced]
    if not given_up:
        return None
    actions = [DeletePod(pod.name, pod.uid, 0) for pod in given_up]
    return progress(Phase.DRAINING, FORCED, f"annotation sluice.dev/force removes {given_up[0].name}", *actions)


def release(view: View) -> Step | None:
    """The resource is deleted: end everything, keep the table, remove the finalizer.

    If the namespace is deleted too, Kubernetes ends the pods in their grace periods. The operator's right to list them may be gone by then.
    """
    if not view.resource.deleting:
        return None
    if not view.observed.doomed and (waiting := quiesce(view, "Deleted")):
        return replace(waiting, phase=Phase.DELETING)
    text = "its namespace is being deleted" if view.observed.doomed else "nothing of it runs any more"
    actions: tuple[Action, ...] = (RemoveFinalizer(),) if FINALIZER in view.resource.finalizers else ()
    return progress(Phase.DELETING, "Deleted", f"{text}; the checkpoint table stays", *actions)


def paused(view: View) -> Step | None:
    """The user paused the resource: its status is kept up to date, and no action is taken. Reconciling says whether one waits, without a deadline."""
    if not view.resource.paused:
        return None
    behind = decide(view, RULES[RULES.index(paused) + 1 :])
    waits = bool(behind.actions) or behind.progressing
    shown = running(view) if waits else behind
    text = f"annotation {GROUP}/paused is set" + (f"; then: {behind.reason}" if waits else "")
    return Step(phase=shown.phase, reason="Paused", message=text, ready=shown.ready, progressing=waits, due=NEVER, wake=shown.wake)


def invalid_spec(view: View) -> Step | None:
    """The spec is invalid and there is no earlier valid one: nothing is started. What runs is stopped if the spec says so all the same.

    A standby is deleted: nobody knows any more whether it may follow.
    """
    if view.wanted is not None:
        return None
    if view.rests and (stopping := quiesce(view, "Suspended")) is not None:
        return stopping
    return Step(phase=Phase.FAILED, reason="SpecInvalid", message=view.problem or "", stalled=True, actions=unwanted(view))


def add_finalizer(view: View) -> Step | None:
    """The finalizer comes first. Without it a deletion could leave pods and Jobs behind."""
    if FINALIZER in view.resource.finalizers:
        return None
    return progress(Phase.PENDING, "Accepted", "taken over by the operator", AddFinalizer())


def delete_finished_driver(view: View) -> Step | None:
    """The driver ended and its exit is in the status: its pod is deleted."""
    pod = view.driver_pod
    if pod is None or pod.exit is None:
        return None
    actions: tuple[Action, ...] = () if pod.deleting else (DeletePod(pod.name, pod.uid),)
    if view.driver.stopping or pod.exit.reason == END_REACHED:
        return progress(Phase.DRAINING, view.driver.stopping or END_REACHED, _ending(pod), *actions)
    return progress(Phase.BACKING_OFF, pod.exit.reason, _ending(pod), *actions)


def _ending(pod: Pod) -> str:
    code = "" if pod.exit is None or pod.exit.code is None else f" with {pod.exit.code}"
    return f"{pod.name} ended{code}: {pod.exit.message if pod.exit else ''}"


def await_exit(view: View) -> Step | None:
    """The driver pod is being deleted: wait for it. Only the user may give it up. A standby that is ready follows, an unwanted one ends."""
    pod = view.driver_pod
    if pod is None or pod.gone_by is None:
        return None
    return stand_in(view) or replace(leaving(view, (pod,), view.driver.stopping or "DriverDeleted"), actions=unwanted(view))


def suspend(view: View) -> Step | None:
    """`spec.suspend`: migration and driver are stopped, and nothing is started."""
    if view.wanted is None or not view.wanted.spec.suspend:
        return None
    return quiesce(view, "Suspended") or Step(phase=Phase.SUSPENDED, reason="Suspended", message="spec.suspend is true", ready=True)


def scale_to_zero(view: View) -> Step | None:
    """`spec.replicas` is 0: the driver is stopped, and none is started."""
    if view.wanted is None or view.wanted.spec.replicas > 0:
        return None
    return quiesce(view, "ScaledToZero") or Step(phase=Phase.IDLE, reason="ScaledToZero", message="spec.replicas is 0", ready=True)


def completed(view: View) -> Step | None:
    """The run reached its end, `spec.until`: no driver is started before the spec changes."""
    if not view.end_reached or view.driver.exit is None:
        return None
    return Step(phase=Phase.COMPLETED, reason=END_REACHED, message=f"spec.until was reached: {view.driver.exit.message}", ready=True)


def quiesce(view: View, why: str) -> Step | None:
    """Stop a Job that runs, drain the driver, wait for every pod. None when nothing is left that runs."""
    if (step := jobs.stop(view, Phase.MIGRATING, migration.STOPPING)) is not None:
        return _with_stopped(view, step)
    return stop_driver(view, why)


def _with_stopped(view: View, step: Step) -> Step:
    """The step, after which the status says that what was under way is stopped. The plan of a move may be left to the next driver."""
    present, moved = view.status.migration, view.status.position
    if present and present.state is State.RUNNING:
        step = replace(step, migration=replace(present, state=State.STOPPED))
    if moved and moved.state is PositionState.RUNNING:
        step = position.leave(view, step, replace(moved, state=PositionState.STOPPED))
    return step


def back_off(view: View) -> Step | None:
    """The last driver failed: wait until `restarts.nextAt`. A changed spec, or a restart that is asked for, is tried at once."""
    due = view.status.restarts.next_at
    if view.wanted is None or view.driver.pod is not None or due is None or view.now >= due:
        return None
    if view.outdated:
        return None
    text = f"{_last_words(view)}; attempt {view.driver.attempt + 1} at {clock(due, view.now)}"
    return replace(progress(Phase.BACKING_OFF, view.status.restarts.reason or "DriverFailed", text), wake=due)


def _last_words(view: View) -> str:
    """What the last driver said, without its stop: more words follow."""
    return (view.status.restarts.message or "").rstrip(" .")


def rescale(view: View) -> Step | None:
    """Write the number of executors to the driver pod. While executors drain, wait; then write the newest number."""
    pod = view.driver_pod
    if pod is None or view.wanted is None or view.status.draining or pod.target == str(view.executors):
        return None
    target = Retarget(pod.name, pod.uid, view.executors)
    return replace(running(view), progressing=True, actions=(target,), wake=None)


def autoscale(view: View) -> Step | None:
    """`spec.autoscale`: judge the driver's figures, once a minute. Change the number of executors at most once, or remember what was seen."""
    before, after = view.status.autoscale, decide_scale(view)
    if before is None or after is None or view.driver_pod is None:
        return None
    step = running(view)
    step = replace(step, autoscale=after, wake=min(step.wake or NEVER, next_look(view, after)))
    if after.replicas == before.replicas:
        return step
    target = Retarget(view.driver_pod.name, view.driver_pod.uid, after.replicas)
    return replace(step, progressing=True, actions=(target,), wake=None)


RULES: tuple[Rule, ...] = (
    force,  # a lost pod that the user gave up
    release,  # the resource is deleted
    paused,  # the user's annotation
    invalid_spec,  # and no valid one before it
    add_finalizer,  # before anything is created
    clear_strays,  # at most one driver
    await_leaving,  # the driver before this one
    delete_finished_driver,  # its exit is in the status
    await_exit,  # a driver in its grace period
    clear_jobs,  # at most one Job
    suspend,
    migration.migrate,  # no driver before its migration
    reset,  # spec.position: no driver while the positions are moved
    scale_to_zero,
    stand_by,  # the next driver beside this one
    redeploy,  # RESTART changes, and the user's annotation
    await_executors,  # no executor of the last driver runs any more
    completed,  # spec.until was reached
    confirm,  # a driver named in the status, not yet seen
    back_off,
    start,
    rescale,  # SCALE changes
    autoscale,  # spec.autoscale: nothing else is under way
    running,  # nothing to do: report
)

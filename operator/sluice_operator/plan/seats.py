"""A consumer of a pool: the rules of a driver's pod, over its seat (docs/pools.md, "What the operator does").

What differs is said here: it waits for a pod that takes seats, it is not scaled, and only the pool's pod can be given up.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.plan.driver_succession import OVERDUE, confirm
from sluice_operator.plan.migration import migrate
from sluice_operator.plan.reset import reset
from sluice_operator.plan.rules import RULES, autoscale, force, plan, rescale
from sluice_operator.state.actions import Action, CreateDriver, CreateJob, CreateResetJob, DeletePod
from sluice_operator.state.objects import Trouble
from sluice_operator.state.seats import ClearSeat, EndSeat, Place, PutSeat, Seat, Seating
from sluice_operator.state.status import Phase
from sluice_operator.state.view import NEVER, progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice_operator.state.actions import Plan
    from sluice_operator.state.objects import Pod
    from sluice_operator.state.status import Status
    from sluice_operator.state.view import Rule, Step, View

MARGIN = 30  # seconds after the drain timeout, as a pod has them
MISSING, FULL, NOT_READY, SUSPENDED = "PoolMissing", "PoolFull", "PoolNotReady", "PoolSuspended"
TO_ACT = {MISSING, FULL}  # somebody has to act


def plan_member(view: View) -> Plan:
    """The plan of a consumer that has to do with pools, with seats in its actions. The status names the pod of each seat before it is written.

    The drivers of its view are pods and seats, so that each waits for the other.
    """
    place, hosts = view.seating.place, view.seating.hosts
    intent = plan(view, member_rules(view.seating))
    actions = tuple(_seated(view.with_status(intent.status), action, place, hosts) for action in intent.actions)
    named = [action.host for action in actions if isinstance(action, PutSeat)]
    if named or any(isinstance(action, CreateDriver) for action in actions):
        driver = replace(intent.status.driver, host=named[0] if named else None)
        intent = replace(intent, status=replace(intent.status, driver=driver))
    return replace(intent, actions=(*_cleared(view, intent.status), *actions))


def _cleared(view: View, status: Status) -> tuple[Action, ...]:
    """The annotations of seats that are over and that the status does not name any more. Nothing depends on when they go."""
    named = {status.driver.uid, status.driver.leaving.uid if status.driver.leaving else None}
    over = [] if view.resource.paused else [each for uid, each in view.seating.over.items() if uid not in named]
    return tuple(ClearSeat(host.name, host.uid, seat) for host, seat in over)


def member_rules(seating: Seating) -> Sequence[Rule]:
    """RULES, as they are for a consumer that has or had a seat."""
    rules: list[Rule] = []
    place, hosts = seating.place, seating.hosts
    for rule in RULES:
        if rule is confirm and place is not None:
            rules.append(_await_pool(place))
        if rule is force:
            rules.append(_force_pods(hosts))
        elif rule in {rescale, autoscale} and place is not None:
            continue
        elif rule in {migrate, reset} and place is not None and seating.unknown:
            rules.append(_await_spec(rule, place))
        else:
            rules.append(_worded(rule, hosts))
    return rules


def _await_pool(place: Place) -> Rule:
    """No driver is left, and the next one is a seat: wait for a pod that takes it. The consumer has not failed."""

    def await_pool(view: View) -> Step | None:
        if view.wanted is None or view.driver_pod is not None or place.host is not None:
            return None
        return _waits(place)

    return await_pool


def _await_spec(rule: Rule, place: Place) -> Rule:
    """A Job takes image and account from the pool: without them none is created."""

    def await_spec(view: View) -> Step | None:
        step = rule(view)
        return step if step is None or not any(isinstance(action, (CreateJob, CreateResetJob)) for action in step.actions) else _waits(place)

    return await_spec


def _waits(place: Place) -> Step:
    why = place.trouble or Trouble(NOT_READY, "its driver is not there yet")
    step = progress(Phase.PENDING, why.reason, f"pool {place.pool}: {why.message}")
    if why.reason in TO_ACT:
        return replace(step, progressing=False, stalled=True)
    return replace(step, due=NEVER) if why.reason == SUSPENDED else step


def _force_pods(hosts: Mapping[str, tuple[Pod, Seat]]) -> Rule:
    """A seat cannot be given up alone: its pod still works, or the whole pod is given up."""

    def force_pods(view: View) -> Step | None:
        pods = tuple(pod for pod in view.observed.drivers if pod.uid not in hosts)
        return force(replace(view, observed=replace(view.observed, drivers=pods)))

    return force_pods


def _worded(rule: Rule, hosts: Mapping[str, tuple[Pod, Seat]]) -> Rule:
    """A seat that does not leave: the words name the pod to give up, which is the pool's."""

    def worded(view: View) -> Step | None:
        step = rule(view)
        late = next((hosts[pod.uid] for pod in view.observed.drivers if pod.uid in hosts and pod.deleting), None)
        if step is None or step.reason != OVERDUE or late is None:
            return step
        host, seat = late
        text = f"{seat.name} should have left {host.name}; its node may be lost. On the pool, the annotation sluice.dev/force={host.uid} removes it"
        return replace(step, message=text)

    return worded


def _seated(view: View, action: Action, place: Place | None, hosts: Mapping[str, tuple[Pod, Seat]]) -> Action:
    if isinstance(action, DeletePod) and action.uid in hosts:
        host, seat = hosts[action.uid]
        patience = view.wanted.spec.drain_timeout_seconds if view.wanted else 0
        return EndSeat(host.name, host.uid, replace(seat, leave_by=view.now + timedelta(seconds=patience + MARGIN)))
    if isinstance(action, CreateDriver) and place is not None and place.host is not None:
        driver = view.driver
        seat = Seat(consumer=view.resource.uid, name=view.resource.name, attempt=driver.attempt, spec_hash=driver.spec_hash)
        return PutSeat(place.host.name, place.host.uid, seat)
    return action


def takes_seats(host: Pod) -> bool:
    """Whether a pod of a pool begins seats: it is neither ended nor asked to."""
    return not host.deleting and host.exit is None and not host.finished

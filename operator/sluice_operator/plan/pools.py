"""A pool: the rules of a consumer, of which it has neither a stream nor positions (docs/pools.md, "What the operator does")."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice_operator.plan import deaths, migration
from sluice_operator.plan.reset import clear_jobs, reset
from sluice_operator.plan.rules import RULES, autoscale, completed, plan, quiesce, scale_to_zero
from sluice_operator.plan.seats import plan_member, takes_seats
from sluice_operator.plan.standby import stand_by
from sluice_operator.state.seats import ALONE, ClearSeat, EndSeat
from sluice_operator.state.status import Phase
from sluice_operator.state.view import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice_operator.state.actions import Action, Plan
    from sluice_operator.state.status import Condition
    from sluice_operator.state.view import Rule, View

NO_MEMBERS, FAILING = "NoMembers", "PoolFailing"
NAMED = 5  # suspects in a message
OF_CONSUMERS = {clear_jobs, migration.migrate, reset, stand_by, completed, autoscale}
CONDITIONS = {"Ready", "Reconciling", "Stalled", "Draining", "SpecValid", "DriverHealthy"}
COMMANDS = {  # of the advice for a consumer, which `kubectl sluice` does not have for a pool
    "`kubectl sluice logs {name}`": "`kubectl logs {pod}`",
    "`kubectl sluice events {name}`": "`kubectl describe kcp {name}`",
    "`kubectl sluice restart {name}`": "`kubectl annotate kcp {name} --overwrite sluice.dev/restart=VALUE`",
    "run `kubectl sluice force {name}` or set this annotation": "set this annotation",
}


def plan_pool(view: View) -> Plan:
    """The plan of a pool: its pod, and the number of its members."""
    view = view.with_status(deaths.note(view))
    intent = plan(view, POOL_RULES)
    status, members = intent.status, view.members
    if members is not None:
        status = replace(status, members=members.all, ready_members=members.ready)
    conditions = tuple(_worded(view, item) for item in status.conditions if item.type in CONDITIONS)
    selector = f"sluice.dev/pool={view.resource.name},sluice.dev/role=executor"
    status = replace(status, conditions=conditions, selector=selector, versions=(), start=None)
    return replace(intent, status=status, actions=(*intent.actions, *_orphaned(view)))


def _orphaned(view: View) -> Iterator[Action]:
    for host, seat in view.members.orphans if view.members and not view.resource.paused else ():
        if seat.leave_by is None and takes_seats(host):
            yield EndSeat(host.name, host.uid, replace(seat, leave_by=view.now))
        elif seat.is_over(host) and takes_seats(host):
            yield ClearSeat(host.name, host.uid, seat)


def without_members(view: View) -> Step | None:
    """No consumer that shall run names the pool: its pod is stopped, and none is started."""
    if view.members is None or deaths.wanting(view):
        return None
    text = "no KinesisConsumer that shall run in it names this pool in spec.pool"
    return quiesce(view, NO_MEMBERS) or Step(phase=Phase.IDLE, reason=NO_MEMBERS, message=text, ready=True)


def _suspecting(rule: Rule) -> Rule:
    """While the pod fails and no member is singled out: the step names the suspects, of which somebody has to move one."""

    def suspecting(view: View) -> Step | None:
        step = rule(view)
        names = deaths.suspects(view.status.deaths, view.members.max_deaths) if view.members else ()
        if step is None or not names or view.resource.paused or step.phase not in {Phase.STARTING, Phase.BACKING_OFF}:
            return step
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        text = f"each of its last ends names {', '.join(names[:NAMED])}{more}, which are too many to put out; {step.message}"
        return replace(step, reason=FAILING, message=text, progressing=False, stalled=True)

    return suspecting


def _pool_rules() -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for rule in RULES:
        rules += [] if rule in OF_CONSUMERS else [_suspecting(rule)]
        rules += [without_members] if rule is scale_to_zero else []
    return tuple(rules)


def _worded(view: View, item: Condition) -> Condition:
    name, text = view.resource.name, item.message
    for command, instead in COMMANDS.items():
        text = text.replace(command.format(name=name), instead.format(name=name, pod=view.driver.pod or f"{name}-pool-N"))
    return replace(item, message=text)


POOL_RULES = _pool_rules()


def plan_view(view: View) -> Plan:
    """The plan of a pool, of a consumer in one, or of a consumer with a driver of its own."""
    if view.members is not None:
        return plan_pool(view)
    return plan(view) if view.seating == ALONE and view.driver.host is None else plan_member(view)

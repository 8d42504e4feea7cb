"""One pass over one resource: observe, plan, record, apply.

The cache says whether there is anything to do; what is then done is planned from a live look, because a cache may be
minutes old. Only figures for people are written from the cache. A pass that is cut off anywhere is simply repeated.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.apply.events import announce, body, post
from sluice_operator.apply.execute import ActionContext, add_finalizer, apply
from sluice_operator.cluster.operator_class import belongs
from sluice_operator.cluster.port import CONSUMER_KIND, ApiError, Conflict, Rejected
from sluice_operator.observe import parse
from sluice_operator.observe.cache import ResourceKey
from sluice_operator.plan.events import Reason
from sluice_operator.plan.rules import plan
from sluice_operator.plan.running import STALE
from sluice_operator.plan.urgency import to_write, urgent
from sluice_operator.run.shared import ReconcileContext, Refusal
from sluice_operator.state.actions import AddFinalizer, EventToSend
from sluice_operator.state.objects import Trouble
from sluice_operator.state.serialization import dropped, dump_status
from sluice_operator.state.status import Phase, Status
from sluice_operator.state.view import NEVER

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.cluster.port import Cluster, Json
    from sluice_operator.state.actions import Plan
    from sluice_operator.state.objects import Observed
    from sluice_operator.state.view import View

LOG = logging.getLogger("sluice")
UNSETTLED = timedelta(seconds=30)  # while something is under way, its end may have been missed by a watch
RESYNC = timedelta(minutes=5)
RESYNC_RATE = 1  # a second, of all resources together: of more than 300, those at rest are looked at less often than every five minutes
LOOKS_RATE = 4  # a second, of all resources together: when more than 120 are under way at once, looks that only time asks for come less often
SOON = timedelta(seconds=1)
REPEAT_REFUSED = timedelta(seconds=30)
SETTLED = {Phase.RUNNING, Phase.IDLE, Phase.SUSPENDED, Phase.FAILED}


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """When to look again at the latest; None: the resource is gone. Before `figures` new figures alone are no reason to look.

    One that `acted` looked just before: what comes of it the watches tell, and if not, the look that is due.
    Where only the driver's silence would be news, each report puts the look off, to `latest` at most.
    """

    wake: datetime | None
    figures: datetime | None = None
    acted: bool = False
    latest: datetime | None = None


def reconcile(office: ReconcileContext, key: ResourceKey, now: datetime, *, thorough: bool = False) -> ReconcileResult:
    """One pass. `now` is in whole seconds, UTC.

    A `thorough` one looks at the cluster even if the cache says that nothing is to be done: a watch that was interrupted never tells what was
    deleted meanwhile.

    Raises:
        ApiError: nothing is known about the last call; look again after a pause.
        ValueError: the stored status is not ours.
    """
    body = office.cache.body(key)
    if body is None:
        office.cache.forget(key)
        office.refusals.pop(key, None)
        office.written.pop(key, None)
        office.looked.pop(key, None)
        office.unwritable.pop(key, None)
        return ReconcileResult(None)
    outcome = _pass(office, key, body, now, thorough=thorough)
    return replace(outcome, figures=_figures_due(office, key, now))


def _figures_due(office: ReconcileContext, key: ResourceKey, now: datetime) -> datetime:
    """While a driver is not ready, every report of it may change that."""
    body = office.cache.body(key) or {}
    conditions = (body.get("status") or {}).get("conditions") or ()
    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
    return office.written[key] + office.figures_every() if ready and key in office.written else now


def _pass(office: ReconcileContext, key: ResourceKey, body: Json, now: datetime, *, thorough: bool) -> ReconcileResult:
    view = _view(office, key, body, office.cache.observed(key), now)
    intent = plan(view)
    thorough = thorough or key not in office.looked or now >= office.looked[key] + _horizon(office, view.status)
    if not thorough and (rest := _rest(office, key, view, intent)):
        return rest
    if thorough or not (_only_figures(view.status, intent) or _only_of_driver(view, intent)):
        live = look(office, key, now, _enlist(office, view, intent))
        if live is None:
            office.cache.lost(key, body["metadata"]["uid"])
            return ReconcileResult(now + SOON)
        office.looked[key] = now
        body, view = live
        intent = plan(view)
    return _rest(office, key, view, intent) or _carry_out(office, body, view, intent)


def _rest(office: ReconcileContext, key: ResourceKey, view: View, intent: Plan) -> ReconcileResult | None:
    """When to look again if nothing is to be done now: nothing differs, or nothing that cannot wait until more has come together."""
    if (until := office.unwritable.get(key)) and view.now < until:
        return ReconcileResult(until)  # nothing is done before it stands in the status
    if intent.actions:
        return None
    if intent.status == view.status:
        return _at_rest(office, view, intent)
    written = office.written.setdefault(key, view.now)  # a process that has just started does not write them of all at once
    due = written + office.rhythm(view.status, intent.status)
    at_once = intent.wake is not None and intent.wake <= view.now  # it goes on from what it decided, so that must stand in the status
    return None if at_once or urgent(view.status, intent.status) or view.now >= due else ReconcileResult(_next(office, intent, view.now))


def _at_rest(office: ReconcileContext, view: View, intent: Plan) -> ReconcileResult:
    latest = min(view.now + _horizon(office, intent.status), intent.look_by or NEVER)
    listening = intent.wake == view.heard + STALE
    return ReconcileResult(max(_next(office, intent, view.now), view.now + SOON), latest=latest if listening else None)


def look(office: ReconcileContext, key: ResourceKey, now: datetime, body: Json | None = None) -> tuple[Json, View] | None:
    """A live look; None if the resource is gone, or another operator's by now.

    The resource first, unless it was read just now, then Jobs, then pods, so that an ended Job's pod is seen with its exit. Of a deleted
    resource, the namespace before these: if it goes too, nothing more can be looked at, nor need be.
    """
    office.cache.begin_look(key)
    body = body or office.cluster.get(CONSUMER_KIND, key.namespace, key.name)
    if body is None or not belongs(body, office.settings.resource_class):
        return None
    office.cache.see(CONSUMER_KIND, body, now)
    if "deletionTimestamp" in body["metadata"] and _doomed(office.cluster, key.namespace):
        return body, _view(office, key, body, replace(office.cache.live(key, (), (), now), doomed=True), now)
    labels = {parse.CONSUMER: key.name}
    jobs = office.cluster.list("Job", key.namespace, labels)
    pods = office.cluster.list("Pod", key.namespace, labels)
    return body, _view(office, key, body, office.cache.live(key, pods, jobs, now), now)


def _doomed(cluster: Cluster, namespace: str) -> bool:
    there = cluster.get("Namespace", namespace, "")
    return there is not None and "deletionTimestamp" in there["metadata"]


def _view(office: ReconcileContext, key: ResourceKey, body: Json, observed: Observed, now: datetime) -> View:
    refusal = office.refusals.get(key)
    if refusal and refusal.generation == body["metadata"].get("generation", 0):
        observed = replace(observed, refusal=refusal.trouble, refused_until=refusal.until)
    return parse.view(body, observed, now, office.settings.policy)


def _only_figures(old: Status, intent: Plan) -> bool:
    """Whether nothing but what the driver reported differs; that needs no live look, and is no write-ahead."""
    return not intent.actions and _but_figures(old, intent.status) == old and not urgent(old, intent.status)


def _but_figures(old: Status, new: Status) -> Status:
    """The new one, with what a report moves as it was."""
    since = old.progressing_since
    return replace(new, stream=old.stream, conditions=old.conditions, draining=old.draining, replicas=old.replicas, progressing_since=since)


def _only_of_driver(view: View, intent: Plan) -> bool:
    """Whether the difference only tells how a driver gets on whose pod the watches show alive.

    Nothing is done then, and nothing concluded from what they do not show: that needs no live look either. It is written only if the
    resource is still as they showed it.
    """
    pod, old, new = view.driver_pod, view.status, intent.status
    same = replace(
        _but_figures(old, new),
        phase=old.phase,
        observed_generation=old.observed_generation,
        driver=replace(new.driver, uid=old.driver.uid, started_at=old.driver.started_at, generation=old.driver.generation),
    )
    alive = pod is not None and not pod.deleting and pod.exit is None and not pod.finished
    return alive and not intent.actions and same == old


def _carry_out(office: ReconcileContext, body: Json, view: View, intent: Plan) -> ReconcileResult:
    soon = ReconcileResult(view.now + SOON)
    if intent.actions == (AddFinalizer(),):
        _enlist(office, view, intent)
        return soon
    deeds = tuple(event for event in intent.events if event.deed)
    intent = replace(intent, events=tuple(event for event in intent.events if not event.deed))
    try:
        view = (
            _record(office, body, view, intent) if to_write(view.status, intent.status, acting=bool(intent.actions)) else _told(office, view, intent)
        )
    except Conflict as error:
        return _again(view, error, soon)
    except Rejected as error:
        return _again(view, error, ReconcileResult(_unwritable(office, view, error)))
    announce(office.cluster, view, intent.events, office.settings.identity)
    view = view.with_status(intent.status)
    try:
        _act(office, view, intent)
        _tell(office, view, replace(intent, events=deeds))
    except Conflict as error:
        return _again(view, error, soon)
    except Rejected as error:
        _remember(office, view, error)
        return soon
    return replace(soon, acted=True) if intent.actions else ReconcileResult(_next(office, intent, view.now))


def _unwritable(office: ReconcileContext, view: View, error: Rejected) -> datetime:
    """When to try again. No condition can say it, so an event does, once."""
    key = ResourceKey(view.resource.namespace, view.resource.name)
    if key not in office.unwritable:
        announce(office.cluster, view, (EventToSend(Reason.STATUS_REFUSED, str(error), warning=True),), office.settings.identity)
    office.unwritable[key] = view.now + REPEAT_REFUSED
    return office.unwritable[key]


def _tell(office: ReconcileContext, view: View, intent: Plan) -> None:
    """What was done, to whoever counts, and as events."""
    if intent.events:
        office.notice(view, intent)
        announce(office.cluster, view, intent.events, office.settings.identity)


def tell_failing(office: ReconcileContext, key: ResourceKey, why: str, now: datetime) -> None:
    """An event, since passes that fail write no status. Should this fail too, the log has it."""
    try:
        resource = office.cluster.get(CONSUMER_KIND, *key)
    except ApiError as error:
        LOG.warning("%s/%s: %s", *key, error)
        return
    if resource is not None:
        event = EventToSend(Reason.RECONCILE_FAILED, f"the operator cannot look after this resource: {why}", warning=True)
        post(office.cluster, body(resource["metadata"], event, now, office.settings.identity))


def _told(office: ReconcileContext, view: View, intent: Plan) -> View:
    """What is about to be done stands in the status already; there may still be something to tell of it."""
    if intent.events:
        office.notice(view, intent)
    return view


def _enlist(office: ReconcileContext, view: View, intent: Plan) -> Json | None:
    """Take a resource over, if that is what to do and it is still as it was seen. What it is then: the answer to the write is as good as a read."""
    if intent.actions != (AddFinalizer(),):
        return None
    try:
        body = add_finalizer(ActionContext(office.cluster, view, office.settings))
    except Conflict as error:
        LOG.info("%s/%s: %s; looking again", view.resource.namespace, view.resource.name, error)
        return None
    except Rejected as error:
        _remember(office, view, error)
        return None
    office.refusals.pop(ResourceKey(view.resource.namespace, view.resource.name), None)
    office.notice(view, intent)
    announce(office.cluster, view, intent.events, office.settings.identity)
    return body


def _again(view: View, error: ApiError, outcome: ReconcileResult) -> ReconcileResult:
    LOG.info("%s/%s: %s; looking again", view.resource.namespace, view.resource.name, error)
    return outcome


def _next(office: ReconcileContext, intent: Plan, now: datetime) -> datetime:
    """When to look again though nothing happens."""
    latest = now + _horizon(office, intent.status)
    return min(intent.wake or latest, latest)


def _horizon(office: ReconcileContext, status: Status) -> timedelta:
    """How old a look may get, whatever the watches tell meanwhile."""
    many = len(office.looked)
    if status.phase in SETTLED:
        return max(RESYNC, timedelta(seconds=many / RESYNC_RATE))
    return min(RESYNC, max(UNSETTLED, timedelta(seconds=many / LOOKS_RATE)))


def _act(office: ReconcileContext, view: View, intent: Plan) -> None:
    doing = ActionContext(office.cluster, view, office.settings)
    for action in intent.actions:
        apply(doing, action)
    if intent.actions:
        office.refusals.pop(ResourceKey(view.resource.namespace, view.resource.name), None)


def _record(office: ReconcileContext, body: Json, view: View, intent: Plan) -> View:
    """Write the status if the resource is still as it was seen; the view of what is stored now.

    Raises:
        Refused: the CRD is older than this operator and dropped a field. Nothing may be done then: the status is the write-ahead log.
    """
    status = intent.status
    document = dump_status(status)
    written = office.cluster.replace_status({**body, "status": document})
    office.cache.see(CONSUMER_KIND, written, view.now)
    if lost := dropped(document, written.get("status")):
        raise Rejected("CrdOutdated", f"the CRD does not know {lost}; install the CRD of this operator's version")
    office.unwritable.pop(ResourceKey(view.resource.namespace, view.resource.name), None)
    office.written[ResourceKey(view.resource.namespace, view.resource.name)] = view.now
    if _line(status) != _line(view.status):
        LOG.info("%s/%s: %s", view.resource.namespace, view.resource.name, _line(status))
    office.notice(view, intent)
    return replace(view, resource=parse.resource(written))


def _remember(office: ReconcileContext, view: View, error: Rejected) -> None:
    key = ResourceKey(view.resource.namespace, view.resource.name)
    trouble = Trouble("ApiRefused", str(error))
    office.refusals[key] = Refusal(trouble, view.resource.generation, view.now + REPEAT_REFUSED)


def _line(status: Status) -> str:
    ready = status.condition("Ready")
    return f"{status.phase} {ready.reason} {ready.message}" if ready else status.phase

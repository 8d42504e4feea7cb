"""One pass over one resource: observe, plan, record, apply.

The cache says whether there is anything to do; what is then done is planned from a live look, because a cache may be
minutes old. Only figures for people are written from the cache. A pass that is cut off anywhere is simply repeated.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator import observe
from sluice_operator.announce import announce
from sluice_operator.apply import Doing, apply
from sluice_operator.cache import Key
from sluice_operator.cluster import CONSUMER_KIND, Conflict, Refused
from sluice_operator.model import Status, Trouble
from sluice_operator.plan import plan
from sluice_operator.wire import dump_status

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.action import Plan
    from sluice_operator.cache import Cache
    from sluice_operator.cluster import Cluster, Json
    from sluice_operator.model import Observed
    from sluice_operator.settings import Settings
    from sluice_operator.view import View

LOG = logging.getLogger("sluice")
UNSETTLED = timedelta(seconds=30)  # while something is under way, its end may have been missed by a watch
RESYNC = timedelta(minutes=5)
SOON = timedelta(seconds=1)
REPEAT_REFUSED = timedelta(seconds=30)


@dataclass(slots=True)
class Refusal:
    """An action was refused for that generation of the spec; repeating it before `until` is no use."""

    trouble: Trouble
    generation: int
    until: datetime


@dataclass(slots=True)
class Office:
    """What passes share: ports, settings, cache, and refusals (lost with the process, found again at once)."""

    cluster: Cluster
    cache: Cache
    settings: Settings
    refusals: dict[Key, Refusal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """When to look again at the latest; None: the resource is gone."""

    wake: datetime | None


def reconcile(office: Office, key: Key, now: datetime, *, thorough: bool = False) -> Outcome:
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
        return Outcome(None)
    view = _view(office, key, body, office.cache.observed(key), now)
    intent = plan(view)
    if _settled(view, intent) and not thorough:
        return Outcome(_next(intent, now))
    if thorough or not _only_figures(view.status, intent):
        live = look(office, key, now)
        if live is None:
            return Outcome(now + SOON)
        body, view = live
        intent = plan(view)
    return _carry_out(office, body, view, intent)


def look(office: Office, key: Key, now: datetime) -> tuple[Json, View] | None:
    """A live look: the resource first, then Jobs, then pods, so that an ended Job's pod is seen with its exit."""
    office.cache.begin_look(key)
    body = office.cluster.get(CONSUMER_KIND, key.namespace, key.name)
    if body is None:
        return None
    office.cache.see(CONSUMER_KIND, body, now)
    labels = {observe.CONSUMER: key.name}
    jobs = office.cluster.list("Job", key.namespace, labels)
    pods = office.cluster.list("Pod", key.namespace, labels)
    return body, _view(office, key, body, office.cache.live(key, pods, jobs, now), now)


def _view(office: Office, key: Key, body: Json, observed: Observed, now: datetime) -> View:
    refusal = office.refusals.get(key)
    if refusal and refusal.generation == body["metadata"].get("generation", 0):
        observed = replace(observed, refusal=refusal.trouble, refused_until=refusal.until)
    return observe.view(body, observed, now)


def _settled(view: View, intent: Plan) -> bool:
    return intent.status == view.status and not intent.actions


def _only_figures(old: Status, intent: Plan) -> bool:
    """Whether nothing but what the driver reported differs; that needs no live look, and is no write-ahead."""
    same = replace(intent.status, stream=old.stream, conditions=old.conditions, draining=old.draining, replicas=old.replicas)
    return not intent.actions and same == old


def _carry_out(office: Office, body: Json, view: View, intent: Plan) -> Outcome:
    try:
        if intent.status != view.status:
            view = _record(office, body, view, intent.status)
        announce(office.cluster, view, intent.events, office.settings.identity)
        _act(office, view.with_status(intent.status), intent)
    except Conflict as error:
        LOG.info("%s/%s: %s; looking again", view.resource.namespace, view.resource.name, error)
        return Outcome(view.now + SOON)
    except Refused as error:
        _remember(office, view, error)
        return Outcome(view.now + SOON)
    return Outcome(view.now + SOON if intent.actions else _next(intent, view.now))


def _next(intent: Plan, now: datetime) -> datetime:
    """When to look again though nothing happens."""
    under_way = intent.status.condition("Reconciling")
    latest = now + (UNSETTLED if under_way is not None and under_way.status == "True" else RESYNC)
    return min(intent.wake or latest, latest)


def _act(office: Office, view: View, intent: Plan) -> None:
    doing = Doing(office.cluster, view, office.settings)
    for action in intent.actions:
        apply(doing, action)
    if intent.actions:
        office.refusals.pop(Key(view.resource.namespace, view.resource.name), None)


def _record(office: Office, body: Json, view: View, status: Status) -> View:
    """Write the status if the resource is still as it was seen; the view of what is stored now."""
    written = office.cluster.replace_status({**body, "status": dump_status(status)})
    office.cache.see(CONSUMER_KIND, written, view.now)
    if _line(status) != _line(view.status):
        LOG.info("%s/%s: %s", view.resource.namespace, view.resource.name, _line(status))
    return replace(view, resource=observe.resource(written))


def _remember(office: Office, view: View, error: Refused) -> None:
    key = Key(view.resource.namespace, view.resource.name)
    trouble = Trouble("ApiRefused", str(error))
    office.refusals[key] = Refusal(trouble, view.resource.generation, view.now + REPEAT_REFUSED)


def _line(status: Status) -> str:
    ready = status.condition("Ready")
    return f"{status.phase} {ready.reason} {ready.message}" if ready else status.phase

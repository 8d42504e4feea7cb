"""Views of pools and of their members: raw objects and hosts to values (docs/pools.md). Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from sluice_operator.cluster.port import POOL_KIND
from sluice_operator.observe import parse, seats
from sluice_operator.observe.ownership import own
from sluice_operator.plan.seats import FULL, MISSING, NOT_READY, SUSPENDED, takes_seats
from sluice_operator.resource import fields, pools
from sluice_operator.resource import policy as bounds
from sluice_operator.resource.changes import DesiredSpec, written_hash
from sluice_operator.resource.fields import InvalidSpec
from sluice_operator.state.objects import Trouble
from sluice_operator.state.seats import MemberVersion, Place, Seating
from sluice_operator.state.status import PutOut
from sluice_operator.state.view import View
from sluice_operator.untrusted import bounds as limits
from sluice_operator.untrusted.values import moment, objects, part, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sluice_operator.observe.hosts import Host
    from sluice_operator.resource.fields import Spec
    from sluice_operator.resource.policy import Policy
    from sluice_operator.state.objects import Observed, Pod
    from sluice_operator.state.seats import Members
    from sluice_operator.state.status import Status

Json = dict[str, Any]
MOST_BYTES = 192 * 1024  # of the annotations of a pod, which may have 256 KiB: reports grow, and so does a seat that is written again
READY_WORDS = 300  # characters of a pool's own message in that of a member


def pool_view(raw: Json, observed: Observed, now: datetime, policy: Policy, members: Members) -> View:
    """The view of a KinesisConsumerPool. An invalid spec is replaced by the last good one, if there is one.

    Raises:
        Unreadable: this operator did not write the stored status.
    """
    about = parse.resource(raw, POOL_KIND)
    status = parse.status_of(raw, about)
    wanted, problem = _accept(raw.get("spec") or {}, status, about.namespace, policy)
    rests = parse.rests(part(raw, "spec"))
    seen = own(about, status, observed)
    if wanted is not None:
        members = replace(members, max_deaths=pools.parse(wanted.raw).max_driver_deaths)
    return View(resource=about, asked=wanted, problem=problem, rests=rests, status=status, observed=seen, now=now, members=members)


def _accept(raw: Json | str, status: Status, namespace: str, policy: Policy) -> tuple[DesiredSpec | None, str | None]:
    """The spec to carry out, and why the present one is not that. The last good one counts if it is still within the bounds."""
    problem, wanted = _read(raw, namespace, policy)
    if problem is None or status.last_good_spec is None:
        return wanted, problem
    return _read(status.last_good_spec, namespace, policy)[1], problem


def _read(raw: Json | str, namespace: str, policy: Policy) -> tuple[str | None, DesiredSpec | None]:
    try:
        spec = pools.as_consumer(raw)
    except InvalidSpec as error:
        return str(error), None
    problem = bounds.problem(spec, namespace, policy)
    return problem, None if problem or isinstance(raw, str) else DesiredSpec(spec, raw)


def version_of(raw: Json) -> MemberVersion:
    """What a consumer is to run, as it is written. While its spec is refused, this is the last good one; without that, it has no hash."""
    about = parse.resource(raw)
    written = (part(raw, "spec"), part(raw, "status", "lastGoodSpec"))
    spec = next((each for each in written if limits.problem(each, "spec") is None and _is_valid(orjson.dumps(each))), None)
    return MemberVersion(about.name, "" if spec is None else written_hash(spec), about.restart)


@lru_cache(maxsize=1024)
def _is_valid(text: bytes) -> bool:
    """Whether this is the spec of a consumer. The pool asks this of every member, at each of its reconciles."""
    try:
        fields.parse(orjson.loads(text))
    except InvalidSpec:
        return False
    return True


class Pool(NamedTuple):
    """The pool that a member names: its resource as last seen, and what the operator allows."""

    name: str
    body: Json | None
    policy: Policy

    def out(self, member: Json) -> PutOut | None:
        """Since when this consumer has been out of the pool, and why; None: it is not, or has changed since."""
        uid = part(member, "metadata").get("uid")
        entry = next((item for item in objects(part(self.body or {}, "status", "deaths"), "out") if item.get("uid") == uid), None)
        since = moment((entry or {}).get("since"))
        if entry is None or since is None:
            return None
        deaths, restart = whole(entry.get("deaths")) or 0, text(entry, "restart")
        put_out = PutOut(
            uid=str(uid), name=text(entry, "name") or "", deaths=deaths, since=since, spec_hash=text(entry, "specHash") or "", restart=restart
        )
        return put_out if version_of(member).is_same(put_out) else None

    @property
    def rests(self) -> bool:
        """Whether none of its members shall run, not even one that is out: it is suspended, being deleted, or gone."""
        return self.body is None or "deletionTimestamp" in self.body["metadata"] or parse.rests(part(self.body, "spec"))

    @property
    def spec(self) -> Spec | None:
        """As a consumer's; None: it is not known."""
        if self.body is None:
            return None
        about = parse.resource(self.body, POOL_KIND)
        stored = part(self.body, "status").get("lastGoodSpec")
        for raw in (self.body.get("spec") or {}, stored):
            if isinstance(raw, dict) and (parsed := _read(raw, about.namespace, self.policy)[1]):
                return parsed.spec
        return None

    def place(self, hosts: Iterable[Host], size: int = 0) -> Place:
        """Where a member gets its seat of about `size` bytes, or why it gets none."""
        host, trouble = self._host(hosts, size)
        return Place(self.name, host.pod if host and trouble is None else None, trouble)

    def _host(self, hosts: Iterable[Host], size: int) -> tuple[Host | None, Trouble | None]:
        body = self.body
        if body is None:
            return None, Trouble(MISSING, f"there is no KinesisConsumerPool {self.name} in this namespace")
        if "deletionTimestamp" in body["metadata"]:
            return None, Trouble(MISSING, "it is being deleted")
        if parse.rests(part(body, "spec")):
            return None, Trouble(SUSPENDED, "it is suspended or has 0 replicas")
        named, uid = text(part(body, "status", "driver"), "pod"), body["metadata"]["uid"]
        host = next((each for each in hosts if each.pod.name == named and each.pod.owner == uid and takes_seats(each.pod)), None)
        if host is None:
            return None, Trouble(NOT_READY, _why_not_ready(body))
        return (host, Trouble(FULL, f"{host.pod.name} has no room for another seat")) if host.size + size > MOST_BYTES else (host, None)


def _why_not_ready(body: Json) -> str:
    ready = next((item for item in objects(part(body, "status"), "conditions") if item.get("type") == "Ready"), {})
    reason, message = text(ready, "reason"), text(ready, "message", READY_WORDS)
    return f"{reason}: {message}" if reason else "its driver is not there yet"


def member_view(view: View, pool: Pool | None, hosts: Sequence[Host], executors: Sequence[Pod], out: PutOut | None = None) -> View:
    """The view of a consumer with its seats, and with the pod that the next one goes into.

    Args:
        view: with its own pods.
        pool: that its spec names; None: it names none.
        hosts: all pods of pools in its namespace.
        executors: of pods of pools.
        out: it was put out of that pool.
    """
    about, seen = view.resource, view.observed
    its = seats.of(about.uid, ((host.pod, host.seats) for host in hosts))
    if pool is None and not (its.hosts or its.over) and view.driver.host is None:
        return view
    left = _left_behind(view, hosts, executors)
    seen = replace(seen, drivers=(*seen.drivers, *its.drivers), executors=(*seen.executors, *left), exits={**seen.exits, **its.exits})
    spec = pool.spec if pool else None
    wanted = view.asked
    if wanted is not None and wanted.spec.pool is not None:
        wanted = DesiredSpec(pools.effective(wanted.spec, spec), wanted.raw)
    if pool is not None and out is not None and spec is not None and view.asked is not None and not pool.rests:
        wanted = DesiredSpec(pools.alone(view.asked.spec, spec), view.asked.raw)
        seating = Seating(None, its.hosts, its.over, out_of=pool.name, out=out)
        return replace(view, asked=wanted, former=None, observed=seen, seating=seating)
    size = len(json.dumps(view.asked.raw)) if view.asked else 0
    place = pool.place(hosts, size) if pool else None
    seating = Seating(place, its.hosts, its.over, unknown=pool is not None and spec is None, out_of=pool.name if pool and out else None, out=out)
    return replace(view, asked=wanted, former=None, observed=seen, seating=seating)


def _left_behind(view: View, hosts: Sequence[Host], executors: Sequence[Pod]) -> tuple[Pod, ...]:
    """Executors of the pod that the last seat was in, if that pod has ended or is gone: they may still run a task of this consumer."""
    works = {host.pod.uid for host in hosts if not host.pod.finished and host.pod.exit is None}
    return tuple(pod for pod in executors if pod.owner_name == view.driver.host and pod.owner not in works and not pod.finished)


def is_due(raw: Json) -> bool:
    """Whether a consumer names a pool, or has a seat by its status."""
    return text(part(raw, "spec"), "pool") is not None or text(part(raw, "status", "driver"), "host") is not None


def pods_named(body: Json) -> list[str]:
    """The pods that the status of a pool names."""
    driver = part(body, "status", "driver")
    return [name for name in (text(driver, "pod"), text(part(driver, "leaving"), "pod")) if name]

"""What the reconciles of one process share."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.cluster.port import POOL_KIND
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.hosts import Hosts
from sluice_operator.plan.write_policy import AT_ONCE_WITHIN, MOST_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sluice_operator.cluster.port import Cluster
    from sluice_operator.settings import Settings
    from sluice_operator.state.actions import Plan
    from sluice_operator.state.objects import Trouble
    from sluice_operator.state.view import View

MOST_EVENTS, EVENTS_WITHIN = 10, timedelta(minutes=10)  # of one reason, about one resource


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most so many times within any such time, for each thing of each resource."""

    most: int
    within: timedelta
    taken: dict[ResourceKey, dict[str, list[datetime]]] = field(default_factory=dict)

    def recent(self, key: ResourceKey, what: str, now: datetime) -> int:
        """How often it was taken lately. What was taken in the future, by a clock that was set back, does not count."""
        return sum(now - self.within < time <= now for time in self.taken.get(key, {}).get(what, ()))

    def take(self, key: ResourceKey, what: str, now: datetime) -> bool:
        """Whether it may be done once more; if so, it counts as done."""
        if self.recent(key, what, now) >= self.most:
            return False
        times = self.taken.setdefault(key, {}).setdefault(what, [])
        times.append(now)
        del times[: -self.most]
        return True

    def forget(self, key: ResourceKey) -> None:
        """The resource is gone."""
        self.taken.pop(key, None)


@dataclass(slots=True)
class Refusal:
    """The API server refused an action for that generation of the spec. It is not repeated before `until`. `standby`: it was about a standby only."""

    trouble: Trouble
    generation: int
    until: datetime
    standby: bool = False


@dataclass(slots=True)
class ReconcileContext:
    """Ports, settings and cache, and what is remembered of each resource. The memory is lost with the process, without harm.

    Attributes:
        refusals: actions that the API server refused.
        written: when the status was written last.
        looked: when the resource was read live last.
        at_once: writes of mere phase and conditions that did not wait.
        event_limit: events by reason. One that is too much is left out: the conditions say the same.
        failing: why reconciles have failed for a minute or longer, until one succeeds; every status that is written says so.
        unwritable: until when a status that the API server refused is not written again.
        pools, consumers: the cache of the other kind, which is `cache` itself of one of the two. hosts: pods of pools.
        pools_listed: every pool has been seen once, or the API server serves none.
        on_status_written: called with the view that was replaced and the plan, for metrics.
    """

    cluster: Cluster
    cache: Cache
    settings: Settings
    refusals: dict[ResourceKey, Refusal] = field(default_factory=dict)
    written: dict[ResourceKey, datetime] = field(default_factory=dict)
    looked: dict[ResourceKey, datetime] = field(default_factory=dict)
    failing: dict[ResourceKey, str] = field(default_factory=dict)
    unwritable: dict[ResourceKey, datetime] = field(default_factory=dict)
    at_once: RateLimit = field(default_factory=lambda: RateLimit(MOST_AT_ONCE, AT_ONCE_WITHIN))
    event_limit: RateLimit = field(default_factory=lambda: RateLimit(MOST_EVENTS, EVENTS_WITHIN))
    pools: Cache = field(default_factory=lambda: Cache(POOL_KIND))
    hosts: Hosts = field(default_factory=Hosts)
    consumers: Cache | None = None
    pools_listed: bool = True
    on_status_written: Callable[[View, Plan], None] = lambda _view, _plan: None

    @property
    def kind(self) -> str:
        """Of the resources that are reconciled."""
        return self.cache.kind

    def last_report_at(self, key: ResourceKey) -> datetime | None:
        """When the last report of the driver that the status names was seen first, of a pod or of a seat."""
        return self.cache.last_report_at(key) or self.hosts.reported_at(self.cache.driver_uid(key))

    def forget(self, key: ResourceKey) -> None:
        """The resource is gone. One of the same name that the watch has shown since stays in the cache."""
        self.cache.forget_deleted(key)
        for memory in (self.refusals, self.written, self.looked, self.failing, self.unwritable):
            memory.pop(key, None)
        self.at_once.forget(key)
        self.event_limit.forget(key)


def of_pools(context: ReconcileContext) -> ReconcileContext:
    """What the reconciles of pools share, next to those of consumers."""
    return ReconcileContext(
        context.cluster,
        context.pools,
        context.settings,
        hosts=context.hosts,
        consumers=context.cache,
        on_status_written=context.on_status_written,
    )


def key_of(view: View) -> ResourceKey:
    """The key of the resource that a view is of."""
    return ResourceKey(view.resource.namespace, view.resource.name)

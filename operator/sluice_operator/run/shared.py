"""What the reconciles of one process share."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.observe.cache import ResourceKey
from sluice_operator.plan.write_policy import AT_ONCE_WITHIN, MOST_AT_ONCE
from sluice_operator.run.rate_limit import RateLimit

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sluice_operator.cluster.port import Cluster
    from sluice_operator.observe.cache import Cache
    from sluice_operator.settings import Settings
    from sluice_operator.state.actions import Plan
    from sluice_operator.state.objects import Trouble
    from sluice_operator.state.view import View

MOST_EVENTS, EVENTS_WITHIN = 10, timedelta(minutes=10)  # of one reason, about one resource


@dataclass(slots=True)
class Refusal:
    """The API server refused an action for that generation of the spec. It is not repeated before `until`."""

    trouble: Trouble
    generation: int
    until: datetime


@dataclass(slots=True)
class ReconcileContext:
    """Ports, settings and cache, and what is remembered of each resource. The memory is lost with the process, without harm.

    Attributes:
        refusals: actions that the API server refused.
        written: when the status was written last.
        looked: when the resource was read live last.
        at_once: writes of mere phase and conditions that did not wait.
        told: events by reason. One that is too much is left out: the conditions say the same.
        failing: why reconciles have failed for a minute or longer, until one succeeds; every status that is written says so.
        unwritable: until when a status that the API server refused is not written again.
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
    told: RateLimit = field(default_factory=lambda: RateLimit(MOST_EVENTS, EVENTS_WITHIN))
    on_status_written: Callable[[View, Plan], None] = lambda _view, _plan: None

    def forget(self, key: ResourceKey) -> None:
        """The resource is gone. One of the same name that the watch has shown since stays in the cache."""
        self.cache.forget_deleted(key)
        for memory in (self.refusals, self.written, self.looked, self.failing, self.unwritable):
            memory.pop(key, None)
        self.at_once.forget(key)
        self.told.forget(key)


def key_of(view: View) -> ResourceKey:
    """The key of the resource that a view is of."""
    return ResourceKey(view.resource.namespace, view.resource.name)

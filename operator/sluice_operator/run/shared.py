"""What the passes of one process share, and how often they write what nobody waits for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from sluice_operator.plan.urgency import remembered

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from sluice_operator.cluster.port import Cluster
    from sluice_operator.observe.cache import Cache, ResourceKey
    from sluice_operator.settings import Settings
    from sluice_operator.state.actions import Plan
    from sluice_operator.state.objects import Trouble
    from sluice_operator.state.status import Status
    from sluice_operator.state.view import View

NEWS_EVERY = timedelta(seconds=10)  # what nobody waits for is written together, so often at most
MEMORY_EVERY = timedelta(seconds=120)  # any look finds it again, and a start, even with an image to pull, has other news sooner
FIGURES_RATE = 3  # a second, of all resources together: of more than 30, mere figures are written less often


@dataclass(slots=True)
class Refusal:
    """An action was refused for that generation of the spec; repeating it before `until` is no use."""

    trouble: Trouble
    generation: int
    until: datetime


@dataclass(slots=True)
class ReconcileContext:
    """What passes share: ports, settings, cache; refusals; when a status was written or a look taken last, or may be tried again.

    The latter are lost with the process, and no harm is done.
    `notice` is told of every status that was written: the view it replaced, and the plan.
    """

    cluster: Cluster
    cache: Cache
    settings: Settings
    refusals: dict[ResourceKey, Refusal] = field(default_factory=dict)
    written: dict[ResourceKey, datetime] = field(default_factory=dict)
    looked: dict[ResourceKey, datetime] = field(default_factory=dict)
    unwritable: dict[ResourceKey, datetime] = field(default_factory=dict)
    notice: Callable[[View, Plan], None] = lambda _view, _plan: None

    def rhythm(self, old: Status, new: Status) -> timedelta:
        """How long to wait with what nobody waits for, after the last write: more may come together."""
        if replace(new, stream=old.stream) == old:
            return self.figures_every()
        return MEMORY_EVERY if remembered(old, new) else NEWS_EVERY

    def figures_every(self) -> timedelta:
        """How often the figures of one resource are written."""
        return max(NEWS_EVERY, timedelta(seconds=len(self.looked) / FIGURES_RATE))

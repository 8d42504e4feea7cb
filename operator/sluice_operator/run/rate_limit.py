"""How often a resource may be written about: whatever flaps in a report or a pod, the API server is left in peace."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from sluice_operator.observe.cache import ResourceKey


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

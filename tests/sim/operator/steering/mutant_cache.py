"""Mutants of what watches and answers show: each makes the operator forget something, or find it too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from steering import leader
from steering.mutant import Patch, do, mutant

from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe.cache import Cache
from sluice_operator.plan import live_read_policy
from sluice_operator.run import reconcile, schedule

BIRTH = datetime(2026, 1, 1, tzinfo=UTC)


@mutant(
    "time alone never makes the operator look",
    "health_is_true",
    do("delete_pod", role="driver", grace=None, seconds=1),
    do("gap", who=0, kind="Pod", seconds=20, forgotten=True),
)
def never_forced(patch: Patch) -> None:
    """What a watch missed is never found."""
    patch.setattr(leader, "reconcile", lambda context, key, now, **_: reconcile.reconcile(context, key, now))
    patch.setattr(live_read_policy, "max_age", lambda _phase, _resources: timedelta(days=1))
    patch.setattr(schedule, "_next", lambda _context, _intent, now: now + timedelta(days=1))


@mutant(
    "an answer replaces what the watch has shown since",
    "generation_is_seen",
    do("suspend", seconds=30),
    do("slow_answer", who=0, calls=1, lasts=5, edit="batch 9", seconds=400),
)
def answers_replace(patch: Patch) -> None:
    """A spec that was edited during a live read is forgotten until the next one, in minutes."""
    patch.setattr(Cache, "answered", lambda self, body, _before: self.see(CONSUMER_KIND, body, BIRTH))


@mutant(
    "a look that finds the resource gone is forgotten",
    "nothing_leaks",
    do("delete", seconds=1, foreground=False, again=False),
    do("gap", who=0, kind="KinesisConsumer", seconds=30, forgotten=True),
)
def never_lost(patch: Patch) -> None:
    """The loop of a resource that no longer exists turns for ever."""
    patch.setattr(Cache, "lost", lambda _self, _key, _before: None)

"""Where watch events of pools go, and of their pods: into the caches, and to the loops of the pool and of its members. Nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from sluice_operator.cluster.operator_class import belongs
from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND
from sluice_operator.observe import parse
from sluice_operator.observe.cache import Cache, PoolMember, ResourceKey, version_of
from sluice_operator.observe.parse import ROLE
from sluice_operator.untrusted.values import part, text

if TYPE_CHECKING:
    from sluice_operator.cluster.port import Json
    from sluice_operator.observe.hosts import Hosts
    from sluice_operator.observe.watch_state import WatchEvent
    from sluice_operator.run.loops import Loops


class Sink(Protocol):
    """Takes in the events of consumers, and of their pods and Jobs."""

    def see(self, kind: str, event: WatchEvent) -> None:
        """Take in one event."""

    def shown(self, kind: str, event: WatchEvent) -> None:
        """Take in that there was one."""


@dataclass(frozen=True, slots=True)
class PoolSink:
    """In front of the sink of consumers. `members`, and `places` of pools: as they were shown last."""

    consumers: Cache
    pools: Cache
    hosts: Hosts
    loops: Loops
    pool_loops: Loops
    rest: Sink
    resource_class: str = ""
    members: dict[ResourceKey, PoolMember] = field(default_factory=dict)
    places: dict[ResourceKey, tuple[object, ...]] = field(default_factory=dict)

    def see(self, kind: str, event: WatchEvent) -> None:
        """Put the event into the caches that it is for, and wake the loops that it concerns."""
        if kind == POOL_KIND:
            self._pool(event)
        elif kind == CONSUMER_KIND:
            self._consumer(event)
        elif kind == "Pod" and (name := parse.pool(event.body)):
            self.rest.shown(kind, event)
            self._pod(name, event)
        else:
            self.rest.see(kind, event)

    def _pool(self, event: WatchEvent) -> None:
        """The resource: its members may get seats now, or none any more."""
        body, gone = event
        key = ResourceKey(body["metadata"]["namespace"], body["metadata"]["name"])
        before, after = self.places.pop(key, None), _place(body)
        shown = version_of(self.pools.body(key))
        if not gone:
            self.places[key] = after
        if not gone and not belongs(body, self.resource_class):
            self.pools.forget(key)
        else:
            self.pools.see(POOL_KIND, body, _now(), gone=gone)
        self.pool_loops.wake(key, matters=gone or shown != version_of(body))
        if gone or before != after:
            self._wake_members(key)

    def _consumer(self, event: WatchEvent) -> None:
        """A member: its pool runs as long as one wants to, and counts them."""
        key = ResourceKey(event.body["metadata"]["namespace"], event.body["metadata"]["name"])
        before = self.members.pop(key, None)  # the cache may have the answer to the operator's own write already
        self.rest.see(CONSUMER_KIND, event)
        after = self.consumers.member(key)
        if after is not None:
            self.members[key] = after
        if before != after:
            for name in {member.pool for member in (before, after) if member}:
                self.pool_loops.wake(ResourceKey(key.namespace, name))

    def _pod(self, pool: str, event: WatchEvent) -> None:
        """The pool's pod or an executor of it: the consumers with seats in it, and those that name the pool if the pod itself changed."""
        body, gone = event
        key = ResourceKey(body["metadata"]["namespace"], pool)
        change = self.pools.see("Pod", body, _now(), gone=gone)
        if change is not None:
            self.pool_loops.wake(key, matters=change.matters)
        if text(part(body, "metadata", "labels"), ROLE) == "executor":
            if gone:  # members of a pod that is gone wait for its executors
                self._wake_members(key)
            return
        seen = self.hosts.see(body, _now(), gone=gone)
        for name, matters in seen.consumers.items():
            self.loops.wake(ResourceKey(key.namespace, name), matters=matters)
        if seen.pod:
            self._wake_members(key)

    def _wake_members(self, pool: ResourceKey) -> None:
        for member in self.consumers.members(pool):
            self.loops.wake(member)


@dataclass(frozen=True, slots=True)
class BothLoops:
    """The loops of consumers and those of pools, begun and ended together."""

    consumers: Loops
    pools: Loops

    def listed(self, pools: bool) -> None:  # noqa: FBT001 - its only argument
        """Every consumer has been seen once, and every pool, or not: consumers without a pool do not wait for these."""
        self.consumers.listed(pools=pools)
        if pools:
            self.pools.listed()

    def lead(self) -> None:
        """Start to reconcile."""
        self.consumers.lead()
        self.pools.lead()

    def stuck(self) -> list[ResourceKey]:
        """Resources whose reconcile hangs."""
        return [*self.consumers.stuck(), *self.pools.stuck()]

    async def stop(self) -> bool:
        """End all loops. Whether no reconcile runs any more."""
        ended = [await loops.stop() for loops in (self.consumers, self.pools)]
        return all(ended)


def _place(body: Json) -> tuple[object, ...]:
    """What a member's next seat depends on, and what its message says."""
    meta, status = part(body, "metadata"), part(body, "status")
    ready = [(item.get("reason"), item.get("message")) for item in status.get("conditions") or () if item.get("type") == "Ready"]
    out = part(status, "deaths").get("out")
    return meta.get("uid"), meta.get("generation"), "deletionTimestamp" in meta, part(status, "driver").get("pod"), ready, out


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)

"""Which resources name the same checkpoint table. A table has one consumer: two would take turns, and each would miss what the other got. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.untrusted.values import part, text

if TYPE_CHECKING:
    from sluice_operator.cluster.port import Json
    from sluice_operator.observe.cache import ResourceKey

URL = 512  # characters of an endpoint


class TableName(NamedTuple):
    """Where the table is, and how it is called."""

    endpoint: str
    region: str
    name: str


class Aged(NamedTuple):
    """A resource, ordered by age: `created` is the API server's time, and of two of one second the name decides."""

    created: str
    key: ResourceKey


class Tables:
    """An index of the resources in a cache by their tables. `note` each change."""

    def __init__(self) -> None:
        self._named: dict[ResourceKey, tuple[TableName, Aged]] = {}
        self._sharing: dict[TableName, set[Aged]] = {}

    def note(self, key: ResourceKey, body: Json | None) -> None:
        """The resource is so now; None: it is gone."""
        new = None if body is None else (table(key, body), Aged(text(part(body, "metadata"), "creationTimestamp") or "", key))
        old = self._named.get(key)
        if new == old:
            return
        if old is not None:
            del self._named[key]
            self._sharing[old[0]].discard(old[1])
            if not self._sharing[old[0]]:
                del self._sharing[old[0]]
        if new is not None:
            self._named[key] = new
            self._sharing.setdefault(new[0], set()).add(new[1])

    def sharing(self, key: ResourceKey) -> frozenset[Aged]:
        """All resources with the table of this one, itself among them."""
        found = self._named.get(key)
        return frozenset(self._sharing[found[0]]) if found else frozenset()


def table(key: ResourceKey, body: Json) -> TableName:
    """The checkpoint table that the resource names, or the one of its own name."""
    spec = part(body, "spec") or part(body, "status", "lastGoodSpec")  # of one that was not read, the last one goes on
    stream = part(spec, "stream")
    name = text(part(spec, "checkpoints"), "table", URL) or f"sluice_{key.namespace}_{key.name}"
    return TableName(text(stream, "dynamodbEndpoint", URL) or "", text(stream, "region") or "", name)

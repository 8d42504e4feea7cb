"""What one watch knows: how far it has come, and what it has shown. Pure: no connection, no clock.

A list and the changes after it are one sequence. What a new list does not contain was deleted in between, and becomes a deletion event. Only the
names of objects are kept: 5,000 pods must fit into memory.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice_operator.cluster.operator_class import CLASS
from sluice_operator.observe.parse import CONSUMER, POOL, ROLE
from sluice_operator.untrusted import decoding
from sluice_operator.untrusted.values import Unreadable, named, objects, part, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
LOG = logging.getLogger("sluice")
LONGEST = 20 * 2**20  # bytes of a line: an API server takes 3 MiB, and writes `<` with six bytes


class WatchEvent(NamedTuple):
    """An object as it is now; if `gone`, as it was when it was deleted."""

    body: Json
    gone: bool = False


BUSY = 429  # it refuses whatever is asked, and a list costs it more


class WatchRefused(Exception):
    """The server does not continue from this version, for whatever reason: it has forgotten it, or has not come so far. List again, unless BUSY."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


class KnownObject(NamedTuple):
    """What a deletion event needs to name an object."""

    namespace: str
    name: str
    labels: tuple[tuple[str, str], ...]


class WatchState:
    """One kind in one namespace, or in all. The watch continues from `version`; None: a list comes first."""

    def __init__(self) -> None:
        self.version: str | None = None
        self._known: dict[str, KnownObject] = {}
        self._listed: set[str] = set()

    def begin(self) -> None:
        """A list begins."""
        self.version, self._listed = None, set()

    def page(self, page: Json) -> Iterator[WatchEvent]:
        """One page of the list."""
        for body in objects(page, "items"):
            try:
                self._listed.add(named(body, "uid"))
                event = self._shown(WatchEvent(body))
            except Unreadable as error:
                LOG.warning("an object of a list cannot be read: %s", error)
            else:
                yield event

    def end(self, version: str) -> Iterator[WatchEvent]:
        """The list is complete: what was known and is not in it was deleted. The watch continues from this version."""
        for uid in self._known.keys() - self._listed:
            known = self._known.pop(uid)
            where = {"namespace": known.namespace, "name": known.name, "uid": uid, "resourceVersion": version}
            yield WatchEvent({"metadata": {**where, "labels": dict(known.labels)}}, gone=True)
        self.version, self._listed = version, set()

    def line(self, line: bytes) -> WatchEvent | None:
        """The event of one line of the watch; None for a bookmark.

        Raises:
            WatchRefused: the server reports an error.
            ValueError: the line is not an event.
        """
        event = decoding.event(line)
        what, body = text(event, "type"), part(event, "object")
        if what == "ERROR":
            raise WatchRefused(text(body, "message") or "the server reports an error", whole(body.get("code")))
        self.version = named(body, "resourceVersion")
        return None if what == "BOOKMARK" else self._shown(WatchEvent(body, gone=what == "DELETED"))

    def _shown(self, event: WatchEvent) -> WatchEvent:
        uid, body = named(event.body, "uid"), event.body
        if event.gone:
            self._known.pop(uid, None)
        else:
            self._known[uid] = KnownObject(named(body, "namespace"), named(body, "name"), _labels(body))
        return event


def _labels(body: Json) -> tuple[tuple[str, str], ...]:
    """The labels that say to which resource, and to which operator, an object belongs."""
    labels = part(body, "metadata", "labels")
    return tuple((key, value) for key in (CONSUMER, POOL, ROLE, CLASS) if (value := text(labels, key)) is not None)


class Lines:
    """Bytes as they arrive, to whole lines of bounded length."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that are complete now.

        Raises:
            WatchRefused: a line does not end.
        """
        first, *others = piece.split(b"\n")
        self._rest += first
        lines = [bytes(self._rest), *others[:-1]] if others else []
        if others:
            self._rest = bytearray(others[-1])
        if len(self._rest) > LONGEST:
            raise WatchRefused(f"a line of more than {LONGEST} bytes")
        return [line for line in lines if line]

"""What one watch knows: how far it has come, and what it has shown. Pure: no connection, no clock.

A list and the changes after it are one sequence. What a new list does not contain was deleted meanwhile, and becomes a deletion event.
Only the names of objects are kept: 5,000 pods must fit into memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from sluice_operator.observe.parse import CONSUMER

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
GONE = 410


class WatchEvent(NamedTuple):
    """An object as it is now; if `gone`, as it was when it was deleted."""

    body: Json
    gone: bool = False


class WatchExpired(Exception):
    """410: the server no longer keeps the changes since this version. List again."""


class WatchBroken(Exception):
    """The server ended the watch with another error. Go on from the last version."""


class KnownObject(NamedTuple):
    """What a deletion event needs to name an object."""

    namespace: str
    name: str
    consumer: str


class WatchState:
    """One kind in one namespace, or in all. The watch goes on from `version`; None: a list comes first."""

    def __init__(self) -> None:
        self.version: str | None = None
        self._known: dict[str, KnownObject] = {}
        self._listed: set[str] = set()

    def begin(self) -> None:
        """A list begins."""
        self.version, self._listed = None, set()

    def page(self, page: Json) -> Iterator[WatchEvent]:
        """One page of the list."""
        for body in page["items"] or ():
            self._listed.add(body["metadata"]["uid"])
            yield self._shown(WatchEvent(body))

    def end(self, version: str) -> Iterator[WatchEvent]:
        """The list is complete: what was known and is not in it was deleted. The watch goes on from this version."""
        for uid in self._known.keys() - self._listed:
            known = self._known.pop(uid)
            where = {"namespace": known.namespace, "name": known.name, "uid": uid, "resourceVersion": version}
            yield WatchEvent({"metadata": {**where, "labels": {CONSUMER: known.consumer}}}, gone=True)
        self.version, self._listed = version, set()

    def line(self, line: bytes) -> WatchEvent | None:
        """The event of one line of the watch; None for a bookmark.

        Raises:
            WatchExpired: list again.
            WatchBroken: the server reports any other error.
            ValueError: the line is not an event.
        """
        event = orjson.loads(line)
        body = event["object"]
        if event["type"] == "ERROR":
            raise (WatchExpired if body.get("code") == GONE else WatchBroken)(body.get("message"))
        self.version = body["metadata"]["resourceVersion"]
        return None if event["type"] == "BOOKMARK" else self._shown(WatchEvent(body, gone=event["type"] == "DELETED"))

    def _shown(self, event: WatchEvent) -> WatchEvent:
        meta = event.body["metadata"]
        if event.gone:
            self._known.pop(meta["uid"], None)
        elif meta["uid"] not in self._known:
            self._known[meta["uid"]] = KnownObject(meta["namespace"], meta["name"], (meta.get("labels") or {}).get(CONSUMER, ""))
        return event


class Lines:
    """Bytes as they arrive, to whole lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that are complete now."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [line for line in lines if line]

"""What one watch knows: how far it has come, and what it has shown. Pure: no connection, no clock.

A list and the changes after it are one story. What a list does not show any more was deleted while nobody looked, and is told like any
other deletion; of what is there only its names are kept, for five thousand pods must fit.
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
    """An object as it is now, or as it was when it went."""

    body: Json
    gone: bool = False


class WatchExpired(Exception):
    """410: the changes that are asked for are no longer kept; list and start anew."""


class WatchBroken(Exception):
    """The server ends a watch with an error of its own; go on where it stopped."""


class KnownObject(NamedTuple):
    """Enough of an object to tell that it is gone."""

    namespace: str
    name: str
    consumer: str


class WatchState:
    """One kind in one namespace, or in all. `version` is where changes go on; None: from a list."""

    def __init__(self) -> None:
        self.version: str | None = None
        self._known: dict[str, KnownObject] = {}
        self._listed: set[str] = set()

    def begin(self) -> None:
        """A list begins; what it shows is collected until it ends."""
        self.version, self._listed = None, set()

    def page(self, page: Json) -> Iterator[WatchEvent]:
        """A part of the list."""
        for body in page["items"] or ():
            self._listed.add(body["metadata"]["uid"])
            yield self._shown(WatchEvent(body))

    def end(self, version: str) -> Iterator[WatchEvent]:
        """The list is complete: what was known and is not in it is gone. Changes go on from this version."""
        for uid in self._known.keys() - self._listed:
            known = self._known.pop(uid)
            where = {"namespace": known.namespace, "name": known.name, "uid": uid, "resourceVersion": version}
            yield WatchEvent({"metadata": {**where, "labels": {CONSUMER: known.consumer}}}, gone=True)
        self.version, self._listed = version, set()

    def line(self, line: bytes) -> WatchEvent | None:
        """A line of the watch; None if it only says how far it has come.

        Raises:
            Expired: the list has to be taken anew.
            Broken: any other error.
            ValueError: this is no event.
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
    """Pieces of bytes, as they arrive, to whole lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that are complete now."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [line for line in lines if line]

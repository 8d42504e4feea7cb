"""Watches of pods and Jobs: list, follow, go on where it stopped, begin anew where that is forgotten.

No error ends one, and none disturbs another: a namespace that may not be read is tried again, for its rights may come back.
kopf does the same for the resources themselves. For objects of which nothing is handled, only remembered, its queue and task for each
cost two thirds of what an event costs.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp
import orjson

from sluice_operator.cluster.port import PATHS
from sluice_operator.observe.watch_health import OURS
from sluice_operator.observe.watch_state import GONE, Lines, WatchBroken, WatchExpired, WatchState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kubernetes.client.api_client import ApiClient

    from sluice_operator.observe.watch_state import WatchEvent

    Json = dict[str, Any]
    Tell = Callable[[str, WatchEvent], None]

LOG = logging.getLogger("sluice")
KINDS = ("Pod", "Job")
PAGE = 500
LASTS = (240, 300)  # seconds that a watch is asked to last: not all of them end at once
GATHER = 0.2  # seconds: what comes meanwhile is taken in with it, for to be woken costs as much as an event
MUCH = 2**15  # bytes that came together: more is on its way, and nothing is waited for
SILENT = 70.0  # seconds without a byte; the server says how far it has come once a minute
CONNECT = 3.05  # seconds
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)  # seconds after so many failures in a row; the last one is repeated


class WatchRefused(Exception):
    """The server said no."""


@dataclass(frozen=True, slots=True)
class WatchServer:
    """Where watches ask, with the credentials of the official client, read anew for every call."""

    api: ApiClient
    session: aiohttp.ClientSession

    def get(self, path: str, query: Json, silent: float) -> Any:
        """A call that begins; its reply is read by the caller."""
        # like the client that writes, it asks for no packed lists
        headers: Json = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "sluice-operator"}
        self.api.update_params_for_auth(headers, [], ["BearerToken"], "", "", None)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=silent)
        return self.session.get(f"{self.api.configuration.host}/{path}?{urlencode(query)}", headers=headers, timeout=timeout)


class Watch:
    """One kind in one namespace; in all if that is ''."""

    def __init__(self, server: WatchServer, kind: str, namespace: str, tell: Tell) -> None:
        group, plural = PATHS[kind]
        self._server, self._kind, self._namespace, self._tell = server, kind, namespace, tell
        self._path = f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"
        self._track, self._failures = WatchState(), 0

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self._failures += 1  # until something comes: who is only sent away does not ask again at once
            try:
                if self._track.version is None:
                    await self._list()
                await self._follow(self._track.version)
            except WatchExpired:
                self._track.version = None
            except (WatchRefused, WatchBroken, aiohttp.ClientError, OSError) as error:
                self._log(str(error) or type(error).__name__)
            except Exception:
                LOG.exception("%ss in namespace %s are not watched", self._kind, self._namespace or "*")
            if self._failures:
                await asyncio.sleep(PAUSES[min(self._failures, len(PAUSES)) - 1])

    def _log(self, why: str) -> None:
        """A connection that ends is nothing to tell; one that does not come about is."""
        if self._failures:
            LOG.warning("%ss in namespace %s are not watched: %s", self._kind, self._namespace or "*", why)

    async def _list(self) -> None:
        self._track.begin()
        query, more = {"labelSelector": OURS, "limit": PAGE}, True
        while more:
            async with self._server.get(self._path, query, SILENT) as reply:
                await _checked(reply)
                page = orjson.loads(await reply.read())
            self._take(self._track.page(page))
            query["continue"] = more = page["metadata"].get("continue")
        self._take(self._track.end(page["metadata"]["resourceVersion"]))

    async def _follow(self, version: str | None) -> None:
        seconds = random.randint(*LASTS)  # noqa: S311 - to spread them, not to hide them
        query = {"watch": "true", "allowWatchBookmarks": "true", "labelSelector": OURS, "resourceVersion": version, "timeoutSeconds": seconds}
        lines = Lines()
        async with self._server.get(self._path, query, SILENT) as reply:
            await _checked(reply)
            async for piece in reply.content.iter_any():
                self._take(event for line in lines.feed(piece) if (event := self._track.line(line)))
                self._failures = 0
                if len(piece) < MUCH:
                    await _pause(reply)

    def _take(self, events: Iterable[WatchEvent]) -> None:
        for event in events:
            try:
                self._tell(self._kind, event)
            except Exception:  # an object that nobody understands does not hide the others
                LOG.exception("%s %s was not understood", self._kind, event.body["metadata"].get("name"))


class Watches:
    """Those of all kinds and namespaces, for as long as the process lasts."""

    def __init__(self, api: ApiClient, namespaces: tuple[str, ...], tell: Tell) -> None:
        self._api, self._tell = api, tell
        self._places = [(kind, namespace) for namespace in namespaces or ("",) for kind in KINDS]
        self.watching: list[Watch] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Begin, all at once."""
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust(self._api), limit=0))
        server = WatchServer(self._api, self._session)
        self.watching = [Watch(server, *place, self._tell) for place in self._places]
        self._tasks = [asyncio.create_task(one.run()) for one in self.watching]

    async def stop(self) -> None:
        """No more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()


def trust(api: ApiClient) -> ssl.SSLContext:
    """Whom the official client's configuration trusts, and the certificate it shows."""
    settings = api.configuration
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    if not settings.verify_ssl:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context


async def _pause(reply: aiohttp.ClientResponse) -> None:
    """Lets the kernel keep what comes: asyncio would be woken for each piece of it, only to put it aside."""
    connection = reply.connection
    transport = connection.transport if connection else None
    if transport is None:
        return
    if (limit := getattr(transport, "set_read_buffer_limits", None)) is not None:
        limit(high=1)  # of TLS: else it reads on, and keeps what it does not hand on
    transport.pause_reading()
    try:
        await asyncio.sleep(GATHER)
    finally:
        transport.resume_reading()


async def _checked(reply: aiohttp.ClientResponse) -> None:
    if reply.status == GONE:
        raise WatchExpired
    if not reply.ok:
        raise WatchRefused(f"{reply.status} {(await reply.text())[:300]}")

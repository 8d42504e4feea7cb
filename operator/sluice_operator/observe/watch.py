"""Watches of KinesisConsumers, pods and Jobs: list, watch, resume at the last version, list again where the server refuses that.

An error ends no watch, and no other watch. A namespace that may not be read is tried again: its rights may come back. An object that cannot be read
hides no other one. The watch of kopf would end the process, and its queue and task for each object would cost two thirds of an event's CPU.
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

from sluice_operator.cluster.port import CONSUMER_KIND, JSON, METADATA, PATHS, POOL_KIND
from sluice_operator.election.candidate import uptime
from sluice_operator.observe.watch_health import OURS
from sluice_operator.observe.watch_state import BUSY, Lines, WatchRefused, WatchState
from sluice_operator.untrusted import decoding
from sluice_operator.untrusted.values import part, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kubernetes.client.api_client import ApiClient

    from sluice_operator.observe.watch_state import WatchEvent

    Json = dict[str, Any]
    Tell = Callable[[str, WatchEvent], None]

LOG = logging.getLogger("sluice")
KINDS = (CONSUMER_KIND, POOL_KIND, "Pod", "Job")
SELECTED = {"Pod": {"labelSelector": OURS}, "Job": {"labelSelector": OURS}}  # of resources all: one whose class changes has to be seen
TOKEN = 65_536  # characters of what asks for the next page
LASTS = (240, 300)  # seconds that a watch is asked to last, chosen at random: not all watches end together
GATHER = 0.2  # seconds: what arrives in this time is read at once; waking up costs as much as an event
MUCH = 2**15  # bytes read at once: more is on its way, so there is no pause
SILENT = 70.0  # seconds without a byte; the server says how far it has come once a minute
CONNECT = 3.05  # seconds
POOLS_WITHIN = 10.0  # seconds: then consumers without a pool begin, though the pools cannot be listed
NOT_OURS = {403, 404}  # a namespace that may not be listed: it counts as empty until it may be
TODO = {
    403: "give the operator's account the right to list and watch them (rbac.create of the chart)",
    404: "install their CRD: run `kubectl apply --server-side -f crds/`, or set crds.install of the chart",
}
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)  # seconds after so many failures in a row; the last one is repeated
LIVED = 10.0  # seconds after its first bytes: a watch that ends then is taken up at once


@dataclass(frozen=True, slots=True)
class WatchServer:
    """The API server. The credentials are the official client's, read again for every call."""

    api: ApiClient
    session: aiohttp.ClientSession

    def get(self, path: str, query: Json, silent: float, accept: str = JSON) -> Any:
        """Send a request. The caller reads the reply."""
        # like the client that writes, it asks for no packed lists
        headers: Json = {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": "sluice-operator"}
        self.api.update_params_for_auth(headers, [], ["BearerToken"], "", "", None)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=silent)
        return self.session.get(f"{self.api.configuration.host}/{path}?{urlencode(query)}", headers=headers, timeout=timeout)


class Watch:
    """The watch of one kind in one namespace; in all namespaces if that is ''."""

    def __init__(self, server: WatchServer, kind: str, namespace: str, tell: Tell, clock: Callable[[], float] = uptime) -> None:
        group, plural = PATHS[kind]
        self._server, self.kind, self._namespace, self._tell = server, kind, namespace, tell
        self._path = f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"
        self._state, self._clock = WatchState(), clock
        self._failures, self._logged = 0, ""
        self.listed = asyncio.Event()
        """The first list is complete, or refused."""
        self._heard: float | None = None
        """When the first bytes of the present watch came."""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self._heard, trace = None, None
            try:
                if self._state.version is None:
                    await self._list()
                await self._follow(self._state.version)
                why = "the server ends the watch"
            except WatchRefused as error:
                why = str(error)
                if error.status != BUSY:
                    self._state.version = None
                if error.status in NOT_OURS:
                    self.listed.set()  # its rights may never come, and others wait
                    why = f"{why}. To have them, {TODO[error.status]}"
            except (aiohttp.ClientError, OSError) as error:
                why = str(error) or type(error).__name__
            except Exception as error:  # noqa: BLE001 - whatever it is, the watch continues
                trace, why = error, repr(error)
            await self._ended(why, trace)

    async def _ended(self, why: str, trace: Exception | None) -> None:
        """Pause before the next try, longer each time, and log why, once. After a watch that has lived for a while there is no pause."""
        if self._heard is not None and self._clock() - self._heard > LIVED and trace is None:
            self._failures, self._logged = 0, ""
            return
        self._failures += 1
        if why != self._logged:
            self._logged = why
            LOG.warning("%ss in namespace %s are not watched: %s", self.kind, self._namespace or "*", why, exc_info=trace)
        await asyncio.sleep(PAUSES[min(self._failures, len(PAUSES)) - 1])

    async def _list(self) -> None:
        """List all, in pages of bounded size: one that is too large is asked for again with fewer objects, and of one object the metadata alone."""
        self._state.begin()
        limit, meta = decoding.PAGE, dict[str, Any]()
        more: str | None = ""
        while more is not None:
            page = decoding.page(await self._page(limit, more))
            if page is None and limit > 1:
                limit = decoding.fewer(limit)
                continue
            page = page or decoding.metadata_alone(await self._page(limit, more, METADATA))
            self._take(self._state.page(page))
            meta = part(page, "metadata")
            more, limit = text(meta, "continue", TOKEN) or None, decoding.more(limit)
        self._take(self._state.end(text(meta, "resourceVersion") or ""))
        self.listed.set()

    async def _page(self, limit: int, more: str, accept: str = JSON) -> bytes:
        """A page of the list. The rest of one that is too large is not read."""
        query: Json = {**SELECTED.get(self.kind, {}), "limit": limit} | ({"continue": more} if more else {})
        data = bytearray()
        async with self._server.get(self._path, query, SILENT, accept) as reply:
            await _checked(reply)
            async for piece in reply.content.iter_any():
                data += piece
                if limit > 1 and len(data) > decoding.BYTES:
                    break
        return bytes(data)

    async def _follow(self, version: str | None) -> None:
        seconds = random.randint(*LASTS)  # noqa: S311 - to spread them, not to hide them
        asked = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": seconds}
        query = {**asked, **SELECTED.get(self.kind, {})}
        lines = Lines()
        async with self._server.get(self._path, query, SILENT) as reply:
            await _checked(reply)
            async for piece in reply.content.iter_any():
                self._take(event for line in lines.feed(piece) if (event := self._event(line)))
                self._heard = self._clock() if self._heard is None else self._heard
                if len(piece) < MUCH:
                    await _pause(reply)

    def _event(self, line: bytes) -> WatchEvent | None:
        """The event of this line; None for a bookmark, and for a line that cannot be read: the lines after it can."""
        try:
            return self._state.line(line)
        except ValueError as error:
            LOG.error("an event of %ss in namespace %s cannot be read: %s", self.kind, self._namespace or "*", error)  # noqa: TRY400
            return None

    def _take(self, events: Iterable[WatchEvent]) -> None:
        for event in events:
            try:
                self._tell(self.kind, event)
            except Exception:  # one object that cannot be parsed does not hide the others
                LOG.exception("%s %s cannot be parsed", self.kind, text(part(event.body, "metadata"), "name"))


class Watches:
    """The watches of all kinds and namespaces, as long as the process runs."""

    def __init__(self, api: ApiClient, namespaces: tuple[str, ...], tell: Tell, listed: Callable[[bool], None] = lambda _pools: None) -> None:
        """`listed`: hears that each list of consumers was complete once, and whether those of pools were; if not, it hears it again."""
        self._api, self._tell, self._listed = api, tell, listed
        self._places = [(kind, namespace) for namespace in namespaces or ("",) for kind in KINDS]
        self.watching: list[Watch] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Start all watches at once."""
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust(self._api), limit=0))
        server = WatchServer(self._api, self._session)
        self.watching = [Watch(server, *place, self._tell) for place in self._places]
        self.begin()

    def begin(self) -> None:
        """Begin all watches that were made."""
        self._tasks = [asyncio.create_task(one.run()) for one in self.watching]
        self._tasks.append(asyncio.create_task(self._when_listed()))

    async def _when_listed(self) -> None:
        await self._lists(CONSUMER_KIND)
        try:
            async with asyncio.timeout(POOLS_WITHIN):
                await self._lists(POOL_KIND)
        except TimeoutError:
            self._listed(False)  # noqa: FBT003 - its only argument
            await self._lists(POOL_KIND)
        self._listed(True)  # noqa: FBT003

    async def _lists(self, kind: str) -> None:
        for one in self.watching:
            if one.kind == kind:
                await one.listed.wait()

    async def stop(self) -> None:
        """Stop all watches."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()


def trust(api: ApiClient) -> ssl.SSLContext:
    """The certificates of the official client's configuration: those it trusts, and its own."""
    settings = api.configuration
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    if not settings.verify_ssl:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context


async def _pause(reply: aiohttp.ClientResponse) -> None:
    """Stop reading for 0.2 s: the kernel collects what arrives, and asyncio wakes once, not for each piece."""
    connection = reply.connection
    transport = connection.transport if connection else None
    if transport is None:
        return
    if (limit := getattr(transport, "set_read_buffer_limits", None)) is not None:
        limit(high=1)  # of TLS: otherwise it keeps reading into its own buffer
    transport.pause_reading()
    try:
        await asyncio.sleep(GATHER)
    finally:
        transport.resume_reading()


async def _checked(reply: aiohttp.ClientResponse) -> None:
    if not reply.ok:
        raise WatchRefused(f"{reply.status} {(await reply.text())[:300]}", reply.status)

"""Where a watch can be held to a server: the in-memory fake behind HTTP, or a real one; and a connection that a test may cut or hold up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from http_fake import KINDS, Target, target
from patience import PATIENCE

from sluice_lab.fakes.cluster import JournalExpired, MemoryCluster
from sluice_operator.cluster.client import ApiServer, connect
from sluice_operator.observe.parse import CONSUMER
from sluice_operator.observe.watch import Watches
from sluice_operator.observe.watch_state import WatchEvent

Json = dict[str, Any]


@dataclass
class Gate:
    url: str
    open: bool = True
    connections: int = 0
    _wires: set[asyncio.StreamWriter] = field(default_factory=set)
    _flows: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def standing(self) -> AsyncIterator[str]:
        self._flows.set()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"{urlsplit(self.url).scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            self.cut()

    def cut(self) -> None:
        for wire in self._wires:
            wire.close()
        self._wires.clear()

    def hold_up(self) -> None:
        """What is connected hears nothing any more; who connects again does."""
        self._flows, before = asyncio.Event(), self._flows
        before.clear()
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if not self.open:
            writer.close()
            return
        there, flows = urlsplit(self.url), self._flows
        up, out = await asyncio.open_connection(there.hostname, there.port)
        self._wires |= {writer, out}
        await asyncio.gather(_pass_on(reader, out, flows), _pass_on(up, writer, flows))


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter, flows: asyncio.Event) -> None:
    try:
        while piece := await source.read(2**16):
            await flows.wait()
            sink.write(piece)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.close()


@dataclass
class Served:
    memory: MemoryCluster
    forbidden: set[str] = field(default_factory=set)
    lists: int = 0

    @asynccontextmanager
    async def standing(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        at = target(request.path)
        assert at.kind in KINDS.values()
        if at.namespace in self.forbidden:
            return web.json_response({"reason": "Forbidden", "message": "no"}, status=403)
        return await self._watch(request, at) if "watch" in request.query else self._list(request, at)

    def _list(self, request: web.Request, at: Target) -> web.Response:
        self.lists += 1
        found = [body for body in self.memory.all(at.kind) if _ours(body, at)]
        begin, size = int(request.query.get("continue", 0)), 2
        more = {"continue": str(begin + size)} if begin + size < len(found) else {}
        return web.json_response({"items": found[begin : begin + size] or None, "metadata": {"resourceVersion": str(self.memory.version), **more}})

    async def _watch(self, request: web.Request, at: Target) -> web.StreamResponse:
        reply, since = web.StreamResponse(), int(request.query["resourceVersion"])
        await reply.prepare(request)
        while True:
            now = self.memory.version  # somebody may write while a line is sent
            try:
                changes = [one for one in self.memory.watch(at.kind, since) if int(one.body["metadata"]["resourceVersion"]) <= now]
            except JournalExpired:
                await reply.write(_line("ERROR", {"code": 410, "message": "too old"}))
                return reply
            for change in changes:
                if _ours(change.body, at):
                    await reply.write(_line(change.verb, change.body))
            since = now
            await reply.write(_line("BOOKMARK", {"metadata": {"resourceVersion": str(since)}}))
            await asyncio.sleep(0.005)


def _ours(body: Json, at: Target) -> bool:
    meta = body["metadata"]
    return at.namespace in {"", meta["namespace"]} and CONSUMER in (meta.get("labels") or {})


def _line(verb: str, body: Json) -> bytes:
    return json.dumps({"type": verb, "object": body}).encode() + b"\n"


@dataclass
class Watched:
    cluster: ApiServer
    home: str
    gate: Gate
    watches: Watches
    told: list[tuple[str, WatchEvent]]

    async def make(self, name: str, namespace: str = "", **labels: str) -> Json:
        head = {"name": name, "namespace": namespace or self.home, "labels": labels or OURS_LABELS}
        spec = {"containers": [{"name": "c", "image": "x"}], "nodeSelector": {"none": "such"}}
        return await asyncio.to_thread(self.cluster.create, {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec})

    async def note(self, pod: Json, text: str) -> Json:
        meta = pod["metadata"]
        return await asyncio.to_thread(self.cluster.patch, "Pod", meta["namespace"], meta["name"], {"metadata": {"annotations": {"n": text}}})

    async def delete(self, pod: Json) -> None:
        """It goes at once: no node has it."""
        meta = pod["metadata"]
        await asyncio.to_thread(self.cluster.delete, "Pod", meta["namespace"], meta["name"], meta["uid"], 0)

    def present(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for _, (body, gone) in self.told:
            meta = body["metadata"]
            if gone:
                found.pop(meta["name"], None)
            else:
                found[meta["name"]] = (meta.get("annotations") or {}).get("n", "")
        return found

    async def shows(self, **pods: str) -> None:
        await until(lambda: self.present() == pods, lambda: f"{self.present()}, not {pods}")


OURS_LABELS = {CONSUMER: "orders", "app.kubernetes.io/managed-by": "sluice"}


@asynccontextmanager
async def watching(cluster: ApiServer, url: str, kubeconfig: Callable[[str], Path], namespaces: tuple[str, ...]) -> AsyncIterator[Watched]:
    gate, told = Gate(url), list[tuple[str, WatchEvent]]()
    async with gate.standing() as through:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KUBECONFIG", str(kubeconfig(through)))
            api = connect()
        watches = Watches(api, namespaces, lambda kind, event: told.append((kind, event)))
        await watches.start()
        try:
            yield Watched(cluster, namespaces[0], gate, watches, told)
        finally:
            await watches.stop()


async def until(holds: Callable[[], bool], instead: Callable[[], str]) -> None:
    end = asyncio.get_running_loop().time() + PATIENCE
    while not holds():
        assert asyncio.get_running_loop().time() < end, instead()
        await asyncio.sleep(0.005)

"""`/healthz`, `/readyz` and `/metrics` on one port, served by the event loop that kopf runs on: if that is stuck, nothing answers.

Liveness fails only for what a restart cures. Readiness stops a rollout whose new replicas get no watch events; it routes no traffic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiohttp.typedefs import Handler
    from prometheus_client import CollectorRegistry


class HttpServer:
    """Listens from `start` to `stop`."""

    def __init__(self, port: int, alive: Callable[[], Iterable[str]], ready: Callable[[], Iterable[str]], registry: CollectorRegistry) -> None:
        self._port, app = port, web.Application()
        app.router.add_get("/healthz", _verdict(alive))
        app.router.add_get("/readyz", _verdict(ready))
        app.router.add_get("/metrics", _metrics(registry))
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self) -> None:
        """Listen on all addresses: probes come from the node. Raises OSError when the port is taken."""
        await self._runner.setup()
        await web.TCPSite(self._runner, None, self._port).start()

    async def stop(self) -> None:
        """Close the port."""
        await self._runner.cleanup()


def _verdict(problems: Callable[[], Iterable[str]]) -> Handler:
    async def answer(_request: web.Request) -> web.Response:
        problems_now = list(problems())
        return web.Response(text="\n".join(problems_now) or "ok", status=503 if problems_now else 200)

    return answer


def _metrics(registry: CollectorRegistry) -> Handler:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return answer

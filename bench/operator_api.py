"""An API server's client for those who stand in for users and nodes: JSON in, JSON out, as cheap as Python can, for they share the machine."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson

Json = dict[str, Any]

MERGE = "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
CONSUMERS = "apis/sluice.dev/v1alpha1"
ROLE = "sluice.dev/role"
BEGUN = "BEGUN"
LONGEST_LINE = 4 * 2**20


class Answer(Exception):
    """The server's answer was no; `args[0]` is the status."""


class Api:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def call(self, method: str, path: str, body: Json | None = None, accept: str = "application/json") -> Json:
        """One call.

        Raises:
            Answer: its status is not 2xx.
        """
        headers = {"Accept": accept, "Content-Type": MERGE if method == "PATCH" else "application/json"}
        data = None if body is None else orjson.dumps(body)
        async with self._session.request(method, f"{self._url}/{path}", data=data, headers=headers) as reply:
            read = await reply.read()
            if not reply.ok:
                raise Answer(reply.status, read.decode(errors="replace"))
            document: Json = orjson.loads(read)
            return document

    async def watch(self, path: str, selector: str = "", accept: str = "application/json") -> AsyncIterator[tuple[str, Json]]:
        """Everything that is there, then every change, as (ADDED | MODIFIED | DELETED, object), for as long as it is asked for.

        A server ends the watch of who is too slow for it, and a machine that is busy enough makes everybody slow: then (BEGUN, {}) comes, and
        everything that is there once more.
        """
        while True:
            yield BEGUN, {}
            try:
                async for event in self._watch(path, selector, accept):
                    yield event
            except (Answer, aiohttp.ClientError) as error:
                sys.stderr.write(f"watch of {path}: {error!r}\n")
            await asyncio.sleep(0.5)

    async def _watch(self, path: str, selector: str, accept: str) -> AsyncIterator[tuple[str, Json]]:
        options = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        query = {**options, "labelSelector": selector, "timeoutSeconds": "3600"}
        async with self._session.get(f"{self._url}/{path}", params=query, headers={"Accept": accept}) as reply:
            if not reply.ok:
                raise Answer(reply.status, await reply.text())
            async for line in reply.content:
                event = orjson.loads(line)
                if event["type"] == "ERROR":
                    raise Answer(event["object"])
                if event["type"] != "BOOKMARK":
                    yield event["type"], event["object"]


@asynccontextmanager
async def connected(url: str, authority: Path, user: str) -> AsyncIterator[Api]:
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(authority)), limit=32)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
    headers = {"Authorization": f"Bearer {user}"}
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers, read_bufsize=LONGEST_LINE) as session:
        yield Api(session, url)

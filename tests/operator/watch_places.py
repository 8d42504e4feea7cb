"""Two API servers that a watch may read: the in-memory fake behind HTTP, and a real one."""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import urllib.request
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from http_fake import HttpFake
from simulated_cluster import BEGIN
from watch_world import Served, Watched, watching

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_lab.generate import crd
from sluice_lab.machine import apiserver, processes
from sluice_operator.cluster.client import ApiServer, connect
from sluice_operator.cluster.port import CONSUMER_KIND, ApiError

Json = dict[str, Any]
Watching = Callable[[tuple[str, ...]], AbstractAsyncContextManager[Watched]]
NAMES = (f"watch-{number}" for number in itertools.count())


class Place:
    def __init__(self, watched: Watching, home: str, away: str, may_read: Callable[[str], None], forget: Callable[[], None]) -> None:
        self._watched, self.home, self.away, self.may_read, self.forget = watched, home, away, may_read, forget

    def play(self, scene: Callable[[Watched], Coroutine[Any, Any, None]], *others: str) -> None:
        async def whole() -> None:
            async with self._watched((self.home, *others)) as found:
                await scene(found)

        asyncio.run(whole())


def written(folder: Path, url: str, token: str, authority: Path | None = None) -> Path:
    cluster = {"server": url} | ({"certificate-authority": str(authority)} if authority else {})
    context = {"context": {"cluster": "c", "user": "u"}, "name": "x"}
    user = {"name": "u", "user": {"token": token}}
    document = {"apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [context], "users": [user]}
    path = folder / f"{next(NAMES)}.kubeconfig"
    path.write_text(json.dumps({**document, "clusters": [{"name": "c", "cluster": cluster}]}))
    return path


def memory_place(folder: Path) -> Place:
    memory = MemoryCluster(lambda: BEGIN)
    served, writer = Served(memory, {"away"}), ApiServer(HttpFake(memory))  # type: ignore[arg-type]  # it stands where ApiClient stands

    @asynccontextmanager
    async def watched(namespaces: tuple[str, ...]) -> AsyncIterator[Watched]:
        async with served.standing() as url, watching(writer, url, lambda through: written(folder, through, "t"), namespaces) as found:
            yield found

    return Place(watched, "home", "away", served.forbidden.remove, memory.compact)


class Real:
    def __init__(self, server: apiserver.LocalApiServer) -> None:
        self.server = server
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KUBECONFIG", str(server.kubeconfig("admin")))
            self.admin = ApiServer(connect())
        self.post("api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "w"}})
        self.post("apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd.definition())
        assert processes.poll(self._serves, seconds=30)

    def _serves(self) -> bool:
        try:
            return self.admin.versions(CONSUMER_KIND, "", "") == {}
        except ApiError:
            return False

    def post(self, path: str, body: Json) -> Json:
        trust = ssl.create_default_context(cafile=str(self.server.authority))
        headers = {"Authorization": "Bearer admin", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.server.url}/{path}", json.dumps(body).encode(), headers)  # noqa: S310 - ours, and https
        with urllib.request.urlopen(request, context=trust, timeout=10) as reply:  # noqa: S310
            found: Json = json.load(reply)
            return found

    def may_read(self, namespace: str) -> None:
        rights = "apis/rbac.authorization.k8s.io/v1/namespaces"
        rules = [{"apiGroups": [group], "resources": [plural], "verbs": ["list", "watch"]} for group, plural in (("", "pods"), ("batch", "jobs"))]
        self.post(f"{rights}/{namespace}/roles", {"metadata": {"name": "w"}, "rules": rules})
        subject = {"kind": "ServiceAccount", "name": "w", "namespace": "default"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "w"}
        self.post(f"{rights}/{namespace}/rolebindings", {"metadata": {"name": "w"}, "subjects": [subject], "roleRef": reference})

    def place(self, folder: Path) -> Place:
        token = self.post("api/v1/namespaces/default/serviceaccounts/w/token", {"spec": {}})["status"]["token"]
        home, away = next(NAMES), next(NAMES)
        for namespace in (home, away):
            self.post("api/v1/namespaces", {"metadata": {"name": namespace}})
        self.may_read(home)

        @asynccontextmanager
        async def watched(namespaces: tuple[str, ...]) -> AsyncIterator[Watched]:
            def config(through: str) -> Path:
                return written(folder, through, token, self.server.authority)

            async with watching(self.admin, self.server.url, config, namespaces) as found:
                yield found

        return Place(watched, home, away, self.may_read, lambda: None)

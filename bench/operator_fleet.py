"""A fleet of KinesisConsumers, and whoever owns it: makes them, changes them, and sees how far each has come."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import yaml
from operator_api import BEGUN, CONSUMERS, METADATA, ROLE, Answer, Api, Json

from sluice_lab import places

NAMESPACES = 10
AT_ONCE = 8
EXECUTORS = 4
Key = tuple[str, str]  # namespace and name
PATIENCE = 900.0  # seconds; a busy machine is slow
STEPS = {"ADDED": 1, "MODIFIED": 0, "DELETED": -1}


class Fleet:
    """Resources by (namespace, name), as a watch showed them last; `migrating` many of them take over another consumer's table first."""

    def __init__(self, api: Api, size: int, migrating: int) -> None:
        self._api = api
        self.keys = [(f"team-{number % NAMESPACES}", f"{'moved' if number < migrating else 'fresh'}-{number:04}") for number in range(size)]
        self.bodies: dict[Key, Json] = {}
        self.pods: Counter[str] = Counter()

    async def apply(self) -> None:
        """The CRD and the Lease, as the chart brings them if it is asked to; namespaces, and every resource.

        Without the Lease the operator would wait for as long as a leader that it does not know of might act.
        """
        crd = yaml.safe_load((places.REPO / "crds" / "kinesisconsumers.sluice.dev.yaml").read_text())
        await self._api.call("POST", "apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        await self._api.call("POST", "apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "sluice"}})
        for number in range(NAMESPACES):
            await self._api.call("POST", "api/v1/namespaces", {"metadata": {"name": f"team-{number}"}})
        await self._served()
        await self._each(self.keys, lambda key: self._api.call("POST", _collection(key[0]), _consumer(*key)))

    async def _served(self) -> None:
        """A CRD takes a moment."""
        while True:
            try:
                await self._api.call("GET", f"{CONSUMERS}/kinesisconsumers?limit=1")
            except Answer:
                await asyncio.sleep(0.2)
            else:
                return

    async def change(self, keys: list[Key], spec: Json) -> dict[Key, int]:
        """`kubectl patch` of each; their generations from then on."""
        generations = dict[Key, int]()

        async def one(key: Key) -> None:
            meta = (await self._api.call("PATCH", f"{_collection(key[0])}/{key[1]}", {"spec": spec}, METADATA))["metadata"]
            generations[key] = meta["generation"]

        await self._each(keys, one)
        return generations

    async def _each(self, keys: Iterable[Key], call: Callable[[Key], Any]) -> None:
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(key: Key) -> None:
            async with slots:
                await call(key)

        await asyncio.gather(*(one(key) for key in keys))

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._count())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> None:
        async for kind, body in self._api.watch(f"{CONSUMERS}/kinesisconsumers"):
            if kind == BEGUN:
                self.bodies.clear()
                continue
            meta = body["metadata"]
            if kind == "DELETED":
                self.bodies.pop((meta["namespace"], meta["name"]), None)
            else:
                self.bodies[meta["namespace"], meta["name"]] = body

    async def _count(self) -> None:
        async for kind, pod in self._api.watch("api/v1/pods", ROLE, METADATA):
            if kind == BEGUN:
                self.pods.clear()
                continue
            self.pods[pod["metadata"]["labels"][ROLE]] += STEPS[kind]

    async def until(self, what: str, holds: Callable[[Json], bool], keys: dict[Key, int] | None = None) -> None:
        """Until it holds for each of them: all, or those given, at these generations at least.

        Raises:
            TimeoutError: for some it does not.
        """
        deadline, waiting = time.monotonic() + PATIENCE, dict.fromkeys(self.keys, 1) if keys is None else keys
        while waiting := {key: least for key, least in waiting.items() if not self._is_so(key, least, holds)}:
            if time.monotonic() > deadline:
                example = self.bodies.get(next(iter(waiting)), {})
                raise TimeoutError(f"{what}: {len(waiting)} are not, such as {json.dumps(example.get('status'))[:1500]}")
            await asyncio.sleep(0.1)

    def _is_so(self, key: Key, least: int, holds: Callable[[Json], bool]) -> bool:
        body = self.bodies.get(key) or {}
        return bool(body) and body["metadata"]["generation"] >= least and holds(body)

    async def counted(self, role: str, number: int) -> None:
        while self.pods[role] < number:  # noqa: ASYNC110 - a look now and then is all it takes
            await asyncio.sleep(0.1)


def begun(body: Json) -> bool:
    """The operator has decided what becomes of it."""
    status = body.get("status") or {}
    return bool(status.get("driver", {}).get("pod") or status.get("migration"))


def ready(body: Json) -> bool:
    status = body.get("status") or {}
    conditions = {item["type"]: item["status"] for item in status.get("conditions", ())}
    current = status.get("observedGeneration") == body.get("metadata", {}).get("generation")
    return current and conditions.get("Ready") == "True" and "Reconciling" not in conditions


def suspended(body: Json) -> bool:
    return (body.get("status") or {}).get("phase") == "Suspended"


def _collection(namespace: str) -> str:
    return f"{CONSUMERS}/namespaces/{namespace}/kinesisconsumers"


def _consumer(namespace: str, name: str) -> Json:
    source = {"migrateFrom": {"table": f"{name}-kcl"}} if name.startswith("moved") else {}
    pipeline = {"image": "registry.example/orders:7", "entrypoint": "orders.pipeline:process", "args": {"path": f"s3a://lake/{name}"}}
    spec = {"stream": {"name": name, "region": "eu-west-1"}, "replicas": EXECUTORS, "pipeline": pipeline, **source}
    head = {"namespace": namespace, "name": name, "labels": {"team": namespace}}
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": head, "spec": spec}

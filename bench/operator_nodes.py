"""Nodes, drivers and the Job controller, played by one process: `operator_nodes.py URL CERTIFICATE`, orders on stdin, a line each.

`run` starts playing; `report SECONDS` makes every driver report so often, `report 0` makes all silent; `count` is answered with the number of
reports so far. A driver keeps docs/interfaces.md: it starts at once, makes as many executors as it is told, reports, and drains when its pod is
deleted.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operator_api import BEGUN, METADATA, ROLE, Answer, Api, Json, connected
from operator_pods import NODE, container, executor, now, owner

AT_ONCE = 16  # drivers that do something at a time
GONE = {404, 409}
SHARDS = 4


@dataclass
class Driver:
    meta: Json
    executors: list[str] = field(default_factory=list)
    made: int = 0
    number: int = 0
    draining: bool = False
    telling: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def path(self) -> str:
        return f"api/v1/namespaces/{self.meta['namespace']}/pods/{self.meta['name']}"

    @property
    def target(self) -> int:
        return int(self.meta["annotations"]["sluice.dev/executors"])

    def report(self) -> Json:
        """The next report: only figures differ from the last."""
        self.number += 1
        figures = {"number": self.number, "batch": self.number, "records": self.number * 1000, "recordsPerSecond": 200.5, "millisBehindLatest": 900}
        shards = {"openShards": SHARDS, "endedShards": 0, "heldShards": SHARDS}
        told = {"phase": "Running", "generation": 1, "executors": len(self.executors), "draining": [], "warnings": [], **figures, **shards}
        return {"metadata": {"annotations": {"sluice.dev/report": json.dumps(told)}}}


class Nodes:
    def __init__(self, api: Api) -> None:
        self._api, self._drivers = api, dict[str, Driver]()
        self._slots, self._tasks = asyncio.Semaphore(AT_ONCE), set[asyncio.Task[None]]()
        self._telling = asyncio.Semaphore(AT_ONCE)  # who starts delays nobody's report
        self.every, self.reported = 0.0, 0

    async def watch_drivers(self) -> None:
        async for kind, pod in self._api.watch("api/v1/pods", f"{ROLE}=driver", METADATA):
            if kind == BEGUN:
                continue
            uid = pod["metadata"]["uid"]
            if kind == "DELETED":
                self._drivers.pop(uid, None)
            elif uid not in self._drivers:
                self._drivers[uid] = Driver(pod["metadata"])
                self._spawn(self._start(self._drivers[uid]))
            else:
                self._changed(self._drivers[uid], pod["metadata"])

    async def watch_jobs(self) -> None:
        """A migration is complete as soon as its Job is there."""
        async for kind, job in self._api.watch("apis/batch/v1/jobs"):
            if kind == "ADDED" and not (job.get("status") or {}).get("conditions"):
                self._spawn(self._migrate(job))

    async def report_all(self) -> None:
        while True:
            drivers = list(self._drivers.values()) if self.every else []
            begun = asyncio.get_running_loop().time()
            for number, driver in enumerate(drivers):
                pause = begun + number * self.every / len(drivers) - asyncio.get_running_loop().time()
                await asyncio.sleep(max(pause, 0))
                if not self.every:
                    break
                if driver.number and not driver.draining and not driver.telling:  # on a slow machine reports do not heap up
                    driver.telling = True
                    self._spawn(self._report(driver), self._telling)
            left = begun + self.every - asyncio.get_running_loop().time()
            await asyncio.sleep(max(left, 0.01) if drivers else 0.2)

    def _changed(self, driver: Driver, meta: Json) -> None:
        moved = meta["annotations"]["sluice.dev/executors"] != driver.meta["annotations"]["sluice.dev/executors"]
        driver.meta = meta
        if "deletionTimestamp" in meta and not driver.draining:
            driver.draining = True
            self._spawn(self._drain(driver))
        elif moved:
            self._spawn(self._follow(driver))

    def _spawn(self, work: Coroutine[Any, Any, None], slots: asyncio.Semaphore | None = None) -> None:
        task = asyncio.create_task(self._in_turn(work, slots or self._slots))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def _in_turn(self, work: Coroutine[Any, Any, None], slots: asyncio.Semaphore) -> None:
        async with slots:
            await work

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not (isinstance(error, Answer) and error.args[0] in GONE):
            sys.stderr.write(f"nodes: {error!r}\n")

    async def _call(self, method: str, path: str, body: Json) -> Json:
        return await self._api.call(method, path, body, METADATA if method == "PATCH" else "application/json")

    async def _start(self, driver: Driver) -> None:
        async with driver.lock:
            await self._call(
                "POST", f"{driver.path}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": driver.meta["name"]}, **NODE}
            )
            await self._call("PATCH", f"{driver.path}/status", container("driver", "Running", {"running": {"startedAt": now()}}))
            await self._scale(driver)
        await self._report(driver)

    async def _follow(self, driver: Driver) -> None:
        async with driver.lock:
            await self._scale(driver)
        await self._report(driver)

    async def _scale(self, driver: Driver) -> None:
        while len(driver.executors) > driver.target:
            await self._remove(driver, driver.executors.pop())
        while len(driver.executors) < driver.target:
            driver.made += 1
            name = f"{driver.meta['name']}-exec-{driver.made}"
            driver.executors.append(name)
            pods = driver.path.rpartition("/")[0]
            await self._call("POST", pods, executor(driver.meta, name))
            await self._call("PATCH", f"{pods}/{name}/status", container("executor", "Running", {"running": {"startedAt": now()}}))

    async def _remove(self, driver: Driver, name: str) -> None:
        await self._call("DELETE", f"{driver.path.rpartition('/')[0]}/{name}", {"gracePeriodSeconds": 0})

    async def _report(self, driver: Driver) -> None:
        try:
            await self._call("PATCH", driver.path, driver.report())
        finally:
            driver.telling = False
        self.reported += 1

    async def _drain(self, driver: Driver) -> None:
        async with driver.lock:
            while driver.executors:
                await self._remove(driver, driver.executors.pop())
        words = json.dumps({"reason": "Drained", "message": "drained"})
        ended = {"terminated": {"exitCode": 0, "message": words, "startedAt": now(), "finishedAt": now()}}
        await self._call("PATCH", f"{driver.path}/status", container("driver", "Succeeded", ended))
        await self._call("DELETE", driver.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": driver.meta["uid"]}})

    async def _migrate(self, job: Json) -> None:
        meta, template = job["metadata"], job["spec"]["template"]
        jobs = f"apis/batch/v1/namespaces/{meta['namespace']}/jobs/{meta['name']}/status"
        pods, name = f"api/v1/namespaces/{meta['namespace']}/pods", f"{meta['name']}-x"
        head = {"name": name, "labels": template["metadata"]["labels"], "ownerReferences": [owner(meta, "batch/v1", "Job")]}
        await self._call("POST", pods, {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": {**template["spec"], "nodeName": "node"}})
        words = json.dumps({"reason": "Complete", "message": f"{SHARDS} shards", "shards": SHARDS, "warnings": 0})
        ended = {"terminated": {"exitCode": 0, "message": words, "startedAt": now(), "finishedAt": now()}}
        await self._call("PATCH", f"{pods}/{name}/status", container("migrate", "Succeeded", ended))
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": now()} for kind in ("SuccessCriteriaMet", "Complete")]
        await self._call("PATCH", jobs, {"status": {"startTime": now(), "completionTime": now(), "succeeded": 1, "conditions": conditions}})


async def obey(nodes: Nodes) -> None:
    reader, tasks = asyncio.StreamReader(), list[asyncio.Task[None]]()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        match line.decode().split():
            case ["run"]:
                tasks += [asyncio.create_task(work()) for work in (nodes.watch_drivers, nodes.watch_jobs, nodes.report_all)]
            case ["report", seconds]:
                nodes.every = float(seconds)
            case ["count"]:
                sys.stdout.write(f"{nodes.reported}\n")
                sys.stdout.flush()
    for task in tasks:
        task.cancel()


async def main(url: str, authority: str) -> None:
    async with connected(url, Path(authority), "nodes") as api:
        await obey(Nodes(api))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

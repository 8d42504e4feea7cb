"""`make bench-operator`: the operator with 1,000 resources and 5,000 pods, against a real API server. Printed, never asserted; exit 1: an aim missed.

etcd and kube-apiserver are real, on loopback (`sluice_lab.machine.apiserver`). Nodes, drivers and the Job controller are played by another process
(`operator_nodes`). All of them share the cores with the operator, so seconds are the machine's; CPU seconds are the operator's own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from operator_api import Json, connected
from operator_audit import Audit
from operator_fleet import EXECUTORS, Fleet, begun, ready, suspended
from operator_process import Operator
from operator_report import Change, Figures, Steady, printed

from sluice_lab import places
from sluice_lab.machine import apiserver
from sluice_lab.steps import step
from sluice_operator.plan.write_policy import FIGURES_RATE

USERS = ("admin", "operator", "nodes")
STATES = {"quiet": 30, "busy": 5}  # seconds between two reports of a driver: docs/interfaces.md says at most, and at least
CHANGED = 100  # resources in each round of changes
SETTLE = 15.0
CHANGES: dict[str, tuple[Json, Callable[[Json], bool]]] = {
    "scale": ({"replicas": EXECUTORS + 1}, ready),
    "restart": ({"batch": {"intervalSeconds": 9}}, ready),
    "suspend": ({"suspend": True}, suspended),
    "resume": ({"suspend": False}, ready),
}


class Nodes:
    def __init__(self, server: apiserver.LocalApiServer) -> None:
        command = [sys.executable, str(Path(__file__).with_name("operator_nodes.py")), server.url, str(server.authority)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, order: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()

    def reported(self) -> int:
        self.tell("count")
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass
class Bench:
    server: apiserver.LocalApiServer
    fleet: Fleet
    nodes: Nodes
    audit: Audit
    log: Path
    seconds: float
    figures: Figures = field(default_factory=Figures)

    async def run(self) -> None:
        self.figures.resources = len(self.fleet.keys)
        with step(f"{self.figures.resources} KinesisConsumers"):
            await self.fleet.apply()
        operator = Operator(self.server, self.log)
        try:
            await self._start(operator)
            for name, every in STATES.items():
                self.figures.steady[name] = await self._state(operator, name, every)
            await self._changes(operator)
            self.figures.peak = operator.rss("VmHWM")
            operator.stop()
            operator = Operator(self.server, self.log)
            await self._anew(operator)
        finally:
            operator.stop()

    async def _start(self, operator: Operator) -> None:
        fleet, figures = self.fleet, self.figures
        async with fleet.watched():
            with step("first reconcile of all"):
                began = time.monotonic()
                await fleet.until("begun", begun)
                await fleet.counted("driver", sum(name.startswith("fresh") for _, name in fleet.keys))
                figures.first, figures.first_cpu = time.monotonic() - began, operator.cpu()
            with step("drivers start, until all are ready") as current:
                self.nodes.tell(f"report {STATES['quiet']}")  # on a slow machine the first driver would be silent for too long otherwise
                self.nodes.tell("run")
                await fleet.until("ready", ready)
                figures.ready, figures.ready_cpu = time.monotonic() - began, operator.cpu()
                await fleet.counted("executor", len(fleet.keys) * EXECUTORS)
                figures.pods = fleet.pods["driver"] + fleet.pods["executor"]
                current.note(f"{figures.pods} pods")
        figures.rss = operator.rss()
        figures.changes["start"] = Change(len(fleet.keys), self.audit.more(), figures.ready_cpu, figures.ready)
        self._loaded()

    async def _state(self, operator: Operator, name: str, every: int) -> Steady:
        self.nodes.tell(f"report {every}")
        with step(f"{name}: a report every {every} s of each driver") as current:
            await asyncio.sleep(SETTLE)
            reported, before = self.nodes.reported(), operator.metrics()
            self.audit.more()
            spent = await operator.over(max(self.seconds, self._figures()) if name == "quiet" else self.seconds)
            after = operator.metrics()
            writes, reports = self.audit.more(), self.nodes.reported() - reported
            current.note(f"{spent.core:.1%} of a core, {spent.rss:.0f} MiB")
        rate = {key: (after[key] - before.get(key, 0)) / spent.seconds for key in after}
        reads = rate["sluice_api_request_seconds_count"] - writes.total() / spent.seconds
        self._loaded()
        return Steady(spent, reports / spent.seconds, rate["sluice_watch_events_total"], rate["sluice_reconcile_seconds_count"], reads, writes)

    def _figures(self) -> float:
        """Seconds in which the figures of each resource are written once: a shorter look would miss them, or see little else."""
        return len(self.fleet.keys) / FIGURES_RATE

    async def _changes(self, operator: Operator) -> None:
        self.nodes.tell(f"report {STATES['quiet']}")
        keys = self.fleet.keys[-CHANGED:]
        async with self.fleet.watched():
            await self.fleet.until("seen", bool)
            for name, (spec, done) in CHANGES.items():
                with step(f"{name} of {len(keys)}"):
                    await asyncio.sleep(SETTLE)  # until what is told every ten seconds was told
                    cpu, began = operator.cpu(), time.monotonic()
                    self.audit.more()
                    await self.fleet.until(name, done, await self.fleet.change(keys, spec))
                    self.figures.changes[name] = Change(len(keys), self.audit.more(), operator.cpu() - cpu, time.monotonic() - began)
        self._loaded()

    async def _anew(self, operator: Operator) -> None:
        figures = self.figures
        with step("operator started anew, everything runs"):
            began = time.monotonic()
            seen: dict[str, float] = {}
            while not (seen.get("sluice_reconcile_seconds_count", 0) >= figures.resources and not seen["sluice_reconcile_queue"]):
                await asyncio.sleep(0.5)
                try:
                    seen = operator.metrics()
                except OSError:
                    continue  # it does not listen yet
            figures.again, figures.again_cpu = time.monotonic() - began, operator.cpu()
            figures.again_peak = operator.rss("VmHWM")

    def _loaded(self) -> None:
        self.figures.load.append(os.getloadavg()[0])


async def bench(server: apiserver.LocalApiServer, resources: int, seconds: float) -> Figures:
    nodes = Nodes(server)
    log = places.made(places.work() / "logs") / "bench-operator.log"
    log.unlink(missing_ok=True)
    try:
        async with connected(server.url, server.authority, "admin") as api:
            one = Bench(server, Fleet(api, resources, resources // 10), nodes, Audit(server.audit, "operator"), log, seconds)
            await one.run()
            return one.figures
    finally:
        nodes.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description="The operator with many resources, against a real API server.")
    parser.add_argument("--resources", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60, help="how long each steady state is measured; the quiet one longer")
    parser.add_argument("--json", type=Path, help="a file to write all figures to")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(130))  # what was started ends, and what was stored goes
    with apiserver.running(places.work(), USERS) as server:
        figures = asyncio.run(bench(server, options.resources, options.seconds))
    return printed(figures, options.json)


if __name__ == "__main__":
    sys.exit(main())

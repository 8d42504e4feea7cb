"""The operator as its image runs it, but on this machine; and what it takes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from process_tree import cpu_seconds
from prometheus_client.parser import text_string_to_metric_families

from sluice_lab.machine.apiserver import LocalApiServer
from sluice_lab.machine.listening import LOOPBACK, free_port

MIB = 1024.0


@dataclass(frozen=True)
class Spent:
    """Over some seconds: a share of a core, and resident MiB at the end."""

    seconds: float
    core: float
    rss: float


class Operator:
    """One process of it. It stands for election, as every replica does."""

    def __init__(self, server: LocalApiServer, log: Path) -> None:
        self._port = free_port(LOOPBACK)
        environment = {
            **os.environ,
            "KUBECONFIG": str(server.kubeconfig("operator")),
            "SLUICE_CONSUMER_IMAGE": "sluice-consumer:bench",
            "SLUICE_LEASE": "default/sluice",
            "SLUICE_PORT": str(self._port),
            "PYTHONUNBUFFERED": "1",
        }
        self._log: IO[bytes] = log.open("ab")
        command = [*PROFILED, sys.executable, "-m", "sluice_operator"]
        self._process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=subprocess.STDOUT)
        self.pid = self._process.pid

    def cpu(self) -> float:
        self._alive()
        return cpu_seconds(self.pid)

    def rss(self, what: str = "VmRSS") -> float:
        """Resident MiB; `VmHWM` is the most there was."""
        self._alive()
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(what)) / MIB

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self._port}/metrics", timeout=10) as reply:
            text = reply.read().decode()
        sums: Counter[str] = Counter()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                sums[sample.name] += sample.value  # type: ignore[assignment]  # a Counter of floats
        return dict(sums)

    async def over(self, seconds: float) -> Spent:
        loop = asyncio.get_running_loop()
        cpu, began = self.cpu(), loop.time()
        await asyncio.sleep(seconds)
        took = loop.time() - began
        return Spent(took, (self.cpu() - cpu) / took, self.rss())

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.close()

    def _alive(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError(f"the operator ended with {self._process.returncode}; see {self._log.name}")


PROFILED = json.loads(os.environ.get("SLUICE_BENCH_PROFILER", "[]"))  # say ["py-spy", "record", ..., "--"]

"""Flux over a repository with one consumer, and what the tests ask of both (test_flux.py)."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from cluster_bench import Bench, condition
from git_repository import Repository
from rules_world import Subject, World

from sluice_lab import places
from sluice_lab.machine import flux as machine
from sluice_lab.machine.flux import Flux
from sluice_lab.machine.processes import run
from sluice_lab.scenario.installing import NAMESPACE

Json = dict[str, Any]
NAME, AFTER = "fluxed", "after-fluxed"
PAUSED = "sluice.dev/paused"
PAGE = (places.REPO / "docs" / "gitops.md").read_text()
OF_PAGE: Json = yaml.safe_load(re.findall(r"```yaml\n(apiVersion: kustomize\..*?)```", PAGE, re.DOTALL)[0])
STREAMS = OF_PAGE["metadata"]["name"]
(OPERATOR,) = (each["name"] for each in OF_PAGE["spec"]["dependsOn"])


@dataclass
class Synced:
    flux: Flux
    repository: Repository
    world: World
    shown: set[tuple[str, str]] = field(default_factory=set)

    @property
    def bench(self) -> Bench:
        return self.world.bench

    @property
    def subject(self) -> Subject:
        return self.world.subject(NAME)

    def manifest(self, **spec: Any) -> Json:
        """The consumer as git has it: without a number of executors, which an autoscaler owns."""
        found = self.world.manifest(NAME, **spec)
        found["metadata"]["namespace"] = NAMESPACE
        del found["spec"]["replicas"]
        return found

    def kustomization(self, name: str, **spec: Any) -> None:
        usual = {key: OF_PAGE["spec"][key] for key in ("interval", "sourceRef", "timeout", "wait")}
        self.bench.apply_in(machine.NAMESPACE, {**OF_PAGE, "metadata": {"name": name}, "spec": {**usual, **spec}})

    def sync(self, **spec: Any) -> Json:
        self.repository.write("consumer.yaml", self.manifest(**spec))
        return self.again(source=True)

    def again(self, *, source: bool = False) -> Json:
        """One reconcile more, of git's last commit if `source`; what Flux says of it."""
        if not source:
            return self._reconciled()
        self.flux.reconcile("gitrepository", STREAMS)
        self.bench.until("Flux has tried the last commit", self._tried)
        return self._reconciled()

    def _reconciled(self) -> Json:
        return condition(self.flux.reconcile("kustomization", STREAMS), "Ready")

    def _tried(self) -> bool:
        last = self.repository.git("rev-parse", "HEAD").strip()
        tried: str = self.flux.read("kustomization", STREAMS)["status"].get("lastAttemptedRevision", "")
        return tried.endswith(last)

    def ready(self) -> bool:
        """Whether the Kustomization is, with what it says noted beside the operator's phase. It is read first, and so is never the later news."""
        said = condition(self.flux.read("kustomization", STREAMS), "Ready").get("status", "")
        phases = [body.get("status", {}).get("phase", "") for body in self.bench.get("kinesisconsumers") if body["metadata"]["name"] == NAME]
        self.shown.add((phases[0] if phases else "", said))
        return bool(said == "True")

    def paused(self) -> bool:
        return PAUSED in self.bench.resource(NAME)["metadata"].get("annotations", {})

    def sluice(self, action: str) -> None:
        where = (f"--namespace={NAMESPACE}", f"--kubeconfig={self.bench.cluster.kubeconfig}")
        run(str(Path(sys.executable).parent / "kubectl-sluice"), action, NAME, *where)

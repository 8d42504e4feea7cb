"""Scheduler and kubelets: pods get nodes, run programs, end; nodes get lost and come back.

A program runs on its node whatever the API server thinks of its pod: on a node that is cut off it goes on after its pod was deleted by force.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from sluice_lab.fakes.cluster import FINISHED, MemoryCluster, datetime_text
from sluice_operator.untrusted.values import moment

Json = dict[str, Any]
MISSING = "missing"  # an image that no registry has


class Program(Protocol):
    """What runs in a pod's container. `ended` is its exit code and last words once it has ended."""

    ended: tuple[int, Json] | None

    def tick(self, pod: Json | None) -> None:
        """A second passes. `pod` is None when the program cannot see the API server, or its pod is gone."""


class Nodes:
    names = "ab"

    def __init__(self, server: MemoryCluster, now: Callable[[], datetime], start: Callable[[Json], Program]) -> None:
        self.server, self._now, self._start = server, now, start
        self.lost: dict[str, str] = {}
        self.full: Callable[[Json], bool] = lambda _pod: False
        self.programs: dict[str, tuple[str, Program]] = {}
        self.sidecars: set[str] = set()
        """Pods with a container that does not end with the others."""
        self._turn = 0

    def tick(self) -> None:
        pods = {pod["metadata"]["uid"]: pod for pod in self.server.all("Pod")}
        for uid, (node, program) in list(self.programs.items()):
            if self.lost.get(node) != "dead" and program.ended is None:
                program.tick(None if node in self.lost else pods.get(uid))
            if uid not in pods and node not in self.lost:
                del self.programs[uid]  # its kubelet kills what has no pod
        for pod in list(self.server.all("Pod")):
            if not pod["spec"].get("nodeName"):
                self._schedule(pod)
            elif pod["spec"]["nodeName"] not in self.lost:
                self._kubelet(pod)

    def _schedule(self, pod: Json) -> None:
        if self.full(pod):
            if not pod.get("status", {}).get("conditions"):
                why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
                self.server.set_status("Pod", *_place(pod), {"phase": "Pending", "conditions": [why]})
            return
        self._turn += 1
        node = next((name for name in "aba"[self._turn % 2 :] if name not in self.lost), None)
        if node:
            self.server.set_status("Pod", *_place(pod), {"conditions": []})
            self.server.edit(pod, {"spec": {"nodeName": node}})

    def _kubelet(self, pod: Json) -> None:
        uid, status = pod["metadata"]["uid"], pod.get("status", {})
        deleting = "deletionTimestamp" in pod["metadata"]
        running = self.programs.get(uid)
        if status.get("phase") in FINISHED:
            self.programs.pop(uid, None)
            if deleting:
                self._gone(pod)
        elif running is None:
            self._gone(pod) if deleting else self._run(pod)
        elif running[1].ended is not None:
            self._ended(pod, *running[1].ended)
        elif deleting and self._now() >= (moment(pod["metadata"]["deletionTimestamp"]) or self._now()):
            running[1].ended = (137, {})

    def _run(self, pod: Json) -> None:
        image = pod["spec"]["containers"][0].get("image")
        if image == MISSING:
            waiting = {"waiting": {"reason": "ImagePullBackOff", "message": f"no such image: {image}"}}
            self._container(pod, "Pending", waiting)
            return
        self.programs[pod["metadata"]["uid"]] = (pod["spec"]["nodeName"], self._start(pod))
        self._container(pod, "Running", {"running": {"startedAt": datetime_text(self._now())}})

    def _ended(self, pod: Json, code: int, words: Json) -> None:
        state = pod["status"]["containerStatuses"][0]["state"]
        if "terminated" in state and pod["metadata"]["uid"] in self.sidecars and "deletionTimestamp" not in pod["metadata"]:
            return
        if "terminated" in state:  # the phase follows a moment later, as with a real kubelet
            self.server.set_status("Pod", *_place(pod), {"phase": "Failed" if code else "Succeeded"})
            return
        began = (state.get("running") or {}).get("startedAt", datetime_text(self._now()))
        ended = {"exitCode": code, "message": json.dumps(words) if words else "", "startedAt": began, "finishedAt": datetime_text(self._now())}
        self._container(pod, "Running", {"terminated": ended})

    def _container(self, pod: Json, phase: str, state: Json) -> None:
        name = pod["spec"]["containers"][0]["name"]
        self.server.set_status("Pod", *_place(pod), {"phase": phase, "containerStatuses": [{"name": name, "state": state}]})

    def _gone(self, pod: Json) -> None:
        """As a kubelet says that it has ended everything: finalizers still hold it."""
        meta = pod["metadata"]
        self.server.remove("Pod", *_place(pod), meta["uid"], 0)

    def evict(self, pod: Json) -> None:
        """The node is short of memory: the kubelet ends the pod and says so, without a word about its containers."""
        self.kill(pod["metadata"]["uid"], 137)
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "lastTransitionTime": datetime_text(self._now())}
        self.server.set_status("Pod", *_place(pod), {"phase": "Failed", "reason": "Evicted", "containerStatuses": [], "conditions": [condition]})

    def kill(self, uid: str, code: int, words: Json | None = None) -> None:
        if found := self.programs.get(uid):
            found[1].ended = (code, words or {})

    def lose(self, node: str, how: str) -> None:
        """It answers no more; `how` is cut (its programs go on) or dead."""
        self.lost[node] = how

    def restore(self, node: str) -> None:
        """It is back. After it was dead, its programs are not: the kubelet finds them ended."""
        if self.lost.pop(node, None) == "dead":
            for uid in [uid for uid, (where, _) in self.programs.items() if where == node]:
                self.kill(uid, 137)

    def remove(self, node: str) -> None:
        """The node's object is deleted: its pods are deleted by force; what it runs may go on."""
        for pod in list(self.server.all("Pod")):
            if pod["spec"].get("nodeName") == node:
                self.server.remove("Pod", *_place(pod), pod["metadata"]["uid"], 0)

    def silence(self) -> None:
        """Programs whose pods are gone are over too."""
        alive = {pod["metadata"]["uid"] for pod in self.server.all("Pod")}
        for uid in [uid for uid in self.programs if uid not in alive]:
            del self.programs[uid]


def _place(pod: Json) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]

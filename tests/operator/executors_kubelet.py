"""A kubelet for executors' pods: each that is made becomes a process beside it, and its end is told to the API server."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

import pyspark

from sluice_consumer.spark import spark_home
from sluice_lab.machine.apiserver import LocalApiServer

Json = dict[str, Any]

ADDRESS = "127.0.0.1"
JARS = Path(spark_home.lean(os.environ).get("SPARK_HOME", pyspark.__path__[0])) / "jars"
CLASS_PATH = f"{next(JARS.glob('slf4j-api-*.jar'))}:{JARS}/*"  # as Spark's own launcher has it, for which there is an archive of classes
MERGE = "application/merge-patch+json"
EXECUTOR = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL", "--executor-id": "SPARK_EXECUTOR_ID", "--cores": "SPARK_EXECUTOR_CORES", "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP", "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID", "--podName": "SPARK_EXECUTOR_POD_NAME",
}  # fmt: skip


class Admin:
    def __init__(self, server: LocalApiServer) -> None:
        self._server, self._trust = server, ssl.create_default_context(cafile=str(server.authority))

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        """One call; {} where there is no such thing."""
        headers = {"Authorization": "Bearer admin", "Content-Type": MERGE if method == "PATCH" else "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._server.url}/{path}", data, headers, method=method)  # noqa: S310 - ours, and https
        try:
            with urllib.request.urlopen(request, context=self._trust, timeout=10) as reply:  # noqa: S310
                found: Json = json.load(reply)
                return found
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return {}
            raise


class Kubelet:
    """Runs the pods of a namespace while the block lasts.

    Attributes:
        idle: set while new pods stay Pending.
    """

    def __init__(self, admin: Admin, namespace: str, folder: Path) -> None:
        self._admin, self._folder, self._pods = admin, folder, f"api/v1/namespaces/{namespace}/pods"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._told: set[str] = set()
        self._over, self.idle = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60)
        for process in self._running.values():
            process.kill()
            process.wait()

    def names(self) -> list[str]:
        return [name for name, process in list(self._running.items()) if process.poll() is None]

    def crash(self, name: str) -> None:
        self._running[name].kill()

    def _run(self) -> None:
        while not self._over.wait(0.2):
            there = {pod["metadata"]["name"]: pod for pod in self._admin.call("GET", f"{self._pods}?labelSelector=spark-role%3Dexecutor")["items"]}
            for name in [name for name in self._running if name not in there]:
                self._running.pop(name).terminate()
            for name, pod in there.items():
                self._see(name, pod)

    def _see(self, name: str, pod: Json) -> None:
        if name not in self._running and not self.idle.is_set():
            self._running[name] = self._started(name, pod)
            self._tell(name, "Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
        elif name in self._running and name not in self._told and (code := self._running[name].poll()) is not None:
            self._told.add(name)
            self._tell(name, "Succeeded" if code == 0 else "Failed", {"terminated": {"exitCode": code if code >= 0 else 128 - code}})

    def _tell(self, name: str, phase: str, state: Json) -> None:
        told = {"name": "executor", "state": state, "ready": "running" in state, "restartCount": 0, "image": "any", "imageID": "any"}
        self._admin.call("PATCH", f"{self._pods}/{name}/status", {"status": {"phase": phase, "podIP": ADDRESS, "containerStatuses": [told]}})

    def _started(self, name: str, pod: Json) -> subprocess.Popen[bytes]:
        (container,) = pod["spec"]["containers"]
        fields = {"status.podIP": ADDRESS, "metadata.name": name}
        given = {item["name"]: item.get("value") or fields[item["valueFrom"]["fieldRef"]["fieldPath"]] for item in container["env"]}
        given |= {"SPARK_LOCAL_DIRS": str(self._folder), "SPARK_LOCAL_IP": ADDRESS}
        options = [value for key, value in given.items() if key.startswith("SPARK_JAVA_OPT_")]
        words = [word for option, key in ARGUMENTS.items() for word in (option, given[key])]
        command = ["java", *options, "-Xmx512m", "-cp", CLASS_PATH, EXECUTOR, *words]
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, env=os.environ | given, cwd=self._folder, stdout=log, stderr=log)

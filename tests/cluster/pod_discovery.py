"""Tells a Prometheus which pods there are, over HTTP, with the labels of Prometheus' own discovery by Kubernetes.

Debian builds its Prometheus without that discovery (`kubernetes_sd_configs`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from cluster_bench import Bench

Json = dict[str, Any]
META = "__meta_kubernetes_"


@contextmanager
def serving(bench: Bench, host: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(targets(json.loads(bench.cluster.kubectl("get", "pods", "--all-namespaces", "--output=json"))["items"])).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Log nothing."""

    with ThreadingHTTPServer((host, 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="discovery")
        thread.start()
        try:
            yield f"http://{host}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def targets(pods: list[Json]) -> list[Json]:
    found = []
    for pod in pods:
        address = pod["status"].get("podIP")
        for container in pod["spec"]["containers"] if address else ():
            for port in container.get("ports", ()):
                meta = {**_of_pod(pod), "pod_container_name": container["name"], "pod_container_port_name": port.get("name", "")}
                labels = {f"{META}{name}": value for name, value in meta.items()}
                found.append({"targets": [f"{address}:{port['containerPort']}"], "labels": labels})
    return found


def _of_pod(pod: Json) -> dict[str, str]:
    metadata = pod["metadata"]
    labels = {f"pod_label_{safe(key)}": value for key, value in metadata.get("labels", {}).items()}
    return labels | {"namespace": metadata["namespace"], "pod_name": metadata["name"], "pod_phase": pod["status"]["phase"]}


def safe(label: str) -> str:
    return re.sub(r"\W", "_", label)

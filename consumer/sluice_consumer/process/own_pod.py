"""The driver's own pod at the API server: its annotations are read and written.

Two calls by urllib3, which is loaded for AWS anyway. The official client does the same. To import it took 0.6 s of CPU in the supervisor, again in
the driver, and both stood before Spark's start (docs/performance.md, "A driver's start").
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3

from sluice_consumer.spark.conf import PodAddress

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # of the pod; the kubelet renews the token, and the certificate of the authority
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
SECONDS = 10.0  # that the API server has for an answer
WORDS = 300  # of a refusal that is no Status


class PodCallRefused(Exception):
    """The API server refused a call, or answered something else than a pod."""


class PodAnnotations:
    """Over the Kubernetes API, with the pod's service account. A call is made once; the caller asks again in seconds anyway."""

    def __init__(self, pod: PodAddress, account: Path = ACCOUNT, environment: Mapping[str, str] = os.environ) -> None:
        """Opens nothing yet.

        Raises:
            KeyError: this is not a pod. OSError: it has no service account.
        """
        host, port = environment[HOST], environment[PORT]
        self._token, self._uid = account / "token", pod.uid
        self._url = f"https://{f'[{host}]' if ':' in host else host}:{port}/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        authority = str(account / "ca.crt")  # read for each connection
        self._connections = urllib3.PoolManager(ca_certs=authority, timeout=urllib3.Timeout(total=SECONDS), retries=False)

    def read(self) -> Mapping[str, str]:
        """All annotations.

        Raises:
            PodCallRefused, urllib3's HTTPError, OSError: there is no answer, or none of a pod.
        """
        return self._call("GET", b"").get("metadata", {}).get("annotations") or {}

    def write(self, annotations: Mapping[str, str | None]) -> None:
        """Sets these, and removes those that are None, if the pod is still the one with our uid. All of them, or none.

        Raises:
            PodCallRefused: it is not, or another refusal. HTTPError, OSError: there is no answer.
        """
        body = {"metadata": {"uid": self._uid, "annotations": dict(annotations)}}
        self._call("PATCH", json.dumps(body).encode(), {"Content-Type": "application/merge-patch+json"})

    def _call(self, method: str, body: bytes, more: Mapping[str, str] | None = None) -> dict[str, Any]:
        given = {"Authorization": f"Bearer {self._token.read_text().strip()}", "Accept": "application/json", **(more or {})}
        reply = self._connections.request(method, self._url, body=body or None, headers=given)
        found = _object(reply.data)
        if reply.status >= 300 or found.get("kind") != "Pod":
            raise PodCallRefused(f"{method} of the pod: {reply.status} {reply.reason}: {found.get('message', '')}")
        return found


def _object(data: bytes) -> dict[str, Any]:
    """The object of a reply; of any other reply, its beginning as a message."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(data)
        if isinstance(found, dict):
            return found
    return {"message": data[:WORDS].decode(errors="replace")}

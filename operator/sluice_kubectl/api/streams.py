"""What is read as text and does not belong in the operator's port: logs, and the metrics of a driver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlencode

import urllib3

from sluice_kubectl.api.errors import CommandError
from sluice_kubectl.api.kubeconfig import AGENT
from sluice_operator.cluster.client import Direct, failure

CONNECT, READ = 3.05, 15.0  # seconds


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which part of a container's log. `follow` has no end but the container's."""

    container: str | None = None
    tail: int | None = None
    previous: bool = False
    follow: bool = False

    def query(self) -> str:
        """As the API server takes it."""
        flags = {"previous": self.previous, "follow": self.follow}
        wanted = {"container": self.container, "tailLines": self.tail} | {name: "true" for name, on in flags.items() if on}
        return urlencode({name: value for name, value in wanted.items() if value is not None})


class PodTexts(Protocol):
    """Port: texts of pods."""

    def log(self, namespace: str, pod: str, request: LogRequest) -> Iterator[str]:
        """Lines without their ends. Raises ApiError."""

    def metrics(self, namespace: str, pod: str, port: int) -> str:
        """The answer of /metrics, through the API server. Raises ApiError."""


class HttpPodTexts:
    """Adapter of `PodTexts`."""

    def __init__(self, api: Direct) -> None:
        self._api = api

    def log(self, namespace: str, pod: str, request: LogRequest) -> Iterator[str]:
        rest = b""
        for chunk in self._get(f"{_pod(namespace, pod)}/log?{request.query()}", endless=request.follow):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
        if rest:
            yield rest.decode(errors="replace")

    def metrics(self, namespace: str, pod: str, port: int) -> str:
        return b"".join(self._get(f"{_pod(namespace, pod)}:{port}/proxy/metrics")).decode(errors="replace")

    def _get(self, path: str, *, endless: bool = False) -> Iterator[bytes]:
        headers = {"Accept": "*/*", "User-Agent": AGENT}
        self._api.update_params_for_auth(headers, [], ["BearerToken"], "", "", None)
        timeout = urllib3.Timeout(connect=CONNECT, read=None if endless else READ)
        host = self._api.configuration.host
        try:
            pool = self._api.rest_client.pool_manager
            reply = pool.request("GET", f"{host}/{path}", headers=headers, timeout=timeout, retries=False, preload_content=False)
            if reply.status >= 300:
                answer = reply.read()
                raise failure("GET", reply.status, _answer(answer))
            yield from reply.stream(2**14, decode_content=True) if not endless else _as_it_comes(reply)
        except urllib3.exceptions.HTTPError as error:
            raise CommandError(f"{host} gave no whole answer: {error}; next: try again") from error


def _pod(namespace: str, name: str) -> str:
    return f"api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _as_it_comes(reply: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """A chunk as soon as it is there: `stream` would wait for a full buffer."""
    while chunk := reply.read1(2**14):
        yield chunk


def _answer(text: bytes) -> dict[str, object]:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    return document if isinstance(document, dict) else {"message": text.decode(errors="replace")[:500]}

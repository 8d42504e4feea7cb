"""The in-memory fake behind HTTP, for the real client: what the adapter sends is read as an API server reads it, and noted for RBAC."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from kubernetes.client.configuration import Configuration

from sluice_operator.cluster.port import PATHS, Cluster, Conflict, Exists, Rejected, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Json = dict[str, Any]
Right = tuple[str, str, str]  # verb, API group, resource or resource/subresource

KINDS = {paths: kind for kind, paths in PATHS.items()}
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
ANSWERS: dict[type[Exception], tuple[int, str]] = {
    Exists: (409, "AlreadyExists"),
    Conflict: (409, "Conflict"),
    Rejected: (403, "Forbidden"),
    Unavailable: (503, "ServiceUnavailable"),
}


class Stored(Cluster, Protocol):
    def all(self, kind: str) -> Iterator[Json]: ...


@dataclass(frozen=True)
class Reply:
    status: int
    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return json.dumps(self.body).encode()


@dataclass(frozen=True)
class Target:
    group: str
    kind: str
    plural: str
    namespace: str
    name: str
    part: str

    def right(self, method: str) -> Right:
        verb = VERBS.get(method) or ("get" if self.name or self.kind == "Namespace" else "list")
        plural = self.plural or "namespaces"
        return verb, self.group, f"{plural}/{self.part}" if self.part else plural


def target(path: str) -> Target:
    """`/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>/<part>`, or without namespace, or with the group's old short form."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    base = 2 if parts[0] == "api" else 3
    rest, namespace = parts[base:], ""
    if rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    plural, name, part = ([*rest, "", "", ""])[:3]
    return Target("" if base == 2 else parts[1], KINDS["/".join(parts[:base]), plural], plural, namespace, name, part)


@dataclass
class HttpFake:
    """Stands where the official `ApiClient` stands."""

    memory: Stored
    rights: set[Right] = field(default_factory=set)
    requests: list[tuple[str, str]] = field(default_factory=list)
    page: int = 500
    configuration: Configuration = field(default_factory=lambda: Configuration(host="http://memory"))

    def update_params_for_auth(self, *_: Any) -> None:
        """Nobody has to log in."""

    def call_api(self, method: str, url: str, headers: Json, body: Json | None = None, _request_timeout: object = None) -> Reply:
        at = target(urlsplit(url).path)
        self.rights.add(at.right(method))
        self.requests.append((method, url))
        query = {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}
        serve: Callable[..., Json | None] = getattr(self, f"_{method.lower()}")
        try:
            found = serve(at, query, body)
        except tuple(ANSWERS) as error:
            status, reason = ANSWERS[type(error)]
            return Reply(status, {"reason": reason, "message": str(error)})
        if found is None:
            return Reply(404, {"reason": "NotFound", "message": "not found"})
        return Reply(200, found) if "as=Partial" not in headers["Accept"] else Reply(200, _metadata(found))

    def _get(self, at: Target, query: Json, _: None) -> Json | None:
        if at.name or at.kind == "Namespace":
            return self.memory.get(at.kind, at.namespace, at.name)
        chosen = [part for part in COMMA.split(query.get("labelSelector", "")) if part]
        found = [body for body in self.memory.all(at.kind) if _chosen(body, at.namespace, chosen)]
        begin = int(query.get("continue", 0))
        size = min(int(query["limit"]), self.page)
        more = {"continue": str(begin + size)} if begin + size < len(found) else {}
        return {"items": found[begin : begin + size], "metadata": more}

    def _post(self, _at: Target, query: Json, body: Json) -> Json:
        if "dryRun" in query:
            self.memory.check(body)
            return body
        return self.memory.create(body)

    def _put(self, at: Target, _query: Json, body: Json) -> Json:
        assert at.part == "status"
        return self.memory.replace_status(body)

    def _patch(self, at: Target, _query: Json, body: Json) -> Json:
        return self.memory.patch(at.kind, at.namespace, at.name, body)

    def _delete(self, at: Target, _query: Json, body: Json) -> Json | None:
        if self.memory.get(at.kind, at.namespace, at.name) is None:
            return None
        self.memory.delete(at.kind, at.namespace, at.name, body["preconditions"]["uid"], body.get("gracePeriodSeconds"))
        return {}


COMMA = re.compile(r",(?![^(]*\))")  # between the parts of a selector, not within a set of values
AMONG = re.compile(r"(\S+) in \((.*)\)")


def _chosen(body: Json, namespace: str, chosen: list[str]) -> bool:
    meta = body["metadata"]
    labels = meta.get("labels") or {}
    return namespace in {"", meta["namespace"]} and all(_holds(part, labels) for part in chosen)


def _holds(part: str, labels: dict[str, str]) -> bool:
    if (one := AMONG.fullmatch(part)) is not None:
        return labels.get(one[1]) in one[2].split(",")
    key, sep, value = part.partition("=")
    if key.startswith("!"):
        return key[1:] not in labels
    return labels.get(key) == value if sep else key in labels


def _metadata(page: Json) -> Json:
    """As the real one: of an empty list, the items are null."""
    return {**page, "items": [{"metadata": item["metadata"]} for item in page["items"]] or None}

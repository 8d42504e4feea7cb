"""The API server through the official client's transport.

Only `ApiClient` is used, for credentials and TLS, with plain JSON. Its model classes cost tens of megabytes and hide unknown fields, and half the CPU
of a call is spent above its connection pool. No call is retried here, because only the caller knows what a lost reply means.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import quote, urlencode, urlsplit

import orjson
import urllib3
from kubernetes import config
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException

from sluice_operator.cluster.port import JSON, METADATA, PATHS, ApiError, Conflict, Exists, Rejected, Unavailable
from sluice_operator.untrusted import decoding
from sluice_operator.untrusted.values import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluice_operator.cluster.port import Json, Labels

    Keep = Callable[[Json], Json]

TIMEOUT = (3.05, 15)  # seconds to connect, and between bytes
NOT_FOUND, CONFLICT, UNPROCESSABLE, SERVER_ERROR = 404, 409, 422, 500
CONDITIONS = {"metadata.uid", "metadata.resourceVersion", "metadata.finalizers"}  # the last: of an object that is being deleted
DENIED = re.compile(r"ValidatingAdmissionPolicy '.*denied request|admission webhook \".*\" denied the request", re.DOTALL)
"""Policies and webhooks choose the status code of their refusal. It may be that of a conflict, or of expired credentials."""
LATER = {401, 408, 410, 429}  # credentials being rotated, a list that took too long, and load
STRICT = "?fieldValidation=Strict"  # an unknown field is refused, not ignored: `nodeselector` in a podTemplate
NO_NAME = re.compile(r"\.{0,2}|.*[/%].*", re.DOTALL)
"""Names that no object may have. In a path they would be another object, or all of a kind."""
DIGITS = re.compile(r"[0-9]{1,6}")
MOST = 4 * 2**20  # bytes of an answer that are read: no API server stores an object of half that size
NO_DRY_RUN = "does not support dry run"
SAMPLES = (100, 10)  # objects of an audit, fewer, or one, if they are too large; of 500, JSON was 18 % of what the operator did with 500 idle drivers
CONNECTIONS = 20  # kept open, for the threads that call (`loops.THREADS`, audits); another one costs a handshake


def connect() -> ApiClient:
    """A client with the credentials of KUBECONFIG, or of the pod's service account. The client reads a rotated token again."""
    settings = Configuration()
    if file := os.environ.get("KUBECONFIG"):
        config.load_kube_config(config_file=file, client_configuration=settings)
    else:
        config.load_incluster_config(client_configuration=settings)
    settings.retries = False
    settings.connection_pool_maxsize = CONNECTIONS
    return Direct(settings)


class Direct(ApiClient):  # type: ignore[misc]  # untyped
    """An `ApiClient` that uses its connection pool directly."""

    def __init__(self, settings: Configuration) -> None:
        super().__init__(settings)
        self._pool = self.rest_client.pool_manager.connection_from_url(settings.host)

    def call_api(self, method: str, url: str, headers: Json, body: Json | None = None, _request_timeout: tuple[float, float] = TIMEOUT) -> Any:
        """The reply, read. A body of more than 4 MiB is not read to its end."""
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        data = None if body is None else orjson.dumps(body)
        timeout = urllib3.Timeout(connect=_request_timeout[0], read=_request_timeout[1])
        reply = self._pool.urlopen(method, target, data, headers, retries=False, redirect=False, timeout=timeout, preload_content=False)
        try:
            answer = reply.read(MOST + 1)
            if len(answer) > MOST:
                reply.close()
        finally:
            reply.release_conn()
        return Answer(reply.status, answer, reply.headers)


class Answer(NamedTuple):
    """An HTTP status, the first 4 MiB of the body, and the headers."""

    status: int
    data: bytes
    headers: Mapping[str, str]


def whole(body: Json) -> Json:
    """All of an object."""
    return body


class ApiServer:
    """Adapter of `Cluster`."""

    def __init__(
        self, api: ApiClient, timeout: tuple[float, float] = TIMEOUT, agent: str = "sluice-operator", manager: str = "", keep: Keep = whole
    ) -> None:
        """`keep` says what a list keeps of each object."""
        self._api, self._timeout, self._agent, self._manager, self._keep = api, timeout, agent, manager or agent, keep

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        if _nobodys(kind, name):
            return None
        try:
            return self._call("GET", _path(kind, namespace, name))
        except ApiException as error:
            return None if error.status == NOT_FOUND else _raise(error)

    def list(self, kind: str, namespace: str, labels: Labels) -> list[Json]:
        query = {"labelSelector": ",".join(key if value is None else f"{key}={value}" for key, value in labels.items())}
        items: list[Json] = []
        path = _path(kind, namespace)
        limit, more = decoding.PAGE, ""
        while True:
            asked = {**query, "limit": limit} | ({"continue": more} if more else {})
            page = self._page(path, asked)
            if page is None and limit > 1:
                limit = decoding.fewer(limit)
                continue
            page = page or self._page(path, asked, METADATA, decoding.metadata_alone)
            items += map(self._keep, page["items"])
            more, limit = page["metadata"].get("continue"), decoding.more(limit)
            if not more:
                return items

    def _page(self, path: str, query: Json, accept: str = JSON, read: Callable[[bytes], Any] = decoding.page) -> Any:
        """A page of a list, as `read` gives it."""
        try:
            data = self._bytes("GET", f"{path}?{urlencode(query)}", accept=accept)
        except ApiException as error:
            _raise(error)
        return _json(data, path, read)

    def versions(self, kind: str, namespace: str, selector: str) -> dict[str, str]:
        """The resourceVersion by uid of the first objects, live; of every namespace if it is ''. Metadata only.

        Raises:
            ApiError: see Cluster.
        """
        sizes = dict.fromkeys(SAMPLES, decoding.page) | {1: decoding.metadata_alone}
        path = _path(kind, namespace)
        pages = (self._page(path, {"labelSelector": selector, "limit": limit}, METADATA, read) for limit, read in sizes.items())
        page = next(page for page in pages if page is not None)
        items = page["items"] or ()  # null, where a list of metadata alone is empty
        return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in items}

    def create(self, body: Json) -> Json:
        return self._write("POST", _path(body["kind"], body["metadata"]["namespace"]) + STRICT, body)

    def check(self, body: Json) -> None:
        """See Cluster. An admission webhook that does not support dry runs is not a refusal."""
        try:
            self._write("POST", _path(body["kind"], body["metadata"]["namespace"]) + f"{STRICT}&dryRun=All", body)
        except Rejected as refused:
            if NO_DRY_RUN not in refused.message:
                raise

    def replace_status(self, body: Json) -> Json:
        meta = body["metadata"]
        return self._write("PUT", _path(body["kind"], meta["namespace"], meta["name"]) + "/status", body)

    def patch(self, kind: str, namespace: str, name: str, changes: Json) -> Json:
        if _nobodys(kind, name):
            raise Conflict(f"{kind} {name!r} not found: no object may have such a name")
        return self._write("PATCH", f"{_path(kind, namespace, name)}?{urlencode({'fieldManager': self._manager})}", changes)

    def delete(self, kind: str, namespace: str, name: str, uid: str, grace: int | None = None) -> None:
        if _nobodys(kind, name):
            return
        options: Json = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            self._call("DELETE", _path(kind, namespace, name), options)
        except ApiException as error:
            if error.status != NOT_FOUND:
                _raise(error)

    def _write(self, method: str, path: str, body: Json) -> Json:
        try:
            return self._call(method, path, body)
        except ApiException as error:
            _raise(error, method)

    def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        document: Json = _json(self._bytes(method, path, body), f"{method} {path}", decoding.readable)
        return document

    def _bytes(self, method: str, path: str, body: Json | None = None, accept: str = JSON) -> bytes:
        kind = "application/merge-patch+json" if method == "PATCH" else JSON
        headers = {"Accept": accept, "Content-Type": kind, "User-Agent": self._agent}
        self._api.update_params_for_auth(headers, [], ["BearerToken"], "", "", body)
        try:
            url = f"{self._api.configuration.host}/{path}"
            reply = self._api.call_api(method, url, headers, body, _request_timeout=self._timeout)
            data: bytes = reply.data
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"{method} {path}: {error}") from error
        if not 200 <= reply.status < 300:
            raise _unsuccessful(reply.status, data, reply.headers)
        return data


def _json(data: bytes, what: str, read: Callable[[bytes], Any]) -> Any:
    try:
        return read(data)
    except Unreadable as error:
        raise Unavailable(f"{what}: {error}") from error
    except ValueError as error:
        raise Unavailable(f"{what}: the answer is no JSON: {error}") from error


def _nobodys(kind: str, name: str) -> bool:
    return kind != "Namespace" and NO_NAME.fullmatch(name) is not None


def _path(kind: str, namespace: str, name: str = "") -> str:
    group, plural = PATHS[kind]
    if namespace and NO_NAME.fullmatch(namespace):
        raise Rejected("Invalid", f"{namespace!r} is not the name of a namespace")
    where = f"namespaces/{quote(namespace, safe='')}" if namespace else ""
    return "/".join(step for step in (group, where, plural, quote(name, safe="")) if step)


def _raise(error: ApiException, method: str = "") -> NoReturn:
    answer = _answer(error)
    raise failure(method, error.status or 0, {**answer, "message": str(answer.get("message") or error.reason)}, _after(error)) from error


def _unsuccessful(status: int, data: bytes, headers: Mapping[str, str]) -> ApiException:
    error = ApiException(status=status, reason=data.decode(errors="replace"))
    error.headers = headers
    return error


def _after(error: ApiException) -> int:
    """`Retry-After` in seconds. A date, which an API server does not send, counts as nothing."""
    seconds = (error.headers or {}).get("Retry-After", "")
    return int(seconds) if DIGITS.fullmatch(seconds) else 0


def failure(method: str, status: int, answer: Json, after: int = 0) -> ApiError:
    """The error for an answer that is not a success. A failed condition of a patch comes back as a field that cannot be changed."""
    reason, message = str(answer.get("reason") or status), str(answer.get("message") or "")
    if DENIED.search(message):
        return Rejected(reason, message)
    if status == CONFLICT and reason == "AlreadyExists":
        return Exists(message)
    if status in {CONFLICT, NOT_FOUND} or (method == "PATCH" and status == UNPROCESSABLE and _lost_race(answer)):
        return Conflict(message)
    if status in LATER or status >= SERVER_ERROR:
        return Unavailable(message, after)
    return Rejected(reason, message)


def _lost_race(answer: Json) -> bool:
    """Decided by the field that is named, not by the message: a policy may write any message."""
    causes = (answer.get("details") or {}).get("causes") or ()
    return any(cause.get("field") in CONDITIONS for cause in causes)


def _answer(error: ApiException) -> dict[str, Any]:
    try:
        answer = orjson.loads(error.body or error.reason or "")
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}

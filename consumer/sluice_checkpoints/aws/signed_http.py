"""Signed calls to one AWS service over kept connections: botocore for credentials, signing and endpoints, `aws.connections` for the calls.

boto3 walks the shape of every field of every call; where calls are many and small, or replies long, that costs several times all else
(docs/performance.md). What is left out here is that walk, not a rule: credentials are refreshed (beside the calls: `credentials`), certificates and
proxies are botocore's.
"""

from __future__ import annotations

import functools
import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import urllib3
from botocore.auth import SigV4Auth
from botocore.credentials import ReadOnlyCredentials
from botocore.httpsession import ProxyConfiguration, get_cert_path
from botocore.session import Session
from botocore.utils import get_environ_proxies

from sluice_checkpoints.aws.boto_clients import new_session
from sluice_checkpoints.aws.connections import Connections, TimeLimits, connections, host_header
from sluice_checkpoints.aws.credentials import REFUSED_KEY, Credentials, of_process
from sluice_checkpoints.aws.retry import Again

ERROR_HEAD = 1024  # bytes of a refusal in which its code is
LONGEST = 4096  # characters of a message: AWS's have some hundreds


@dataclass(frozen=True, slots=True)
class Service:
    """A service whose calls are POSTs that name their operation in a header.

    Attributes:
        name: as botocore and the signature call it.
        target: the prefix of the operation's name in `X-Amz-Target`.
    """

    name: str
    target: str


class ServiceReply(Protocol):
    """A reply: status, headers (asked for in lower case), and the whole content."""

    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def data(self) -> bytes: ...


class Http(Protocol):
    """What makes the calls: `aws.connections`, or urllib3 behind a proxy."""

    def request(self, method: str, url: str, *, body: bytes, headers: dict[str, str], timeout: float = ...) -> ServiceReply:
        """One call. `timeout`: shorter than usual."""
        ...


class Signer:
    """Headers of a signed request.

    Attributes:
        url: where calls go: the given endpoint, else what botocore finds for the region (its environment and configuration files included).
    """

    def __init__(self, service: Service, session: Session, region: str, endpoint: str | None, credentials: Credentials | None = None) -> None:
        """Without `credentials`, the session's."""
        self._credentials, self._service, self._region = credentials or Credentials(session.get_credentials), service, region
        self.url = (endpoint or service_url(service.name, region, session)).rstrip("/") + "/"
        self._host = host_header(self.url)

    def headers(self, operation: str, content_type: str, body: bytes) -> dict[str, str]:
        """The headers of one call; see `sign`."""
        return self.sign(operation, content_type, body)[0]

    def sign(self, operation: str, content_type: str, body: bytes) -> tuple[dict[str, str], ReadOnlyCredentials]:
        """The headers of one call, and the credentials that it is signed with.

        Raises:
            Again: there are no valid credentials at the moment. Refused: there are none at all.
        """
        held = self._credentials.current()
        asked = {"Content-Type": content_type, "X-Amz-Target": self._service.target + operation}
        return signed(SignableRequest(self.url, self._host, asked, body), held, self._service.name, self._region), held

    def has_others(self, refused: ReadOnlyCredentials) -> bool:
        """Whether there are other credentials than those that the service refused."""
        return self._credentials.refused(refused)


def service_url(service: str, region: str, session: Session | None = None) -> str:
    """The endpoint that botocore knows: the region's, or FIPS's, or what variables and files name.

    It is not to look for credentials now: that takes time, and may fail for a moment.
    """
    client = (session or new_session()).create_client(service, region_name=region, aws_access_key_id="none", aws_secret_access_key="none")  # noqa: S106
    return str(client.meta.endpoint_url)


class SignedHttp:
    """Signed calls to one endpoint over kept connections. Thread safe."""

    def __init__(self, signer: Signer, http: Http) -> None:
        self._signer, self._http = signer, http

    def post(self, operation: str, content_type: str, body: bytes, seconds: float = math.inf) -> ServiceReply:
        """One call, made once; its reply whatever it says. It may take so many seconds, on a connection that there is.

        Raises:
            Again: no reply came, there are no valid credentials at the moment, or others than were refused. Refused: there are none at all.
        """
        headers, key = self._signer.sign(operation, content_type, body)
        try:
            bound = {"timeout": seconds} if math.isfinite(seconds) else {}
            reply = self._http.request("POST", self._signer.url, body=body, headers=headers, **bound)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Again(f"no answer from {self._signer.url}: {error}") from error
        if 400 <= reply.status < 500 and (code := _refused_key(reply)) and self._signer.has_others(key):
            raise Again(f"{code}: the AWS credentials were refused; there are others now, or they are looked for", cause=code)
        return reply


def _refused_key(reply: ServiceReply) -> str | None:
    """The error code of a reply that does not take the key; None for any other. It is looked for as text, for a reply may be JSON or CBOR."""
    kind = (reply.headers.get("x-amzn-errortype") or "").encode()
    return next((code for code in sorted(REFUSED_KEY) if code.encode() in kind or code.encode() in (reply.data or b"")[:ERROR_HEAD]), None)


def refusal(kind: str, content: Mapping[str, Any]) -> tuple[str, str]:
    """Error code without its prefixes, and message, of a failed reply: its header `x-amzn-errortype`, and its content. Either may be empty."""
    code = str(content.get("__type") or kind).split("#")[-1].split(":")[0]
    return one_line(code), one_line(str(content.get("message") or content.get("Message") or ""))


def one_line(message: str) -> str:
    """A service's message, at most `LONGEST` characters of it, as one line: any endpoint may have written it."""
    return "".join(char if char.isprintable() else " " for char in message[:LONGEST])


def connect(service: Service, region: str, endpoint: str | None, waits: TimeLimits, keep: int, shared: Credentials | None = None) -> SignedHttp:
    """Calls to a service with `shared` credentials; without them, with those that botocore finds, which all clients of a process share.

    `keep` connections are kept open; further threads make connections that are closed again.
    """
    session = new_session()
    signer = Signer(service, session, region, endpoint, shared or of_process())
    return SignedHttp(signer, _http(session, signer.url, waits, keep))


def _http(session: Session, url: str, waits: TimeLimits, keep: int) -> Connections | urllib3.ProxyManager:
    """Connections as botocore makes them: its certificates unless others are configured, and the environment's proxy."""
    authorities = session.get_config_variable("ca_bundle") or get_cert_path(verify=True)
    proxies = ProxyConfiguration(get_environ_proxies(url))
    proxy = proxies.proxy_url_for(url)
    if not proxy:
        return connections(url, waits, keep, authorities)
    return urllib3.ProxyManager(
        proxy,
        proxy_headers=proxies.proxy_headers_for(proxy),
        maxsize=keep,
        retries=False,
        timeout=urllib3.Timeout(connect=waits.connect, read=waits.read),
        ca_certs=authorities,
    )


@dataclass(slots=True)
class SignableRequest:
    """What botocore signs: of its `AWSRequest`, what the signature is made of.

    Attributes:
        host: the header; signed here, and sent by the caller.
        headers: to be sent; those of the signature are added to them.
    """

    url: str
    host: str
    headers: dict[str, str]
    body: bytes
    method: str = "POST"
    params: dict[str, str] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)


class Signature(SigV4Auth):  # type: ignore[misc] # botocore has no types
    """Signs a `SignableRequest`, by botocore's signature version 4.

    botocore keeps headers as those of an e-mail, looked up by comparing every name: two thirds of the time that it takes to sign a call.
    """

    def headers_to_sign(self, request: SignableRequest) -> dict[str, str]:
        """All of them: none is of those that proxies change."""
        return {"host": request.host} | {name.lower(): value for name, value in request.headers.items()}

    def canonical_headers(self, headers_to_sign: dict[str, str]) -> str:
        """A line each, in the order of their names; blanks made one."""
        return "\n".join(f"{name}:{' '.join(value.split())}" for name, value in sorted(headers_to_sign.items()))

    def signature(self, string_to_sign: str, request: SignableRequest) -> str:
        """As botocore makes it, with a key that lasts a day."""
        key = _key(self.credentials.secret_key, request.context["timestamp"][:8], self._region_name, self._service_name)
        return hmac.new(key, string_to_sign.encode(), "sha256").hexdigest()


@functools.lru_cache(maxsize=16)
def _key(secret: str, *scope: str) -> bytes:
    """The key of a day, region and service (AWS, "Create a signed AWS API request", step 4)."""
    return functools.reduce(lambda key, name: hmac.digest(key, name.encode(), "sha256"), (*scope, "aws4_request"), f"AWS4{secret}".encode())


def signed(post: SignableRequest, credentials: ReadOnlyCredentials, service: str, region: str) -> dict[str, str]:
    """The headers to be sent."""
    Signature(credentials, service, region).add_auth(post)
    return post.headers

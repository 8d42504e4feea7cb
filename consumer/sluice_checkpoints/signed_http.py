"""Signed calls to one AWS service over pooled connections: botocore for credentials, signing and endpoints, urllib3 for the connections.

boto3 walks the shape of every field of every call; where calls are many and small, or replies long, that costs several times all else
(docs/performance.md). What is left out here is that walk, not a rule: credentials are refreshed, certificates and proxies are botocore's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.httpsession import ProxyConfiguration, get_cert_path
from botocore.session import Session
from botocore.utils import get_environ_proxies

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.retrying import Again


@dataclass(frozen=True, slots=True)
class Service:
    """A service whose calls are POSTs that name their operation in a header.

    Attributes:
        name: as botocore and the signature call it.
        target: what stands before the operation's name in `X-Amz-Target`.
    """

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds to wait for a connection, and for (more of) a reply."""

    connect: float
    read: float


class Signer:
    """Headers of a signed request.

    Attributes:
        url: where calls go: the given endpoint, else what botocore finds for the region (its environment and configuration files included).

    Raises:
        Refused: there are no credentials.
    """

    def __init__(self, service: Service, session: Session, region: str, endpoint: str | None) -> None:
        credentials = session.get_credentials()
        if credentials is None:
            raise Refused("no AWS credentials were found; give the pod's service account a role, or set AWS_ACCESS_KEY_ID")
        self._credentials, self._service, self._region = credentials, service, region
        self.url = (endpoint or session.create_client(service.name, region_name=region).meta.endpoint_url).rstrip("/") + "/"

    def headers(self, operation: str, content_type: str, body: bytes) -> dict[str, str]:
        """The headers of one call. Credentials are refreshed here when they are about to expire."""
        request = AWSRequest("POST", self.url, {"Content-Type": content_type, "X-Amz-Target": self._service.target + operation}, body)
        SigV4Auth(self._credentials.get_frozen_credentials(), self._service.name, self._region).add_auth(request)
        return dict(request.headers.items())


class SignedHttp:
    """Signed calls to one endpoint over pooled connections. Thread safe."""

    def __init__(self, signer: Signer, pool: urllib3.PoolManager) -> None:
        self._signer, self._pool = signer, pool

    def post(self, operation: str, content_type: str, body: bytes) -> urllib3.BaseHTTPResponse:
        """One call, made once; its reply whatever it says.

        Raises:
            Again: no reply came.
        """
        headers = self._signer.headers(operation, content_type, body)
        try:
            return self._pool.request("POST", self._signer.url, body=body, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise Again(f"no answer from {self._signer.url}: {error}") from error


def refusal(kind: str, content: Mapping[str, Any]) -> tuple[str, str]:
    """Error code without its prefixes, and message, of a failed reply: its header `x-amzn-errortype`, and its content. Either may be empty."""
    code = str(content.get("__type") or kind).split("#")[-1].split(":")[0]
    return code, str(content.get("message") or content.get("Message") or "")


def connect(service: Service, region: str, endpoint: str | None, waits: Waits, connections: int) -> SignedHttp:
    """Calls to a service with the credentials that botocore finds.

    `connections` of them are kept open; further threads make connections that are closed again.

    Raises:
        Refused: there are no credentials.
    """
    session = Session()
    signer = Signer(service, session, region, endpoint)
    return SignedHttp(signer, _pool(session, signer.url, waits, connections))


def _pool(session: Session, url: str, waits: Waits, connections: int) -> urllib3.PoolManager:
    """Connections as botocore makes them: its certificates unless others are configured, and the environment's proxy."""
    options: dict[str, Any] = {
        "maxsize": connections,
        "retries": False,
        "timeout": urllib3.Timeout(connect=waits.connect, read=waits.read),
        "ca_certs": session.get_config_variable("ca_bundle") or get_cert_path(verify=True),
    }
    proxies = ProxyConfiguration(get_environ_proxies(url))
    proxy = proxies.proxy_url_for(url)
    return urllib3.ProxyManager(proxy, proxy_headers=proxies.proxy_headers_for(proxy), **options) if proxy else urllib3.PoolManager(**options)

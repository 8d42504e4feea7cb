"""Signs a POST whose headers are a dict, by botocore's signature version 4.

botocore keeps headers as those of an e-mail, looked up by comparing every name: two thirds of the time that it takes to sign a call
(docs/performance.md).
"""

from __future__ import annotations

import functools
import hmac
from dataclasses import dataclass, field
from typing import Any

from botocore.auth import SigV4Auth
from botocore.credentials import ReadOnlyCredentials


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
    """Signs a `SignableRequest`."""

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
    return functools.reduce(lambda key, part: hmac.digest(key, part.encode(), "sha256"), (*scope, "aws4_request"), f"AWS4{secret}".encode())


def signed(post: SignableRequest, credentials: ReadOnlyCredentials, service: str, region: str) -> dict[str, str]:
    """The headers to be sent."""
    Signature(credentials, service, region).add_auth(post)
    return post.headers

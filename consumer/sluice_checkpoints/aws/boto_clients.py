"""boto3 clients that are kept: if a service refuses their key, and its source has another one by now, the call is made again with that.

botocore reads a file of credentials, or asks a `credential_process` that names no end, once for each session. Everything else renews itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
from botocore import credentials as boto
from botocore.config import Config
from botocore.session import Session

from sluice_checkpoints.aws.credentials import REFUSED_KEY, Looks

SIGNED_WITH = "sluice_credentials"  # in the context of a request


class RereadCredentials(boto.Credentials):  # type: ignore[misc]  # botocore has no types
    """Credentials that may be replaced by others of the same source."""

    def __init__(self, source: boto.Credentials, load: Callable[[], boto.Credentials | None]) -> None:
        # not the parent's: its keys are those of the source
        self._source, self._load, self._looks = source, load, Looks()
        self.method, self.account_id = source.method, getattr(source, "account_id", None)

    def get_frozen_credentials(self) -> boto.ReadOnlyCredentials:
        """What a call is signed with."""
        return self._source.get_frozen_credentials()

    @property
    def access_key(self) -> str:
        """See `botocore.credentials.Credentials`."""
        return str(self.get_frozen_credentials().access_key)

    @property
    def secret_key(self) -> str:
        """See `botocore.credentials.Credentials`."""
        return str(self.get_frozen_credentials().secret_key)

    @property
    def token(self) -> str | None:
        """See `botocore.credentials.Credentials`."""
        token = self.get_frozen_credentials().token
        return None if token is None else str(token)

    def has_others(self, refused: boto.ReadOnlyCredentials) -> bool:
        """Whether there are others than those that a service refused; those are used from here on."""
        if self.get_frozen_credentials() == refused and (found := self._looks.other(refused, self._load)):
            self._source = found.source
        return bool(self.get_frozen_credentials() != refused)


class _Provider(boto.CredentialProvider):  # type: ignore[misc]  # botocore has no types
    METHOD = "sluice"

    def __init__(self, loaded: boto.Credentials | None) -> None:
        super().__init__()
        self._loaded = loaded

    def load(self) -> boto.Credentials | None:
        """See `botocore.credentials.CredentialProvider`."""
        return self._loaded


def kept_client(service: str, region: str | None, endpoint: str | None, config: Config | None = None) -> Any:
    """A boto3 client in a session of its own: the default session is not thread-safe while clients are made."""
    found = Session().get_credentials()
    session, held = Session(), found and RereadCredentials(found, lambda: Session().get_credentials())
    session.register_component("credential_provider", boto.CredentialResolver([_Provider(held)]))
    client = boto3.session.Session(botocore_session=session).client(service, region_name=region, endpoint_url=endpoint, config=config)
    if held is not None:
        client.meta.events.register("before-sign", lambda request, **_: request.context.update({SIGNED_WITH: held.get_frozen_credentials()}))
        client.meta.events.register("needs-retry", lambda response, request_dict, **_: _at_once(held, response, request_dict))
    return client


def _at_once(held: RereadCredentials, response: Any, request: Any) -> int | None:
    """A retry without a pause, if the key was refused and there is another; None: botocore's own rules count."""
    code = response[1].get("Error", {}).get("Code") if response else None
    return 0 if code in REFUSED_KEY and held.has_others(request["context"][SIGNED_WITH]) else None

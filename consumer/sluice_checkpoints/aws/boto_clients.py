"""botocore clients that are kept, and what an error of their calls means.

Their calls are signed with shared credentials, as all others are. None of them loads or renews credentials: botocore would do that in the thread of a
call, for as long as a file or a `credential_process` takes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from botocore import credentials as boto
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.loaders import Loader
from botocore.session import Session

from sluice_checkpoints.aws.credentials import REFUSED_KEY, Credentials, of_process, unavailable
from sluice_checkpoints.aws.retry import EXPIRED, EXPIRED_ADVICE, Again, may_pass

SIGNED_WITH, SIGNED_AGAIN = "sluice_credentials", "sluice_signed_again"  # in the context of a request
T = TypeVar("T")


@functools.cache
def _models() -> Loader:
    """What botocore knows of services, 9 MB: read once in a process, which may have many clients, and never changed."""
    loader: Loader = Session().get_component("data_loader")
    return loader


def new_session() -> Session:
    """A session of its own: one that is shared is not thread-safe while clients are made."""
    made = Session()
    made.register_component("data_loader", _models())
    return made


class SharedCredentials(boto.Credentials):  # type: ignore[misc]  # botocore has no types
    """What botocore signs with: the shared credentials at that moment. Everything here raises as `Credentials.current` does."""

    method = "sluice"

    def __init__(self, shared: Credentials) -> None:
        # not the parent's: its keys are those of the process
        self._shared = shared

    def get_frozen_credentials(self) -> boto.ReadOnlyCredentials:
        """What a call is signed with."""
        return self._shared.current()

    @property
    def access_key(self) -> str:
        return str(self.get_frozen_credentials().access_key)

    @property
    def secret_key(self) -> str:
        return str(self.get_frozen_credentials().secret_key)

    @property
    def token(self) -> str | None:
        token = self.get_frozen_credentials().token
        return None if token is None else str(token)

    @property
    def account_id(self) -> str | None:
        return getattr(self.get_frozen_credentials(), "account_id", None)


class _Provider(boto.CredentialProvider):  # type: ignore[misc]  # botocore has no types
    METHOD = "sluice"

    def __init__(self, shared: Credentials) -> None:
        super().__init__()
        self._shared = shared

    def load(self) -> boto.Credentials:
        return SharedCredentials(self._shared)


def kept_client(service: str, region: str | None, endpoint: str | None, config: Config | None = None, shared: Credentials | None = None) -> Any:
    """A client of botocore in a session of its own: one session is not thread-safe while clients are made.

    Without `shared` credentials, the process' own sign its calls.

    Its calls raise `Again` where there are no valid credentials now, or a service refused them and others are looked for; `Refused` where there are
    none at all.
    """
    session, shared = new_session(), shared or of_process()
    session.register_component("credential_provider", boto.CredentialResolver([_Provider(shared)]))
    client = session.create_client(service, region_name=region, endpoint_url=endpoint, config=config)
    client.meta.events.register("before-sign", lambda request, **_: request.context.update({SIGNED_WITH: shared.current()}))
    client.meta.events.register("needs-retry", lambda response, request_dict, **_: _at_once(shared, response, request_dict["context"]))
    return client


def _at_once(shared: Credentials, response: Any, context: dict[str, Any]) -> int | None:
    """A retry without a pause, if the key was refused and there is another; None: botocore's own rules count."""
    code = response[1].get("Error", {}).get("Code") if response else None
    if code not in REFUSED_KEY or not shared.refused(context[SIGNED_WITH]):
        return None
    if context.get(SIGNED_AGAIN) or shared.current() == context[SIGNED_WITH]:
        raise Again(f"{code}: the AWS credentials were refused; there are others now, or they are looked for", cause=code)
    context[SIGNED_AGAIN] = True  # botocore does not count these retries
    return 0


def attempted(call: Callable[[], T], named: Callable[[ClientError], Exception], refused: Callable[[BotoCoreError], Exception]) -> T:
    """The result of one attempt at a call.

    Args:
        call: makes it.
        named: the error that the service's answer amounts to.
        refused: the same where no call could be made: no credentials, no region, a bad endpoint.

    Raises:
        Again: it may succeed if it is made again. Else what `named` or `refused` give.
    """
    try:
        return call()
    except ClientError as error:
        raise unavailable(error) or named(error) from error
    except (BotoConnectionError, HTTPClientError) as error:
        raise Again(str(error)) from error
    except BotoCoreError as error:
        raise unavailable(error) or refused(error) from error


def passing(error: ClientError) -> Again | None:
    """`Again` for an answer that may pass (`retry.may_pass`); None for any other one."""
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    if may_pass(error.response["ResponseMetadata"].get("HTTPStatusCode", 0), code, message):
        return Again(f"{code}: {message}" + (f"; {EXPIRED_ADVICE}" if code in EXPIRED else ""), cause=code)
    return None

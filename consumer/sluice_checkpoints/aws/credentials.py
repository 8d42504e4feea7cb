"""AWS credentials that are renewed in a thread of their own: a call never waits for new ones while those at hand are valid.

botocore renews them in whatever thread asks, and waits for as long as the provider takes. A heartbeat cannot wait for that.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from botocore import credentials as boto
from botocore.exceptions import ClientError, CredentialRetrievalError

from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.errors import Refused

log = logging.getLogger(__name__)
PAUSE, SHORT_PAUSE = 10.0, 0.5  # seconds from one attempt to the next, while there are valid credentials and while there are none
PATIENCE = 1.0  # seconds that a call without valid credentials waits for an attempt
CAUSE = "Credentials"  # for metrics
MISSING = "no AWS credentials were found; give the pod's service account a role, or set AWS_ACCESS_KEY_ID"

Load = Callable[[], boto.Credentials | None]


def unavailable(error: BaseException) -> Again | None:
    """`Again` for an error of a boto3 call that says that its credentials could not be renewed; None for any other error.

    boto3 renews credentials inside the call. Its errors then are those of the provider: of STS, of the container's or the machine's agent.
    """
    of_sts = isinstance(error, ClientError) and error.operation_name.startswith("AssumeRole")
    if of_sts or isinstance(error, CredentialRetrievalError):
        return Again(f"the AWS credentials could not be renewed: {error}", cause=CAUSE)
    return None


@dataclass(frozen=True, slots=True)
class _Held:
    """What the last attempt got."""

    source: boto.Credentials
    frozen: boto.ReadOnlyCredentials

    @property
    def valid(self) -> bool:
        return not self._expires_within(0)

    @property
    def due(self) -> bool:
        """Whether a quarter of an hour is left, or less: then botocore renews them."""
        return self._expires_within(None)

    def _expires_within(self, seconds: int | None) -> bool:
        return isinstance(self.source, boto.RefreshableCredentials) and bool(self.source.refresh_needed(seconds))


class Credentials:
    """The credentials of one process, from wherever botocore finds them. Thread safe."""

    def __init__(self, load: Load, clock: Callable[[], float] = time.monotonic) -> None:
        """`load` finds botocore's credentials, or None; it may take as long as it likes."""
        self._load, self._clock = load, clock
        self._held: _Held | None = None
        self._why: Exception | None = None
        self._attempt: threading.Thread | None = None
        self._tried = float("-inf")
        self._lock = threading.Lock()

    def current(self) -> boto.ReadOnlyCredentials:
        """Credentials that are valid now.

        Raises:
            Again: there are none at the moment, and the message says why.
            Refused: there are none at all.
        """
        held = self._held
        if held is not None and not held.due:
            return held.frozen
        if held is not None and held.valid:
            self._renewing(PAUSE)
            return held.frozen
        attempt = self._renewing(SHORT_PAUSE)
        if attempt is not None:
            attempt.join(PATIENCE)
        held = self._held
        if held is not None and held.valid:
            return held.frozen
        if isinstance(self._why, Refused):
            raise self._why
        raise Again(f"there are no valid AWS credentials: {self._why or 'their provider has not answered yet'}", cause=CAUSE)

    def _renewing(self, pause: float) -> threading.Thread | None:
        """The attempt that is under way; a new one, if none is and the last began longer than `pause` seconds ago."""
        with self._lock:
            if self._attempt is not None and self._attempt.is_alive():
                return self._attempt
            if self._clock() - self._tried < pause:
                return None
            self._tried = self._clock()
            self._attempt = threading.Thread(target=self._renew, name="credentials", daemon=True)
            self._attempt.start()
            return self._attempt

    def _renew(self) -> None:
        """One attempt. Its error is raised by the calls that have no valid credentials."""
        try:
            source = self._held.source if self._held else self._loaded()
            self._held, self._why = _Held(source, source.get_frozen_credentials()), None
        except Exception as error:  # noqa: BLE001 - providers raise what they like
            self._why = error
            log.warning("the AWS credentials could not be renewed: %s", error)

    def _loaded(self) -> boto.Credentials:
        source = self._load()
        if source is None:
            raise Refused(MISSING)
        return source

"""AWS credentials that are renewed in a thread of their own: a call never waits for new ones while those at hand are valid.

botocore renews them in whatever thread asks, and waits for as long as the provider takes. A heartbeat cannot wait for that. Of each renewal that
fails botocore logs a traceback, even where it keeps the error to itself. Here it is one line.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import cast

from botocore import credentials as boto
from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    InfiniteLoopConfigError,
    InvalidConfigError,
    PartialCredentialsError,
    ProfileNotFound,
    UnknownCredentialError,
)
from botocore.session import Session

from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.errors import Refused

log = logging.getLogger(__name__)
PAUSE, SHORT_PAUSE = 10.0, 0.5  # seconds from one attempt to the next, while there are valid credentials and while there are none
PATIENCE = 1.0  # seconds that a call without valid credentials waits for an attempt
CAUSE = "Credentials"  # for metrics
MISSING = "no AWS credentials were found. On your machine, run `aws configure` or set AWS_PROFILE; in a pod, give its service account a role"

Load = Callable[[], boto.Credentials | None]
# What services say of a key that they do not take, or no longer. Its source may have another one.
REFUSED_KEY = frozenset({
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "InvalidToken",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
})  # fmt: skip
# What you have to correct before there can be credentials.
MISTAKES = (InfiniteLoopConfigError, InvalidConfigError, PartialCredentialsError, ProfileNotFound, UnknownCredentialError)
RELOAD_SHARE = 10  # a reload that takes a second is followed by ten seconds without one
BOTOCORE = logging.getLogger("botocore.credentials")
FAILURES: ContextVar[list[BaseException] | None] = ContextVar("FAILURES", default=None)


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


class Reloads:
    """Looks at a source again after its key was refused: at most twice a second, and less often where a look takes long. Thread safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._next, self._lock = clock, float("-inf"), threading.Lock()

    def other_than(self, refused: boto.ReadOnlyCredentials, load: Load) -> _Held | None:
        """Other credentials than those that were refused; None: there are none, or it is too soon for a look."""
        with self._lock:
            begun = self._clock()
            if begun < self._next:
                return None
            try:
                with failures():
                    source = load()
                    held = _Held(source, source.get_frozen_credentials()) if source else None
            except Exception as error:  # noqa: BLE001 - providers raise what they like
                log.warning("the AWS credentials were refused, and their source has no others now: %s", error)
                held = None
            now = self._clock()
            self._next = now + min(PAUSE, max(SHORT_PAUSE, RELOAD_SHARE * (now - begun)))
            return held if held and held.frozen != refused else None


class Credentials:
    """Credentials from wherever botocore finds them, or of a role's sessions (`role_sessions`). Thread safe."""

    def __init__(self, load: Load, clock: Callable[[], float] = time.monotonic, named: str = "AWS credentials") -> None:
        """`load` finds botocore's credentials, or None; it may take as long as it likes. `named` is what messages call them."""
        self._load, self._clock, self._named = load, clock, named
        self._held: _Held | None = None
        self._why: Exception | None = None
        self._attempt: threading.Thread | None = None
        self._tried = float("-inf")
        self._lock = threading.Lock()
        self._reloads, self._reloading = Reloads(clock), cast("threading.Thread | None", None)

    def current(self) -> boto.ReadOnlyCredentials:
        """Credentials that are valid now.

        Raises:
            Again: there are none at the moment, and the message says why.
            Refused: there are none at all, or what names them is wrong.
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
        raise Again(f"there are no valid {self._named}: {self._why or 'their provider has not answered yet'}", cause=CAUSE)

    def begun(self, seconds: float) -> None:
        """Waits so long at most until there are some: for a start, which has more time than a call."""
        held = self._held
        if (held is None or not held.valid) and (attempt := self._renewing(SHORT_PAUSE)):
            attempt.join(seconds)

    def refused(self, key: boto.ReadOnlyCredentials) -> bool:
        """Says that a service did not take these credentials. Whether a call may be made again: there are others now, or they are still looked for.

        The source is also looked at again beside the calls: a file that was written since, a process that names no end, a role.
        """
        with self._lock:
            attempt = self._reloading if self._reloading and self._reloading.is_alive() else None
            if attempt is None:
                attempt = self._reloading = threading.Thread(target=self._reload, args=(key,), name="credentials", daemon=True)
                attempt.start()
        attempt.join(PATIENCE)
        held = self._held
        return attempt.is_alive() or (held is not None and held.frozen != key)

    def _reload(self, refused: boto.ReadOnlyCredentials) -> None:
        held = self._held
        if held is not None and held.frozen == refused and (newer := self._reloads.other_than(refused, self._load)):
            self._held = newer

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
        """One attempt. Its error is raised by the calls that have no valid credentials, and is one line of the log."""
        with failures() as failed:
            try:
                self._held, self._why = self._renewed(), None
            except Exception as error:  # noqa: BLE001 - providers raise what they like
                self._why = error
                failed[:] = [error] if self._held or not isinstance(error, Refused) else []  # else the call says it
        if failed:
            log.warning("the %s could not be renewed: %s", self._named, failed[-1])

    def _renewed(self) -> _Held:
        """From the source at hand; from a new one, if STS does not take the key that the former assumes its role with."""
        source = self._held.source if self._held else self._loaded()
        try:
            return _Held(source, source.get_frozen_credentials())
        except ClientError as error:
            if error.response["Error"].get("Code") not in REFUSED_KEY:
                raise
            source = self._loaded()
            return _Held(source, source.get_frozen_credentials())

    def _loaded(self) -> boto.Credentials:
        try:
            source = self._load()
        except MISTAKES as error:
            if self._held:
                raise  # a file that is being written is a mistake for a moment
            raise Refused(f"AWS credentials: {error}; correct the profile or the variables that name them") from error
        if source is None:
            raise Refused(MISSING)
        return source


def of_process() -> Credentials:
    """The credentials that all clients of a process share: a lease's first heartbeat has those that took it, and one look serves all.

    They are others where the environment's variables are others.
    """
    return _of_environment(frozenset((name, value) for name, value in os.environ.items() if name.startswith("AWS_") or name == "HOME"))


@functools.lru_cache(maxsize=16)
def _of_environment(_variables: frozenset[tuple[str, str]]) -> Credentials:
    return Credentials(lambda: Session().get_credentials())


@contextlib.contextmanager
def failures() -> Iterator[list[BaseException]]:
    """Errors of the renewals in this thread, the last one last. botocore's own lines about them are left out, except at log level DEBUG.

    A renewal that fails more than ten minutes before the end of the present credentials raises nothing: its error is only here.
    """
    errors: list[BaseException] = []
    BOTOCORE.addFilter(_kept)  # once: a logger has no filter twice
    token = FAILURES.set(errors)
    try:
        yield errors
    finally:
        FAILURES.reset(token)


def _kept(record: logging.LogRecord) -> bool:
    errors, error = FAILURES.get(), record.exc_info[1] if record.exc_info else None
    if errors is None or error is None:
        return True
    errors.append(error)
    return log.isEnabledFor(logging.DEBUG)

"""AWS credentials that are refreshed beside the calls that they sign.

botocore refreshes in whatever call finds that they expire within 15 minutes, and waits up to a minute for the answer; within the last 10 it raises
though they are still valid. A heartbeat has a few seconds. Here a call waits for a refresh only if it has nothing valid to sign with.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from botocore.credentials import RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError

from sluice_checkpoints.retrying import Again

log = logging.getLogger(__name__)
PAUSE_SECONDS = 5.0  # between two refreshes that failed
# A RuntimeError says that the credentials are expired after a refresh, too.
FAILURES = (BotoCoreError, ClientError, RuntimeError)


class KeptCredentials:
    """The credentials of one process for one service. Thread safe."""

    def __init__(self, credentials: Any, clock: Callable[[], float] = time.monotonic) -> None:
        """`credentials` are botocore's, of any kind; `clock` is monotonic, in seconds."""
        self._credentials, self._clock = credentials, clock
        self._lock = threading.Lock()
        self._kept: Any = None
        self._looked = float("-inf")

    def current(self) -> Any:
        """Frozen credentials to sign with.

        Raises:
            Again: there are none that are valid, and a refresh failed.
        """
        if not isinstance(self._credentials, RefreshableCredentials):
            return self._credentials.get_frozen_credentials()
        if self._kept is None or self._credentials.refresh_needed(refresh_in=0):
            return self._fetch()
        if self._credentials.refresh_needed():
            self._refresh_beside()
        return self._kept

    def _fetch(self) -> Any:
        try:
            self._kept = self._credentials.get_frozen_credentials()
        except FAILURES as error:
            raise Again(f"AWS credentials could not be had: {error}", cause="Credentials") from error
        return self._kept

    def _refresh_beside(self) -> None:
        """One refresh at a time, in a thread of its own; what was valid stays in use until it has ended."""
        if self._clock() - self._looked < PAUSE_SECONDS or not self._lock.acquire(blocking=False):
            return
        threading.Thread(target=self._refresh, name="credentials", daemon=True).start()

    def _refresh(self) -> None:
        try:
            self._fetch()
        except Again as again:
            log.warning("%s; those in use are valid for a while", again)
        finally:
            self._looked = self._clock()
            self._lock.release()

"""Several writers in one table: what another one's commit refused is tried again, for some time. Pure."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sluice_checkpoints.errors import SluiceError
from sluice_checkpoints.names import counted
from sluice_consumer.sinks.verdicts import SinkUnavailable

LIMIT_SECONDS = 120.0
FIRST_SECONDS, LONGEST_SECONDS = 0.1, 5.0


class CommitConflict(SluiceError):
    """Another writer was faster, or the reply to a commit was lost: look again."""


@dataclass
class Retries:
    """Pauses with full jitter between tries, until a limit. One for each batch.

    Attributes:
        limit: seconds from the first conflict on.
        sleep: takes seconds.
        clock: monotonic, in seconds.
    """

    limit: float = LIMIT_SECONDS
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _tries: int = field(default=0, init=False)
    _end: float = field(default=0.0, init=False)

    def pause(self, error: CommitConflict) -> None:
        """Waits before the next try.

        Raises:
            SinkUnavailable: the limit is over.
        """
        now = self.clock()
        self._tries += 1
        self._end = self._end or now + self.limit
        if now >= self._end:
            raise SinkUnavailable(
                f"{error}; other writers were faster {counted(self._tries, 'time')} in {self.limit:g} s. "
                "Nothing of the batch counts, and it comes again"
            ) from error
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(self._tries - 1, 10))
        self.sleep(random.uniform(0, longest))  # noqa: S311 - no secret

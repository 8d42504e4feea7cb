"""One retry loop with full jitter and a deadline, for calls whose failures say "try again".

Clock, sleep and dice are arguments, so that tests and simulations run in virtual time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sluice_checkpoints.errors import ServiceUnavailable

T = TypeVar("T")


class Again(Exception):
    """Raised inside a call: it may succeed if it is made again. `wait` is the least number of seconds to wait, if the service said so."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True)
class Patience:
    """How long and how often to try.

    Attributes:
        limit: seconds from the first try after which no further one starts.
        first, cap: the n-th pause is drawn from [0, min(cap, first * 2^n)] seconds (full jitter, AWS Architecture Blog).
    """

    limit: float = 60.0
    first: float = 0.05
    cap: float = 5.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    dice: Callable[[], float] = random.random

    def call(self, what: str, attempt: Callable[[], T]) -> T:
        """Calls `attempt` until it does not raise `Again`.

        Raises:
            ServiceUnavailable: it still did at the limit; `what` names the call in the message.
        """
        start, tries = self.clock(), 0
        while True:
            try:
                return attempt()
            except Again as again:
                pause = max(again.wait, self.dice() * min(self.cap, self.first * 2**tries))
                tries += 1
                if self.clock() + pause - start > self.limit:
                    raise ServiceUnavailable(f"{what}: no success in {tries} tries over {self.limit:g} s: {again}") from again
                self.sleep(pause)

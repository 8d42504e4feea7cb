"""Shares one DescribeStreamSummary among all callers at the same time: an account has 20 a second, a large stream thousands of shards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from sluice_checkpoints.stream.model import ShardList, StreamCatalog, StreamIdentity

INTERVAL = 1.0  # seconds from one question of this process to the next


class SharedCatalog:
    """A `StreamCatalog` whose `describe` is answered together. Thread safe.

    A caller gets an answer to a question asked after its call. So a caller that has read something learns which stream it was of.
    """

    def __init__(self, catalog: StreamCatalog, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> None:
        self._catalog, self._clock, self._sleep = catalog, clock, sleep
        self._next: Future[StreamIdentity] | None = None  # the answer that callers wait for; it has not been asked for yet
        self._asked = float("-inf")
        self._lock, self._asking = threading.Lock(), threading.Lock()  # the second: one question at a time

    def list_shards(self) -> ShardList:
        return self._catalog.list_shards()

    def describe(self) -> StreamIdentity:
        """See `StreamCatalog.describe`.

        The first caller that waits asks for all of them. A caller that comes after the question waits for the next one.
        """
        with self._lock:
            answer, first = self._next or Future[StreamIdentity](), self._next is None
            self._next = answer
        if first:
            self._ask(answer)
        return answer.result()

    def _ask(self, answer: Future[StreamIdentity]) -> None:
        with self._asking:
            wait = self._asked + INTERVAL - self._clock()
            if wait > 0:
                self._sleep(wait)
            with self._lock:
                self._next, self._asked = None, self._clock()
            try:
                answer.set_result(self._catalog.describe())
            except BaseException as error:  # noqa: BLE001 - it is all callers'
                answer.set_exception(error)

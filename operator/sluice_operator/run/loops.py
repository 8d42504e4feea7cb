"""One loop per resource: reconcile, then sleep until an event wakes it or the next reconcile is due. Only the leader runs loops.

Loops run on kopf's event loop, reconciles on worker threads, because they block. A reconcile that fails is repeated after a growing pause, not before
the API server wants it (`Retry-After`), and its loop continues.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.cluster.port import CONSUMER_KIND, ApiError, Unavailable
from sluice_operator.plan.running import STALE
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.refusals import report_failing
from sluice_operator.run.schedule import ReconcileResult
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.telemetry.metrics import OperatorMetrics

if TYPE_CHECKING:
    from sluice_operator.observe.cache import ResourceKey

LOG = logging.getLogger("sluice")
THREADS = 16  # reconciles at the same time; each waits for a few calls to the API server
LONGEST_PAUSE = 60.0
DOUBLINGS = 6  # failures in a row after which the pause is the longest; a number without bound has no float
CONFLICTS = 3  # in a row: others write between two looks now and then, not each time
TOLD_AFTER = 6  # failed reconciles in a row: about a minute
LAST_RECONCILE = 8.0  # seconds to wait for running reconciles when the process ends
STUCK_AFTER = 120.0  # seconds a reconcile may take: its calls have timeouts of their own


class FailedReconcile(NamedTuple):
    """Why a reconcile failed, and for how many seconds the API server wants to be left alone."""

    why: str
    after: int = 0


class Loops:
    """The loops of all resources."""

    def __init__(self, context: ReconcileContext, metrics: OperatorMetrics | None = None, *, leading: bool = True, listed: bool = True) -> None:
        self._context, self._leading, self._listed = context, leading, listed
        self._metrics = metrics or OperatorMetrics()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="reconcile")
        self._large = ThreadPoolExecutor(1, thread_name_prefix="large")  # calls about large resources, one at a time: the Lease has to get through
        self._bells: dict[ResourceKey, asyncio.Event] = {}
        self._tasks: dict[ResourceKey, asyncio.Task[None]] = {}
        self._reconciles: dict[ResourceKey, float] = {}
        self._figures: dict[ResourceKey, datetime] = {}
        self._alive: set[ResourceKey] = set()

    def listed(self, *, pools: bool = True) -> None:
        """Every KinesisConsumer has been seen once: a pool knows its members.

        Args:
            pools: so has every KinesisConsumerPool.
        """
        self._listed, self._context.pools_listed = True, pools
        self._begin()

    def lead(self) -> None:
        """Start to reconcile as soon as all are listed: every resource in the cache, and each that a watch shows later."""
        self._leading = True
        self._begin()

    def _begin(self) -> None:
        for key in self._context.cache.known():
            self.wake(key)

    def wake(self, key: ResourceKey, *, matters: bool = True) -> None:
        """An event about this resource: reconcile it. An event that does not matter waits until figures are due."""
        if not (self._leading and self._listed):
            return
        if not matters and (due := self._figures.get(key)) and datetime.now(UTC) < due:
            self._alive.add(key)
            return
        self._bells.setdefault(key, asyncio.Event()).set()
        if key not in self._tasks:
            self._tasks[key] = asyncio.get_running_loop().create_task(self._unending(key), name="/".join(key))

    def stuck(self) -> list[ResourceKey]:
        """Resources whose reconcile has run for more than 2 min; waiting for a thread does not count. The liveness probe fails while there is one."""
        before = time.monotonic() - STUCK_AFTER
        return [key for key, since in self._reconciles.copy().items() if since < before]  # threads write it

    async def stop(self) -> bool:
        """End all loops. Whether no reconcile runs any more; the next operator repeats one that does."""
        self._leading = False
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        pools = (self._threads, self._large)
        ended = [asyncio.create_task(asyncio.to_thread(pool.shutdown, cancel_futures=True)) for pool in pools]
        _, running = await asyncio.wait(ended, timeout=LAST_RECONCILE)
        return not running

    async def _unending(self, key: ResourceKey) -> None:
        """The loop until the resource is gone. Whatever else ends it is logged, and it begins again."""
        try:
            while True:
                try:
                    return await self._loop(key)
                except Exception:
                    LOG.exception("%s/%s: its loop failed, and begins again", *key)
                await asyncio.sleep(LONGEST_PAUSE)
        finally:
            self._tasks.pop(key, None)
            self._bells.pop(key, None)
            self._figures.pop(key, None)
            self._alive.discard(key)

    async def _loop(self, key: ResourceKey) -> None:
        failures, force_refresh = 0, False
        while True:
            self._bells[key].clear()
            self._alive.discard(key)
            outcome = await self._reconcile(key, force_refresh=force_refresh)
            conflict = outcome.conflict if isinstance(outcome, ReconcileResult) else None
            if conflict and failures >= CONFLICTS:
                outcome = FailedReconcile(conflict)
            if isinstance(outcome, FailedReconcile):
                failures += 1
                await self._failed(key, outcome, failures)
            elif outcome.wake is None:
                if not self._bells[key].is_set():
                    return
            else:
                failures = failures + 1 if conflict else 0
                if not conflict:
                    self._succeeded(key)
                self._figures[key] = outcome.figures or outcome.wake
                force_refresh = await self._sleep(key, outcome.wake, outcome.latest) and not outcome.acted

    async def _failed(self, key: ResourceKey, outcome: FailedReconcile, failures: int) -> None:
        """Say so after a minute, and again when the cause changes; then pause. While `failing` names the cause, every status says it."""
        failing = self._context.failing
        if failures >= TOLD_AFTER and failing.get(key) != outcome.why:
            failing[key] = outcome.why
            await asyncio.get_running_loop().run_in_executor(self._threads, report_failing, self._context, key, outcome.why, datetime.now(UTC))
        await asyncio.sleep(min(max(2.0 ** min(failures, DOUBLINGS), outcome.after), LONGEST_PAUSE))

    def _succeeded(self, key: ResourceKey) -> None:
        """The status that this reconcile wrote may say still that reconciles fail: the next one, at once, does not."""
        if self._context.failing.pop(key, None) is not None:
            self._bells[key].set()

    async def _reconcile(self, key: ResourceKey, *, force_refresh: bool) -> ReconcileResult | FailedReconcile:
        asked = time.monotonic()
        self._metrics.queue.inc()
        threads = self._large if self._context.cache.is_cut(key) else self._threads
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, partial(self._timed, asked, key, force_refresh=force_refresh))
        except ApiError as error:
            LOG.warning("%s/%s: %s", *key, error)
            return FailedReconcile(str(error), error.after if isinstance(error, Unavailable) else 0)
        except Exception as error:
            LOG.exception("%s/%s: a reconcile failed", *key)
            return FailedReconcile(repr(error))

    def _timed(self, asked: float, key: ResourceKey, *, force_refresh: bool) -> ReconcileResult:
        self._reconciles[key] = began = time.monotonic()
        result = "failed"
        self._metrics.queue.dec()
        self._metrics.waits.observe(began - asked)
        try:
            outcome = reconcile(self._context, key, datetime.now(UTC).replace(microsecond=0), force_refresh=force_refresh)
            result = "ok"
        finally:
            self._reconciles.pop(key, None)
            self._metrics.passes.labels(result).observe(time.monotonic() - began)
        if outcome.wake is None and self._context.kind == CONSUMER_KIND:  # a pool may have the name of a consumer, whose figures stay
            self._metrics.forget(key)
        return outcome

    async def _sleep(self, key: ResourceKey, wake: datetime, latest: datetime | None) -> bool:
        while True:
            pause = max((wake - datetime.now(UTC)).total_seconds(), 0.0)
            try:
                async with asyncio.timeout(pause):
                    await self._bells[key].wait()
            except TimeoutError:
                reported = self._context.last_report_at(key)
                if latest is None or reported is None or min(reported + STALE, latest) <= wake:
                    return key not in self._alive
                wake = min(reported + STALE, latest)
            else:
                return False

"""Probes shards that brought nothing, without reading them: which of them are idle (docs/protocol.md, "Idle shards").

The batch loop asks before each batch, and Spark, without a trigger, every 10 ms. A shard that had a record in the last five minutes is probed as
often as it gives calls, others once a second. With `stream.probeShare`, each is probed as often as that allows. All together have `MOST_PROBES` a
second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.kinesis.client import IteratorExpired, KinesisClient, Page, ShardNotFound
from sluice_consumer.kinesis.pacing import CALLS_PER_SECOND, Bucket

log = logging.getLogger(__name__)
FOLLOWED = 5  # empty replies far from the tip (sparse shards) that one probe follows; the shard's calls of one second
PROBE_SECONDS = 1.0  # from probe to probe of a shard that had no record for `ACTIVE_SECONDS`: one of the five calls a second that it gives to all
ACTIVE_SECONDS = 300.0
MOST_PROBES = 500  # before a batch, and a second: 0.2 s of CPU, and a fifth of a second of waiting at 10 ms a call
NEWS = 2  # calls of a probe that finds something: its own, and one of the batch that it brings
EMPTY = 2  # calls of a batch that reads a shard without need: two replies have to say that nothing is there
CALM_SECONDS = 10.0  # after a call that was refused, until pauses become shorter again
EASES = 0.9  # by so much after each probe
ROUND_SECONDS = 2.0  # after them no further probe begins before a plan; those that are left go first before the next one
SHORTEST = 0.01  # seconds that an idle driver rests, at least
UNANSWERED_SECONDS = 60.0  # as patient as a call of a batch is
KEPT_SECONDS = 300.0  # of a shard that nobody asks about: its iterator is good for five minutes
THREADS = 32


class KinesisProber:
    """Probes one shard: keeps an iterator behind one position of it between probes.

    Attributes:
        calls: GetRecords that succeeded so far.
    """

    def __init__(self, client: KinesisClient, shard_id: str, position: Position) -> None:
        """`client`: of one try a call, because others wait for this shard."""
        self._client, self._shard_id, self._position = client, shard_id, position
        self._iterator: str | None = None
        self.calls = 0

    def idle(self) -> bool:
        """Whether a probe came to the tip, and found neither a record nor the shard's end (or that it vanished: the next batch says what happened).

        What was found is found again by the next probe, until the position has moved. A probe that did not come to the tip is continued by the next.

        Raises:
            Again: the service refused a call, for others ask the shard, too; or it did not answer.
            Refused: see `KinesisClient`.
        """
        for _ in range(FOLLOWED):
            try:
                page = self._page()
            except IteratorExpired:
                self._iterator = None
                continue
            except ShardNotFound:
                return False
            has_news = len(page.records) > 0 or page.next_iterator is None
            self._iterator = None if has_news else page.next_iterator
            if has_news or page.behind_millis == 0:
                return not has_news
        return False

    def _page(self) -> Page:
        iterator = self._iterator or self._client.get_iterator(self._shard_id, self._position)
        page = self._client.get_records(self._shard_id, iterator, 1)
        self.calls += 1
        return page


class Prober(Protocol):
    """Probes one shard.

    Attributes:
        calls: see `KinesisProber`.
    """

    calls: int

    def idle(self) -> bool:
        """Whether it came to the tip and found nothing. Raises `Again`: nobody knows."""
        ...


@dataclass
class Every:
    """True when first asked after each `seconds` of the clock; at first at `last` + `seconds`."""

    seconds: float
    clock: Callable[[], float] = time.monotonic
    last: float = float("-inf")

    def __call__(self) -> bool:
        """Whether it is time again."""
        now = self.clock()
        due = now - self.last >= self.seconds
        self.last = now if due else self.last
        return due


@dataclass(frozen=True, slots=True)
class ProbeLimits:
    """How often shards are probed.

    Attributes:
        seconds: from probe to probe of a shard.
        active: the same, if it had a record lately.
        most: probes before a batch, and a second.
    """

    seconds: float = PROBE_SECONDS
    active: float = 1 / CALLS_PER_SECOND
    most: int = MOST_PROBES

    @staticmethod
    def of(share: float | None) -> ProbeLimits:
        """Within this share of a shard's calls, above 0 and at most 1; None: as a consumer does that has the stream to itself."""
        if share is None:
            return ProbeLimits()
        return ProbeLimits(seconds := 1 / (CALLS_PER_SECOND * share), seconds)


@dataclass(slots=True)
class Pace:
    """When a shard may be probed again.

    Attributes:
        limits: if nothing hinders.
        quota: the calls that the shard still gives, after those of probes and of batches.
        moved: when its row was first asked for, or asked for behind another record than before.
        least: seconds between probes, at least: twice the last pause each time the service refuses a call, for others ask the shard, too.
        due: no probe before; hindered: the last one that was refused. Seconds of the clock.
    """

    limits: ProbeLimits
    quota: Bucket
    moved: float
    least: float = 0.0
    due: float = float("-inf")
    hindered: float = float("-inf")

    def probed(self, now: float, calls: int, *, refused: bool) -> None:
        """After a probe of so many calls, beside one that was refused. One that walked on rests until its calls are a second's at most."""
        if refused:
            self.least, self.hindered = min(PROBE_SECONDS, 2 * self._pause(now)), now
        elif now - self.hindered > CALM_SECONDS:
            self.least *= EASES
        self.quota.take(calls, now)
        self.due = max(now + max(self._pause(now), calls / CALLS_PER_SECOND if calls > 1 else 0.0), self._gives(now))

    def _pause(self, now: float) -> float:
        return max(self.least, self.limits.active if now - self.moved < ACTIVE_SECONDS else self.limits.seconds)

    def read(self, now: float, calls: int) -> None:
        """For a batch that reads the shard with so many calls. They count as well: what the service refuses comes late."""
        self.quota.take(calls, now)
        self.due = max(self.due, self._gives(now))

    def _gives(self, now: float) -> float:
        """When the shard gives a probe and what follows if that finds something."""
        return now + max(0.0, NEWS - self.quota.tokens) / CALLS_PER_SECOND


class Probe(NamedTuple):
    """How many calls a probe took, and by what it failed."""

    calls: int
    failed: Again | None


@dataclass(slots=True)
class ProbedShard:
    """What was last found of a shard after the position `end`.

    Attributes:
        batch: the last one that has read the shard.
        since: when it was probed last, or when it was first asked for.
        asked: when it was asked for last.
        answered: when the service answered last, a batch read the shard, or it was first asked for.
        idle: None: not probed there yet.
    """

    prober: Prober
    end: Position
    batch: int
    pace: Pace
    since: float
    asked: float
    answered: float
    idle: bool | None = None

    def probe(self) -> Probe:
        """Probes it. Without an answer it stays what it was."""
        calls = self.prober.calls
        try:
            self.idle, failed = self.prober.idle(), None
        except Again as again:
            failed = again
        return Probe(self.prober.calls - calls, failed)

    def probed(self, now: float, probe: Probe) -> bool:
        """After a probe. True: a minute without an answer. Then it takes part in the next batch, which has patience, and says what is wrong."""
        self.since = now
        self.pace.probed(now, probe.calls, refused=probe.failed is not None)
        if probe.failed is None:
            self.answered = now
            if not self.idle:
                self.pace.read(now, NEWS - 1)
            return False
        silent = now - self.answered >= UNANSWERED_SECONDS
        if silent:
            self.idle = False
        return silent


def last_probed(shard: ProbedShard) -> float:
    """Those go first that were probed longest ago, or that wait longest for their first probe."""
    return shard.since


@dataclass
class ProbeScheduler:
    """Probes shards behind their rows' ranges, each in its turn, and remembers what that found. To be called by one thread at a time.

    Attributes:
        watch: makes the prober of a shard at the end of its row's range.
    """

    watch: Callable[[ShardRow], Prober]
    clock: Callable[[], float] = time.monotonic
    limits: ProbeLimits = ProbeLimits()
    _shards: dict[str, ProbedShard] = field(default_factory=dict)
    _asked: tuple[ProbedShard, ...] = ()
    _free: float = float("-inf")
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, thread_name_prefix="probe"))

    def __call__(self, rows: Sequence[ShardRow]) -> dict[str, bool]:
        """Which of these shards are idle, and which are not. One that was not probed where its row stands now is not in the answer.

        Raises:
            Refused: see `KinesisClient`.
        """
        now = self.clock()
        asked = {row.id: self._shard(row, now) for row in rows}
        self._shards = {name: shard for name, shard in self._shards.items() if now - shard.asked < KEPT_SECONDS} | asked
        self._asked = tuple(asked.values())
        self._probe_due(now)
        return {name: shard.idle for name, shard in asked.items() if shard.idle is not None}

    def pause(self) -> float:
        """Seconds until one of the shards that were asked for last may be probed again; a second if none was."""
        if not self._asked:
            return PROBE_SECONDS
        return max(SHORTEST, max(self._free, min(shard.pace.due for shard in self._asked)) - self.clock())

    def _shard(self, row: ShardRow, now: float) -> ProbedShard:
        """A prober keeps its iterator for as long as the shard's position stays the same, and a shard its pace wherever it stands."""
        known = self._shards.get(row.id)
        if known is None:
            return ProbedShard(self.watch(row), row.end, row.batch, self._new_pace(now), now, now, now)
        if known.batch != row.batch:
            if known.idle is not False:
                known.pace.read(now, EMPTY)
            known.batch, known.idle, known.answered = row.batch, None, now
        known.asked = now
        if known.end == row.end:
            return known
        if row.end.sequence:
            known.pace.moved = now
        return ProbedShard(self.watch(row), row.end, row.batch, known.pace, now, now, now)

    def _new_pace(self, now: float) -> Pace:
        quota = Bucket(CALLS_PER_SECOND, now)
        quota.take(EMPTY + 1, now)  # its last ranges
        return Pace(self.limits, quota, now)

    def _probe_due(self, now: float) -> None:
        """Probes those that are due, as many as may be; those first that wait longest, so that each has its turn.

        Their next probes count from the end of the last one. Then no second has more calls than it may, and those that were probed together are
        due together. A probe among others costs less than half the CPU of one alone.
        """
        if now < self._free:
            return
        due = sorted((shard for shard in self._asked if shard.pace.due <= now), key=last_probed)[: self.limits.most]
        if due:
            self._free = now + len(due) / self.limits.most
            ends = now + ROUND_SECONDS
            probes = list(self._threads.map(lambda shard: shard.probe() if self.clock() < ends else None, due))
            now = self.clock()
            silent = [probe.failed for shard, probe in zip(due, probes, strict=True) if probe is not None and shard.probed(now, probe)]
            if silent:
                log.warning("probes of %s have had no answer for a minute; batches read them: %s", counted(len(silent), "shard"), silent[0])

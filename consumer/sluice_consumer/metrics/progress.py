"""What a driver has done so far: lines for its log, and the numbers of its report (docs/interfaces.md, "Report (JSON, driver → operator)")."""

from __future__ import annotations

import datetime
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.versions import Version
from sluice_consumer.batches import planner
from sluice_consumer.batches.consumer import Committed, Consumer
from sluice_consumer.batches.run_end import RunEnd
from sluice_consumer.driver_report import DriverReport, SpecVersion
from sluice_consumer.metrics.load import Load
from sluice_consumer.metrics.warnings import Warnings

WINDOW = 30  # batches over which the rate is taken
YEAR_SECONDS = 31_536_000  # what takes longer has no pace: it waits for the end
VERSIONS = 10  # the last ones are reported; `sluice show` prints all that the table has


class BatchProgress:
    """Counts the batches of one epoch.

    Attributes:
        behind: milliseconds behind the tip: before the first batch, as `Session` has found it in the rows; then at the last commit. None: unknown.
        dead_letters: how many records were ever excluded; None: nobody excludes any.
        versions: those of the table, as this epoch began; none in a table that names none.
        load: how busy this epoch is.
        warnings: of this epoch.
    """

    def __init__(
        self, consumer: Consumer, generation: int, warnings: Warnings, interval: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`interval`: seconds from batch to batch."""
        self.load, self.warnings = Load(interval, clock), warnings
        self._consumer, self._generation, self._clock = consumer, generation, clock
        self._records = self._batches = self._excluded = 0
        self.behind: int | None = None
        self._recent: deque[tuple[float, int]] = deque([(clock(), 0)], maxlen=WINDOW)
        self.versions: tuple[SpecVersion, ...] | None = None
        self.dead_letters: Callable[[], int | None] = lambda: None

    def add(self, committed: Committed, seconds: float) -> str:
        """Counts a batch, and describes it in one line."""
        self._records += committed.records
        self._batches += 1
        self._excluded += committed.excluded
        self.behind = committed.behind_millis
        self._recent.append((self._clock(), committed.records))
        self.load.committed(committed.rows, seconds)
        excluded = f", {committed.excluded} more in the dead letters" if committed.excluded else ""
        unread = f", {committed.unread} of them not read again" if committed.unread else ""
        what = f"{counted(committed.records, 'record')} of {counted(len(committed.rows), 'shard')}{unread}{excluded}"
        return f"batch {committed.number}: {what} in {seconds:.3f} s, {self.behind} ms behind"

    def onto(self, report: DriverReport) -> DriverReport:
        """The report with the fields that follow from rows and batches."""
        view = self._consumer.view
        opened = view.opened
        farthest, others = _farthest(opened)
        return replace(
            report,
            generation=self._generation,
            batch=view.committed,
            open_shards=len(opened),
            ended_shards=view.known - len(opened),
            held_shards=planner.held(view, self._generation),
            millis_behind_latest=self.behind,
            records=self._records,
            records_per_second=self._rate(),
            dead_letters=self.dead_letters(),
            busy=self.load.busy,
            active_shards=self.load.active_shards,
            farthest_shard=farthest,
            millis_behind_others=others,
            warnings=self.warnings.reported,
            versions=self.versions,
        )

    def counts(self) -> str:
        """What this epoch has done, in words, and what is not in those records: the last report may be lost, and its warnings with it."""
        view = self._consumer.view
        excluded = f"; {self._excluded} more in the dead letters" if self._excluded else ""
        missing = f"; records may be missing: {'; '.join(self.warnings.losses)}" if self.warnings.losses else ""
        done = f"{counted(self._records, 'record')} in {counted(self._batches, 'batch')} of {counted(view.known, 'shard')}"
        return f"{done}, up to batch {view.committed}{excluded}{missing}"

    def _rate(self) -> float:
        seconds = self._clock() - self._recent[0][0]
        return round(sum(records for _, records in list(self._recent)[1:]) / seconds, 1) if seconds else 0.0


def spec_versions(listed: Sequence[Version]) -> tuple[SpecVersion, ...]:
    """The last versions that a table names, the newest first, as a report has them."""
    return tuple(
        SpecVersion(first_batch=each.first, since=_moment(each.at), hash=each.spec.hash, image=each.spec.image, reset=each.reset)
        for each in reversed(listed[-VERSIONS:])
    )


def _moment(millis: int) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromtimestamp(millis // 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):  # a driver without a clock named it
        return None


def _farthest(opened: list[ShardRow]) -> tuple[str | None, int | None]:
    """The shard that is farthest behind, if one is, and how far the farthest of all others is behind."""
    if not opened:
        return None, None
    first = max(opened, key=lambda row: row.behind)
    others = max((row.behind for row in opened if row is not first), default=0)
    return (first.id, others) if first.behind else (None, 0)


@dataclass
class Backfill:
    """How far a run is that has an end."""

    consumer: Consumer
    end: RunEnd
    clock: Callable[[], float] = time.monotonic
    _began: tuple[float, int] | None = None

    def line(self) -> str:
        """Shards that are there, how much of the stream's time is left, and how long that takes at the present pace."""
        view = self.consumer.view
        away = self.end.unread(view)
        done = f"{view.known - len(away)} of {view.known} shards done"
        read_to = min((row.read_to for row in away if row.read_to), default=None)
        if read_to is None:
            return done
        now, left = self.clock(), max(0, self.end.millis - read_to) / 1000
        self._began = self._began or (now, read_to)
        seconds, gained = now - self._began[0], (read_to - self._began[1]) / 1000
        eta = f", about {_span(left * seconds / gained)} at this pace" if 0 < left * seconds < gained * YEAR_SECONDS else ""
        return f"{done}, {_span(left)} of the stream to go{eta}"


def _span(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))

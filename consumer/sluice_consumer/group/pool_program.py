"""The supervisor's program in the pod of a pool: `python -m sluice_consumer pool --config FILE` (docs/pools.md).

It follows the annotations of its own pod: seats begin and end, and it writes how each of them is. Leases and the driver process are as in a group of
files (`group.program`).
"""

from __future__ import annotations

import datetime
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer import logs
from sluice_consumer.checks import run as checks
from sluice_consumer.driver_report import ReportPhase
from sluice_consumer.exits.ending import Ending, ending_of, finish
from sluice_consumer.group import pool_config, report_files
from sluice_consumer.group.consumer_lease import ConsumerLease, LeasePorts
from sluice_consumer.group.messages import Executors
from sluice_consumer.group.pod_reports import PodReports
from sluice_consumer.group.program import CHECKED_AT_ONCE, LOOK_SECONDS, GroupSupervisor, driving
from sluice_consumer.group.report_files import POOL
from sluice_consumer.group.seats import REPORT, BeginSeat, MemberSeat, SeatBook, SeatKey, without_seat
from sluice_consumer.group.shared_spark import Member, in_group
from sluice_consumer.process import pod, supervisor
from sluice_consumer.process.pod import POLL_SECONDS, TABLE_MADE, PodAnnotations
from sluice_consumer.process.sigterm import set_on_term

WORDS, ALL_WORDS = 1000, 50_000  # characters of a message in an exit, and of those of all: they have to fit into the annotations of a pod
Json = dict[str, Any]


def run(path: Path) -> int:
    """Follows the seats of this pod until SIGTERM; the exit code of the program.

    Raises:
        Refused: the configuration is wrong, or this is not a pod.
    """
    config, here = pool_config.read(path), pod.from_environment()
    if here is None:
        raise Refused(
            "a pool runs in a pod, which the operator makes. To run several consumers without Kubernetes, give `sluice run` more than one --config"
        )
    with tempfile.TemporaryDirectory(prefix="sluice-seats-") as folder:
        book = SeatBook(here.uid, config.limits)
        with driving(["--pool", str(path), "--reports", folder], {}) as group:
            seats = PoolSeats(book, group, PodAnnotations(here), Path(folder))
            set_on_term(seats.stop, seats.drain)
            signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
            return finish(seats.run())


@dataclass
class PoolSeats:
    """The seats of this pod.

    Attributes:
        folder: for configurations, and for reports of the driver.
        stop: the pod was asked to end.
        runs: by seat, the lease of its consumer. seat_reports: its last report.
        imported: functions of members that were imported well, in a process of their own.
    """

    book: SeatBook
    group: GroupSupervisor
    annotations: pod.Annotations
    folder: Path
    clock: Callable[[], float] = time.monotonic
    stop: threading.Event = field(default_factory=threading.Event)
    reports: PodReports = field(default_factory=PodReports)
    runs: dict[SeatKey, ConsumerLease] = field(default_factory=dict)
    seat_reports: dict[SeatKey, Json] = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)
    checking: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(CHECKED_AT_ONCE))
    _wanted: int | None = None
    _seen_at: float = float("-inf")

    def run(self) -> Ending:
        """Until SIGTERM and the end of all runs, or the end of the driver: how."""
        while not self.group.link.gone:
            self.step()
            if self.stop.is_set() and not self.book.running:
                break
            self.group.wait(LOOK_SECONDS)
        if not self.group.link.gone:
            self._write(self.clock())  # before the pod ends: a seat without an end counts as one whose driver was lost
        return self.group.close() or Ending(0, "Drained", "no consumer of the pool runs in this pod any more")

    def drain(self) -> None:
        """All of them, at once: the API server may not answer."""
        logs.say("SIGTERM: all consumers of the pool drain")
        self.group.drain()

    def step(self) -> None:
        """One look at everything; a call to the API server waits for ten seconds at most."""
        now, over = self.clock(), self._ended()
        if over or now - self._seen_at >= POLL_SECONDS:
            self._seen_at = now
            self._see()
        self.reports.say(self._words())
        if self.reports.wait(now) <= 0:
            self._write(now)

    def _ended(self) -> bool:
        over = self.group.ended()
        for lease in over:
            key = SeatKey.parse(lease.member.seat)
            assert key is not None  # noqa: S101 - `_begin` made it
            ending = lease.ending or Ending(1, "Interrupted", "the run did not begin")
            self.seat_reports[key] |= report_files.words(self.folder / str(key)) | {"exit": _exit(ending, len(self.seat_reports))}
            self.book.over(key, ending)
            del self.runs[key]
            for file in (lease.member.path, self.folder / str(key)):
                file.unlink(missing_ok=True)
        return bool(over)

    def _see(self) -> None:
        try:
            notes = self.annotations.read()
        except Exception as error:  # noqa: BLE001 - the next look asks again; what runs continues
            logs.warn(f"the annotations of this pod could not be read: {error}")
            return
        for change in self.book.changes(notes, term=self.stop.is_set()):
            if isinstance(change, BeginSeat):
                self._begin(change.seat)
            else:
                logs.say(f"{self.runs[change.key].member.name}: drains")
                self.runs[change.key].stop.set()
        for key, how in self.book.ended.items():
            self.seat_reports.setdefault(key, {"exit": _exit(how, len(self.seat_reports))})
        self.seat_reports = {key: words for key, words in self.seat_reports.items() if key in self.book.running or key in self.book.ended}
        self.reports.see(notes, without_seat(notes, self.book.running))
        wanted = pod.target_in(notes)
        if wanted is not None and wanted != self._wanted and self.group.link.send(Executors(wanted)):
            self._wanted = wanted

    def _begin(self, seat: MemberSeat) -> None:
        path = self.folder / f"{seat.key}.json"
        try:
            path.write_text(seat.text)
        except OSError as error:  # the disk is full, for example: the others continue, and the operator tries again
            self.book.over(seat.key, ending_of(error))
            return
        member = Member(path, in_group(seat.config), str(seat.key), seat.spec_hash)
        lease = ConsumerLease(member, self.group.link, ports=LeasePorts(partial(self._open, made=seat.made)), pauses=None)
        self.seat_reports[seat.key] = {"phase": ReportPhase.STARTING.value, "began": _now()}
        self.runs[seat.key] = lease
        logs.say(f"{member.name}: begins, attempt {seat.key.attempt}")
        self.group.begin(lease)
        if self.stop.is_set():  # SIGTERM may have come since the look
            lease.stop.set()

    def _open(self, member: Member, *, made: bool) -> CheckpointStore:
        """The table of a consumer, once nothing speaks against a start. The first check of each function imports it in a process of its own."""
        with self.checking:
            checks.before_start(member.path, {**os.environ, **({TABLE_MADE: "true"} if made else {})}, imported=self.imported)
        return supervisor.open_table(member.config, made=made)

    def _words(self) -> dict[str, Json]:
        for key, lease in self.runs.items():
            self.seat_reports[key] |= report_files.words(self.folder / str(key))
            if lease.deadline:
                self.seat_reports[key] |= {"phase": ReportPhase.WAITING_OUT_LEASE.value, "deadline": lease.deadline}
        own = {"phase": ReportPhase.STARTING.value} | report_files.words(self.folder / POOL)
        if self.stop.is_set():
            own["phase"] = ReportPhase.DRAINING.value
        return {pod.REPORT: own} | {f"{REPORT}{key}": dict(words) for key, words in self.seat_reports.items()}

    def _write(self, now: float) -> None:
        try:
            self.annotations.write(self.reports.begin(now))
        except Exception as error:  # noqa: BLE001 - written again in seconds
            logs.warn(f"the reports could not be written: {error}")
            self.reports.fail()


def _exit(how: Ending, seats: int) -> Json:
    room = min(WORDS, ALL_WORDS // max(1, seats))
    message = how.message if len(how.message) <= room else f"{how.message[: room - 1]}…"
    return {"code": how.code, "reason": how.reason, "message": message, "at": _now()}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

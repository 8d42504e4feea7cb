"""All reports in the pod of a pool, and when they are written: those that changed in one patch (docs/pools.md, "A seat"). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluice_consumer.process.pod import ALIVE_SECONDS, REPORT_SECONDS

READY_SECONDS = 1.0  # after a change of readiness, for others that change with it
Json = dict[str, Any]


@dataclass
class OneReport:
    """A report, without its number.

    Attributes:
        number: of the last one that was begun. One whose answer is lost may have arrived, so its number is not used again.
        begun: the words of that one, and when it was begun.
    """

    words: Json
    number: int = 0
    begun: Json | None = None
    begun_at: float = float("-inf")
    failed: bool = False

    @property
    def changed(self) -> bool:
        """Whether what the API server has may be another one."""
        return self.failed or self.words != self.begun

    @property
    def urgent(self) -> bool:
        """Whether its readiness changed, or its run has ended."""
        return not self.failed and (self.begun is None or _readiness(self.words) != _readiness(self.begun))

    def is_due(self, now: float) -> bool:
        """Whether it belongs into a patch that is written now. An end is not repeated: nobody waits for a sign of life."""
        return self.changed or ("exit" not in self.words and now - self.begun_at >= ALIVE_SECONDS)

    def begin(self, now: float) -> str:
        """The text to write now."""
        self.number += 1
        self.begun, self.begun_at, self.failed = self.words, now, False
        return json.dumps({"number": self.number, **self.words})


def _readiness(words: Json) -> tuple[object, bool, bool]:
    return words.get("phase"), bool(words.get("executors")), "exit" in words


@dataclass
class PodReports:
    """The reports by annotation.

    Attributes:
        gone: annotations that are to be removed.
    """

    reports: dict[str, OneReport] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    _patched_at: float = float("-inf")
    _sent: tuple[str, ...] = ()

    def say(self, words: Mapping[str, Json]) -> None:
        """All reports as they are now. One that is left out is no longer written."""
        self.reports = {name: self.reports.get(name) or OneReport({}) for name in words}
        for name, report in self.reports.items():
            report.words = words[name]

    def see(self, notes: Mapping[str, str], gone: list[str]) -> None:
        """The annotations as they are, after the last patch. A report that somebody removed is written again: an end would be waited for.

        Args:
            notes: all of them.
            gone: reports that are to be removed.
        """
        self.gone = set(gone) - self.reports.keys()
        for name, report in self.reports.items():
            report.failed |= report.begun is not None and name not in notes

    def wait(self, now: float) -> float:
        """Seconds until a patch is to be written."""
        since = now - self._patched_at
        if any(report.urgent for report in self.reports.values()):
            return max(0.0, READY_SECONDS - since)
        if self.gone or any(report.is_due(now) for report in self.reports.values()):
            return max(0.0, REPORT_SECONDS - since)
        return ALIVE_SECONDS

    def begin(self, now: float) -> dict[str, str | None]:
        """The patch to write now: every report that is due."""
        due = {name: report for name, report in self.reports.items() if report.is_due(now)}
        self._patched_at, self._sent = now, tuple(due)
        return {name: report.begin(now) for name, report in due.items()} | dict.fromkeys(self.gone)

    def fail(self) -> None:
        """The patch may not have arrived: its reports are due again in `REPORT_SECONDS`."""
        for name in self._sent:
            if name in self.reports:
                self.reports[name].failed = True

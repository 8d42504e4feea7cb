"""Reports on their way from the driver of a pool to its supervisor, which writes those of all consumers in one patch.

A report is a state, so each has a file that the next one replaces. A line in a pipe would wait for its reader, or be too long for it.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from sluice_consumer import logs
from sluice_consumer.driver_report import DriverReport
from sluice_consumer.process.pod import ReportChange, Reporter

POOL = "pool"  # the file of the pod's own report


class ReportFile(Reporter):
    """The report of one run."""

    def __init__(self, path: Path) -> None:
        """Nothing is written yet."""
        super().__init__(None)
        self._path, self._state, self._lock = path, DriverReport(), threading.Lock()

    def update(self, change: ReportChange) -> None:
        """Replaces the file, if the report changed."""
        with self._lock:
            before, self._state = self._state, change(self._state)
            if self._state == before:
                return
            try:
                new = self._path.with_name(f"{self._path.name}.new")
                new.write_text(self._state.text(0))
                new.replace(self._path)
            except OSError as error:  # a report is for people; nothing of the protocol may depend on it
                logs.warn(f"the report could not be written to {self._path}: {error}")


def words(path: Path) -> dict[str, Any]:
    """The report in a file, without its number; {}: there is none."""
    try:
        report: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {name: value for name, value in report.items() if name != "number"}

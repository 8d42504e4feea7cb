"""A test that fails is named when it fails, with its last words: a run that is cut off later has said so."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

LONGEST = 300  # characters


@dataclass(frozen=True)
class FailuresAtOnce:
    terminal: pytest.TerminalReporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Where several processes share the work, the one that prints hears of all reports."""
        if report.failed:
            self.terminal.ensure_newline()
            self.terminal.write_line(f"FAILED {report.nodeid} ({report.when}, {report.duration:.0f} s): {last_words(report)}")
            self.terminal.flush()


def last_words(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return " ".join(getattr(crash, "message", "").split())[:LONGEST]


def register(config: pytest.Config) -> None:
    """Add the plugin to a process that prints. Call it when pytest's own plugins are configured."""
    if (terminal := config.pluginmanager.get_plugin("terminalreporter")) is not None:
        config.pluginmanager.register(FailuresAtOnce(terminal), "failures at once")

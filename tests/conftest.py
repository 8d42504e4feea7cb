"""For all tests: the cluster's last, nothing left out silently, a failure named at once, and emulated AWS for whoever asks."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.append(str(Path(__file__).parent))  # tests have no packages (importlib mode)

import failures_at_once
from emulated import (
    credentials,
    dynalite_endpoint,
    dynamodb_endpoint,
    kinesalite_endpoint,
    kinesis_local_endpoint,
    moto_endpoint,
    postgres_url,
    s3_endpoint,
)
from left_out import judged, suspect, unfound
from one_spark import ENDED_EARLY, spark
from side_by_side import Scheduler, rank, scheduler

from sluice_lab import places
from sluice_lab.machine import parts, spark_classes

__all__ = [
    "credentials",
    "dynalite_endpoint",
    "dynamodb_endpoint",
    "kinesalite_endpoint",
    "kinesis_local_endpoint",
    "moto_endpoint",
    "postgres_url",
    "s3_endpoint",
    "spark",
]

CLUSTER = "tests/cluster/"
os.environ.setdefault("JAVA_TOOL_OPTIONS", spark_classes.options(places.work()))
os.environ.setdefault(parts.BUILDS, "no")

# How long an example takes is this machine's business: beside other work any of them may take a second.
settings.register_profile("sluice", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sluice")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Minutes come after seconds: first what needs no cluster, then what makes one, then what only uses it.

    Raises:
        UsageError: no lane of the Makefile would find a test.
    """
    if lost := unfound(items):
        raise pytest.UsageError("\n".join(lost))
    for item in items:
        if suspect(item.nodeid):
            item.add_marker("slow")
    items.sort(key=rank)
    items.sort(key=lambda item: 0 if item.get_closest_marker("cluster") is None else 1 if CLUSTER in item.path.as_posix() else 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    """Tests that share what is slow to start run in one process."""
    return scheduler(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A machine of CI has every part."""
    return judged((yield), call)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """A test that fails is named at once."""
    failures_at_once.register(config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """No Spark of other tests beside a cluster."""
    if item.get_closest_marker("cluster"):
        ENDED_EARLY.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The last lines say what was not run, and why."""
    reasons = Counter(str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if isinstance(report.longrepr, tuple))
    if (deselected := len(terminalreporter.stats.get("deselected", []))) and "SLUICE_PART" not in os.environ:
        chosen = config.getoption("markexpr") or config.getoption("keyword")
        reasons[f"deselected by {chosen!r}; `make test`, `make test-cluster`, `make test-more` and `make test-lake` run everything"] += deselected
    if not reasons:
        terminalreporter.write_line("Nothing was left out.")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"NOT RUN ({count}): {reason}")

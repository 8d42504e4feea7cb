"""For all tests: the cluster's last, nothing left out silently, and emulated AWS for whoever asks."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.append(str(Path(__file__).parent))  # tests have no packages (importlib mode)

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
from one_spark import ENDED_EARLY, spark
from side_by_side import Scheduler, rank, scheduler

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
# A JVM of a test lives for seconds: the compiler for long runs and a parallel collector cost more than they give (48 s of a small job became 21 s).
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# How long an example takes is this machine's business: beside other work any of them may take a second.
settings.register_profile("sluice", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sluice")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Minutes come after seconds: first what needs no cluster, then what makes one, then what only uses it."""
    items.sort(key=rank)
    items.sort(key=lambda item: 0 if item.get_closest_marker("cluster") is None else 1 if CLUSTER in item.path.as_posix() else 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    """Tests that share what is slow to start run in one process."""
    return scheduler(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """No Spark of other tests beside a cluster."""
    if item.get_closest_marker("cluster"):
        ENDED_EARLY.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The last lines say what was not run, and why."""
    reasons = Counter(str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if isinstance(report.longrepr, tuple))
    if (deselected := len(terminalreporter.stats.get("deselected", []))) and "SLUICE_PART" not in os.environ:
        chosen = config.getoption("markexpr") or config.getoption("keyword")
        reasons[f"deselected by {chosen!r}; `make test` and `make test-more` run everything"] += deselected
    if not reasons:
        terminalreporter.write_line("Nothing was left out.")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"NOT RUN ({count}): {reason}")

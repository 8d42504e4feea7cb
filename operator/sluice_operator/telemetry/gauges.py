"""Gauges, computed at each scrape: of this process, and of each resource in the cache.

Figures come from the driver's last report. The status has them later: with many resources it is written seldom.
Only the leader reports resources. All replicas know them, and a sum would count them twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from sluice_operator.state.status import Phase
from sluice_operator.untrusted.values import moment, objects, part, text, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sluice_operator.cluster.port import Json
    from sluice_operator.observe.cache import ResourceSnapshot
    from sluice_operator.state.objects import Pod, Report

BY_RESOURCE = {
    "sluice_consumer_lag_seconds": "How far the oldest shard is behind the stream's tip; until a driver's first commit, how long it was not read. "
    "It grows with the clock while a batch is open. Absent while unknown.",
    "sluice_consumer_records_per_second": "Records consumed, as the driver reported.",
    "sluice_consumer_open_shards": "Shards that can still get records.",
    "sluice_consumer_executors": "Executors that exist and are not stopping.",
    "sluice_consumer_draining_executors": "Executors that finish their work before they stop.",
    "sluice_consumer_dead_letters": "Records that were ever left out, over all drivers. Absent without `onError`.",
    "sluice_consumer_report_age_seconds": "Time since the driver's figures last moved.",
    "sluice_consumer_ready": "1 if the condition Ready is True.",
    "sluice_consumer_stalled": "1 if the condition Stalled is True: you have to act.",
}


@dataclass(frozen=True, slots=True)
class Sources:
    """Read at every scrape: the resources in the cache, whether this process leads, and how many seconds each watch is behind."""

    resources: Callable[[], Iterable[ResourceSnapshot]]
    leads: Callable[[], bool]
    behind: Callable[[], dict[str, float]]


class Gauges(Collector):
    """All gauges of the operator."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def describe(self) -> list[GaugeMetricFamily]:
        """The families without values, as the registry needs them."""
        return [*_families()]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All families with the values of this moment."""
        leader, build, behind, consumers, *by_resource = _families()
        leads = self._sources.leads()
        leader.add_metric([], float(leads))
        build.add_metric([_version()], 1)
        for kind, seconds in self._sources.behind().items():
            behind.add_metric([kind], seconds)
        yield from (leader, build, behind)
        if leads:
            yield from _resources(list(self._sources.resources()), consumers, by_resource)


def _families() -> list[GaugeMetricFamily]:
    return [
        GaugeMetricFamily("sluice_leader", "1 in the replica that acts."),
        GaugeMetricFamily("sluice_build_info", "Always 1.", labels=["version"]),
        GaugeMetricFamily("sluice_watch_behind_seconds", "Age of the oldest change that a list showed and the watch has not.", labels=["kind"]),
        GaugeMetricFamily("sluice_consumers", "Resources in each phase.", labels=["phase"]),
        *(GaugeMetricFamily(name, text, labels=["namespace", "name"]) for name, text in BY_RESOURCE.items()),
    ]


def _resources(snapshots: list[ResourceSnapshot], consumers: GaugeMetricFamily, by_resource: list[GaugeMetricFamily]) -> Iterator[GaugeMetricFamily]:
    phases = Counter(text(part(one.body, "status"), "phase") or Phase.PENDING for one in snapshots)
    for phase in Phase:
        consumers.add_metric([phase], phases[phase])
    for one in snapshots:
        meta, figures = one.body["metadata"], _figures(part(one.body, "status"), one.driver)
        for family in by_resource:
            if (value := figures[family.name]) is not None:
                family.add_metric([meta["namespace"], meta["name"]], value)
    yield from (consumers, *by_resource)


def _figures(status: Json, driver: Pod | None) -> dict[str, float | None]:
    report = driver.report if driver is not None else None
    true = {text(c, "type") for c in objects(status, "conditions") if c.get("status") == "True"}
    return {
        "sluice_consumer_lag_seconds": _lag(report, status) if report else None,
        "sluice_consumer_records_per_second": report.records_per_second if report else None,
        "sluice_consumer_open_shards": report.open_shards if report else None,
        "sluice_consumer_executors": whole(status.get("replicas")),
        "sluice_consumer_draining_executors": len(report.draining if report else ()),
        "sluice_consumer_dead_letters": report.dead_letters if report else None,
        "sluice_consumer_report_age_seconds": _age(driver, status),
        "sluice_consumer_ready": float("Ready" in true),
        "sluice_consumer_stalled": float("Stalled" in true),
    }


def _lag(report: Report, status: Json) -> float | None:
    """Seconds behind at the last commit, or unread at the driver's start, plus the time since the open batch was seen first.

    What is not committed falls further behind.
    """
    if report.millis_behind_latest is None:
        return None
    stream = part(status, "stream")
    since = moment(stream.get("batchAt")) if report.open_batch is not None and stream.get("openBatch") == report.open_batch else None
    return report.millis_behind_latest / 1000 + ((datetime.now(UTC) - since).total_seconds() if since else 0)


def _age(driver: Pod | None, status: Json) -> float | None:
    """Seconds since the report's number was seen first. An operator that has just started takes that time from the status of the same report."""
    if driver is None or driver.report is None or driver.reported_at is None:
        return None
    stream = part(status, "stream")
    known = moment(stream.get("reportedAt")) if stream.get("number") == driver.report.number else None
    return (datetime.now(UTC) - min(driver.reported_at, known or driver.reported_at)).total_seconds()


def _version() -> str:
    try:
        return version("sluice-kinesis")
    except PackageNotFoundError:
        return "unknown"

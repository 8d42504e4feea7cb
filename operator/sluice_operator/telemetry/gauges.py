"""Gauges, computed at each scrape: of this process, and of each resource in the cache.

Figures come from the driver's last report. The status has them later: with many resources it is written seldom.
Only the leader reports resources. All replicas know them, and a sum would count them twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
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
    from sluice_operator.state.objects import Pod

    Figures = Callable[[Json, Pod | None], dict[str, float | None]]

BY_RESOURCE = {
    "sluice_consumer_lag_seconds": "How far the oldest shard is behind the stream's tip; until a driver's first commit, how long it was not read. "
    "It grows with the clock while a batch is open. Absent while unknown.",
    "sluice_consumer_records_per_second": "Records consumed, as the driver reported.",
    "sluice_consumer_busy_ratio": "Part of the last minute in which a batch was worked on; at 1 batches follow each other. Absent while unknown.",
    "sluice_consumer_open_shards": "Shards that can still get records.",
    "sluice_consumer_executors": "Executors that exist and are not stopping.",
    "sluice_consumer_draining_executors": "Executors that finish their work before they stop.",
    "sluice_consumer_dead_letters": "Records that were ever left out, over all drivers. Absent without `onError`.",
    "sluice_consumer_report_age_seconds": "Time since the driver's figures last moved.",
    "sluice_consumer_ready": "1 if the condition Ready is True.",
    "sluice_consumer_stalled": "1 if the condition Stalled is True: you have to act.",
    "sluice_consumer_scaling_limited": "1 if the condition ScalingLimited is True: `spec.autoscale` adds no executor, or its executors do not come.",
    "sluice_consumer_position_refused": "1 if the condition PositionRefused is True: `spec.position` moved nothing.",
    "sluice_consumer_standby_ready": "1 if a standby stands behind the driver, else 0. Absent unless `spec.rollout.standby` is Always.",
    "sluice_consumer_rolled_back": "1 if the condition RolledBack is True: the last proven version runs, not the one of the spec.",
    "sluice_consumer_out_of_pool": "1 if the condition OutOfPool is True: it ended the process of its pool too often, and has a driver of its own.",
}
BY_POOL = {
    "sluice_pool_members": "KinesisConsumers that name the pool. Absent until the operator has counted them.",
    "sluice_pool_ready_members": "Members of the pool that are ready. Absent until the operator has counted them.",
    "sluice_pool_members_out": "Members that were put out of the pool. Each has a driver of its own.",
    "sluice_pool_deaths": "Largest number of ends of the pool's process in a row that named the same member; members that are out do not count.",
    "sluice_pool_ready": "1 if the condition Ready of the pool is True.",
    "sluice_pool_stalled": "1 if the condition Stalled of the pool is True: you have to act.",
}


@dataclass(frozen=True, slots=True)
class Sources:
    """Read at every scrape: consumers in the cache, whether this process leads, how many seconds each watch is behind, pools, and the time."""

    resources: Callable[[], Iterable[ResourceSnapshot]]
    leads: Callable[[], bool]
    behind: Callable[[], dict[str, float]]
    pools: Callable[[], Iterable[ResourceSnapshot]] = tuple
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Gauges(Collector):
    """All gauges of the operator."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def describe(self) -> list[GaugeMetricFamily]:
        """The families without values, as the registry needs them."""
        return [*_of_process(), _consumers(), *_by(BY_RESOURCE), *_by(BY_POOL)]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All families with the values of this moment."""
        leader, build, behind = _of_process()
        leads = self._sources.leads()
        leader.add_metric([], float(leads))
        build.add_metric([_version()], 1)
        for kind, seconds in self._sources.behind().items():
            behind.add_metric([kind], seconds)
        yield from (leader, build, behind)
        if leads:
            snapshots = list(self._sources.resources())
            yield _phases(snapshots)
            yield from _filled(BY_RESOURCE, snapshots, partial(_figures, self._sources.now()))
            yield from _filled(BY_POOL, self._sources.pools(), _of_pool)


def _of_process() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily("sluice_leader", "1 in the replica that acts."),
        GaugeMetricFamily("sluice_build_info", "Always 1.", labels=["version"]),
        GaugeMetricFamily("sluice_watch_behind_seconds", "Age of the oldest change that a list showed and the watch has not.", labels=["kind"]),
    )


def _consumers() -> GaugeMetricFamily:
    return GaugeMetricFamily("sluice_consumers", "Resources in each phase.", labels=["phase"])


def _by(texts: dict[str, str]) -> list[GaugeMetricFamily]:
    return [GaugeMetricFamily(name, text, labels=["namespace", "name"]) for name, text in texts.items()]


def _phases(snapshots: list[ResourceSnapshot]) -> GaugeMetricFamily:
    family, phases = _consumers(), Counter(text(part(snapshot.body, "status"), "phase") or Phase.PENDING for snapshot in snapshots)
    for phase in Phase:
        family.add_metric([phase], phases[phase])
    return family


def _filled(texts: dict[str, str], snapshots: Iterable[ResourceSnapshot], figures_of: Figures) -> list[GaugeMetricFamily]:
    """These families, with the figures of each resource that are known."""
    families = _by(texts)
    for snapshot in snapshots:
        meta, figures = snapshot.body["metadata"], figures_of(snapshot.body, snapshot.driver)
        for family in families:
            if (value := figures[family.name]) is not None:
                family.add_metric([meta["namespace"], meta["name"]], value)
    return families


def _figures(now: datetime, body: Json, driver: Pod | None) -> dict[str, float | None]:
    status, report = part(body, "status"), driver.report if driver is not None else None
    true = _true(status)
    return {
        "sluice_consumer_lag_seconds": _lag(now, driver, status),
        "sluice_consumer_records_per_second": report.records_per_second if report else None,
        "sluice_consumer_busy_ratio": report.busy if report else None,
        "sluice_consumer_open_shards": report.open_shards if report else None,
        "sluice_consumer_executors": whole(status.get("replicas")),
        "sluice_consumer_draining_executors": len(report.draining if report else ()),
        "sluice_consumer_dead_letters": report.dead_letters if report else None,
        "sluice_consumer_report_age_seconds": _age(now, driver, status),
        "sluice_consumer_ready": float("Ready" in true),
        "sluice_consumer_stalled": float("Stalled" in true),
        "sluice_consumer_scaling_limited": float("ScalingLimited" in true),
        "sluice_consumer_position_refused": float("PositionRefused" in true),
        "sluice_consumer_standby_ready": _stands_by(body),
        "sluice_consumer_rolled_back": float("RolledBack" in true),
        "sluice_consumer_out_of_pool": float("OutOfPool" in true),
    }


def _stands_by(body: Json) -> float | None:
    """Whether there is a standby, where the spec asks for one for failover. None: it does not, or nothing shall run."""
    statuses = [c.get("status") for c in objects(part(body, "status"), "conditions") if text(c, "type") == "StandbyReady"]
    return float(statuses[0] == "True") if body.get("failover") and statuses else None


def _of_pool(body: Json, _driver: Pod | None) -> dict[str, float | None]:
    status = part(body, "status")
    true, deaths = _true(status), part(status, "deaths")
    return {
        "sluice_pool_members": whole(status.get("members")),
        "sluice_pool_ready_members": whole(status.get("readyMembers")),
        "sluice_pool_members_out": whole(deaths.get("out")) or 0,
        "sluice_pool_deaths": whole(deaths.get("most")) or 0,
        "sluice_pool_ready": float("Ready" in true),
        "sluice_pool_stalled": float("Stalled" in true),
    }


def _true(status: Json) -> set[str | None]:
    return {text(c, "type") for c in objects(status, "conditions") if c.get("status") == "True"}


def _lag(now: datetime, driver: Pod | None, status: Json) -> float | None:
    """Seconds behind at the last commit, or unread at the driver's start, plus the time since the open batch was seen first.

    What is not committed falls further behind.
    """
    report, stream = driver.report if driver is not None else None, part(status, "stream")
    if driver is None or report is None or report.millis_behind_latest is None:
        return None
    since = (moment(stream.get("batchAt")) if stream.get("openBatch") == report.open_batch else None) or driver.batch_at
    return report.millis_behind_latest / 1000 + ((now - since).total_seconds() if since else 0)


def _age(now: datetime, driver: Pod | None, status: Json) -> float | None:
    """Seconds since the report's number was seen first. An operator that has just started takes that time from the status of the same report."""
    if driver is None or driver.report is None or driver.reported_at is None:
        return None
    stream = part(status, "stream")
    known = moment(stream.get("reportedAt")) if stream.get("number") == driver.report.number else None
    return (now - min(driver.reported_at, known or driver.reported_at)).total_seconds()


def _version() -> str:
    try:
        return version("sluice-kinesis")
    except PackageNotFoundError:
        return "unknown"

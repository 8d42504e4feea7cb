"""Snapshots of a consumer for people. Pure: from the resource, its pods and events, or from its checkpoint table.

A snapshot decides nothing. `account` decides whether every record was delivered once and in order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from sluice_checkpoints.names import counted
from sluice_lab.scenario.topology import short

EVENTS = 6
EXECUTOR = "executor"
ROLE = "sluice.dev/role"


@dataclass(frozen=True, slots=True)
class ConsumerSnapshot:
    """A consumer at one moment. Unknown values are None or empty.

    Attributes:
        settled: the operator has nothing left to do, and the driver holds every shard.
        stalled: the reason for a person to act.
        driver_pod: name of the driver's pod; of a pool's member, the pool's pod.
        running: names of the executors that run and are not being deleted, without those of a standby.
        standby_pod: name of the standby; empty unless it is ready.
    """

    phase: str = "no resource yet"
    message: str = ""
    migration: str = ""
    driver: str = ""
    shards: str = ""
    executors: str = ""
    batch: int | None = None
    behind_millis: int | None = None
    per_second: float | None = None
    produced: int = 0
    migrated: bool = False
    settled: bool = False
    stalled: str = ""
    driver_pod: str = ""
    standby_pod: str = ""
    running: tuple[str, ...] = ()
    events: tuple[str, ...] = ()

    def state(self) -> tuple[str, ...]:
        """The values whose change is printed as a line. Values that change with every batch are not among them."""
        named = {"migration": self.migration, "driver": self.driver, "shards": self.shards, "executors": self.executors}
        return (self.phase, *(f"{name} {text}" for name, text in named.items() if text))

    def __rich__(self) -> Table:
        """The panel of the live view."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", min_width=10)
        grid.add_column(overflow="ellipsis", no_wrap=True)
        rows = {
            "phase": f"[bold]{self.phase}[/]  {escape(self.message)}",
            "migration": self.migration,
            "driver": self.driver,
            "executors": self.executors,
            "shards": self.shards,
            "batch": f"{_number(self.batch)}   {_lag(self)}",
            "put so far": _number(self.produced),
        }
        for name, text in rows.items():
            if text.strip():
                grid.add_row(name, text)
        for number, event in enumerate(self.events):
            grid.add_row("" if number else "events", escape(event))
        return grid


def of_resource(resource: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]) -> ConsumerSnapshot:
    """A snapshot from Kubernetes' objects: a KinesisConsumer, its pods and its events."""
    spec, status = resource.get("spec", {}), resource.get("status") or {}
    stream = status.get("stream") or {}
    conditions = {item["type"]: item for item in status.get("conditions", [])}
    ready, stalled = conditions.get("Ready", {}), conditions.get("Stalled", {})
    standby = status.get("standby") or {}
    return ConsumerSnapshot(
        phase=status.get("phase", "Pending"),
        message=ready.get("message", ""),
        migration=_migration(status.get("migration")),
        driver=_driver(status.get("driver") or {}),
        shards=_shards(stream),
        executors=_executors(spec, status, pods),
        batch=stream.get("batch"),
        behind_millis=stream.get("millisBehindLatest"),
        per_second=stream.get("recordsPerSecond"),
        migrated=conditions.get("Migrated", {}).get("status") == "True",
        settled=ready.get("status") == "True" and conditions.get("Reconciling", {}).get("status") != "True",
        stalled=stalled.get("message", "") if stalled.get("status") == "True" else "",
        driver_pod=_driver_pod(status.get("driver") or {}),
        standby_pod=standby.get("pod", "") if standby.get("state") == "Ready" else "",
        running=tuple(executors_of([pod for pod in pods if not _belongs(pod, standby.get("uid"))])),
        events=tuple(map(_event, sorted(events, key=_when)[-EVENTS:])),
    )


def of_table(shown: Mapping[str, Any]) -> ConsumerSnapshot:
    """A snapshot from the checkpoint table, for runs without Kubernetes."""
    positions = {name: shard["at"] for name, shard in shown["shards"].items()}
    ended = sum(at == "END" for at in positions.values())
    migration = shown["migration"]
    opened = ", ".join(short(name) for name, at in positions.items() if at != "END")
    return ConsumerSnapshot(
        phase="released" if shown["released"] else "lease held",
        migration=f"{migration['state']}, {counted(migration['rows'], 'row')}" if migration else "",
        driver=f"epoch {shown['generation']}" if shown["generation"] else "",
        shards=f"{len(positions) - ended} open ({opened}) · {ended} ended",
        batch=shown["committed"],
    )


def executors_of(pods: Sequence[Mapping[str, Any]], phase: str = "Running") -> list[str]:
    """Names of the executors in a phase that are not being deleted."""
    executors = (pod for pod in pods if pod["metadata"].get("labels", {}).get(ROLE) == EXECUTOR)
    found = (pod for pod in executors if pod["status"].get("phase") == phase and "deletionTimestamp" not in pod["metadata"])
    return sorted(str(pod["metadata"]["name"]) for pod in found)


def _belongs(pod: Mapping[str, Any], owner: str | None) -> bool:
    return owner is not None and any(each["uid"] == owner for each in pod["metadata"].get("ownerReferences", []))


def _migration(migration: Mapping[str, Any] | None) -> str:
    if not migration:
        return ""
    parts = [migration["state"]]
    parts += [counted(migration["rows"], "row")] if migration.get("rows") is not None else []
    parts += [counted(count, "warning")] if (count := migration.get("warnings")) else []
    return " · ".join(parts)


def _driver(driver: Mapping[str, Any]) -> str:
    epoch = f" · epoch {driver['generation']}" if driver.get("generation") else ""
    return f"{driver['pod']}{epoch}" if driver.get("pod") else ""


def _driver_pod(driver: Mapping[str, Any]) -> str:
    """Of a member of a pool, the pool's."""
    return driver.get("host") or driver.get("pod") or ""


def _shards(stream: Mapping[str, Any]) -> str:
    names = {"openShards": "open", "endedShards": "ended", "heldShards": "held"}
    counts = {word: stream.get(name, 0) for name, word in names.items()}
    return " · ".join(f"{count} {word}" for word, count in counts.items()) if any(counts.values()) else ""


def _executors(spec: Mapping[str, Any], status: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> str:
    draining = [drain["pod"].rpartition("-")[2] for drain in status.get("draining", [])]
    parts = [f"{spec.get('replicas', 0)} wanted", f"{len(executors_of(pods))} running"]
    return " · ".join([*parts, f"{len(draining)} draining ({', '.join(draining)})"] if draining else parts)


def _event(event: Mapping[str, Any]) -> str:
    return f"{_when(event)[11:19]} {event.get('reason', '')}: {event.get('message', event.get('note', ''))}"


def _when(event: Mapping[str, Any]) -> str:
    times = (event.get("lastTimestamp"), event.get("eventTime"), event.get("firstTimestamp"))
    return str(next((time for time in times if time), event["metadata"].get("creationTimestamp", "")))


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _lag(snapshot: ConsumerSnapshot) -> str:
    parts = [] if snapshot.behind_millis is None else [f"{snapshot.behind_millis:,} ms behind"]
    parts += [] if snapshot.per_second is None else [f"{snapshot.per_second:,.1f} records/s"]
    return "   ".join(parts)

"""The driver's metrics: what each is called (the table of docs/metrics.md), and the figures that events move.

Nothing decides by a metric. The driver serves them, because it knows the figures. The supervisor keeps the lease, and a scraper that is slow,
frequent or malicious must not delay its heartbeats. A port that is taken is a warning.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from wsgiref.simple_server import WSGIServer

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sluice_consumer import logs
from sluice_consumer.batches.consumer import Committed
from sluice_consumer.config import MetricsConfig
from sluice_consumer.driver_report import DriverWarning
from sluice_consumer.metrics.load import Load

PHASES = ("plan", "process", "close", "commit")
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)  # seconds


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name as scraped, its type (counter, gauge, histogram), what it says, and its labels."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


RECORDS = Family("sluice_records_total", "counter", "User records in committed batches; an aggregate counts as many as it holds")
DEAD_LETTERS = Family("sluice_dead_letters_total", "counter", "User records that committed batches left to the dead letters")
BYTES = Family("sluice_bytes_total", "counter", "Payload bytes in committed batches; an aggregate counts as it was sent")
BATCHES = Family("sluice_batches_total", "counter", "Committed batches: new ones, and replays of those that an earlier epoch had begun", ("kind",))
BATCH_SECONDS = Family("sluice_batch_seconds", "histogram", "Seconds that committed batches spent in each phase", ("phase",))
BUSY = Family("sluice_busy_ratio", "gauge", "Part of the last minute in which a batch was worked on, with the open one")
WAITS = Family(
    "sluice_waits_total", "counter", "Reads in committed batches that waited out the lease, because an earlier attempt might have been alive"
)
TAKE_OVERS = Family("sluice_takeovers_total", "counter", "Leases taken by this driver, by what became of the previous lease", ("how",))
WARNINGS = Family("sluice_warnings_total", "counter", "Warnings given, by reason", ("reason",))
CALLS = Family("sluice_calls_total", "counter", "Requests to AWS, retries included", ("process", "service", "operation"))
RETRIES = Family("sluice_retries_total", "counter", "Requests to AWS made again, by the error code before", ("process", "service", "cause"))
STANDBY = Family("sluice_standby", "gauge", "1 while this driver stands by: it has no lease, and reads nothing; else 0")
GENERATION = Family("sluice_generation", "gauge", "Generation of this driver's lease: the take-overs in the consumer's whole life")
COMMITTED = Family("sluice_committed_batch", "gauge", "Number of the last committed batch in the consumer's whole life")
SHARDS = Family("sluice_shards", "gauge", "Shards with a row: open, ended, and held by this driver", ("state",))
BEHIND = Family("sluice_shard_millis_behind_latest", "gauge", "Milliseconds behind the tip when the shard was last read", ("shard",))
USED = Family(
    "sluice_shard_retention_used_ratio",
    "gauge",
    "Time since everything up to then was read, as a part of the retention; at 1 unread records expire",
    ("shard",),
)
RETENTION = Family("sluice_retention_seconds", "gauge", "How long the stream keeps records")

FAMILIES = (
    RECORDS, DEAD_LETTERS, BYTES, BATCHES, BATCH_SECONDS, BUSY, WAITS, TAKE_OVERS, WARNINGS, CALLS, RETRIES,
    STANDBY, GENERATION, COMMITTED, SHARDS, BEHIND, USED, RETENTION,
)  # fmt: skip


class DriverMetrics:
    """The figures that events move, and the registry that everything hangs on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series beside every counter, which we do not need
        self.registry = CollectorRegistry()
        self._clock = clock
        self._records, self._dead_letters, self._bytes, self._batches, self._waits, self._takes, self._warnings = (
            Counter(f.name, f.help, f.labels, registry=self.registry) for f in (RECORDS, DEAD_LETTERS, BYTES, BATCHES, WAITS, TAKE_OVERS, WARNINGS)
        )
        self._seconds = Histogram(BATCH_SECONDS.name, BATCH_SECONDS.help, BATCH_SECONDS.labels, registry=self.registry, buckets=BUCKETS)
        self._standby = Gauge(STANDBY.name, STANDBY.help, registry=self.registry)
        self._busy = Gauge(BUSY.name, BUSY.help, registry=self.registry)
        self._spent: dict[str, float] = {}
        self._phase, self._since = "", 0.0
        self._http: WSGIServer | None = None

    def phase(self, name: str) -> None:
        """A batch comes into its next phase (`batches.consumer.Consumer` reports it). Time after the last phase is not counted."""
        now = self._clock()
        if name == PHASES[0]:
            self._spent = {}  # the last plan may have found no batch
        elif self._phase in PHASES:
            self._spent[self._phase] = now - self._since
        self._phase, self._since = name, now

    def batch(self, committed: Committed) -> None:
        """A batch was committed."""
        self._records.inc(committed.records)
        self._bytes.inc(committed.bytes)
        self._dead_letters.inc(committed.excluded)
        self._waits.inc(committed.waits)
        self._batches.labels("replay" if committed.replay else "new").inc()
        for phase, seconds in self._spent.items():
            self._seconds.labels(phase).observe(seconds)

    def stands_by(self, server: MetricsConfig | None, *, in_pod: bool) -> None:
        """The driver has no lease yet, and is scraped all the same."""
        self._standby.set(1)
        if server:
            self.serve(server, in_pod)

    def busy(self, load: Load) -> None:
        """From now on a scrape asks `load`."""
        self._busy.set_function(lambda: load.busy)

    def took(self, how: str) -> None:
        """The lease was taken: `new`, `released`, `expired` or `forced`."""
        self._standby.set(0)
        self._takes.labels(how).inc()

    def warned(self, warning: DriverWarning) -> None:
        """A warning was given."""
        self._warnings.labels(warning.reason).inc()

    def serve(self, server: MetricsConfig, everywhere: bool) -> int | None:  # noqa: FBT001 - in a pod, or not
        """Serves `/metrics` from a thread of its own, if it does not yet; returns the port, or None if it could not be had."""
        if self._http is not None:
            return self._http.server_port
        address = server.address or (all_addresses() if everywhere else "127.0.0.1")
        try:
            self._http, _ = prometheus_client.start_http_server(server.port, address, self.registry)
        except OSError as error:
            logs.warn(f"metrics are not served on {address}, port {server.port}: {error}")
            return None
        logs.say(f"metrics: port {self._http.server_port} of {address}, /metrics")
        return self._http.server_port

    def close(self) -> None:
        """Ends the server, for callers that do not end the process."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()


def all_addresses() -> str:
    """Of both kinds where the machine has both: a pod may have an address of IPv6 only."""
    return "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - Prometheus scrapes the pod's address

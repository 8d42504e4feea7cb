"""What happens until the first batch of a cold start is committed: what the consumer tells, and when each program begins and what it uses."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from process_tree import programs

LOOK_SECONDS = 0.05
TOLD = (  # by the supervisor and the driver
    ("starting Spark on", "checks are made, the driver has imported: Spark may start"),
    ("fencing", "Spark is up, the lease is taken: rows are fenced"),
    ("batch 1:", "the first batch is committed"),
)
PROGRAMS = (  # by a word of their command line, the first that fits
    ("sluice_consumer.checks.importing", "the trial import of the pipeline"),
    ("sluice_consumer.process.driver_program", "driver"),
    ("org.apache.spark.launcher.Main", "Spark's launcher, a JVM"),
    ("java", "Spark's JVM"),
    ("lookup_data_sources", "workers that list data sources"),
    ("create_data_source", "workers that make the source"),
    ("plan_data_source_read", "workers that plan"),
    ("-m sluice_consumer.spark.python_workers", "workers that read"),
    ("-m sluice_consumer", "supervisor"),
)


@dataclass
class Timeline:
    """Looks at a program's tree from its start on.

    Attributes:
        moments: seconds since the start.
        first, used: by kind of program: seconds since the start, CPU seconds.
    """

    root: int
    begun: float
    moments: list[tuple[str, float]] = field(default_factory=list)
    first: dict[str, float] = field(default_factory=dict)
    used: dict[int, tuple[str, float]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self.over.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """Once. A process that ended keeps what it had used by the last look."""
        now = time.monotonic() - self.begun
        for pid, (command, cpu) in programs(self.root).items():
            name = next((name for word, name in PROGRAMS if word in command), "")
            if name:
                self.first.setdefault(name, now)
                self.used[pid] = name, cpu

    def hear(self, line: str) -> None:
        self.moments += [(what, time.monotonic() - self.begun) for word, what in TOLD if word in line]

    def rows(self) -> Iterator[tuple[str, float, float | None]]:
        """Everything in the order of its beginning: what, at which second, and CPU seconds of a kind of program."""
        cpu = dict.fromkeys(self.first, 0.0)
        for name, used in self.used.values():
            cpu[name] += used
        rows: list[tuple[str, float, float | None]] = [*((what, at, None) for what, at in self.moments)]
        rows += [(name, at, cpu[name]) for name, at in self.first.items()]
        yield from sorted(rows, key=lambda row: row[1])

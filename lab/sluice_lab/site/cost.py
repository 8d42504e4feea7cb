"""What a consumer uses in a month, by formula from the protocol's writes and the driver's constants: the tables of docs/cost.md.

`python -m sluice_lab.site.cost docs/cost.md` writes them. That a batch writes and reads so often is counted in `tests/lab/site/test_cost.py`.
Pure but for `main`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sluice_checkpoints.protocol.lease_keeper import BEATS_A_LEASE
from sluice_consumer.config import BatchConfig, Config
from sluice_consumer.shards.looks import LOOK_SECONDS
from sluice_operator.generate import markdown
from sluice_operator.generate.markdown import table

MONTH = 30 * 24 * 3600  # seconds
CALLS_A_SHARD = 5  # GetRecords a second and shard, for all consumers that poll it: Kinesis' quota


@dataclass(frozen=True)
class PlannedConsumer:
    """A consumer to plan for.

    Attributes:
        what: for people.
        shards: open ones.
        busy: the part of the time in which batches have records, 0 to 1; else the stream is idle.
        interval: seconds from batch to batch, `batch.intervalSeconds`.
        lease: seconds, `leaseDurationSeconds`.
        executors: `replicas`; 0 with `executor.inDriver`.
        driver, executor: GiB, memory limits of the pods.
    """

    what: str
    shards: int
    busy: float = 1.0
    interval: float = BatchConfig.interval_seconds
    lease: float = Config.lease_duration_seconds
    executors: int = 2
    driver: float = 2.0
    executor: float = 2.0

    @property
    def batches(self) -> float:
        """A month."""
        return self.busy * MONTH / self.interval

    @property
    def writes(self) -> float:
        """DynamoDB writes a month: a bind or a close of each open shard and a commit for a batch, and the beats of the lease."""
        return self.batches * writes_a_batch(self.shards) + MONTH * BEATS_A_LEASE / self.lease

    @property
    def reads(self) -> float:
        """Consistent reads a month: of each open shard, by its task and at the end of a batch."""
        return self.batches * reads_a_batch(self.shards)

    @property
    def share(self) -> float:
        """The part of the GetRecords quota of a shard that is used while batches have records, one call a batch and shard."""
        return 1 / self.interval / CALLS_A_SHARD

    @property
    def memory(self) -> float:
        """GiB of its pods."""
        return self.driver + self.executors * self.executor


def writes_a_batch(shards: int) -> int:
    """Each open shard is bound or closed, and one write commits all of them."""
    return shards + 1


def reads_a_batch(shards: int) -> int:
    """Each open shard's row, by the task that reads the shard and by the driver before it commits."""
    return 2 * shards


FLEET = (
    PlannedConsumer("1 shard, one pod (`executor.inDriver`)", 1, executors=0),
    PlannedConsumer("4 shards", 4),
    PlannedConsumer("4 shards, a batch every 30 s", 4, interval=30),
    PlannedConsumer("4 shards, busy an hour a day", 4, busy=1 / 24),
    PlannedConsumer("4 shards, idle", 4, busy=0),
    PlannedConsumer("64 shards", 64),
    PlannedConsumer("64 shards, a batch every 30 s", 64, interval=30),
    PlannedConsumer("64 shards, a batch every second", 64, interval=1),
)
TWELVE = 12 * (PlannedConsumer("", 4),)


def examples() -> str:
    """Each of FLEET, and twelve of four shards together."""
    rows = [_row(each.what, (each,), f"{each.share:.0%}" if each.busy else f"{1 / LOOK_SECONDS / CALLS_A_SHARD:.0%}") for each in FLEET]
    rows.append(_row("**twelve consumers of 4 shards**", TWELVE, f"{TWELVE[0].share:.0%}"))
    return table(("consumer", "pods", "GiB", "million writes a month", "million reads a month", "share of GetRecords"), rows)


def _row(what: str, consumers: Iterable[PlannedConsumer], share: str) -> tuple[str, ...]:
    found = list(consumers)
    pods, memory = sum(1 + each.executors for each in found), sum(each.memory for each in found)
    return what, f"{pods}", f"{memory:g}", *(f"{sum(one) / 1e6:.2f}" for one in zip(*((c.writes, c.reads) for c in found), strict=True)), share


def formulas() -> str:
    """What the examples are computed by; S open shards, I seconds a batch, L seconds of lease, E executors."""
    beats, batches = f"{MONTH:,} · {BEATS_A_LEASE} / L", f"busy · {MONTH:,} / I"
    default = MONTH * BEATS_A_LEASE / Config.lease_duration_seconds
    rows = [
        ("pods", "1 + E", "1 with `executor.inDriver`"),
        ("writes a month, batches", f"{batches} · (S + 1)", "every open shard is bound or closed, also one without records; one commit"),
        ("writes a month, lease", beats, f"{default:,.0f} at the default"),
        ("consistent reads a month", f"{batches} · 2 S", "by the task, and before the commit"),
        ("GetRecords a second and shard, busy", "1 / I, or more", f"of {CALLS_A_SHARD}; a shard that is behind is asked until the batch is full"),
        ("GetRecords a second and shard, idle", f"{1 / LOOK_SECONDS:g}", f"of {CALLS_A_SHARD}: a probe finds the first record; no batch, no write"),
    ]
    return table(("", "formula", "why"), rows)


PARTS = {"formulas": formulas, "examples": examples}


def filled(text: str) -> str:
    """The page with its tables as they are computed now."""
    return markdown.filled(text, PARTS)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(filled(path.read_text()))

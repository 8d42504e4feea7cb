"""What a consumer uses in a month, by formula from the protocol's writes and the driver's constants: the tables of docs/cost.md.

`python -m sluice_lab.site.cost docs/cost.md` writes them; `--prices` prints the examples in money. `tests/lab/site/test_cost.py` counts that a batch
writes and reads so often. Pure but for `main`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from sluice_checkpoints.protocol.lease_keeper import BEATS_A_LEASE
from sluice_consumer.batches.planner import STALE_MILLIS
from sluice_consumer.config import BatchConfig, Config
from sluice_consumer.shards.looks import LOOK_SECONDS, MOST_LOOKS
from sluice_operator.generate import markdown
from sluice_operator.generate.markdown import table

MONTH = 30 * 24 * 3600  # seconds
REFRESHES = MONTH * 1000 // STALE_MILLIS  # batches a month in which an idle shard takes part
CALLS_A_SHARD = 5  # GetRecords a second and shard, for all consumers that poll it: Kinesis' quota


@dataclass(frozen=True)
class PlannedConsumer:
    """A consumer to plan for.

    Attributes:
        what: for people.
        shards: open ones.
        active: those of them that bring records while the stream is busy; None: all.
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
    active: int | None = None

    @property
    def taking_part(self) -> int:
        """Shards of a batch."""
        return self.shards if self.active is None else self.active

    @property
    def batches(self) -> float:
        """A month."""
        return self.busy * MONTH / self.interval

    @property
    def writes(self) -> float:
        """DynamoDB writes a month: a batch's binds or closes and its commit, idle shards once an hour, and the beats of the lease."""
        hourly = self.refreshes + REFRESHES * (1 - self.busy)  # an hour without other batches has a commit of its own
        return self.batches * writes_a_batch(self.taking_part) + hourly + MONTH * BEATS_A_LEASE / self.lease

    @property
    def refreshes(self) -> float:
        """How often a month an idle shard takes part in a batch, all shards together."""
        return REFRESHES * (self.shards - self.busy * self.taking_part)

    @property
    def reads(self) -> float:
        """Consistent reads a month: of each shard of a batch, by its task and at the end of the batch."""
        return self.batches * reads_a_batch(self.taking_part) + 2 * self.refreshes

    @property
    def share(self) -> float:
        """The part of the GetRecords quota of a shard that is used while batches have records, one call a batch and shard."""
        return 1 / self.interval / CALLS_A_SHARD

    @property
    def memory(self) -> float:
        """GiB of its pods."""
        return self.driver + self.executors * self.executor

    def dollars(self, prices: Prices) -> float:
        """What its requests to DynamoDB cost in a month. Storage, Kinesis and pods are not in it."""
        return (self.writes * prices.writes + self.reads * prices.reads) / 1e6


@dataclass(frozen=True)
class Prices:
    """US dollars for a million DynamoDB write units and read units, of rows below 1 KB and consistent reads."""

    writes: float
    reads: float


def writes_a_batch(shards: int) -> int:
    """Each shard of the batch is bound or closed, and one write commits all of them."""
    return shards + 1


def reads_a_batch(shards: int) -> int:
    """Each row of the batch, by the task that reads the shard and by the driver before it commits."""
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
    PlannedConsumer("64 shards, 4 of them active", 64, active=4),
    PlannedConsumer("1,000 shards", 1000),
    PlannedConsumer("1,000 shards, 10 of them active", 1000, active=10),
)
TWELVE = 12 * (PlannedConsumer("", 4),)


def examples(prices: Prices | None = None) -> str:
    """Each of FLEET, and twelve of four shards together; with prices also in money."""
    rows = [_row(each.what, (each,), f"{each.share:.0%}" if each.busy else f"{1 / LOOK_SECONDS / CALLS_A_SHARD:.0%}") for each in FLEET]
    rows.append(_row("**twelve consumers of 4 shards**", TWELVE, f"{TWELVE[0].share:.0%}"))
    heading = ("consumer", "pods", "GiB", "million writes a month", "million reads a month", "share of GetRecords")
    if prices is None:
        return table(heading, rows)
    fleets = [*((each,) for each in FLEET), TWELVE]
    money = (f"{sum(each.dollars(prices) for each in fleet):,.2f}" for fleet in fleets)
    return table((*heading, "US dollars a month, DynamoDB requests"), [(*row, spent) for row, spent in zip(rows, money, strict=True)])


def _row(what: str, consumers: Iterable[PlannedConsumer], share: str) -> tuple[str, ...]:
    found = list(consumers)
    pods, memory = sum(1 + each.executors for each in found), sum(each.memory for each in found)
    return what, f"{pods}", f"{memory:g}", *(f"{sum(one) / 1e6:.2f}" for one in zip(*((c.writes, c.reads) for c in found), strict=True)), share


def formulas() -> str:
    """What the examples are computed by; S open shards, A of them active, I seconds a batch, L of lease, E executors, P the share of looks."""
    beats, batches = f"{MONTH:,} · {BEATS_A_LEASE} / L", f"busy · {MONTH:,} / I"
    default = MONTH * BEATS_A_LEASE / Config.lease_duration_seconds
    look = f"{CALLS_A_SHARD} · P, {1 / LOOK_SECONDS:g} by default"
    rows = [
        ("pods", "1 + E", "1 with `executor.inDriver`"),
        ("writes a month, batches", f"{batches} · (A + 1)", "every shard of the batch is bound or closed; one commit. Idle shards are left out"),
        ("writes a month, idle shards", f"{REFRESHES} · (S - busy · A)", "each takes part in one batch an hour; one commit, if there is no other"),
        ("writes a month, lease", beats, f"{default:,.0f} at the default"),
        ("consistent reads a month", f"{batches} · 2 A, and 2 for each write of an idle shard", "by the task, and before the commit"),
        ("GetRecords a second and shard, busy", "1 / I, or more", f"of {CALLS_A_SHARD}; a shard that is behind is asked until the batch is full"),
        ("GetRecords a second and shard, idle", look, f"of {CALLS_A_SHARD}: a look finds the first record; no batch, no write"),
        ("GetRecords a second and idle shard beside active ones", f"1 / I, {CALLS_A_SHARD} · P at most", "a look before each batch"),
        ("GetRecords a second, looks of a consumer in all", f"{MOST_LOOKS} at most", "with more idle shards each is looked at in its turn"),
    ]
    return table(("", "formula", "why"), rows)


PARTS = {"formulas": formulas, "examples": examples}


def filled(text: str) -> str:
    """The page with its tables as they are computed now."""
    return markdown.filled(text, PARTS)


@click.command()
@click.argument("page", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--prices", nargs=2, type=click.FloatRange(min=0), metavar="WRITES READS", help="US dollars for a million write and read units")
def main(page: Path | None, prices: tuple[float, float] | None) -> None:
    """Write the tables of PAGE, or print the examples with the prices of your region."""
    if page is not None:
        page.write_text(filled(page.read_text()))
    if page is None or prices is not None:
        click.echo(examples(Prices(*prices) if prices else None))


if __name__ == "__main__":
    main()

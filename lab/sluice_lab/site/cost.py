"""What a consumer uses in a month, by formula from the protocol's writes and the driver's constants: the tables of docs/cost.md.

`python -m sluice_lab.site.cost PAGE` writes them; `--prices` prints the examples in money, and `--region` the streams with prices of your
own. `cost_model.py` has the formulas, `prices.toml` the prices. Pure but for `main` and the prices.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from sluice_checkpoints.protocol import lease
from sluice_checkpoints.protocol.lease_keeper import BEATS_A_LEASE
from sluice_consumer.config import Config
from sluice_consumer.shards.probes import MOST_PROBES, PROBE_SECONDS
from sluice_lab.generate import markdown
from sluice_lab.generate.markdown import table
from sluice_lab.site import cost_streams
from sluice_lab.site.cost_model import CALLS_A_SHARD, MONTH, REFRESHES, PlannedConsumer, Prices

FLEET = (
    PlannedConsumer("1 shard, one pod (`executor.inDriver`)", 1, executors=0),
    PlannedConsumer("4 shards", 4),
    PlannedConsumer("4 shards, a batch every 30 s", 4, interval=30),
    PlannedConsumer("4 shards, busy an hour a day", 4, busy=1 / 24),
    PlannedConsumer("4 shards, idle", 4, busy=0),
    PlannedConsumer("4 shards, with a standby for failover", 4, standby=True),
    PlannedConsumer("64 shards", 64),
    PlannedConsumer("64 shards, a batch every 30 s", 64, interval=30),
    PlannedConsumer("64 shards, a batch every second", 64, interval=1),
    PlannedConsumer("64 shards, 4 of them active", 64, active=4),
    PlannedConsumer("1,000 shards", 1000),
    PlannedConsumer("1,000 shards, 10 of them active", 1000, active=10),
)
TWELVE = 12 * (PlannedConsumer("", 4),)


def examples(prices: Prices | None = None) -> str:
    """Each of FLEET, and twelve of four shards together; in money as well, with prices."""
    rows = [_row(each.what, (each,), f"{each.share:.0%}" if each.busy else f"{1 / PROBE_SECONDS / CALLS_A_SHARD:.0%}") for each in FLEET]
    rows.append(_row("**twelve consumers of 4 shards**", TWELVE, f"{TWELVE[0].share:.0%}"))
    heading = ("consumer", "pods", "GiB", "million writes a month", "million reads a month", "share of GetRecords")
    if prices is None:
        return table(heading, rows)
    fleets = [*((each,) for each in FLEET), TWELVE]
    money = (f"{sum(prices.requests(each) for each in fleet):,.2f}" for fleet in fleets)
    return table((*heading, "US dollars a month, DynamoDB requests"), [(*row, spent) for row, spent in zip(rows, money, strict=True)])


def _row(what: str, consumers: Iterable[PlannedConsumer], share: str) -> tuple[str, ...]:
    found = list(consumers)
    pods, memory = sum(each.pods for each in found), sum(each.memory for each in found)
    return what, f"{pods}", f"{memory:g}", *(f"{sum(one) / 1e6:.2f}" for one in zip(*((c.writes, c.reads) for c in found), strict=True)), share


def formulas() -> str:
    """What the examples are computed by; S open shards, A of them active, I seconds a batch, L of lease, E executors, P the share of probes."""
    beats, batches = f"{MONTH:,} · {BEATS_A_LEASE} / L", f"busy · {MONTH:,} / I"
    default = MONTH * BEATS_A_LEASE / Config.lease_duration_seconds
    probe = f"{CALLS_A_SHARD} · P; by default {1 / PROBE_SECONDS:g}, and {CALLS_A_SHARD} for five minutes after a record"
    rows = [
        ("pods", "1 + E", "1 with `executor.inDriver`; twice as many with a standby (`spec.rollout.standby: Always`)"),
        ("writes a month, batches", f"{batches} · (A + 1)", "a write a shard that is not idle, and one commit; a full shard costs 2 a further batch"),
        ("writes a month, idle shards", f"{REFRESHES} · (S - busy · A)", "each takes part in one batch an hour; one commit, if there is no other"),
        ("writes a month, lease", beats, f"{default:,.0f} at the default"),
        ("consistent reads a month", f"{batches} · 2 A, and 2 for each write of an idle shard", "by the task, and before the commit"),
        ("consistent reads a month, a standby", f"{MONTH:,} / {lease.LOOK_SECONDS:g}", "a look every half second, for as long as it stands by"),
        ("GetRecords a second and shard, busy", "1 / I, or more", f"of {CALLS_A_SHARD}; a shard that is behind is asked until the batch is full"),
        ("GetRecords a second and shard, idle", probe, f"of {CALLS_A_SHARD}: a probe finds the first record; no batch, no write"),
        ("GetRecords a second and idle shard beside active ones", f"1 / I, {CALLS_A_SHARD} · P at most", "a probe before each batch"),
        ("GetRecords a second, probes of a consumer in all", f"{MOST_PROBES} at most", "with more idle shards each is probed in its turn"),
    ]
    return table(("", "formula", "why"), rows)


PARTS = {
    "formulas": formulas,
    "examples": examples,
    "streams": cost_streams.streams,
    "summary": cost_streams.summary,
    "prices": cost_streams.prices,
    "kcl": cost_streams.kcl,
}


def filled(text: str) -> str:
    """The page with its tables as they are computed now."""
    return markdown.filled(text, PARTS)


PRICE = click.FloatRange(min=0)


@click.command()
@click.argument("page", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--prices", nargs=2, type=PRICE, metavar="WRITES READS", help="US dollars for a million write and read units")
@click.option(
    "--region",
    "regions",
    nargs=5,
    multiple=True,
    type=(str, PRICE, PRICE, PRICE, PRICE),
    metavar="NAME WRITES READS VCPU GIB",
    help="Prices of a region for the table of streams, in US dollars: a million write and read units, an hour of a vCPU and of a GiB. Repeatable.",
)
@click.option("--fan-out", type=PRICE, help="US dollars for an hour of one shard read by enhanced fan-out, for the table of streams. Needs --region.")
def main(
    page: Path | None,
    prices: tuple[float, float] | None,
    regions: tuple[tuple[str, float, float, float, float], ...],
    fan_out: float | None,
) -> None:
    """Write the tables of PAGE (docs/cost.md, README.md), or print the examples or the streams with the prices of your region."""
    if fan_out is not None and not regions:
        raise click.UsageError("Option '--fan-out' needs '--region'.")
    if page is not None:
        page.write_text(filled(page.read_text()))
    if regions:
        click.echo(cost_streams.streams({name: Prices(*figures) for name, *figures in regions}, fan_out))
    elif page is None or prices is not None:
        click.echo(examples(Prices(*prices) if prices else None))


if __name__ == "__main__":
    main()

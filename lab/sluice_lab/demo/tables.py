"""The last screen: the account of each shard, and the cost of each event."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from sluice_checkpoints.names import plural
from sluice_lab.scenario import pauses
from sluice_lab.scenario.account import Account, ShardAccount
from sluice_lab.scenario.pauses import Commit, Event
from sluice_lab.scenario.topology import StreamShard, short
from sluice_lab.steps import console, duration

STYLE: dict[str, Any] = {"box": box.SIMPLE_HEAD, "title_justify": "left", "title_style": "bold", "pad_edge": False, "show_edge": False}
SHOWN = 12  # numbers named after a failure


def account(found: Account, shards: Mapping[str, StreamShard]) -> Table:
    """The account of each shard and of all shards."""
    table = Table(title="Every record, accounted for", show_footer=True, **STYLE)
    table.add_column("shard", "all", no_wrap=True)
    for name, value in _columns(found.total).items():
        table.add_column(name, value, justify="right", no_wrap=True)
    table.add_column("in order", _order(found.total), no_wrap=True)
    for shard_id, counts in found.shards.items():
        table.add_row(_name(shard_id, shards), *_columns(counts).values(), _order(counts))
    return table


def costs(events: Sequence[Event], commits: Sequence[Commit]) -> Table:
    """For each event, the time until its goal and the longest time without a committed batch until then."""
    table = Table(title="What each event cost: time until its goal, and the longest without a batch", **STYLE)
    for name in ("event", "goal"):
        table.add_column(name)
    for name in ("goal after", "no batch for"):
        table.add_column(name, justify="right", no_wrap=True)
    for event in events:
        pause = pauses.longest_pause(commits, event)
        table.add_row(event.name, event.goal, duration(event.seconds), "" if pause is None else duration(pause))
    return table


def verdict(found: Account) -> str:
    """The result in one sentence."""
    total = found.total
    if found.right:
        rest = f"{total.processed:,} processed by KCL, {total.delivered:,} delivered by Sluice"
        return f"[bold green]✓[/] {total.produced:,} {plural(total.produced, 'record')} put: {rest}, none missing, none twice, all in order"
    wrong = {
        "missing": total.missing,
        "repeated": total.repeated,
        "delivered although KCL had processed them": total.reprocessed,
        "never produced": total.unexpected,
        "out of order": total.out_of_order,
    }
    said = ", ".join(f"{count} {what}" for what, count in wrong.items() if count) or "nothing was delivered"
    return f"[bold red]✗[/] {said}{_named('missing', found.missing_numbers)}{_named('twice', found.repeated_numbers)}"


def show(found: Account, shards: Mapping[str, StreamShard], events: Sequence[Event], commits: Sequence[Commit]) -> None:
    """Print the tables and the result."""
    console.print()
    console.print(account(found, shards))
    console.print()
    console.print(costs(events, commits))
    console.print()
    console.print(verdict(found), soft_wrap=True)


def _columns(counts: ShardAccount) -> dict[str, str]:
    return {
        "produced": f"{counts.produced:,}",
        "done by KCL": f"{counts.processed:,}",
        "delivered": f"{counts.delivered:,}",
        "missing": _zero(counts.missing),
        "repeated": _zero(counts.repeated + counts.reprocessed),
    }


def _zero(count: int) -> str:
    return f"[bold red]{count}[/]" if count else "0"


def _order(counts: ShardAccount) -> str:
    if not counts.delivered:
        return ""
    return f"[bold red]no, {counts.out_of_order} late[/]" if counts.out_of_order else "yes"


def _name(shard_id: str, shards: Mapping[str, StreamShard]) -> str:
    parents = shards[shard_id].parents if shard_id in shards else ()
    origin = f" [dim]of {'+'.join(map(short, parents))}[/]" if parents else ""
    return short(shard_id) + origin


def _named(what: str, numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    rest = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return f"; {what}: {', '.join(map(str, numbers[:SHOWN]))}{rest}"

"""`show`: a checkpoint table for people and programs. What a person sees of its document takes `now` as an argument."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table as Grid
from rich.text import Text

from sluice_checkpoints.cli.report import Output, place
from sluice_checkpoints.cli.table import own_table
from sluice_checkpoints.cli.table_document import document
from sluice_checkpoints.dynamodb.table import Endpoint, client
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import END, Position
from sluice_checkpoints.protocol.owners import named
from sluice_checkpoints.protocol.rows import EXPORTED, Item

POSITION = ("at", "millis", "sequence", "sub")
HASH = 12  # characters of a spec's hash
LABEL = 11  # columns of the words before the facts
WIDE = 105  # columns from which the parents have theirs
UNITS = (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1))


def run(table: str, region: str, endpoint: str | None, output: Output) -> None:
    """Prints the table.

    Raises:
        Refused: it does not exist, or is none of ours.
    """
    shown = document(own_table(table, client(Endpoint(region, endpoint))))
    if output.as_json:
        output.document(shown)
    else:
        output.out.print(screen(table, shown, datetime.now(UTC), output.out.width))


def position_of(shard: Item) -> Position:
    """Where a shard of the document is."""
    return Position.from_map({name: shard[name] for name in POSITION if name in shard})


def screen(table: str, shown: Item, now: datetime, width: int) -> RenderableType:
    """All of it: whose the table is, what is committed, what is open, who holds the lease, and each shard."""
    parts: list[RenderableType] = [Text(table, style="bold"), *_facts(shown, now), Text(), _grid(shown["shards"], now, wide=width >= WIDE)]
    if shown["versions"]:
        parts += [Text(), _versions(shown["versions"])]
    if folded := shown["folded"]["shards"]:
        parts.append(Text(f"and {counted(len(folded), 'shard')} read to the end, and gone from the stream; see --json for the names"))
    return Group(*parts)


def _facts(shown: Item, now: datetime) -> Iterator[RenderableType]:
    for label, text in _labelled(shown, now):
        if text:
            line = Grid.grid(padding=(0, 2, 0, 0))
            line.add_column(width=LABEL, no_wrap=True)
            line.add_column(overflow="fold")
            line.add_row(label, Text(text))
            yield line


def _labelled(shown: Item, now: datetime) -> Iterator[tuple[str, str]]:
    migration = shown["migration"]
    origin = f"migration from {migration['source']} ({migration['format']}) {migration['state']}" if migration else ""
    if shown["generation"] is None:
        yield "consumer", "no consumer yet"
        yield "origin", origin
        return
    owner = f", of {named(shown['owner'], shown['cluster'])}" if shown["owner"] else ""
    yield "consumer", f"{shown['state']}{owner}"
    yield "stream", shown["stream"]
    yield "committed", _committed(shown["lastCommit"], now)
    yield "open", _open(shown["open"])
    yield "lease", "" if shown["state"] == EXPORTED else _lease(shown, now)  # nobody can take it any more
    yield "origin", origin
    if not shown["consistent"]:
        yield "warning", "the consumer continued while its rows were read; run this again for positions of one batch"


def _committed(last: Item, now: datetime) -> str:
    if not last["batch"]:
        return "no batch yet"
    when = f" {ago(last['at'], now)}, at {moment(last['at'])}" if last["at"] is not None else ", at a time that its driver did not write down"
    size = f": {counted(last['records'], 'record')}" if last["records"] is not None else ""
    rate = f", {last['perSecond']:g} a second" if last["perSecond"] is not None else ""
    return f"batch {last['batch']}{when}{size}{rate}"


def _open(batch: Item | None) -> str:
    if batch is None:
        return "no batch"
    return f"batch {batch['batch']}: {counted(batch['records'], 'record')} bound in {counted(batch['shards'], 'shard')} so far"


def _lease(shown: Item, now: datetime) -> str:
    lease = shown["lease"]
    since, generation = parsed(lease["since"]), f"generation {shown['generation']}"
    if shown["released"]:
        last = f" by {shown['holder']}" if shown["holder"] else ""
        return f"released{last}, {generation}"
    if not shown["generation"]:
        return "nobody has taken it"
    held = f"held by {shown['holder'] or 'an unknown holder'}" + (f" since {moment(since)}" if since is not None else "")
    return f"{held}, {generation}{_beat(lease, now)}"


def _beat(lease: Item, now: datetime) -> str:
    at, promise = lease["beatAt"], lease["millis"]
    if at is None:
        return f"; no beat of it is known (promised for {lasting(promise)})"
    late = "" if now.timestamp() * 1000 - at <= promise else f", longer ago than the {lasting(promise)} that it promised"
    return f"; last beat {ago(at, now)}{late}"


def _versions(known: list[Item]) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("BATCHES", "SINCE", "POSITIONS", "SPEC", "IMAGE"):
        grid.add_column(name, overflow="fold", no_wrap=name != "IMAGE")
    for each in known:
        kept = "kept" if each["positions"] else "-"
        grid.add_row(*map(escape, [_batches(each), moment(each["at"]), kept, (each["hash"] or "unknown")[:HASH], each["image"] or "-"]))
    return grid


def _batches(version: Item) -> str:
    first, last = version["first"], version["last"]
    if last is None:
        return f"{first} on"
    return f"{first} to {last}" if version["batches"] else f"none of {first}"


def _grid(shards: Item, now: datetime, *, wide: bool) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("SHARD", "LAG", "READ UP TO", "BATCH", "POSITION", *(("PARENTS",) if wide else ())):
        grid.add_column(name, overflow="fold", no_wrap=name != "POSITION")
    for shard_id, shard in shards.items():
        cells = [shard_id, lag(shard, shards), _read_to(shard, now), str(shard["range"]["batch"] or "-"), _place(shard)]
        grid.add_row(*map(escape, [*cells, *(["\n".join(shard["lineage"]["parents"]) or "-"] if wide else [])]))
    return grid


def _place(shard: Item) -> str:
    """The position; a sequence number alone is the last record that was read."""
    return place(position_of(shard)).removeprefix("AFTER ")


def lag(shard: Item, shards: Item) -> str:
    """How far a shard was behind the tip of its stream when its last range was read, in words."""
    if position_of(shard) == END:
        return "ended"
    if shard["range"]["batch"] < shard["range"]["joins"]:
        waits = any(parent in shards and position_of(shards[parent]) != END for parent in shard["lineage"]["parents"])
        return "waits for parents" if waits else "not read yet"
    behind = shard["range"]["behind"]
    if behind is None:
        return "end in open batch"
    return f"{lasting(behind)} behind" if behind else "at the tip"


def _read_to(shard: Item, now: datetime) -> str:
    read_to = shard["range"]["readTo"]
    return ago(read_to, now) if read_to is not None else "-"


def lasting(millis: int) -> str:
    """`13s`, `2m13s`, `3h05m`, `2d04h`: two units at most."""
    seconds = millis // 1000
    for unit, size, below, smaller in UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit}{seconds % size // smaller:02}{below}"
    return f"{seconds}s"


def ago(millis: int, now: datetime) -> str:
    """`2m13s ago`; a clock that is behind the writer's gives `0s ago`."""
    return f"{lasting(max(0, round(now.timestamp() * 1000) - millis))} ago"


def moment(millis: int) -> str:
    """`2026-11-21 10:00:19Z`."""
    return f"{datetime.fromtimestamp(millis / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"


def parsed(text: str | None) -> int | None:
    """An ISO 8601 time in epoch milliseconds; None: it is none, or has no time zone."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return None if moment.tzinfo is None else round(moment.timestamp() * 1000)

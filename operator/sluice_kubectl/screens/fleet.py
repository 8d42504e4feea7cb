"""`status` without a name, `lag` and `shards NAME`: consumers, those that need attention first, and the shards of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from sluice_kubectl.screens.words import NONE, Hanging, age, grid, joined, lag, number, phase, ready, row, why
from sluice_kubectl.views.consumer import ConsumerView
from sluice_kubectl.views.pool import PoolView
from sluice_kubectl.views.shards import ShardView
from sluice_operator.names import counted, lasting, printable

NAMED = 5  # members of a pool
HEAD, TAIL = 8, 10  # digits of a sequence number that people are shown


def fleet(consumers: Sequence[ConsumerView], now: datetime, *, namespaces: bool) -> RenderableType:
    """One line each, in the given order, and a sum."""
    if not consumers:
        where = "in any namespace; next:" if namespaces else "here; next: run `kubectl sluice status -A`, or"
        return Text(f"no KinesisConsumers {where} apply one (docs: examples/README.md)")
    table = grid(*(["namespace"] if namespaces else []), "name", "phase", "ready", "lag", "rec/s", "executors", "shards", "why", wraps="why")
    for view in consumers:
        cells: list[str | Text] = [view.name, phase(view), ready(view), lag(view.figures, now), number(view.figures.records_per_second)]
        cells += [f"{view.executors}/{view.desired}", number(view.figures.open_shards), why(view)]
        row(table, *([view.namespace] if namespaces else []), *cells)
    return Group(Hanging(summary(consumers)), Text(), table)


def pool_list(pools: Sequence[PoolView], *, namespaces: bool) -> RenderableType:
    """One line each: how many members it has, how many of these are ready, and which were put out."""
    if not pools:
        where = "in any namespace; next:" if namespaces else "here; next: run `kubectl sluice status --pools -A`, or"
        return Text(f"no KinesisConsumerPools {where} apply one (docs: pools.md)")
    table = grid(*(["namespace"] if namespaces else []), "name", "phase", "ready", "members", "executors", "pod", "why", wraps="why")
    for view in pools:
        more = f" and {len(view.out) - NAMED} more" if len(view.out) > NAMED else ""
        out = f"out of it: {', '.join(view.out[:NAMED])}{more}" if view.out else ""
        remarks = joined([text for text in (out, why(view)) if text])
        cells: list[str | Text] = [view.name, phase(view), ready(view), f"{view.ready_members}/{view.members}"]
        cells += [f"{view.executors}/{number(view.desired)}", view.pod or NONE, remarks]
        row(table, *([view.namespace] if namespaces else []), *cells)
    return Group(Text("Pools", style="bold"), Padding(table, (0, 0, 0, 2)))


def summary(consumers: Sequence[ConsumerView]) -> Text:
    """`3 consumers · 2 ready · 1 needs attention · farthest behind: orders, 2m13s`."""
    parts = [counted(len(consumers), "consumer"), f"{sum(view.ready == 'True' for view in consumers)} ready"]
    if urgent := sum(view.needs_attention for view in consumers):
        parts.append(f"{urgent} need{'s' if urgent == 1 else ''} attention")
    known = [(view.figures.lag_millis, view.name) for view in consumers if view.figures.lag_millis is not None]
    if known:
        farthest, name = max(known)
        parts.append(f"farthest behind: {name}, {lasting(farthest)}")
    return Text(" · ".join(parts), style="bold red" if urgent else "bold")


def lags(consumers: Sequence[ConsumerView], now: datetime, *, namespaces: bool) -> RenderableType:
    """How far each is behind and whether it moves, those farthest behind first."""
    table = grid(*(["namespace"] if namespaces else []), "name", "lag", "rec/s", "reported", "batch", "open batch", "since", "executors")
    for view in sorted(consumers, key=lambda each: -(each.figures.lag_millis or 0)):
        figures = view.figures
        cells = [view.name, lag(figures, now), number(figures.records_per_second), age(figures.reported, now), number(figures.batch)]
        cells += [number(figures.open_batch), age(figures.batch_at, now), f"{view.executors}/{view.desired}"]
        row(table, *([view.namespace] if namespaces else []), *cells)
    return table


def shard_screen(view: ConsumerView, shards: Sequence[ShardView], notes: Sequence[str]) -> RenderableType:
    """The sums of the status, each shard that is known, and what is missing and how to get it."""
    figures = view.figures
    sums = f"{number(figures.open_shards)} open, {number(figures.ended_shards)} ended, {number(figures.held_shards)} held"
    parts: list[RenderableType] = [Hanging(Text(f"{view.namespace}/{view.name}: {sums}", style="bold"))]
    if shards:
        table = grid("shard", "lag", "retention used", "position", "holder", "parents", wraps="position")
        for shard in shards:
            behind = NONE if shard.lag_millis is None else lasting(shard.lag_millis)
            used = NONE if shard.retention_used is None else f"{shard.retention_used:.0%}"
            row(table, shard.id, behind, used, _position(shard), shard.holder or NONE, "\n".join(shard.parents) or NONE)
        parts += [Text(), table]
    parts += [Text(), *(Hanging(Text(printable(note), style="yellow")) for note in notes)] if notes else []
    return Group(*parts)


def _position(shard: ShardView) -> str:
    if shard.position is None:
        return NONE
    return " ".join(_short(str(value)) for value in shard.position.values() if value is not None)


def _short(word: str) -> str:
    return f"{word[:HEAD]}…{word[-TAIL:]}" if len(word) > 2 * (HEAD + TAIL) else word

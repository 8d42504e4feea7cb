"""`shards NAME`: lag, position and holder of each shard."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from sluice_kubectl.screens.words import NONE, Hanging, grid, number, row
from sluice_kubectl.views.consumer import ConsumerView
from sluice_kubectl.views.shards import ShardView
from sluice_operator.names import lasting, printable

HEAD, TAIL = 8, 10  # digits of a sequence number that people are shown


def shard_screen(one: ConsumerView, shards: Sequence[ShardView], notes: Sequence[str]) -> RenderableType:
    """The sums of the status, each shard that is known, and what is missing and how to get it."""
    figures = one.figures
    sums = f"{number(figures.open_shards)} open, {number(figures.ended_shards)} ended, {number(figures.held_shards)} held"
    parts: list[RenderableType] = [Hanging(Text(f"{one.namespace}/{one.name}: {sums}", style="bold"))]
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

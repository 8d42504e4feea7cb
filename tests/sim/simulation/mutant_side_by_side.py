"""Mutants of writes that are made side by side (docs/protocol.md, "Writes side by side")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from simulation import ports
from simulation.mutant import Patch, mutant

from sluice_checkpoints.protocol.store import CheckpointStore


def held_back(patch: Patch, write: str, step: str) -> None:
    """The last of the writes side by side is made after the step that is to wait for it."""
    real_calls, real_step = ports.Client.side_by_side, getattr(CheckpointStore, step)
    late: dict[Any, Callable[[], Any]] = {}

    def side_by_side(self: ports.Client, calls: Iterable[Any]) -> list[Any]:
        made = list(calls)
        if not made or write not in {made[-1].func.__name__, made[-1].func.__name__.lstrip("_")}:
            return real_calls(self, made)
        late[self] = made[-1]
        return [*real_calls(self, made[:-1]), _believed(made[-1])]

    def stepped(self: CheckpointStore, *args: Any) -> Any:
        answer = real_step(self, *args)
        if self.table in late:
            late.pop(self.table)()
        return answer

    patch.setattr(ports.Client, "side_by_side", side_by_side)
    patch.setattr(CheckpointStore, step, stepped)


def _believed(call: Any) -> Any:
    """What a close will have brought; nobody looks at what a fence or a put brings."""
    if call.func.__name__ != "_closed":
        return None
    batch, row = call.args
    return replace(row, batch=batch, start=row.end, first=None, records=0, readers={}, read_by=None, replays=0, note=None)


@mutant(
    "the scan does not wait for the last fence",
    "Writes side by side: the scan waits for all fences",
    stories="a_bind_before_the_last_fence",
)
def scan_before_a_fence(patch: Patch) -> None:
    """A bind between the two is not seen (KAFKA-8187)."""
    held_back(patch, "fence", "contents")


@mutant(
    "the commit does not wait for the last close",
    "Writes side by side: the commit waits for all closes",
    stories="binds_after_the_closes",
)
def commit_before_a_close(patch: Patch) -> None:
    """A late task binds into a batch that is over; the close that fails comes too late."""
    held_back(patch, "closed", "commit")


@mutant(
    "the plan counts as carried out before its last row",
    "Writes side by side: the mark waits for all rows of the plan",
    stories="a_crash_before_the_last_row_of_the_plan",
)
def mark_before_a_row(patch: Patch) -> None:
    """A crash leaves a shard to the audit, which begins it at its oldest record."""
    held_back(patch, "put_new", "finish_bootstrap")


@mutant(
    "an error beside other writes is not heard of",
    "Writes side by side: the epoch ends as it would by that write alone",
    stories="a_close_without_an_answer_beside_another",
)
def swallowed(patch: Patch) -> None:
    """A batch is committed although one of its rows is not closed."""

    def side_by_side(_self: ports.Client, calls: Iterable[Any]) -> list[Any]:
        return [_answer(call) for call in calls]

    patch.setattr(ports.Client, "side_by_side", side_by_side)


def _answer(call: Any) -> Any:
    try:
        return call()
    except Exception:  # noqa: BLE001 - that is the mutant
        return _believed(call)

"""Tells one schedule step by step, or tries random ones: `python tests/sim/replay.py --help` (tests/sim/README.md)."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import InvalidArgument
from hypothesis.stateful import run_state_machine_as_test
from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1]))  # for `mutants`: tests have no packages

from simulation.every import MUTANTS, STORIES
from simulation.habits import Habits
from simulation.machine import Protocol
from simulation.machine_migration import Beginning
from simulation.machine_standby import Standing
from simulation.world import World

console = Console()


@click.command()
@click.argument("story", required=False)
@click.option("--mutant", help="the rule to take out first, by its name")
@click.option("--mutants", is_flag=True, help="list the mutants")
@click.option(
    "--program", type=click.Path(exists=True, path_type=Path), help="lines that Hypothesis printed: state = Protocol(), state.begin(...), ..."
)
@click.option("--random", "examples", type=int, help="try so many new examples of each machine")
def main(story: str | None, mutant: str | None, mutants: bool, program: Path | None, examples: int | None) -> None:  # noqa: FBT001 - click passes flags so
    """Replays a story or a program of the state machine, and prints each step and the invariants that broke."""
    logging.disable(logging.CRITICAL)
    if examples:
        try_random(examples)
    elif program:
        tell(lambda: played(program.read_text()))
    elif story:
        with pytest.MonkeyPatch.context() as patch:
            taken_out(mutant, patch)
            tell(lambda: finished(STORIES[story]()))
    else:
        listed({mutant.name: mutant.rule for mutant in MUTANTS} if mutants else {name: made.__doc__ or "" for name, made in STORIES.items()})


def taken_out(name: str | None, patch: pytest.MonkeyPatch) -> None:
    if name:
        found = [mutant for mutant in MUTANTS if mutant.name == name]
        if not found:
            raise click.UsageError(f"no mutant is named {name!r}; --mutants lists them")
        found[0].apply(patch)


def finished(world: World) -> World:
    if not world.ledger.broken:
        world.finish()
    return world


def played(text: str) -> World:
    """Runs the lines of a falsifying example; those that are no program are left out. An invariant may stop it."""
    lines = [line.strip() for line in text.splitlines()]
    names: dict[str, Any] = {"Protocol": Protocol, "Beginning": Beginning, "Standing": Standing, "Habits": Habits}
    with contextlib.suppress(AssertionError, InvalidArgument):  # notes are for a test
        exec("\n".join(line for line in lines if line.startswith("state")), names)  # noqa: S102 - lines of this repository's own test run
    world: World = names["state"].world
    return world


def tell(run: Callable[[], World]) -> None:
    """Prints a world's trace; exit 1 if an invariant broke."""
    world = run()
    for line in world.trace:
        console.print(line, highlight=False, markup=False)
    broken = world.ledger.broken
    world.end()
    for name, why in broken:
        console.print(f"[red]{name}[/red]: {why}")
    if broken:
        raise SystemExit(1)
    console.print("[green]no invariant broke[/green]")


def try_random(examples: int) -> None:
    """New examples, not shrunk: a failure prints its program."""
    how = settings(
        max_examples=examples, stateful_step_count=60, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )
    for machine in (Beginning, Standing, Protocol):
        with console.status(f"{machine.__name__}: {examples} examples"):
            run_state_machine_as_test(machine, settings=how)  # type: ignore[no-untyped-call]  # hypothesis
        console.print(f"{machine.__name__}: {examples} examples, no invariant broke")


def listed(rows: dict[str, str]) -> None:
    table = Table("name", "what")
    for name, what in rows.items():
        table.add_row(name, what)
    console.print(table)


if __name__ == "__main__":
    main()

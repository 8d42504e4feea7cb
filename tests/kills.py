"""Which test files notice which mutants of the protocol: `make kills ROOM=tests/consumer/batches MUTANTS=fold`. By hand; no run of CI has it.

A file that kills nothing which no cheaper file kills is deleted, or CONTRIBUTING.md ("One home for each rule") says why it stays. A mutant that no
file kills is a rule without a proof.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import pytest
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "sim")]

from simulation.every import MUTANTS  # noqa: E402 - needs the path
from simulation.mutant import ProtocolMutant  # noqa: E402


class Watch:
    """Seconds of each file, and which failed: after its first failure the rest of a file is skipped."""

    def __init__(self) -> None:
        self.seconds, self.failed = defaultdict[str, float](float), set[str]()

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if str(item.path) in self.failed:
            pytest.skip("its file has noticed")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path = str(HERE.parent / report.nodeid.partition("::")[0])
        self.seconds[path] += report.duration
        if report.failed:
            self.failed.add(path)


def run(rooms: tuple[str, ...], mutant: ProtocolMutant | None) -> dict[str, Any]:
    """Runs the rooms in a process of their own, with a rule taken out."""
    with tempfile.NamedTemporaryFile("r") as file:
        child = os.fork()
        if not child:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            watch, patch = Watch(), pytest.MonkeyPatch()
            if mutant:
                mutant.apply(patch)
            pytest.main([*rooms, "-q", "-p", "no:cacheprovider", "-m", "not slow and not spark and not built and not cluster"], plugins=[watch])
            Path(file.name).write_text(json.dumps({"seconds": watch.seconds, "failed": sorted(watch.failed)}))
            os._exit(0)
        os.waitpid(child, 0)
        found: dict[str, Any] = json.load(file)
        return found


@click.command()
@click.argument("rooms", nargs=-1, required=True)
@click.option("--mutants", default="", help="Only those whose name contains this.")
def main(rooms: tuple[str, ...], mutants: str) -> None:
    """Print which files of ROOMS kill which mutants, and which files kill none that a cheaper one does not kill."""
    console = Console()
    whole = run(rooms, None)
    if whole["failed"]:
        raise click.ClickException(f"these fail without a mutant: {', '.join(whole['failed'])}")
    killed, begun = defaultdict[str, set[str]](set), time.monotonic()
    chosen = [mutant for mutant in MUTANTS if mutants in mutant.name]
    for number, mutant in enumerate(chosen, 1):
        failed = run(rooms, mutant)["failed"]
        for path in failed:
            killed[path].add(mutant.name)
        console.print(f"{number}/{len(chosen)} {time.monotonic() - begun:.0f} s  {mutant.name}: {len(failed)} files")
    table = Table("file", "seconds", "kills", "kills that no cheaper file has", box=None)
    table.columns[0].no_wrap = True
    known = set[str]()
    for path in sorted(whole["seconds"], key=whole["seconds"].__getitem__):
        table.add_row(
            str(Path(path).relative_to(HERE.parent)), f"{whole['seconds'][path]:.1f}", str(len(killed[path])), str(len(killed[path] - known))
        )
        known |= killed[path]
    console.print(table)
    for mutant in chosen:
        if mutant.name not in known:
            console.print(f"killed by none of these files: {mutant.name}{' (harmless alone)' if mutant.harmless else ''}")


if __name__ == "__main__":
    main()

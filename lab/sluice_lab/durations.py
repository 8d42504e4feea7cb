"""`python -m sluice_lab.durations TARGET [budgets]`: what the tests of `make test` or `make test-more` took, from pytest's JUnit files.

Each stage of a target writes one file into `.work/durations/TARGET`. Shown are the stages, the 30 dearest tests, and each folder that took a third
more than its budget in tests/budgets.toml. That fails nothing: seconds depend on the machine, too. With `budgets` the lines of that file are
printed that the run would just meet.
"""

import math
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree as ET

from rich.table import Table

from sluice_lab import places
from sluice_lab.steps import console, duration

BUDGETS = places.REPO / "tests" / "budgets.toml"
DEAREST, TOLERANCE = 30, 4 / 3
NONE = "no budget: add it to tests/budgets.toml"


@dataclass(frozen=True)
class TimedTest:
    """A test that was run: its file's folder, its name, and seconds with its set-up, which may be that of many."""

    folder: str
    name: str
    seconds: float


@dataclass(frozen=True)
class Stage:
    """One run of pytest; `seconds` of the clock."""

    name: str
    tests: tuple[TimedTest, ...]
    seconds: float


def read(path: Path) -> Stage:
    """A stage's JUnit file. Pytest names a file as a module: `tests.lab.test_quick`."""
    (suite,) = ET.parse(path).getroot()  # noqa: S314 - our own pytest wrote it
    return Stage(path.stem, tuple(map(_test, suite.iter("testcase"))), float(suite.get("time", 0)))


def _test(case: ET.Element) -> TimedTest:
    file = PurePosixPath(case.get("classname", "").replace(".", "/"))
    return TimedTest(str(file.parent), f"{file}.py::{case.get('name')}", float(case.get("time", 0)))


def dearest(tests: Iterable[TimedTest], count: int = DEAREST) -> list[TimedTest]:
    """Those that took longest, longest first."""
    return sorted(tests, key=lambda test: -test.seconds)[:count]


def spent(tests: Iterable[TimedTest], budgets: Iterable[str]) -> dict[str, float]:
    """Seconds by folder: the innermost one with a budget, or a test's own where none has."""
    found: defaultdict[str, float] = defaultdict(float)
    known = set(budgets)
    for test in tests:
        above = (str(folder) for folder in (PurePosixPath(test.folder), *PurePosixPath(test.folder).parents))
        found[next((folder for folder in above if folder in known), test.folder)] += test.seconds
    return dict(sorted(found.items()))


def exceeded(took: Mapping[str, float], budgets: Mapping[str, float]) -> dict[str, str]:
    """What is to be said of a folder: it took over a third more than its budget, or has none."""
    found = {folder: NONE for folder in took if folder not in budgets}
    for folder in took.keys() & budgets.keys():
        if took[folder] > budgets[folder] * TOLERANCE:
            found[folder] = f"{took[folder]:.0f} s, of a budget of {budgets[folder]:.0f} s: make it cheaper, or raise tests/budgets.toml"
    return dict(sorted(found.items()))


def budgets_of(target: str, path: Path = BUDGETS) -> dict[str, float]:
    """Seconds by folder, of a target."""
    return {folder: float(seconds) for folder, seconds in tomllib.loads(path.read_text())[target].items()}


def show(target: str, stages: Sequence[Stage], budgets: Mapping[str, float]) -> None:
    """Print it all."""
    tests = [test for stage in stages for test in stage.tests]
    table = Table("seconds", "test", title=f"the {DEAREST} dearest tests of make {target}", box=None, pad_edge=False)
    for test in dearest(tests):
        table.add_row(f"{test.seconds:.1f}", test.name)
    console.print(table, soft_wrap=True)
    for stage in stages:
        console.print(f"{stage.name}: {len(stage.tests)} tests, {duration(stage.seconds)}", soft_wrap=True)
    for folder, words in exceeded(spent(tests, budgets), budgets).items():
        console.print(f"OVER BUDGET {folder}: {words}", style="bold yellow", soft_wrap=True)


def proposed(took: Mapping[str, float]) -> str:
    """Lines of a table of tests/budgets.toml that this run would just meet: seconds up to the next five."""
    return "\n".join(f'"{folder}" = {5 * math.ceil(seconds / 5)}' for folder, seconds in took.items())


def main(target: str, what: str = "show") -> int:
    """Show a target's last run, or propose budgets by it; the exit code is 0, whatever it took."""
    files = sorted((places.work() / "durations" / target).glob("*.xml"), key=lambda path: path.stat().st_mtime)
    stages, budgets = list(map(read, files)), budgets_of(target)
    if what == "budgets":
        print(proposed(spent([test for stage in stages for test in stage.tests], budgets)))
    else:
        show(target, stages, budgets)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))

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
from datetime import datetime
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree as ET

from sluice_checkpoints.plurals import counted
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
    """One run of pytest: when it began (seconds since 1970), and its seconds of the clock."""

    name: str
    tests: tuple[TimedTest, ...]
    began: float
    seconds: float


def read(path: Path) -> Stage:
    """A stage's JUnit file. Pytest names a file as a module: `tests.lab.test_quick`.

    Raises:
        ValueError: the file was cut off.
    """
    try:
        (suite,) = ET.parse(path).getroot()  # noqa: S314 - our own pytest wrote it
    except (ET.ParseError, ValueError) as error:
        raise ValueError(f"{path.name} has no whole run of pytest: run it again") from error
    began = datetime.fromisoformat(suite.get("timestamp", "1970-01-01")).timestamp()
    return Stage(path.stem, tuple(map(_test, suite.iter("testcase"))), began, float(suite.get("time", 0)))


def span(stages: Iterable[Stage]) -> float:
    """Seconds from the first one's begin to the last one's end: some run side by side."""
    found = list(stages)
    return max(stage.began + stage.seconds for stage in found) - min(stage.began for stage in found)


def _test(case: ET.Element) -> TimedTest:
    module, name = case.get("classname", ""), case.get("name", "")
    file = PurePosixPath((module or name).replace(".", "/"))  # of a file that could not be collected, the name is the module
    return TimedTest(str(file.parent), f"{file}.py::{name}" if module else f"{file}.py", float(case.get("time", 0)))


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
    console.print(f"the {DEAREST} dearest tests of make {target}, in seconds", soft_wrap=True)
    for test in dearest(tests):
        console.print(f"{test.seconds:9.1f}  {test.name}", soft_wrap=True, markup=False)  # a table would cut names to the columns of a log
    for stage in stages:
        console.print(f"{stage.name}: {counted(len(stage.tests), 'test')}, {duration(stage.seconds)}", soft_wrap=True)
    for folder, words in exceeded(spent(tests, budgets), budgets).items():
        console.print(f"OVER BUDGET {folder}: {words}", style="bold yellow", soft_wrap=True)


def proposed(took: Mapping[str, float]) -> str:
    """Lines of a table of tests/budgets.toml that this run would just meet: seconds up to the next five."""
    return "\n".join(f'"{folder}" = {5 * math.ceil(seconds / 5)}' for folder, seconds in took.items())


def measured(files: Iterable[Path]) -> tuple[list[Stage], dict[str, str]]:
    """The stages that were written, and, by the names of the others, why they are none."""
    stages, cut_off = list[Stage](), dict[str, str]()
    for path in files:
        try:
            stages.append(read(path))
        except ValueError as error:
            cut_off[path.stem] = str(error)
    return stages, cut_off


def main(target: str, what: str = "show") -> int:
    """Show a target's last run, or propose budgets by it; the exit code is 0, whatever it took."""
    folder, budgets = places.work() / "durations" / target, budgets_of(target)
    stages, cut_off = measured(sorted(folder.glob("*.xml"), key=lambda path: path.stat().st_mtime))
    if not stages and not cut_off:
        console.print(f"NOT MEASURED: no JUnit file is in {folder}; run make {target}", soft_wrap=True)
    elif what == "budgets":
        print(proposed(spent([test for stage in stages for test in stage.tests], budgets)))
    else:
        show(target, stages, budgets)
    for name, why in cut_off.items():
        console.print(f"NOT MEASURED {name}: {why}", style="bold yellow", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))

"""What the tests of a target took, by the JUnit files that its lanes left in .work/durations/TARGET: each lane, and the 30 dearest tests."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from sluice_checkpoints.names import counted
from sluice_lab import places
from sluice_lab.steps import console, duration

DEAREST = 30


@dataclass(frozen=True)
class TimedTest:
    """A test that was run: its name, and seconds with its set-up, which may be that of many."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Stage:
    """One run of pytest, and its seconds of the clock."""

    name: str
    tests: tuple[TimedTest, ...]
    seconds: float
    passed: int


def read(path: Path) -> Stage:
    """A stage's JUnit file. Pytest names a file as a module: `tests.lab.test_quick`.

    Raises:
        ValueError: the file was cut off.
    """
    try:
        (suite,) = ET.parse(path).getroot()  # noqa: S314 - our own pytest wrote it
    except (ET.ParseError, ValueError) as error:
        raise ValueError(f"{path.name} has no whole run of pytest: run it again") from error
    passed = int(suite.get("tests", 0)) - sum(int(suite.get(kind, 0)) for kind in ("errors", "failures", "skipped"))
    return Stage(path.stem, tuple(map(_test, suite.iter("testcase"))), float(suite.get("time", 0)), passed)


def _test(case: ET.Element) -> TimedTest:
    module, name = case.get("classname", ""), case.get("name", "")
    file = (module or name).replace(".", "/")  # of a file that could not be collected, the name is the module
    return TimedTest(f"{file}.py::{name}" if module else f"{file}.py", float(case.get("time", 0)))


def show(target: str, stages: Sequence[Stage]) -> None:
    """Print it all."""
    tests = [test for stage in stages for test in stage.tests]
    console.print(f"the {DEAREST} dearest tests of make {target}, in seconds", soft_wrap=True)
    for test in sorted(tests, key=lambda test: -test.seconds)[:DEAREST]:
        console.print(f"{test.seconds:9.1f}  {test.name}", soft_wrap=True, markup=False)  # a table would cut names to the columns of a log
    for stage in stages:
        console.print(f"{stage.name}: {counted(len(stage.tests), 'test')}, {duration(stage.seconds)}", soft_wrap=True)


def measured(files: Iterable[Path]) -> tuple[list[Stage], dict[str, str]]:
    """The stages that were written, and, by the names of the others, why they are none."""
    stages, cut_off = list[Stage](), dict[str, str]()
    for path in files:
        try:
            stages.append(read(path))
        except ValueError as error:
            cut_off[path.stem] = str(error)
    return stages, cut_off


def main(target: str) -> None:
    """Show a target's last run."""
    folder = places.work() / "durations" / target
    stages, cut_off = measured(sorted(folder.glob("*.xml"), key=lambda path: path.stat().st_mtime))
    if stages:
        show(target, stages)
    for name, why in cut_off.items():
        console.print(f"NOT MEASURED {name}: {why}", style="bold yellow", soft_wrap=True)

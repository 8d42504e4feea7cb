"""Which lane runs a test, and what becomes of one that fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from sluice_lab import lanes, places, spark_lines
from sluice_lab.lanes import Lane
from sluice_lab.machine import parts

MARKED = [marks for count in range(6) for marks in itertools.combinations(("built", "cluster", "spark", "lake", "slow"), count)]
ASKED, ASKED_FOR = ("passed-all", "files"), lanes.asked_for
HERE = places.REPO / "tests"
CONFTEST = """
import sys

import pytest

sys.path.append({here!r})

import failures_at_once


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    failures_at_once.register(config)
"""
PASSES, FAILS = "def test_it(): pass", "def test_it(): assert False, 'as always'"
FAILS_ONCE = """
from pathlib import Path


def test_it():
    tried = Path(__file__).with_suffix(".tried")
    assert tried.exists() or tried.touch(), "the first time"
"""


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_PARTS", str(tmp_path / "parts"))
    monkeypatch.delenv(parts.BUILDS, raising=False)
    monkeypatch.setattr(spark_lines, "submitted", lambda line, _settings=None: line)
    monkeypatch.setattr(lanes, "asked_for", list)


@pytest.mark.parametrize("marks", MARKED, ids=" ".join)
def test_a_test_is_run_by_one_target(marks: tuple[str, ...]) -> None:
    """Of those that share the tests. A test of a chosen file may be in several lanes of one target: they divide the files."""
    chosen = [target for target in ("test", "test-cluster", "test-more", "test-lake") if any(runs(lane, marks) for lane in every(target))]
    assert len(chosen) == 1 or ("lake" in marks and "cluster" in marks)


@pytest.mark.parametrize("target", lanes.TARGETS)
def test_lanes_have_names_of_their_own_and_files_that_are_there(target: str) -> None:
    """Else one would overwrite another's durations, or collect nothing."""
    found = every(target)
    assert len({lane.name for lane in found}) == len(found) > 0
    files = [*(path for lane in found for path in lane.files), *(path for paths in lanes.TOUCHED.values() for path in paths)]
    assert [path for path in files if not (places.REPO / path.partition("::")[0]).exists()] == []


def test_a_slow_test_of_a_cluster_is_in_one_lane() -> None:
    files = [path for lane in every("test-more") if lane.marked == "slow and cluster" for path in lane.files]
    gitops = {f"tests/cluster/test_{name}.py" for name in lanes.GITOPS}
    assert sorted(files) == sorted({*lanes.naming("cluster")} & {*lanes.naming("slow")} - gitops)


@pytest.mark.parametrize("mark", ["built", "cluster", "lake", "slow"])
def test_a_mark_that_chooses_files_is_named_in_files_of_tests_only(mark: str) -> None:
    found = [path.name for path in HERE.rglob("*.py") if f"mark.{mark}" in path.read_text() and not path.name.startswith("test_")]
    assert found == []


def test_a_lane_is_asked_for_until_it_has_passed_with_the_same_files_on_the_same_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_lines, "tree", lambda: "0")
    first = ASKED_FOR()
    assert [lane.name for lane in first] == ["chart", "spark-4.1-matrix", "spark-4.1-jars", "spark-4.2"]
    for lane in (first[0], first[-1]):
        parts.part(*lane.asked or ASKED, lambda _: None)
    assert [lane.name for lane in ASKED_FOR()] == ["spark-4.1-matrix", "spark-4.1-jars"]
    monkeypatch.setattr(spark_lines, "tree", lambda: "1")
    monkeypatch.setitem(lanes.TOUCHED, "chart", ("charts", "README.md"))
    assert [lane.name for lane in ASKED_FOR()] == ["chart", "spark-4.1-matrix", "spark-4.1-jars", "spark-4.3"]


@pytest.mark.parametrize("failing", [None, 1, 2])
def test_a_failed_lane_fails_the_target_stops_none_and_is_asked_for_again(
    target: Callable[..., int], capfd: pytest.CaptureFixture[str], failing: int | None
) -> None:
    code = target(*(FAILS if number == failing else PASSES for number in range(3)))
    said = capfd.readouterr().out
    assert code == (failing is not None)
    assert [said.count(f"lane-{number}: 1 test") for number in range(3)] == [1, 1, 1]
    assert said.count("as always") >= (failing is not None)
    assert parts.place(*ASKED).is_dir() == (failing is None)


@pytest.mark.parametrize(("ci", "code", "word"), [("", 1, "FAILED"), ("yes", 0, "FLAKY")], ids=["at home", "in CI"])
def test_a_test_that_passes_alone_is_named_as_flaky_in_ci(
    target: Callable[..., int], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ci: str, code: int, word: str
) -> None:
    monkeypatch.setenv("CI", ci)
    assert target(FAILS_ONCE, PASSES, PASSES) == code
    last = capfd.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{word}: test_lane_0.py::test_it")
    assert (places.work() / "durations" / "tried" / lanes.ENDS).read_text() == f"{last}\n"


@pytest.mark.parametrize("second", ["assert not tried.exists()", "pytest.skip('gone')"])
def test_a_test_that_does_not_pass_alone_has_failed_and_hides_no_flake(
    target: Callable[..., int], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    monkeypatch.setenv("CI", "yes")
    assert target(FAILS_ONCE, FAILS_ONCE.replace("from pathlib", "import pytest\nfrom pathlib") + f"    {second}\n", PASSES) == 1
    assert [line.partition(" failed")[0] for line in capfd.readouterr().out.splitlines()[-2:]] == [
        "FAILED: test_lane_1.py::test_it",
        "FLAKY: test_lane_0.py::test_it",
    ]


def test_a_simulation_and_a_run_that_was_cut_off_never_run_again(target: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "yes")
    assert target("import os\n\ndef test_it(): os._exit(3)", PASSES, PASSES) == 1
    monkeypatch.setattr(lanes, "SIMULATIONS", "test_lane_0")
    assert target(FAILS_ONCE, PASSES, PASSES) == 1


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a target of three lanes, the last of them behind the second, with a file of tests each."""
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path / "work"))
    monkeypatch.setattr(lanes, "ROOT", tmp_path)
    monkeypatch.delenv("CI", raising=False)

    def made(*files: str) -> int:
        (tmp_path / "conftest.py").write_text(CONFTEST.format(here=str(HERE)))
        for number, text in enumerate(files):
            (tmp_path / f"test_lane_{number}.py").write_text(text)
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = cluster")
        first, second, third = (Lane(f"lane-{number}", "not cluster", (f"test_lane_{number}.py",), asked=ASKED) for number in range(3))
        monkeypatch.setitem(lanes.TARGETS, "tried", lambda: [((first,), (second, third))])
        return lanes.main("tried")

    return made


def every(target: str) -> list[Lane]:
    return [lane for stage in lanes.TARGETS[target]() for track in stage for lane in track]


def runs(lane: Lane, marks: tuple[str, ...]) -> bool:
    """Whether a lane runs a test with these marks, whose file names them. With jars and on another line of Spark, tests run again.

    The simulations run again, longer.
    """
    if lane.name == "simulations":
        return False
    if lane.marked != "lake" and (lane.more.keys() & {"PYSPARK_SUBMIT_ARGS"} or lane.line):
        return False
    return Expression.compile(lane.marked).evaluate(lambda name, /, **_: name in marks)

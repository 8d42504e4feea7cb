"""What the tests of a run took: read from JUnit files, summed by folder, and held against budgets."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_lab import durations, places
from sluice_lab.durations import TimedTest

TARGETS = ("test", "test-more")
FOLDERS = {"tests/sinks": 60.0, "tests": 9.0}


def test_a_run_of_pytest_is_read_back(tmp_path: Path) -> None:
    """Its tests with their folder and file, skipped and failed ones too, whatever their parameters say."""
    file = tmp_path / "tests" / "a-b" / "test_it.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('x', ['a.b/c', '<&\"'])\n"
        "def test_one(x): pass\n"
        "def test_two(): assert False\n"
        "def test_three(): pytest.skip('no')\n"
    )
    options = ("--import-mode=importlib", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", f"--junitxml={tmp_path / 'stage.xml'}")
    subprocess.run([sys.executable, "-m", "pytest", "-q", *options, str(file)], cwd=tmp_path, check=False, capture_output=True)
    stage = durations.read(tmp_path / "stage.xml")
    assert (stage.name, len(stage.tests), stage.seconds > 0) == ("stage", 4, True)
    assert {test.folder for test in stage.tests} == {"tests/a-b"}
    assert stage.tests[0].name == "tests/a-b/test_it.py::test_one[a.b/c]"


def test_a_file_that_could_not_be_collected_counts_for_its_folder(tmp_path: Path) -> None:
    """Pytest gives it no class, and the module as its name."""
    (tmp_path / "cluster.xml").write_text(
        '<testsuites><testsuite><testcase classname="" name="tests.lab.test_quick" time="0.0"><error/></testcase></testsuite></testsuites>'
    )
    (test,) = durations.read(tmp_path / "cluster.xml").tests
    assert (test.folder, test.name) == ("tests/lab", "tests/lab/test_quick.py")


def test_the_dearest_come_first() -> None:
    """And no more of them than asked for."""
    tests = [TimedTest("tests", str(seconds), seconds) for seconds in (1.0, 3.0, 2.0)]
    assert [test.seconds for test in durations.dearest(tests, 2)] == [3.0, 2.0]


def test_a_test_counts_for_the_innermost_folder_with_a_budget() -> None:
    """A folder that none covers stands for itself."""
    tests = [TimedTest(folder, "test", 2.0) for folder in ("tests/sinks/deep", "tests/sinks", "tests/other", "tests", "examples/a")]
    assert durations.spent(tests, FOLDERS) == {"examples/a": 2.0, "tests": 4.0, "tests/sinks": 4.0}


@pytest.mark.parametrize(("seconds", "said"), [(60.0, False), (79.9, False), (80.1, True)])
def test_a_folder_is_named_when_it_took_over_a_third_more(seconds: float, said: bool) -> None:  # noqa: FBT001 - a column of the table
    """Up to a third is the machine's business."""
    found = durations.exceeded({"tests/sinks": seconds, "tests": 1.0}, FOLDERS)
    assert list(found) == (["tests/sinks"] if said else [])
    assert all(words.startswith("80 s, of a budget of 60 s: ") for words in found.values())


def test_a_folder_without_a_budget_is_named() -> None:
    """So that a new one gets its own."""
    assert durations.exceeded({"examples/a": 0.1}, FOLDERS) == {"examples/a": durations.NONE}


def test_what_is_over_is_said_and_fails_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As `make test` ends with it."""
    written(tmp_path, "cluster.xml", '<testcase classname="tests.lab.test_quick" name="test_it" time="1e6"/>')
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path))
    assert durations.main("test") == 0
    said = capsys.readouterr().out
    assert "1000000.0  tests/lab/test_quick.py::test_it\n" in said
    assert "cluster: 1 test, 1 min 1 s" in said
    assert re.search(r"OVER BUDGET tests\S*: 1000000 s, of a budget of \d+ s: make it cheaper, or raise", said)


NAME = "test_" + "a_long_claim_" * 12


def test_a_log_has_the_whole_name_of_a_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is no terminal, so its lines have 80 columns for whoever wraps them."""
    written(tmp_path, "tests.xml", f'<testcase classname="tests.lab.test_quick" name="{NAME}[x]" time="12.0"/>')
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path))
    assert durations.main("test") == 0
    assert f" 12.0  tests/lab/test_quick.py::{NAME}[x]\n" in capsys.readouterr().out


@pytest.mark.parametrize("left", ["", "<testsuites><testsuite name='pytest'><testcase", "<testsuites/>"], ids=["nothing", "a half", "no run"])
def test_a_stage_that_was_cut_off_is_named_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], left: str
) -> None:
    """Its file says nothing, and its seconds are in no sum."""
    written(tmp_path, "tests.xml", '<testcase classname="tests.lab.test_quick" name="test_it" time="1.0"/>')
    (tmp_path / "durations" / "test" / "cluster.xml").write_text(left)
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path))
    assert durations.main("test") == 0
    said = capsys.readouterr().out
    assert "NOT MEASURED cluster: " in said
    assert "tests: 1 test, " in said


def test_a_target_that_was_not_run_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Instead of an empty table, and of budgets of nothing."""
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path))
    for what in ("show", "budgets"):
        assert durations.main("test-more", what) == 0
        assert capsys.readouterr().out == f"NOT MEASURED: no JUnit file is in {tmp_path}/durations/test-more; run make test-more\n"


def written(work: Path, name: str, case: str) -> None:
    """A stage of `make test` with one test."""
    folder = work / "durations" / "test"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f'<testsuites><testsuite name="pytest" time="61.0">{case}</testsuite></testsuites>')


def test_budgets_are_proposed_that_the_run_would_just_meet() -> None:
    """As lines of the file."""
    assert durations.proposed({"tests/lab": 60.1, "tests": 0.0}) == '"tests/lab" = 65\n"tests" = 0'


@pytest.mark.parametrize("target", TARGETS)
def test_every_folder_with_tests_has_a_budget(target: str) -> None:
    """And no budget is of a folder that is gone."""
    budgets = durations.budgets_of(target)
    tests = [TimedTest(str(path.parent.relative_to(places.REPO)), path.name, 0) for path in (places.REPO / "tests").rglob("test_*.py")]
    assert durations.exceeded(durations.spent(tests, budgets), budgets) == {}
    assert [folder for folder in budgets if not list((places.REPO / folder).rglob("test_*.py"))] == []

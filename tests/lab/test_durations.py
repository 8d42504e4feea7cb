"""What the tests of a run took: read from JUnit files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sluice_lab import durations
from sluice_lab.durations import TimedTest


def test_a_run_of_pytest_is_read_back(tmp_path: Path) -> None:
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
    tests = [TimedTest("tests", str(seconds), seconds) for seconds in (1.0, 3.0, 2.0)]
    assert [test.seconds for test in durations.dearest(tests, 2)] == [3.0, 2.0]


NAME = "test_" + "a_long_claim_" * 12


def test_a_log_has_the_whole_name_of_a_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is no terminal, so its lines have 80 columns for whoever wraps them."""
    written(tmp_path, "tests.xml", f'<testcase classname="tests.lab.test_quick" name="{NAME}[x]" time="12.0"/>')
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path))
    durations.main("test")
    assert f" 12.0  tests/lab/test_quick.py::{NAME}[x]\n" in capsys.readouterr().out


@pytest.mark.parametrize("left", ["", "<testsuites><testsuite name='pytest'><testcase", "<testsuites/>"], ids=["nothing", "a half", "no run"])
def test_a_stage_that_was_cut_off_is_named_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], left: str
) -> None:
    written(tmp_path, "tests.xml", '<testcase classname="tests.lab.test_quick" name="test_it" time="1.0"/>')
    (tmp_path / "durations" / "test" / "cluster.xml").write_text(left)
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path))
    durations.main("test")
    said = capsys.readouterr().out
    assert "NOT MEASURED cluster: " in said
    assert "tests: 1 test, " in said


def written(work: Path, name: str, case: str) -> None:
    folder = work / "durations" / "test"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f'<testsuites><testsuite name="pytest" time="61.0">{case}</testsuite></testsuites>')

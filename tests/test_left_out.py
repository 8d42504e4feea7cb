"""Tests that would be left out unseen: by their marks, and in CI."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import left_out
import pytest

HERE = Path(__file__).parent
CONFTEST = """
import sys

import pytest

sys.path.append({here!r})

import left_out

left_out.HERE = left_out.Path(__file__).parent


def pytest_collection_modifyitems(items):
    if lost := left_out.unfound(items):
        raise pytest.UsageError("; ".join(lost))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call):
    return left_out.judged((yield), call)
"""
SPELLINGS = {
    "in a variable of another file": "import helper\n\npytestmark = helper.long",
    "by a name": "import pytest\n\npytestmark = getattr(pytest.mark, 'slow')",
    "through an import": "from pytest import mark as m\n\npytestmark = m.slow",
}
FOUND = {"in a list": "import pytest\n\npytestmark = [pytest.mark.slow]", "nowhere": ""}
LACKING = """
import pytest

from sluice_lab.errors import MissingPartError


@pytest.fixture(scope="session")
def part():
    raise MissingPartError("there is no such program")


def test_first(part): pass
def test_second(part): pass
def test_of_another_kind(): pytest.skip("kinesalite cannot")
"""


def run(folder: Path, name: str, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST.format(here=str(HERE)))
    (folder / "helper.py").write_text("import pytest\n\nlong = pytest.mark.slow\n")
    (folder / name).write_text(code)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={folder}", str(folder / name)]
    clean = {key: value for key, value in os.environ.items() if key not in {"CI", "SLUICE_COMPLETE"}}
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # which would take most of the time
    return subprocess.run(command, cwd=folder, env=clean | alone | environment, check=False, capture_output=True, text=True, timeout=300)


def test_each_suspect_is_a_test_and_no_simulation() -> None:
    for name, since in left_out.SUSPECTS.items():
        path, _, function = name.partition("::")
        assert f"def {function.partition('[')[0]}(" in (HERE.parent / path).read_text()
        assert not path.startswith("tests/sim/")
        assert since <= datetime.datetime.now(tz=datetime.UTC).date()


def test_a_suspect_is_named_with_or_without_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "SUSPECTS", {"a.py::test_all": None, "a.py::test_one[x]": None})
    named = ("a.py::test_all", "a.py::test_all[x]", "a.py::test_one[x]", "a.py::test_one[y]", "a.py::test_one")
    assert [left_out.suspect(name) for name in named] == [True, True, True, False, False]


@pytest.mark.parametrize("marked", SPELLINGS.values(), ids=SPELLINGS)
def test_a_mark_that_make_does_not_find_stops_the_run(tmp_path: Path, marked: str) -> None:
    """Else no lane would run the test."""
    done = run(tmp_path, "test_it.py", f"{marked}\n\ndef test_it(): pass\n")
    assert done.returncode == 4
    assert "test_it.py::test_it: write pytest.mark.slow in that file" in done.stderr


def test_a_file_that_make_does_not_read_may_have_no_such_mark(tmp_path: Path) -> None:
    """Pytest would collect it."""
    assert run(tmp_path, "it_test.py", f"{FOUND['in a list']}\n\ndef test_it(): pass\n").returncode == 4


@pytest.mark.parametrize("marked", FOUND.values(), ids=FOUND)
def test_a_mark_that_make_finds_is_fine(tmp_path: Path, marked: str) -> None:
    assert run(tmp_path, "test_it.py", f"{marked}\n\ndef test_it(): pass\n").returncode == 0


@pytest.mark.parametrize(
    ("environment", "counted"),
    [({}, "3 skipped"), ({"CI": "true"}, "1 skipped, 2 errors"), ({"SLUICE_COMPLETE": "yes"}, "1 skipped, 2 errors")],
    ids=["make test", "in CI", "make test-cluster"],
)
def test_a_part_that_is_missing_skips_tests_or_fails_them(tmp_path: Path, environment: dict[str, str], counted: str) -> None:
    done = run(tmp_path, "test_it.py", LACKING, **environment)
    assert counted in done.stdout
    assert done.returncode == bool(environment)
    assert ("This run leaves nothing out" in done.stdout) == bool(environment)

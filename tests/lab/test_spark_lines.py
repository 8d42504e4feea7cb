"""Lines of Spark: what they pin, which is the default, and where their environments come from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_lab import places, spark_lines
from sluice_lab.errors import LabError
from sluice_lab.machine import parts
from sluice_lab.spark_lines import LineRun


def test_the_default_line_is_that_of_the_constraints_and_has_a_file_too() -> None:
    """So that another one can become the default: its pins go to constraints/all.txt, and nothing else changes."""
    pins = spark_lines.pins_of(places.REPO / "constraints/all.txt")
    own = spark_lines.pins_of(spark_lines.FOLDER / f"spark-{spark_lines.default()}.txt")
    assert own == {name: pins[name] for name in own}


@pytest.mark.parametrize("line", [spark_lines.default(), *spark_lines.others()])
def test_a_line_pins_only_what_may_differ(line: str) -> None:
    """The line's PySpark, and nothing that constraints/all.txt does not know."""
    own = spark_lines.pins_of(spark_lines.FOLDER / f"spark-{line}.txt")
    assert spark_lines.line_of(own["pyspark"]) == line
    assert own.keys() <= spark_lines.pins_of(places.REPO / "constraints/all.txt").keys()


def test_all_lines_are_three() -> None:
    """docs/plain-pyspark.md has a column for each."""
    assert set(spark_lines.WITH_JARS) == {"4.1", "4.2", "4.3"}
    assert sorted([spark_lines.default(), *spark_lines.others()]) == ["4.1", "4.2", "4.3"]


def test_each_other_line_is_some_commits_and_each_commit_tries_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`one` and `rest` of a commit try the default line and one other, and nothing twice."""
    tried: list[LineRun] = []
    monkeypatch.setattr(spark_lines, "run_tests", lambda run, _command, **_: tried.append(run))
    monkeypatch.setattr(spark_lines, "submitted", lambda line, _settings: line)
    monkeypatch.setattr(spark_lines, "python", str)
    firsts = set()
    for number in range(2):
        monkeypatch.setattr(spark_lines, "tree", lambda number=number: f"{number:040x}")
        assert (spark_lines.main("one"), spark_lines.main("rest")) == (0, 0)
        (other,) = {run.line for run in tried[:2]}
        firsts.add(other)
        assert [run.line for run in tried if run.files == spark_lines.SMALL] == [other]
        assert sorted(run.line for run in tried if run.more) == [spark_lines.default(), spark_lines.default(), other]
        with_jars = [name for run in tried if run.more and run.line == spark_lines.default() for name in run.files]
        assert sorted(with_jars) == sorted(spark_lines.with_jars(spark_lines.default()).files)  # each of them once
        assert len({run.name for run in tried}) == len(tried)  # none overwrites another's durations
        tried.clear()
    assert firsts == set(spark_lines.others())


@pytest.mark.parametrize("line", spark_lines.others())
def test_what_a_commit_does_not_try_on_its_other_line_it_tries_on_the_default_one(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And all of a line is tried by its own target."""
    monkeypatch.setattr(spark_lines, "submitted", lambda line, _settings: line)
    (jars,) = (run for run in spark_lines.small(line) if run.more)
    left = set(spark_lines.with_jars(line).files) - set(jars.files)
    assert jars.files
    assert left <= {f"{spark_lines.SINKS}/{name}" for name in spark_lines.ON_DEFAULT} <= set(spark_lines.with_jars(spark_lines.default()).files)


@pytest.mark.parametrize("failed", range(3))
def test_a_run_that_fails_fails_the_whole_and_the_others_are_run(monkeypatch: pytest.MonkeyPatch, failed: int) -> None:
    """Whichever of them it is."""
    runs = [LineRun(str(number), ()) for number in range(3)]
    ran: list[LineRun] = []
    monkeypatch.setattr(spark_lines, "run_tests", lambda run, _command, **_: ran.append(run) or int(run.line == str(failed)))
    monkeypatch.setattr(spark_lines, "python", str)
    assert spark_lines.two_at_a_time(runs) == 1
    assert sorted(run.line for run in ran) == ["0", "1", "2"]


def test_what_a_run_printed_is_shown_when_it_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """With its exit code and its durations."""
    (tmp_path / "test_it.py").write_text("def test_it(): assert False, 'so it says'\n")
    monkeypatch.setenv("SLUICE_DURATIONS", str(tmp_path))
    run = LineRun(spark_lines.default(), (str(tmp_path / "test_it.py"),), {"A": "b"})
    assert spark_lines.run_tests(run, run.command(), shown=False) == 1
    assert "so it says" in capfd.readouterr().out
    assert (tmp_path / f"{run.name}.xml").exists()


def test_the_line_of_this_commit_is_one_of_them() -> None:
    """By git, which names the tree."""
    assert spark_lines.chosen(spark_lines.tree()) in spark_lines.others()


def test_an_unknown_line_is_refused_with_those_there_are() -> None:
    """Before anything is made."""
    with pytest.raises(LabError, match=r"no line 3\.5 .*4\.1, 4\.2, 4\.3"):
        spark_lines.python("3.5")


def test_an_environment_is_made_again_when_its_pins_change(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And only then; it sees the packages of this one behind its own."""
    line = spark_lines.others()[0]
    pins = tmp_path / "constraints"
    pins.mkdir()
    monkeypatch.setenv("SLUICE_WORK", str(tmp_path))
    monkeypatch.setenv("SLUICE_PARTS", str(tmp_path / "parts"))
    monkeypatch.delenv(parts.BUILDS, raising=False)
    monkeypatch.setattr(spark_lines, "FOLDER", pins)
    installed: list[tuple[str, ...]] = []

    def run(*argv: str) -> str:
        if "pip" in argv:
            return str(installed.append(argv))
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    monkeypatch.setattr(spark_lines, "run", run)
    for version, made in (("1", 1), ("1", 1), ("2", 2)):
        (pins / f"spark-{line}.txt").write_text(f"# a line\npyspark=={line}.{version}\n")
        python = spark_lines.python(line)
        assert len(installed) == made
    assert installed[-1][-1] == f"pyspark=={line}.2"
    assert "--no-deps" in installed[-1]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    seen = subprocess.run([python, "-c", "import pytest; print(pytest.__file__)"], env=environment, check=True, capture_output=True, text=True).stdout
    assert Path(seen.strip()).samefile(pytest.__file__)
    assert python != Path(sys.executable)


SINKS = [f"{spark_lines.SINKS}/{name}" for names in spark_lines.WITH_JARS.values() for name in names]


@pytest.mark.parametrize("test", [*spark_lines.ALL, *spark_lines.SMALL, *sorted(set(SINKS))])
def test_what_is_run_on_a_line_is_there(test: str) -> None:
    """A test that was renamed would be left out, or fail in CI only."""
    path, _, name = test.partition("::")
    assert (places.REPO / path).exists()
    assert f"def {name}(" in (places.REPO / path).read_text() if name else True

"""Lines of Spark: what they pin, which is the default, and where their environments come from."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sluice_lab import places, spark_lines
from sluice_lab.machine import parts


def test_the_default_line_is_that_of_the_constraints_and_has_a_file_too() -> None:
    """So that another one can become the default: its pins go to constraints/all.txt, and nothing else changes."""
    pins = spark_lines.pins_of(places.REPO / "constraints/all.txt")
    own = spark_lines.pins_of(spark_lines.FOLDER / f"spark-{spark_lines.default()}.txt")
    assert own == {name: pins[name] for name in own}


@pytest.mark.parametrize("line", [spark_lines.default(), *spark_lines.others()])
def test_a_line_pins_only_what_may_differ(line: str) -> None:
    own = spark_lines.pins_of(spark_lines.FOLDER / f"spark-{line}.txt")
    assert spark_lines.line_of(own["pyspark"]) == line
    assert own.keys() <= spark_lines.pins_of(places.REPO / "constraints/all.txt").keys()


def test_an_environment_is_made_again_when_its_pins_change_or_a_link_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And only then; it sees the packages of this one behind its own, so without the link it would take that one's Spark."""
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
            (folder,) = (word.partition("=")[2] for word in argv if word.startswith("--target="))
            places.made(Path(folder) / "pyspark").joinpath("__init__.py").touch()
            return str(installed.append(argv))
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    monkeypatch.setattr(spark_lines, "run", run)
    for version, made in (("1", 1), ("1", 1), ("2", 2)):
        (pins / f"spark-{line}.txt").write_text(f"# a line\npyspark=={line}.{version}\n")
        python = spark_lines.python(line)
        assert len(installed) == made
        (link,) = python.parents[1].glob("lib/*/site-packages/pyspark")
        link.unlink()
        spark_lines.python(line)
        assert link.exists()
    assert installed[-1][-1] == f"pyspark=={line}.2"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    seen = subprocess.run([python, "-c", "import pyspark; print(*pyspark.__path__)"], env=environment, check=True, capture_output=True, text=True)
    assert Path(seen.stdout.strip()).resolve().is_relative_to(tmp_path)


SINKS = [f"{spark_lines.SINKS}/{name}" for names in spark_lines.WITH_JARS.values() for name in names]


@pytest.mark.parametrize("test", [*spark_lines.ALL, *spark_lines.SMALL, *sorted(set(SINKS))])
def test_what_is_run_on_a_line_is_there(test: str) -> None:
    """A test that was renamed would be left out, or fail in CI only."""
    path, _, name = test.partition("::")
    assert (places.REPO / path).exists()
    assert f"def {name}(" in (places.REPO / path).read_text() if name else True

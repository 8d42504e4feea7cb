"""Spark's home without the archives of its Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark
import pytest

from sluice_consumer.spark import spark_home

PACKAGE = Path(pyspark.__file__).parent
needs_archives = pytest.mark.skipif(not list((PACKAGE / "python" / "lib").glob("*.zip")), reason="this PySpark has no archives, as in the image")


@needs_archives
def test_it_has_all_that_spark_has_but_for_the_archives(tmp_path: Path) -> None:
    found = [spark_home.lean({"XDG_CACHE_HOME": str(tmp_path)}) for _ in range(2)]
    (home,) = {each["SPARK_HOME"] for each in found}
    names = {entry.name for entry in Path(home).iterdir()}
    assert names == {entry.name for entry in PACKAGE.iterdir()} - {"python", "__pycache__"}
    assert (Path(home) / "bin" / "spark-submit").is_file()
    assert [entry.name for entry in (tmp_path / "sluice").iterdir()] == [Path(home).name]


@pytest.mark.parametrize("chosen", [{"SPARK_HOME": "/opt/spark"}, {"PYSPARK_PYTHON": "/usr/bin/python3.12"}])
def test_what_somebody_chose_stays(chosen: dict[str, str], tmp_path: Path) -> None:
    assert spark_home.lean({"XDG_CACHE_HOME": str(tmp_path)} | chosen) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_pyspark_that_workers_would_not_find_keeps_its_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This program has it from a path that it gave itself."""
    monkeypatch.setattr(spark_home.site, "getsitepackages", list)
    monkeypatch.setattr(spark_home.site, "getusersitepackages", lambda: "")
    assert spark_home.lean({"XDG_CACHE_HOME": str(tmp_path)}) == {}
    assert bool(spark_home.lean({"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)})) == bool(
        list((PACKAGE / "python" / "lib").glob("*.zip"))
    )


def test_a_cache_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "sluice").write_text("")
    assert spark_home.lean({"XDG_CACHE_HOME": str(tmp_path), "PYSPARK_PYTHON": sys.executable}) == {}

"""docs/architecture.md, "Where would … go?": its files and registries exist, and what is there already has all that its row names."""

from __future__ import annotations

import importlib
import re
import tomllib
import typing
from functools import cache
from pathlib import Path

import pytest

from sluice_checkpoints.formats.detect import AUTO, FORMATS
from sluice_consumer import sinks
from sluice_lab import spark_lines
from sluice_operator.apply import jobs
from sluice_operator.plan.conditions import VERDICTS
from sluice_operator.resource.fields import MigrateFromSpec

ROOT = Path(__file__).parents[1]
FILE = re.compile(r"`((?:consumer|operator|lab|tests|docs|charts|constraints)/[\w./-]+)`")
REGISTRY = re.compile(r"`(?:consumer|operator|lab)/((?:\w+/)+\w+)\.py:(\w+)`")
OURS = "sluice"  # a rename of the consumer, which is a part of docs/migration.md
CALLS_NOBODY = {"Reconciling", "Draining", "DriverHealthy"}


@cache
def rows() -> dict[str, str]:
    (table,) = re.findall(r"## Where would … go\?\n.*?\n\|---.*?\n((?:\|.*\n)+)", (ROOT / "docs" / "architecture.md").read_text(), re.DOTALL)
    return dict(re.findall(r"(?m)^\| ([^|]+) \| (.*) \|$", table))


def files(row: str, name: str) -> list[str]:
    return [re.sub(r"(?<=[/_-])X(?=\.)", name, file) for file in FILE.findall(rows()[row])]


def there(paths: list[str]) -> list[str]:
    return [path for path in paths if not list(ROOT.glob(path.rstrip("/")))]


def test_the_table_has_the_questions_that_people_ask() -> None:
    for asked in ("sink", "source format", "condition", "warning", "reason", "metric of a driver", "Kinesis client", "line of Spark", "command"):
        assert [row for row in rows() if row.startswith(asked)], asked


MISSED = {  # by row: what a test of today's things fails over if a new one lacks it there
    "metric of a driver": ("tests/contract/prometheus/served.py", "tests/cluster/test_seen.py", "charts/sluice/values.schema.json"),
    "warning of a driver": ("conditions.py:WARNINGS", "conditions.py:PASSING", "runbooks.md"),
    "reason for which a driver ends": ("known_words.py:OF_PROGRAMS", "runbooks.md"),
}


@pytest.mark.parametrize("row", MISSED)
def test_a_row_names_what_would_be_missed(row: str) -> None:
    """Else the next one to add such a thing learns it from a test that fails, on a cluster at the latest."""
    assert [part for part in MISSED[row] if part not in rows()[row]] == []


@pytest.mark.parametrize("row", rows())
def test_the_files_of_a_row_exist(row: str) -> None:
    """Of several things that are there, where the row is about a new one."""
    assert there(files(row, "*")) == []


@pytest.mark.parametrize(("module", "name"), sorted({found for row in rows().values() for found in REGISTRY.findall(row)}))
def test_a_registry_exists_and_holds_something(module: str, name: str) -> None:
    if module.startswith("tests/"):
        return
    found = getattr(importlib.import_module(module.replace("/", ".").removesuffix(".__init__")), name)
    assert len(list(found)) > 1


@pytest.mark.parametrize("name", sorted(each.name for each in FORMATS if each.name != OURS))
def test_a_source_format_has_all_that_its_row_names(name: str) -> None:
    """A seventh one that misses a file, or a line by hand, fails here."""
    module = re.sub(r"\W", "_", name)
    paths = [path.replace(f"/{module}.md", f"/{name}.md") for path in files("source format", module)]
    assert there(paths) == []
    assert f"migrate/{name}.md" in (ROOT / "mkdocs.yml").read_text()
    (word,) = (word for word, known in jobs.FORMATS.items() if known == name)
    assert word in typing.get_args(MigrateFromSpec.model_fields["format"].annotation)
    assert name in (ROOT / "tests" / "checkpoints" / "golden" / "README.md").read_text().lower()


def test_the_formats_of_a_resource_are_those_of_the_migrator() -> None:
    assert set(jobs.FORMATS.values()) == {AUTO, *(each.name for each in FORMATS)}
    assert set(jobs.FORMATS) == set(typing.get_args(MigrateFromSpec.model_fields["format"].annotation))


@pytest.mark.parametrize("name", [name for name in sinks.__all__ if (ROOT / f"consumer/sluice_consumer/sinks/{name}.py").exists()])
def test_a_sink_has_all_that_its_row_names(name: str) -> None:
    assert there(files("sink", name)) == []
    assert re.search(rf"(?m)^def {name}\(", (ROOT / "tests/contract/sinks/matrix_sinks.py").read_text())
    assert f"`{name}`" in (ROOT / "docs" / "sinks.md").read_text()


@pytest.mark.parametrize("line", spark_lines.WITH_JARS)
def test_a_line_of_spark_has_all_that_its_row_names(line: str) -> None:
    assert there(files("line of Spark", line)) == []
    for page in ("support.md", "images.md"):
        assert line in (ROOT / "docs" / page).read_text(), page


def test_a_condition_has_a_section_for_whoever_is_on_call() -> None:
    page = (ROOT / "docs" / "runbooks.md").read_text()
    assert {kind for kind, _ in VERDICTS if f"`{kind}`" not in page} <= CALLS_NOBODY


def test_the_last_row_names_the_linters_list() -> None:
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["per-file-ignores"]
    assert ["TID251"] in rules.values()

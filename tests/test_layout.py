"""The repository's shape, where getting it wrong breaks things far away."""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

ROOT = Path(__file__).parents[1]
PACKAGES = [path.parent for folder in ("consumer", "operator", "lab") for path in sorted((ROOT / folder).glob("*/__init__.py"))]
LINT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
BARE = [
    "sluice_checkpoints.position",
    "sluice_checkpoints.protocol.store",
    "sluice_checkpoints.memory.table",
    "sluice_checkpoints.migrate.migrator",
    "sluice_consumer.batches.bootstrap",
    "sluice_consumer.batches.consumer",
    "sluice_consumer.batches.loop",
    "sluice_consumer.batches.planner",
    "sluice_consumer.config",
    "sluice_consumer.shards.bind",
    "sluice_consumer.spark.conf",
    "sluice_kubectl.program",
    "sluice_kubectl.views.actions",
    "sluice_kubectl.views.secrets",
    "sluice_operator.state.view",
    "sluice_operator.plan.rules",
]
# What differs between lines of Spark is asked in one module.
LINES = re.compile(r"importlib\.util import find_spec|pyspark\.__version__|spark\.version\b|version\(.pyspark.\)|try:\n\s+(from|import) pyspark")
FEATURES = "consumer/sluice_consumer/spark/features.py"
MARKED = [marks for count in range(6) for marks in itertools.combinations(("cluster", "apiserver", "spark", "lake", "slow"), count)]
# Clients are configured on the machine, never here.
REGISTRIES = re.compile(rb"pypi\.org|npmjs\.org|repo1?\.maven|proxy\.golang|deb\.debian\.org|registry\.k8s\.io|quay\.io|ghcr\.io")


def test_the_folder_operator_is_no_package() -> None:
    """It would shadow the standard library's `operator`, and pip, venv and PySpark's workers would crash when started here."""
    assert not (ROOT / "operator" / "__init__.py").exists()
    started_here = [sys.executable, "-c", "import operator, collections; operator.itemgetter"]
    assert subprocess.run(started_here, cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("marks", MARKED, ids=" ".join)
def test_a_test_is_run_once_by_make_test_or_by_make_test_more(marks: tuple[str, ...]) -> None:
    """Whatever it is marked with; what tries the sinks for long is left to `make test-lake`."""
    chosen = [target for target in ("test", "test-more") for expression in stages(target) if Expression.compile(expression).evaluate(in_(marks))]
    assert len(chosen) == ("lake" not in marks or "cluster" in marks)


def test_make_check_runs_nothing_that_make_test_leaves_out() -> None:
    """And nothing that has to be built first."""
    (check,) = map(Expression.compile, stages("check"))
    for marks in filter(lambda marks: check.evaluate(in_(marks)), MARKED):
        assert any(Expression.compile(expression).evaluate(in_(marks)) for expression in stages("test"))
        assert not {"cluster", "apiserver"} & set(marks)


def stages(target: str) -> list[str]:
    """What each pytest of a target of the Makefile selects."""
    (recipe,) = re.findall(rf"(?m)^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text())
    return re.findall(r'pytest -m "([^"]+)"', recipe)


def in_(marks: tuple[str, ...]) -> Callable[..., bool]:
    """As pytest asks of a test that has these."""
    return lambda name, **_: name in marks


def test_tests_are_no_packages() -> None:
    """Pytest imports them by path (importlib mode)."""
    assert not list((ROOT / "tests").rglob("__init__.py"))


@pytest.mark.parametrize("module", BARE)
def test_the_core_needs_no_third_party_package(module: str) -> None:
    """Without site-packages, as on a machine where nothing is installed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "consumer"), str(ROOT / "operator")])}
    subprocess.run([sys.executable, "-S", "-c", f"import {module}"], env=environment, check=True)


def test_no_file_names_a_registry() -> None:
    """Nor a path of the machine it was written on."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    found = [name for name in tracked if name != "tests/test_layout.py" and REGISTRIES.search((ROOT / name).read_bytes())]
    assert found == []


def test_public_class_names_are_unique() -> None:
    """One name has one meaning in consumer/, operator/ and lab/. Classes inside classes and private ones may share a name."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(path for package in ("consumer", "operator", "lab") for path in (ROOT / package).rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(str(path.relative_to(ROOT)))
    shared = [f"{name}: {' and '.join(found)}" for name, found in sorted(files.items()) if len(found) > 1]
    assert not shared, "\n".join(["rename one class of each pair:", *shared])


def test_only_one_module_asks_what_this_spark_can_do() -> None:
    """So that a line is dropped, or added, in one place."""
    files = sorted((ROOT / "consumer").rglob("*.py"))
    assert [str(path.relative_to(ROOT)) for path in files if LINES.search(path.read_text())] == [FEATURES]


@pytest.mark.parametrize(("package", "below"), [("sluice_checkpoints", ()), ("sluice_consumer", ("sluice_checkpoints",))])
def test_a_package_starts_no_program_of_a_package_above_it(package: str, below: tuple[str, ...]) -> None:
    """A module's name in a text is an arrow that import-linter does not see: `python -m …`."""
    strings = [
        (path, node.value)
        for path in sorted((ROOT / "consumer" / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    named = {(path.name, found[0], found[1]) for path, text in strings if (found := re.fullmatch(r"(sluice_[a-z]+)(?:\.\w+)*", text))}
    assert not [each for each in named if each[2] in {found.name for found in PACKAGES} - {package, *below}]


CLOCKS = {
    "a module": "import time\n",
    "a module by another name": "import time as wall\n",
    "a function": "from time import monotonic\n",
    "a date by another name": "from datetime import UTC, datetime as when\n\nNOW = when.now(UTC)\n",
    "a day": "import datetime\n\nTODAY = datetime.date.today()\n",
    "chance": "from random import random\n",
}
RULE = "TID251"


@pytest.mark.parametrize("code", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("room", ["sluice_consumer/batches/planner.py", "sluice_consumer/poison/search.py", "sluice_checkpoints/formats/kcl.py"])
def test_the_core_has_no_clock_by_whatever_name(room: str, code: str) -> None:
    """The linter resolves aliases. Whoever needs the time takes it as an argument."""
    assert clocks(code=code, path=f"consumer/{room}") == {ROOT / "consumer" / room}


@pytest.mark.parametrize("edge", [name for name, rules in LINT["per-file-ignores"].items() if rules == [RULE]])
def test_each_edge_that_may_have_a_clock_has_one(edge: str) -> None:
    """The list in pyproject.toml names no file for nothing."""
    found = {path.relative_to(ROOT) for path in clocks("--config", "lint.per-file-ignores = {}")}
    each = [edge.replace(part[0], choice) for part in re.finditer(r"\{(.*)\}", edge) for choice in part[1].split(",")] or [edge]
    assert all(any(path.match(one.replace("/**", "/*.py")) for path in found) for one in each), each


def clocks(*options: str, code: str | None = None, path: str = "") -> set[Path]:
    """Files of the packages that read a clock or toss a coin, as the linter sees them; or the file that `code` would be."""
    where = ["--stdin-filename", path, "-"] if code is not None else ["consumer", "operator"]
    command = [sys.executable, "-m", "ruff", "check", "--select", RULE, "--output-format", "json", *options, *where]
    found = subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True, check=False)
    return {Path(each["filename"]) for each in json.loads(found.stdout)}

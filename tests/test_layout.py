"""The repository's shape, where getting it wrong breaks things far away."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = [path.parent for folder in ("consumer", "operator", "lab") for path in sorted((ROOT / folder).glob("*/__init__.py"))]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
LINT, CONTRACTS = TOOLS["ruff"]["lint"], TOOLS["importlinter"]["contracts"]
BARE = [
    "sluice_checkpoints.position",
    "sluice_checkpoints.protocol.store",
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
# Clients are configured on the machine, never here.
REGISTRIES = re.compile(rb"pypi\.org|npmjs\.org|repo1?\.maven|proxy\.golang|deb\.debian\.org|registry\.k8s\.io|quay\.io|ghcr\.io")


def test_the_folder_operator_is_no_package() -> None:
    """It would shadow the standard library's `operator`, and pip, venv and PySpark's workers would crash when started here."""
    assert not (ROOT / "operator" / "__init__.py").exists()
    started_here = [sys.executable, "-c", "import operator, collections; operator.itemgetter"]
    assert subprocess.run(started_here, cwd=ROOT, check=False).returncode == 0


def test_tests_are_no_packages() -> None:
    """Pytest imports them by path (importlib mode)."""
    assert not list((ROOT / "tests").rglob("__init__.py"))


@pytest.mark.parametrize("module", BARE)
def test_the_core_needs_no_third_party_package(module: str) -> None:
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


WORDS = "gathering|manners|twins?|tally|tallies|rhythms?"
RETIRED, ANYWHERE = re.compile(f"(?:^|_)({WORDS})(?:_|$)"), re.compile(WORDS, re.IGNORECASE)


def test_words_that_were_renamed_do_not_come_back_as_names() -> None:
    """Neither of a file, nor of a class, a function, a variable or an attribute: buffer, behaviour, memory, requests, timings stand there."""
    files = [path for folder in ("consumer", "operator", "lab", "bench", "tests", "examples") for path in (ROOT / folder).rglob("*.py")]
    held = [path for path in files if ANYWHERE.search(f"{path.stem} {path.read_text()}")]  # to parse all takes half a minute
    assert held
    named = {(str(path.relative_to(ROOT)), name) for path in held for name in {path.stem, *names(ast.parse(path.read_text()))}}
    assert sorted(each for each in named if RETIRED.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", each[1]).lower())) == []


def names(tree: ast.Module) -> set[str]:
    found = (getattr(node, of, None) for node in ast.walk(tree) for of in ("id", "attr", "name", "arg"))
    return {name for name in found if isinstance(name, str)}


def test_no_task_can_swallow_its_cancellation() -> None:
    """`wait_for` does on Python 3.11, when what it waits for is done in the same moment. Whoever ends the task then waits for ever."""
    files = sorted(path for package in ("consumer", "operator", "lab") for path in (ROOT / package).rglob("*.py"))
    assert [str(path) for path in files if re.search(r"\basyncio\.wait_for\b|from asyncio import.*wait_for", path.read_text())] == []


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
    "chance of an array": "import numpy as np\n\nDRAWN = np.random.default_rng()\n",
    "a name": "from uuid import uuid4 as fresh\n\nNAME = fresh()\n",
    "a token": "import secrets\n",
    "bytes": "import os\n\nDRAWN = os.urandom(4)\n",
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


def test_every_room_without_a_service_is_in_the_contract_that_keeps_it_so() -> None:
    """A new room is asked for; in one that is half an edge, the contract names the module that is (`stream.catalog`)."""
    (contract,) = (each for each in CONTRACTS if each["name"].startswith("the protocol, formats, plans and planners"))
    rooms = [path.parent for package in ("sluice_checkpoints", "sluice_consumer") for path in (ROOT / "consumer" / package).glob("*/__init__.py")]
    without = {f"{room.parent.name}.{room.name}" for room in rooms if not services(room) & set(contract["forbidden_modules"])}
    assert without <= set(contract["source_modules"])
    assert {"sluice_consumer.poison", "sluice_checkpoints.formats"} <= without


def services(room: Path) -> set[str]:
    nodes = [node for path in room.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return {name.split(".")[0] for name in [*names, *(node.module or "" for node in nodes if isinstance(node, ast.ImportFrom))]}


def clocks(*options: str, code: str | None = None, path: str = "") -> set[Path]:
    """Files of the packages that read a clock or toss a coin, as the linter sees them; or the file that `code` would be."""
    where = ["--stdin-filename", path, "-"] if code is not None else ["consumer", "operator"]
    command = [sys.executable, "-m", "ruff", "check", "--select", RULE, "--output-format", "json", *options, *where]
    found = subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True, check=False)
    return {Path(each["filename"]) for each in json.loads(found.stdout)}

"""A mistyped entrypoint is found from its source, and nothing of it is run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sluice_checkpoints import termination_log
from sluice_checkpoints.errors import Refused
from sluice_consumer import __main__ as main_module
from sluice_consumer.process import child_process, entrypoint_check, supervisor

MODULES = {
    "orders.py": """
raise RuntimeError("it was run")
from json import dumps as writer
import os.path as where
def process(batch, info): ...
async def later(batch, info): ...
class Callable: ...
made = lambda batch, info: None
first, (second, *rest) = 1, (2, 3)
try:
    import nothing_such as fast
except ImportError:
    fast = None
if True:
    for each in (): inner = each
def outer():
    hidden = 1
""",
    "starred.py": "from orders import *\n",
    "lazy.py": "def __getattr__(name): ...\n",
    "broken.py": "def process(batch, info)\n    pass\n",
    "binary.pyc": "no source",
    "package/__init__.py": "raise RuntimeError('it was run')\n",
    "package/jobs.py": "def process(batch, info): ...\n",
    "namespace/jobs.py": "def process(batch, info): ...\n",
    "grown/__init__.py": "__path__.append('elsewhere')\n",
}


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))


BOUND = ("process", "later", "Callable", "made", "writer", "where", "first", "rest", "fast", "each", "inner")


@pytest.mark.parametrize(
    "there",
    [*(f"orders:{name}" for name in BOUND), "package.jobs:process", "namespace.jobs:process", "sluice_consumer.sinks:parquet", "math:floor"],
)
def test_what_is_there_is_accepted_and_not_run(there: str) -> None:
    before = set(sys.modules)
    entrypoint_check.check(there)
    assert set(sys.modules) == before


@pytest.mark.parametrize("there", ["starred:process", "lazy:anything", "grown.up:process", "os.path:join"])
def test_what_cannot_be_judged_from_a_source_is_left_to_the_driver(there: str) -> None:
    """A working pipeline must never be refused."""
    entrypoint_check.check(there)


@pytest.mark.parametrize(
    ("mistyped", "found"),
    [
        ("order:process", "there is no module order; is it in the image"),
        ("orders:proces", "module orders has no proces"),
        ("orders:hidden", "has no hidden"),
        ("namespace.job:process", r"there is no module namespace\.job;"),
        ("package.job:process", r"there is no module package\.job;"),
        ("packages.jobs:process", "there is no module packages;"),
        ("orders.jobs:process", r"there is no module orders\.jobs;"),
        ("package.jobs:main", r"module package\.jobs has no main"),
        ("broken:process", r"broken:process: expected ':' in .*broken\.py, line 1"),
    ],
)
def test_a_mistyped_entrypoint_is_refused(mistyped: str, found: str) -> None:
    with pytest.raises(Refused, match=rf"pipeline\.entrypoint: .*{found}"):
        entrypoint_check.check(mistyped)


def test_a_mistyped_entrypoint_ends_a_program_before_there_is_a_table_or_a_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of a pipeline that never ran, and a lease to wait for, would be left behind."""
    for module, name in ((supervisor, "open_table"), (child_process, "permit")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("too late"))
    monkeypatch.setattr(os, "_exit", sys.exit)
    monkeypatch.setenv(termination_log.VARIABLE, str(tmp_path / "log"))
    path = tmp_path / "consumer.json"
    path.write_text(
        json.dumps({"stream": {"name": "s", "region": "r"}, "checkpoints": {"table": "abc"}, "pipeline": {"entrypoint": "orders:proces"}})
    )
    assert CliRunner().invoke(main_module.main, ["--config", str(path)]).exit_code == 65
    assert json.loads((tmp_path / "log").read_text())["message"] == "pipeline.entrypoint: module orders has no proces"

"""The user's module is imported in a real process of its own; what it does there stays there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.checks import importing
from sluice_consumer.checks.model import CheckFinding, CheckOutcome

LONG = 120.0  # seconds; no import of these tests needs as long
PROCESS = "def process(batch, info): ...\n"
MODULES = {
    "fine": "import pyspark.sql.functions as F\nprint('noise')\n" + PROCESS,
    "threads": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n" + PROCESS,
    "column": "import pyspark.sql.functions as F\nID = F.col('id')\n" + PROCESS,
    "session": "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n" + PROCESS,
    "active": "from pyspark.sql import SparkSession\nconf = SparkSession.getActiveSession().conf\n" + PROCESS,
    "hidden": "from pyspark import SparkContext\ntry:\n    SparkContext.getOrCreate()\nexcept Exception:\n    pass\n" + PROCESS,
    "lacking": "import nothing_such\n" + PROCESS,
    "wrong_name": "from json import nothing_such\n" + PROCESS,
    "raising": "import json\n\ndef settings():\n    return json.loads('{')\n\nSETTINGS = settings()\n" + PROCESS,
    "leaving": "import sys\nsys.exit(0)\n",
    "dying": "import os\nos._exit(3)\n",
    "nofunction": "process = 7\n",
    "hanging": "import pathlib, os, time\npathlib.Path(os.environ['PID_FILE']).write_text(str(os.getpid()))\ntime.sleep(600)\n" + PROCESS,
}


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in MODULES.items():
        (tmp_path / f"user_{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))


def imported(name: str) -> CheckFinding:
    return importing.imported(f"user_{name}:process", LONG)


@pytest.mark.parametrize("name", ["fine", "threads"])
def test_a_module_that_can_be_imported(name: str) -> None:
    assert imported(name) == CheckFinding(CheckOutcome.OK, f"user_{name}:process can be imported")
    assert f"user_{name}" not in sys.modules


@pytest.mark.parametrize("name", ["column", "session", "active", "hidden"])
def test_a_module_that_uses_spark_is_left_to_the_driver(name: str) -> None:
    """A working pipeline is never refused, and no JVM is started to find out."""
    finding = imported(name)
    assert finding.outcome is CheckOutcome.UNDECIDED
    assert finding.message.endswith("the driver imports it when Spark runs")


REFUSED = {
    "lacking": "there is no module nothing_such; is it in the image, or",
    "wrong_name": "module user_wrong_name cannot be imported: ImportError: cannot import name 'nothing_such' from 'json'",
    "raising": r"its import raises JSONDecodeError: Expecting property name .* \(.*/user_raising\.py:4 in settings\)$",
    "leaving": r"its import calls sys\.exit\(0\)",
    "dying": r"its import ends the process \(status 3\)",
    "nofunction": "user_nofunction:process is not a function",
}


@pytest.mark.parametrize(("name", "why"), REFUSED.items(), ids=REFUSED.keys())
def test_a_module_that_cannot_be_imported_is_refused_in_one_line(name: str, why: str) -> None:
    with pytest.raises(Refused) as refused:
        imported(name)
    said = str(refused.value)
    assert said.startswith("pipeline.entrypoint: ")
    assert re.search(why, said), said
    assert "\n" not in said


def test_an_import_that_takes_too_long_is_left_to_the_driver_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a large model."""
    monkeypatch.setenv("PID_FILE", str(tmp_path / "pid"))
    finding = importing.imported("user_hanging:process", 5.0)
    assert finding.outcome is CheckOutcome.UNDECIDED
    assert "its import takes longer than 4.5 s; the driver imports it" in finding.message
    if (tmp_path / "pid").exists():  # on a busy machine it may not have begun
        assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sluice_lab import durations


def test_a_run_of_pytest_is_read_back(tmp_path: Path) -> None:
    """`passed` decides whether a test that failed is flaky (lanes.py)."""
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
    assert (stage.name, len(stage.tests), stage.passed, stage.seconds > 0) == ("stage", 4, 2, True)
    assert stage.tests[0].name == "tests/a-b/test_it.py::test_one[a.b/c]"

"""docs/trial.md, typed as it stands, in one shell. AWS is emulated, and fewer seconds are put."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import page_blocks
import pytest

from sluice_lab import places

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAGE, REGION = "docs/trial.md", "eu-west-1"
POLICY, DRIVER = (places.REPO / "docs" / "start" / f"iam-{name}.json" for name in ("trial", "driver"))
SECONDS = 5  # instead of a minute


def actions(policy: Path, *sids: str) -> set[str]:
    return {action for each in json.loads(policy.read_text())["Statement"] if each["Sid"] in sids for action in each["Action"]}


def test_the_day_on_aws_goes_as_its_page_says(moto_endpoint: str, tmp_path: Path) -> None:
    folder, store, calls = tmp_path / "trial", tmp_path / "store", tmp_path / "calls"
    folder.mkdir()
    for name in ("put.py", "count.py"):
        (folder / name).write_text(page_blocks.beginning(PAGE, f"# {name}").replace("/tmp/sluice-trial", str(store)))  # noqa: S108 - the page's
    (folder / "consumer.json").write_text(page_blocks.beginning(PAGE, "{").replace("/tmp/sluice-trial", str(store)))  # noqa: S108
    typed = [block.text for block in page_blocks.of(PAGE) if block.language == "sh"][1:]  # the first one installs
    first = itertools.count(step=20 * SECONDS)
    script = re.sub(r"put\.py \d+ \d+", lambda _: f"put.py {SECONDS} {next(first)}", "".join(typed))
    script = re.sub(r"count\.py \d+", f"count.py {20 * SECONDS * 4}", script)
    path = page_blocks.path_with_sluice(folder)
    program = folder / "bin" / "aws"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).parent / "aws_by_boto3.py"} "$@"\n')
    program.chmod(0o755)
    ours = [str(places.REPO / part) for part in ("consumer", "operator")]
    environment = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(ours), "AWS_ENDPOINT_URL": moto_endpoint, "AWS_CALLS": str(calls)}
    environment |= {"SLUICE_TERMINATION_LOG": str(folder / "last"), "SLUICE_KINESIS_ENCODING": "json"}  # moto does not speak CBOR
    script = script.replace("/tmp/sluice-trial", str(store))  # noqa: S108
    done = subprocess.run(["bash", "-uc", script], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    logs = "".join(log.read_text() for log in folder.glob("run*.log"))

    assert f"{80 * SECONDS} stored, {80 * SECONDS} different, 0 missing" in done.stdout, done.stdout + done.stderr + logs
    assert not store.exists()
    used = set(calls.read_text().split()) | {"kinesis:PutRecords"}
    assert actions(POLICY, "CheckpointTable", "Stream") == used | actions(DRIVER, "CheckpointTable", "Stream")

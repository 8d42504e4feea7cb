"""Several consumers in one Spark: the program, as a person runs it. Real Spark, emulated AWS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest_spark import RECORDS, SHARDS, configuration, stream_document

from sluice_consumer.config import Config, StreamConfig
from sluice_consumer.process import wiring

pytestmark = [pytest.mark.spark, pytest.mark.slow]
LEASE = 20.0
PIPELINES = """
import threading

def store(batch, info):
    with open(f"{info.args['to']}/{info.batch}", "w") as file:
        file.write("\\n".join(sorted(bytes(row.data).decode() for row in batch.select("data").collect())))

def fail(batch, info):
    batch.rdd.map(lambda row: 1 / 0).collect()
"""


def document(config: Config, folder: Path, name: str, entrypoint: str, **more: Any) -> Path:
    (folder / name).mkdir()
    path = folder / f"{name}.json"
    written = {
        "name": name,
        "stream": stream_document(config.stream),
        "checkpoints": {"table": config.checkpoints.table},
        "pipeline": {"entrypoint": entrypoint, "args": {"to": str(folder / name)}},
        "batch": {"intervalSeconds": 0.2},
        "leaseDurationSeconds": LEASE,
    }
    path.write_text(json.dumps(written | more))
    return path


def test_a_group_ends_what_ends_and_names_what_does_not_start(aws: StreamConfig, tmp_path: Path) -> None:
    configs = [configuration(aws, "unused:unused") for _ in range(3)]
    (tmp_path / "group_pipelines.py").write_text(PIPELINES)
    entrypoints = ["group_pipelines:store", "group_pipelines:store", "group_pipelines:nothing"]
    paths = [document(one, tmp_path, f"c{n}", entrypoint) for n, (one, entrypoint) in enumerate(zip(configs, entrypoints, strict=True))]
    command = [sys.executable, "-m", "sluice_consumer", "--master", "local[2,4]", "--until", "tip"]
    command += [word for path in paths for word in ("--config", str(path))]
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": f"{root / 'consumer'}{os.pathsep}{tmp_path}", "SLUICE_LOG": "json"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 65, done.stderr
    for n, config in enumerate(configs[:2]):
        row = wiring.store(config).consumer()
        assert row is not None
        assert (row.generation, row.released) == (1, True), done.stderr
        assert sorted(int(one) for file in (tmp_path / f"c{n}").iterdir() for one in file.read_text().split()) == list(range(RECORDS))
        assert len(wiring.store(config).shards()) == SHARDS
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert {line["consumer"] for line in lines if line["message"].startswith("batch 1: ")} == {"c0", "c1"}
    assert "has no nothing" in done.stderr

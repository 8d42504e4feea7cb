"""The other Java of docs/support.md: a consumer runs to the tip with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest_spark import RECORDS, stream_document

from sluice_consumer.config import StreamConfig
from sluice_lab import places
from sluice_lab.machine import pypi


@pytest.mark.spark
@pytest.mark.slow
def test_a_consumer_runs_to_the_tip_on_java_21(aws: StreamConfig, tmp_path: Path) -> None:
    """From the check on; tests have Java 17 else."""
    args = {"path": str(tmp_path / "orders")}
    config = {"stream": stream_document(aws), "checkpoints": {"table": f"{tmp_path.name}-21"}, "leaseDurationSeconds": 20}
    (tmp_path / "consumer.json").write_text(json.dumps(config | {"pipeline": {"entrypoint": "sluice_consumer.sinks:parquet", "args": args}}))
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}  # an archive of classes of Java 17
    environment |= {"JAVA_HOME": str(pypi.java_21()), "PYTHONPATH": str(places.REPO / "consumer"), "SLUICE_TERMINATION_LOG": str(tmp_path / "last")}

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "sluice_consumer", "--config", str(tmp_path / "consumer.json"), *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "Java 21" in run("--check")
    run("--until", "tip")
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in (tmp_path / "orders").rglob("*.parquet")) == RECORDS

"""docs/platform.md: Spark's own UI, event log and history server show a consumer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import page_blocks
import pyspark
import pytest
import yaml
from conftest_spark import stream_document
from patience import PATIENCE

from sluice_consumer.config import StreamConfig
from sluice_consumer.dev.emulator import free_port
from sluice_lab import places

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ASKS = """
from urllib.request import urlopen
def process(batch, info):
    ui = batch.sparkSession.sparkContext.uiWebUrl
    jobs = urlopen(f"{ui}/api/v1/applications/{batch.sparkSession.sparkContext.applicationId}/jobs").read()
    with open(info.args["jobs"], "wb") as out:
        out.write(jobs)
    batch.count()
"""


def asked(address: str) -> Any:
    for _ in range(int(PATIENCE)):
        try:
            with urlopen(address) as answer:  # noqa: S310 - loopback
                return json.load(answer)
        except URLError:
            threading.Event().wait(1)
    raise AssertionError(f"{address} never answered")


def test_the_ui_and_the_history_server_show_a_consumers_jobs(aws: StreamConfig, tmp_path: Path) -> None:
    settings = yaml.safe_load(page_blocks.beginning("docs/platform.md", "sparkConf:"))["sparkConf"]
    logs = tmp_path / "logs"
    logs.mkdir()
    settings = {**settings, "spark.eventLog.dir": logs.as_uri(), "spark.ui.port": str(free_port())}
    (tmp_path / "asks_the_ui.py").write_text(ASKS)
    config = {
        "stream": stream_document(aws),
        "checkpoints": {"table": f"{tmp_path.name}-ui"},
        "pipeline": {"entrypoint": "asks_the_ui:process", "args": {"jobs": str(tmp_path / "jobs.json")}},
        "sparkConf": settings,
    }
    (tmp_path / "consumer.json").write_text(json.dumps(config))
    environment = os.environ | {"PYTHONPATH": str(places.REPO / "consumer"), "SLUICE_TERMINATION_LOG": str(tmp_path / "last")}
    command = [sys.executable, "-m", "sluice_consumer", "--config", "consumer.json", "--until", "tip"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "jobs.json").read_text()), "the UI showed no job"
    port, home = free_port(), Path(pyspark.__file__).parent
    options = f"-Dspark.history.fs.logDirectory={logs.as_uri()} -Dspark.history.ui.port={port}"
    server = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy.history.HistoryServer"]
    with subprocess.Popen(server, env=os.environ | {"SPARK_HISTORY_OPTS": options}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as history:
        try:
            (application,) = asked(f"http://127.0.0.1:{port}/api/v1/applications")
            jobs = asked(f"http://127.0.0.1:{port}/api/v1/applications/{application['id']}/jobs")
        finally:
            history.kill()
    assert {job["status"] for job in jobs} == {"SUCCEEDED"}

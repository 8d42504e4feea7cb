"""A consumer of the pages, run to the tip of a stream as a program of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kcl_worker import REGION

from sluice_lab import places


def to_the_tip(folder: Path, stream: str, endpoints: Mapping[str, str], /, **config: Any) -> None:
    """Its modules are in the folder. The configuration is the page's, but for its stream."""
    at = {"name": stream, "region": REGION, "kinesisEndpoint": endpoints["KINESIS"], "dynamodbEndpoint": endpoints["DYNAMODB"]}
    (folder / "consumer.json").write_text(json.dumps({"checkpoints": {"table": f"sluice-{uuid.uuid4()}"}, **config, "stream": at}))
    command = [sys.executable, "-m", "sluice_consumer", "--config", "consumer.json", "--until", "tip"]
    paths = os.pathsep.join(str(places.REPO / part) for part in ("consumer", "operator"))
    environment = os.environ | {"PYTHONPATH": paths, "SLUICE_TERMINATION_LOG": str(folder / "last")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def dead_letters(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((folder / "letters").rglob("shardId-*/*.json"))]

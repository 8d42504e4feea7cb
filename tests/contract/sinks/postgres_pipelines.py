"""The function of docs/sinks.md, "Databases", in a pipeline with a record that cannot be processed. Tasks import this module by its name."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks import Part, foreach

PAGE = Path(__file__).parents[3] / "docs" / "sinks.md"


def documented() -> dict[str, Any]:
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "def upsert(" in block)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the page's own code is what is tried
    return names


def upserts(batch: DataFrame, info: BatchInfo) -> None:
    """Rejects some records, stores the others, and dies before the commit, as often as `args` say."""
    number = "get_json_object(CAST(data AS STRING), '$.id')"
    if rejected := info.args.get("rejected"):
        info.reject(batch.where(f"{number} = {rejected}"), "rejected")
        batch = batch.where(f"{number} <> {rejected}")
    foreach(batch, info, store)
    if info.args.get("kills") and _first(info.args, "driver"):
        os.kill(os.getppid(), signal.SIGKILL)
        os.killpg(0, signal.SIGKILL)


def store(rows: Iterator[dict[str, Any]], part: Part) -> None:
    """The function of the page, whose rows raise at the poison record; a task is killed with its transaction open."""

    def until_poison() -> Iterator[dict[str, Any]]:
        for row in rows:
            number = json.loads(row["data"])["id"]
            if number == part.args["poison"]:
                raise ValueError("this order cannot be processed")
            yield row | {"partitionKey": f"k{number}"}
        if part.args.get("kills") and _first(part.args, "task"):
            os.kill(os.getpid(), signal.SIGKILL)

    documented()["upsert"](until_poison(), part)


def _first(args: Any, what: str) -> bool:
    try:
        Path(args["folder"], what).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

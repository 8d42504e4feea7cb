"""Pipelines that raise: in the driver, and in a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import DataFrame


def _amount(order: dict[str, Any]) -> int:
    return int(order["amount"])


def in_driver(batch: DataFrame, _info: Any) -> None:
    for row in batch.collect():
        _amount({"amuont": row.data})


def _checked(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        _amount({"amuont": row.data})
        yield row


def in_task(batch: DataFrame, _info: Any) -> None:
    batch.rdd.mapPartitions(_checked).collect()

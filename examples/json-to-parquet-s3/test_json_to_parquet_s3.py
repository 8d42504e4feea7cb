"""This example, run against emulated AWS; its files are counted by pyarrow."""

from __future__ import annotations

import pyarrow.dataset as ds

from sluice_consumer.sinks import committed_files
from sluice_lab.examples.example import Example

ORDERS = [{"id": n, "customer": f"c{n % 7}", "amount": n / 4, "placed": "2026-11-24T10:00:00Z"} for n in range(600)]


def stored(example: Example) -> list[tuple[int, float]]:
    """What the files that count hold."""
    files = example.around.storage.files()
    rows = ds.dataset(committed_files("lake/orders", filesystem=files), filesystem=files, format="parquet").to_table().to_pylist()
    return sorted((row["id"], float(row["amount"])) for row in rows)


def test_every_order_is_in_the_files_once(example: Example) -> None:
    """Also after a driver that was killed in the middle of a batch."""
    for put in example.story(ORDERS, key="id"):
        assert stored(example) == [(order["id"], order["amount"]) for order in put]

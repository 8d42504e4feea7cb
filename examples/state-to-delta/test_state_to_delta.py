"""This example, run against emulated AWS; its table is counted by deltalake."""

from __future__ import annotations

import json
from collections import Counter

from deltalake import DeltaTable

from sluice_lab.examples.example import LEASE_SECONDS, Example, ExampleRun
from sluice_lab.examples.manifest import documents

ORDERS = [{"customer": f"c{n % 7}", "amount": n} for n in range(600)]


def program(example: Example) -> ExampleRun:
    """What the pod of totals.yaml runs, with other endpoints, a short lease, and the checkpoint on this disk."""
    config_map, _ = documents(example.folder / "totals.yaml")
    said = json.loads(config_map["data"]["totals.json"])
    stream, table = said["consumer"]["stream"], said["consumer"]["checkpoints"]["table"]
    said["consumer"] |= {"stream": stream | example.endpoints(), "leaseDurationSeconds": LEASE_SECONDS}
    said["spark"] |= example.around.spark_settings()
    said["checkpoint"] = str(example.scratch / "checkpoint")
    return ExampleRun(example, (str(example.folder / "totals.py"),), said, stream["name"], table)


def stored(example: Example) -> dict[str, tuple[int, int]]:
    """Orders and amount of each customer, as readers of the table see them."""
    rows = DeltaTable("s3://lake/totals", storage_options=example.around.storage.delta()).to_pyarrow_table().to_pylist()
    return {row["customer"]: (row["orders"], int(row["amount"])) for row in rows}


def test_every_order_is_in_its_customers_total_once(example: Example) -> None:
    """Also after the program was killed in the middle of a batch."""
    for put in example.story(ORDERS, key="customer", run=program(example)):
        counts, amounts = Counter(order["customer"] for order in put), Counter[str]()
        for order in put:
            amounts[str(order["customer"])] += int(str(order["amount"]))
        assert stored(example) == {str(customer): (count, amounts[str(customer)]) for customer, count in counts.items()}

"""This example, run against emulated AWS and a catalog in a bucket; its table is counted by pyiceberg."""

from __future__ import annotations

from dataclasses import replace

from pyiceberg.table import StaticTable

from sluice_lab.examples.example import Example

PAYMENTS = [{"id": n, "customer": f"c{n % 7}", "amount": n / 4, "paid": "2026-11-24T10:00:00Z"} for n in range(600)]
TABLE = "lake/warehouse/shop/payments/metadata"
CATALOG = "spark.sql.catalog.lake"


def stored(example: Example) -> list[tuple[int, float]]:
    """What readers of the table see."""
    version = example.around.storage.files().open_input_stream(f"{TABLE}/version-hint.text").read().decode()
    table = StaticTable.from_metadata(f"s3://{TABLE}/v{version}.metadata.json", example.around.storage.iceberg())
    return sorted((row["id"], float(row["amount"])) for row in table.scan().to_arrow().to_pylist())


def test_every_payment_is_in_the_table_once(example: Example) -> None:
    """Also after a driver that was killed in the middle of a batch. Here is no Glue: a Hadoop catalog, which needs no service, stands in for it."""
    warehouse = {
        "type": "hadoop",
        "warehouse": "s3a://lake/warehouse",
        "s3.endpoint": example.around.storage.endpoint,
        "s3.path-style-access": "true",
    }
    here = replace(example, spark={f"{CATALOG}.{name}": value for name, value in (warehouse | {"client.region": "us-east-1"}).items()})
    here.create("table.sql")
    for put in here.story(PAYMENTS, key="id"):
        assert stored(here) == [(payment["id"], payment["amount"]) for payment in put]

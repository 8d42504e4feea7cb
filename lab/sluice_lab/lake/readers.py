"""Reads what a sink holds, without Spark: pyiceberg, deltalake and pyarrow."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyiceberg.catalog import Catalog, load_catalog

from sluice_consumer.sinks import committed_files
from sluice_lab.lake.storage import Storage


def catalog(endpoint: str, storage: Storage) -> Catalog:
    """Iceberg's REST catalog for pyiceberg."""
    return load_catalog("lake", type="rest", uri=endpoint, **storage.iceberg())


def iceberg(found: Catalog, table: str, columns: Sequence[str]) -> pa.Table:
    """All rows of an Iceberg table; `table` is namespace and name."""
    return found.load_table(table).scan(selected_fields=tuple(columns)).to_arrow()


def delta(storage: Storage, path: str, columns: Sequence[str]) -> pa.Table:
    """All rows of the Delta table below a path of the bucket."""
    found = DeltaTable(f"s3://{storage.bucket}/{path}", storage_options=storage.delta())
    return pa.table(found.to_pyarrow_table(columns=list(columns)))


def parquet(storage: Storage, path: str, columns: Sequence[str]) -> pa.Table:
    """All rows of the files that count below a path of the bucket."""
    files = storage.files()
    names = committed_files(f"{storage.bucket}/{path}", filesystem=files)
    return ds.dataset(names, filesystem=files, format="parquet").to_table(columns=list(columns))

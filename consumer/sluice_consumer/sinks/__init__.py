"""Sinks that hold each record once: Iceberg, Delta, Parquet files, and a function of the user's (docs/sinks.md). `json_rows` decodes for them.

A sink stores a batch's key, `(info.consumer, info.batch)`, or the position of each row, in the same write as the rows, and skips what it has. No sink
may decide what a batch contains, or commit it.
"""

from collections.abc import Mapping
from typing import Any

from sluice_consumer.sinks.delta.sink import delta
from sluice_consumer.sinks.files.parquet import committed_files, parquet
from sluice_consumer.sinks.foreach import Part, foreach
from sluice_consumer.sinks.iceberg.sink import iceberg
from sluice_consumer.sinks.json.documents import json_rows

__all__ = ["Part", "committed_files", "delta", "foreach", "iceberg", "json_rows", "parquet", "settings"]


def settings(entrypoint: str, args: Mapping[str, Any]) -> dict[str, str]:
    """What a pipeline's sink asks of the session before it starts: settings of Spark by name. Pure.

    A pipeline of the user's own has none here: its module is not imported before there is a session.
    """
    module, _, name = entrypoint.partition(":")
    asked = getattr(globals().get(name), "settings", None) if module == __name__ else None
    return asked(args) if asked else {}


def __dir__() -> list[str]:
    return [*__all__]  # what a person completes, without the modules behind it

"""What this Spark can do, where the lines that Sluice runs on (4.1 to 4.3) differ. Nothing else asks for a version, or for what a version lacks.

Each question is one function, so that whoever drops a line sees what goes with it (docs/plain-pyspark.md, "Lines of Spark").
"""

from __future__ import annotations

import functools
import importlib
from importlib.util import find_spec
from typing import Any, TypeVar

import pyspark

Reader = TypeVar("Reader", bound=type)
STREAM_INTERFACES = "pyspark.sql.streaming.datasource"


@functools.cache
def names_the_start() -> bool:
    """Whether Spark gives a stream reader the start of the batch that it requests (4.2).

    If not, the driver's process asks Spark (`stream_query`).
    """
    return find_spec(STREAM_INTERFACES) is not None


@functools.cache
def ends_by_itself() -> bool:
    """Whether `trigger(availableNow=True)` takes as many batches as a Python source has (4.2), not one. If not, `stream_query` ends the query."""
    return find_spec(STREAM_INTERFACES) is not None


def version() -> str:
    """Of PySpark, as `4.1.4`: the jars of a table format are made for one line."""
    return str(pyspark.__version__)


def supports_available_now(reader: Reader) -> Reader:
    """Decorates a stream reader that has `prepareForTriggerAvailableNow`: Spark asks by class, and 4.1 has no such class."""
    if ends_by_itself():
        interfaces: Any = importlib.import_module(STREAM_INTERFACES)
        interfaces.SupportsTriggerAvailableNow.register(reader)
    return reader

"""The sinks' edge to Java: exceptions of Spark, Hadoop, Iceberg and Delta become errors that name the field, and say what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import verdicts
from sluice_consumer.sinks.verdicts import SinkUnavailable, Thrown

__all__ = ["SinkUnavailable", "chain", "has_class", "told"]

DEEPEST = 20  # exceptions of a chain


@contextmanager
def told(field: str, place: str) -> Iterator[None]:
    """Says failures in terms of the field that names the place.

    Raises:
        Refused: the input is wrong for certain. SinkUnavailable: it may pass by itself. Else what the block raised.
    """
    try:
        yield
    except (Py4JJavaError, PySparkException, OSError) as error:
        judged = verdicts.verdict(chain(error))
        if judged is None:
            raise
        raise (Refused if judged.certain else SinkUnavailable)(f"{field}: {place}: {judged.told}") from error


def chain(error: BaseException) -> tuple[Thrown, ...]:
    """Java's exceptions behind one of Python's, outermost first."""
    at: BaseException | None = error
    while at is not None:
        java = getattr(at, "java_exception", None) or getattr(at, "_origin", None)
        if java is not None:
            return tuple(_causes(java))
        at = at.__cause__
    return (Thrown(type(error).__name__, str(error)),)


def _causes(java: Any) -> Iterator[Thrown]:
    for _ in range(DEEPEST):
        if java is None:
            return
        yield Thrown(str(java.getClass().getSimpleName()), str(java.getMessage() or ""))
        java = java.getCause()


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether Spark's JVM finds a class."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no such call
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return loader.getResource(name.replace(".", "/") + ".class") is not None

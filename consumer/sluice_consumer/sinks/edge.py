"""The sinks' edge to Java: exceptions of Spark, Hadoop, Iceberg and Delta become errors that name the field, and say what to do next."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import verdicts
from sluice_consumer.sinks.verdicts import SinkUnavailable, Thrown

__all__ = ["SinkUnavailable", "chain", "has_class", "in_terms_of"]

DEEPEST = 20  # exceptions of a chain
OF_TASK = re.compile(
    r"Job aborted due to stage failure: Task [\d.]+ in stage [\d.]+ failed \d+ times?, most recent failure: "
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^()\n]*\): (?P<kind>[a-z]\w*(?:\.\w+)+)(?:: (?P<words>.*)|\Z)",
    re.DOTALL,
)
"""As Spark begins it; what follows the class may quote a record."""
FIELDS: tuple[tuple[str, Callable[[Any], Any]], ...] = (  # where two have one name, the later counts
    ("condition", lambda java: java.getErrorClass()),
    ("condition", lambda java: java.getCondition()),
    ("sqlstate", lambda java: java.getSqlState()),
    ("aws", lambda java: java.getErrorCode()),
    ("aws", lambda java: java.awsErrorDetails().errorCode()),
    ("http", lambda java: int(java.getStatusCode())),
    ("http", lambda java: int(java.statusCode())),
)


@contextmanager
def in_terms_of(field: str, place: str) -> Iterator[None]:
    """Reports failures in terms of the field that names the target.

    Raises:
        Refused: the input is wrong for certain. SinkUnavailable: it may pass without a change. Else what the block raised.
    """
    try:
        yield
    except (Py4JJavaError, PySparkException, OSError) as error:
        judged = verdicts.verdict(chain(error))
        if judged is None:
            raise
        raise (Refused if judged.certain else SinkUnavailable)(f"{field}: {place}: {judged.message}") from error


def chain(error: BaseException) -> tuple[Thrown, ...]:
    """Java's exceptions behind one of Python's, outermost first."""
    at: BaseException | None = error
    while at is not None:
        java = getattr(at, "java_exception", None) or getattr(at, "_origin", None)
        if java is not None:
            return tuple(thrown for each in _causes(java) for thrown in _thrown(each))
        at = at.__cause__
    return (Thrown(type(error).__name__, str(error)),)


def _causes(java: Any) -> Iterator[Any]:
    for _ in range(DEEPEST):
        if java is None:
            return
        yield java
        java = java.getCause()


def _thrown(java: Any) -> Iterator[Thrown]:
    """One exception, and the one of a task that Spark could only send as text."""
    name, message = str(java.getClass().getSimpleName()), str(java.getMessage() or "")
    fields = {field: value for field, read in FIELDS for value in [_field(java, read)] if value}
    yield Thrown(name, message, fields.get("condition", ""), fields.get("sqlstate", ""), fields.get("aws", ""), int(fields.get("http", 0)))
    if name == "SparkException" and java.getCause() is None and (match := OF_TASK.match(message)):
        yield Thrown(match["kind"].rpartition(".")[2], match["words"])


def _field(java: Any, read: Callable[[Any], Any]) -> str:
    with contextlib.suppress(Exception):  # its class has no such field
        return str(read(java) or "")
    return ""


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether Spark's JVM finds a class."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no such call
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return loader.getResource(name.replace(".", "/") + ".class") is not None

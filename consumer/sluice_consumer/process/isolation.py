"""Puts the search for poison records together for a session: what judges exceptions, where letters go, when nothing works any more."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Iterator

from pyspark.sql import SparkSession

from sluice_checkpoints.errors import SluiceError
from sluice_consumer import logs
from sluice_consumer.batches import failures
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.failures import Raised
from sluice_consumer.batches.isolating import IsolationPorts, Isolator
from sluice_consumer.batches.isolation import Failure, Search
from sluice_consumer.batches.retention import Replays
from sluice_consumer.config import OnErrorConfig
from sluice_consumer.process.dead_letters import FileLetters
from sluice_consumer.sinks import edge
from sluice_consumer.spark.engine import SparkEngine

LONGEST = 16_000  # characters of an exception in a dead letter


def isolator(consumer: Consumer, engine: SparkEngine, how: OnErrorConfig, ports: tuple[SparkSession, Replays, threading.Event]) -> Isolator | None:
    """What deals with batches that fail; None: nobody, as `onError.isolate` says.

    Raises:
        Refused: `onError.deadLetter.path` is on a file system that cannot keep letters.
    """
    spark, source, drain = ports
    if not how.isolate or how.dead_letter is None:
        return None
    letters = FileLetters(spark, how.dead_letter.path)
    bound = IsolationPorts(source, letters, judged, told, engine.settled, drain.wait, how.max_excluded_per_hour, logs.say)
    return Isolator(consumer, bound, Search(how.attempts))


def judged(error: Exception) -> Failure | None:
    """A failure of `process`; None: of something else, which ends the epoch."""
    seen = raised(error)
    if isinstance(error, SluiceError) or failures.is_own(seen):
        return None
    return Failure(failures.signature(seen), transient=failures.is_transient(seen), at=time.monotonic())


def raised(error: Exception) -> Raised:
    """An exception with its causes; one of a task comes with the trace of its worker."""
    return Raised(tuple(_names(error)), told(error))


def told(error: Exception) -> str:
    """Its trace, the innermost exception last; of Spark's only the worker's, or Java's words."""
    text = str(error)
    if "Traceback (most recent call last)" not in text:
        text = "".join(traceback.format_exception(error))
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n…\n{text[-LONGEST // 2 :]}"


def _names(error: BaseException) -> Iterator[str]:
    at: BaseException | None = error
    while at is not None:
        yield from (kind.__name__ for kind in type(at).__mro__ if kind not in {Exception, BaseException, object})
        at = at.__cause__
    yield from (thrown.name for thrown in edge.chain(error))

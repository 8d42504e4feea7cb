"""Puts the search for poison records together for a session: what judges exceptions, where letters go, when nothing works any more."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sluice_checkpoints.errors import SluiceError
from sluice_consumer import pipelines
from sluice_consumer.batches import failures
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.excluding import ExclusionPorts
from sluice_consumer.batches.failures import Raised
from sluice_consumer.batches.isolating import IsolationPorts, Isolator, SettlePatience
from sluice_consumer.batches.isolation import BatchFailure, Search
from sluice_consumer.batches.retention import Replays
from sluice_consumer.config import OnErrorConfig
from sluice_consumer.process.dead_letters import letters_of
from sluice_consumer.sinks import edge
from sluice_consumer.spark.engine import SparkEngine

LONGEST = 16_000  # characters of an exception in a dead letter


@dataclass(frozen=True)
class SessionParts:
    """What a session has for it: its stream's reader, how it waits, for how long, and where it says what goes on (`IsolationPorts`)."""

    source: Replays
    wait: Callable[[float], bool]
    patience: SettlePatience
    state: Callable[[str | None], None]
    excluded: Callable[[str], None]


def isolator(consumer: Consumer, engine: SparkEngine, how: OnErrorConfig, here: SessionParts) -> Isolator | None:
    """What deals with batches that fail; None: nobody, as `onError.isolate` says.

    Raises:
        Refused: see `letters_of`.
    """
    letters = pipelines.LETTERS.store = letters_of(engine, how.dead_letter) if how.dead_letter else None
    if not how.isolate or letters is None:
        return None
    ports = IsolationPorts(
        excluding=ExclusionPorts(here.source, letters, how.max_excluded_per_hour, hour=lambda: int(time.time() // 3600)),
        judge=judged,
        quiet=engine.quiet,
        wait=here.wait,
        clock=time.monotonic,
        cancel=engine.cancel,
        patience=here.patience,
        state=here.state,
        excluded=here.excluded,
    )
    return Isolator(consumer, ports, Search(how.attempts))


def judged(error: Exception) -> BatchFailure | None:
    """A failure of `process`; None: of something else, which ends the epoch."""
    seen = raised(error)
    if isinstance(error, SluiceError) or failures.is_own(seen):
        return None
    return BatchFailure(failures.signature(seen), transient=failures.is_transient(seen), at=time.monotonic(), told=seen.trace)


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

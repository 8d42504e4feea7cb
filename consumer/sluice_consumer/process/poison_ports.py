"""Puts the search for poison records together for a session: what judges exceptions, where dead letters go, when nothing works any more."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark.errors import PySparkException

from sluice_checkpoints.errors import AccessDenied, Refused
from sluice_checkpoints.letters.letter import LONGEST, writable
from sluice_checkpoints.stream.model import StreamNotFound
from sluice_consumer import pipelines
from sluice_consumer.batches.batch_letters import BatchLetters
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.retention import Replays
from sluice_consumer.config import OnErrorConfig
from sluice_consumer.letters.stores import store_of
from sluice_consumer.poison import causes, worker_errors
from sluice_consumer.poison.causes import Raised, RaisedLink, TaskRefusal
from sluice_consumer.poison.exclusions import ExclusionPorts
from sluice_consumer.poison.isolator import IsolationPorts, Isolator, SettlePatience
from sluice_consumer.poison.raised import chain, is_ours, place, thrown
from sluice_consumer.poison.search import BatchFailure, DoubtLimits, Search
from sluice_consumer.spark import java_errors
from sluice_consumer.spark.engine import SparkEngine

TRACEBACK = "Traceback (most recent call last)"
PATIENCE = DoubtLimits()
KINDS = {kind.__name__: kind for kind in (AccessDenied, StreamNotFound)}  # refusals with a name of their own


@dataclass(frozen=True)
class SessionParts:
    """What a session has for it: its stream's reader, how it waits, for how long, and where it reports what happens (`IsolationPorts`)."""

    source: Replays
    wait: Callable[[float], bool]
    patience: SettlePatience
    state: Callable[[str | None], None]
    excluded: Callable[[str], None]
    lasting: Callable[[str | None], None]


def isolator(consumer: Consumer, engine: SparkEngine, how: OnErrorConfig, here: SessionParts) -> Isolator | None:
    """What deals with batches that fail; None: nobody, as `onError.isolate` says.

    Raises:
        Refused: see `store_of`. SinkUnavailable: dead letters of a committed batch are not published, and cannot be now.
    """
    letters = BatchLetters(store_of(engine, how.dead_letter, consumer), consumer.epoch.generation) if how.dead_letter else None
    assert consumer.row is not None  # noqa: S101 - begin() set it
    pipelines.LETTERS.keep(consumer.row.consumer_id, letters)
    consumer.letters = letters
    consumer.publish()
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
        lasting=here.lasting,
    )
    return Isolator(consumer, ports, Search(how.attempts, PATIENCE))


def judged(error: Exception) -> BatchFailure | None:
    """A failure of `process`; None: of something else, which ends the epoch."""
    seen = raised(error)
    if causes.is_own(seen):
        return None
    return BatchFailure(causes.signature(seen), causes.is_transient(seen), time.monotonic(), seen.trace, causes.kind(seen))


def raised(error: Exception) -> Raised:
    """An exception with its causes: Python's of the driver, Java's behind them, those of a Python worker behind these."""
    known = list(chain(error))
    links = [link for one, implied in known for link in _links(one, implied=implied)]
    workers = [worker for _, worker in links if worker]
    of_worker = next((worker.place for worker in workers if worker.place), "")
    refused = next((worker.refused for worker in workers if worker.refused), None)
    ours = any(is_ours(one) for one, implied in known if not implied)
    return Raised(tuple(one for one, _ in links), of_worker or place(error), error_text(error), ours, refused)


def refusal(error: Exception) -> Refused | None:
    """What a task refused while it read the batch, such as a call that AWS denies to the executors alone; None: it was something else."""
    found = raised(error).refused
    return None if found is None else named(found)


def named(refused: TaskRefusal) -> Refused:
    """The exception that a task raised."""
    return KINDS.get(refused.kind, Refused)(refused.words)


def _links(error: BaseException, *, implied: bool) -> Iterator[tuple[RaisedLink, Raised | None]]:
    """One exception and, where it is one of Spark's, what is behind it; each with what a worker sent."""
    yield thrown(error, implied=implied), None
    java = java_errors.java_exception(error)
    if java is not None:
        yield from java_errors.chain(java)
    elif isinstance(error, PySparkException):
        worker = worker_errors.parsed(str(getattr(error, "_desc", None) or error))
        yield from ((one, worker) for one in worker.chain) if worker else ()


def error_text(error: Exception) -> str:
    """Its trace, the innermost exception last; of Spark's only the worker's, or Java's words. In characters that can be stored anywhere."""
    text = worker_errors.without_header(str(error))
    if TRACEBACK not in text:
        text = "".join(traceback.format_exception(error))
    return writable(text, LONGEST)

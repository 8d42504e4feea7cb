"""What an exception of a batch is: Python's of the driver, Java's behind it, that of a Python worker behind both."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator

from pyspark.errors import PySparkException

from sluice_checkpoints.errors import AccessDenied, Refused
from sluice_checkpoints.letters.letter import LONGEST, writable
from sluice_checkpoints.stream.model import StreamNotFound
from sluice_consumer.poison import causes, worker_errors
from sluice_consumer.poison.causes import Raised, RaisedLink, TaskRefusal
from sluice_consumer.poison.raised import chain, is_ours, place, thrown
from sluice_consumer.poison.search import BatchFailure
from sluice_consumer.spark import java_errors

TRACEBACK = "Traceback (most recent call last)"
KINDS = {kind.__name__: kind for kind in (AccessDenied, StreamNotFound)}  # refusals with a name of their own


def judged(error: Exception) -> BatchFailure | None:
    """A failure of `process`; None: of something else, which ends the epoch."""
    seen = raised(error)
    if causes.is_own(seen):
        return None
    return BatchFailure(causes.signature(seen), causes.is_transient(seen), time.monotonic(), seen.trace, causes.kind(seen))


def raised(error: Exception) -> Raised:
    """An exception with its causes: Python's of the driver, Java's behind them, those of a Python worker behind these."""
    known = list(chain(error))
    links = [link for each, implied in known for link in _links(each, implied=implied)]
    workers = [worker for _, worker in links if worker]
    of_worker = next((worker.place for worker in workers if worker.place), "")
    refused = next((worker.refused for worker in workers if worker.refused), None)
    ours = any(is_ours(each) for each, implied in known if not implied)
    return Raised(tuple(each for each, _ in links), of_worker or place(error), error_text(error), ours, refused)


def refusal(error: Exception) -> Refused | None:
    """What a task refused while it read the batch, such as a call that AWS denies to the executors alone; None: it was something else."""
    refused = raised(error).refused
    return None if refused is None else named(refused)


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
        yield from ((link, worker) for link in worker.chain) if worker else ()


def error_text(error: Exception) -> str:
    """Its trace, the innermost exception last; of Spark's only the worker's, or Java's words. In characters that can be stored anywhere."""
    text = worker_errors.without_header(str(error))
    if TRACEBACK not in text:
        text = "".join(traceback.format_exception(error))
    return writable(text, LONGEST)

"""Failed renewals of credentials as one line of ours. Of each, botocore logs a traceback, even where it keeps the error to itself."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar

log = logging.getLogger(__name__)
BOTOCORE = logging.getLogger("botocore.credentials")
FAILURES: ContextVar[list[BaseException] | None] = ContextVar("FAILURES", default=None)


@contextlib.contextmanager
def failures() -> Iterator[list[BaseException]]:
    """Errors of the renewals in this thread, the last one last. botocore's own lines about them are left out, except at log level DEBUG.

    A renewal that fails more than ten minutes before the end of the present credentials raises nothing: its error is only here.
    """
    found: list[BaseException] = []
    BOTOCORE.addFilter(_kept)  # once: a logger has no filter twice
    token = FAILURES.set(found)
    try:
        yield found
    finally:
        FAILURES.reset(token)


def _kept(record: logging.LogRecord) -> bool:
    found, error = FAILURES.get(), record.exc_info[1] if record.exc_info else None
    if found is None or error is None:
        return True
    found.append(error)
    return log.isEnabledFor(logging.DEBUG)

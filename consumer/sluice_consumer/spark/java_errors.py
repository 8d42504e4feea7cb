"""Java's exceptions as they are judged, over py4j: classes and fields of each, and of its causes.

Of their words only the beginning is looked at, and only where Spark alone writes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from sluice_consumer.poison import worker_errors
from sluice_consumer.poison.causes import PASSING, WORKER_EXITED, Raised, RaisedLink
from sluice_consumer.poison.known_errors import BY_POLICY

DEEPEST = 20
WORKERS = "org.apache.spark.api.python.PythonException"
SPARKS = "org.apache.spark.SparkException"
RUNNER = "org.apache.spark.api.python."
RUNNERS = (RUNNER, "org.apache.spark.sql.execution.python.")
STREAM = re.compile(
    r"(sun\.nio\.ch|java\.nio\.channels|org\.apache\.arrow\.vector\.ipc)\.|java\.net\.Socket|java\.io\.(Data|Buffered|Filter)?(In|Out)putStream"
)
"""Frames between a socket and whoever reads or writes it."""
SYSTEM = re.compile(r"java\.io\.(File(In|Out)putStream|RandomAccessFile|UnixFileSystem)|sun\.nio\.(ch|fs)\.\w+")
"""Whose native methods raise in the words of the operating system."""
SYSTEMS = {"java.io.IOException", "java.io.FileNotFoundException", "java.net.SocketException"}
ERRNOS = {os.strerror(number): name for number, name in errno.errorcode.items()}
SOCKETS = {"java.io.IOException", "java.io.EOFException", "java.net.SocketException", "java.nio.channels.ClosedChannelException"}
ABORTED = (
    r"(?:Job aborted due to stage failure: Task [\d.]+ in stage [\d.]+ failed \d+ times?, most recent failure: "
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^()\n]*\): )?"
)
OF_TASK = re.compile(rf"{ABORTED[:-1]}(?P<kind>[a-z]\w*(\.\w+)+)(?=[:\s]|\Z)")  # where Spark could not send the exception itself
EXITED = re.compile(rf"{ABORTED}(?:org\.apache\.spark\.SparkException: )?Python worker exited unexpectedly")
LOST = re.compile(
    rf"{ABORTED}(ExecutorLostFailure|FetchFailed|TaskKilled|TaskResultLost|TaskCommitDenied|org\.apache\.spark\.TaskKilledException)"
    rf"|{ABORTED}Python worker (failed to connect|did not connect)|Job \d+ (was )?cancelled|\[(SPARK_)?JOB_CANCELLED\]"
    r"|Job aborted due to stage failure: ((ShuffleMap|Result)Stage \d+ \(|Stage \d+ (was )?cancelled)"
)
"""As they begin. What follows may quote a record."""


def java_exception(error: BaseException) -> Any:
    """Java's exception behind one of Python's; None: there is none."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def chain(java: Any) -> Iterator[tuple[RaisedLink, Raised | None]]:
    """Java's exceptions, outermost first, and those of a Python worker among them, with all that the worker sent.

    Behind the first worker's only those of other workers count: Java's are of the socket that the worker left.
    """
    of_worker = None
    for at in _causes(java):
        name = str(at.getClass().getName())
        if of_worker is None:
            yield from ((thrown, None) for thrown in _thrown(at, name))
        worker = worker_errors.parsed(str(at.getMessage() or "")) if name == WORKERS else None
        yield from ((thrown, worker) for thrown in worker.chain) if worker else ()
        of_worker = of_worker or worker


def _causes(java: Any) -> Iterator[Any]:
    at = java
    for _ in range(DEEPEST):
        if at is None:
            return
        yield at
        at = at.getCause()


def _thrown(java: Any, name: str) -> Iterator[RaisedLink]:
    if _left(java, name):
        yield RaisedLink((f"{RUNNER}PythonWorkerExited",), (WORKER_EXITED,))
        return
    yield RaisedLink(tuple(_kinds(java)), tuple(_codes(java, name)))
    if name == SPARKS and java.getCause() is None and (match := OF_TASK.match(str(java.getMessage() or ""))):
        yield RaisedLink((match["kind"],))


def _left(java: Any, name: str) -> bool:
    """Whether the socket to a Python worker failed: it died while it was given rows. Its runner computes them, too, which may raise the same."""
    if name not in SOCKETS:
        return False
    users = (at for at in _frames(java) if not STREAM.match(at))
    return next(users, "").startswith(RUNNERS)


def _frames(java: Any) -> Iterator[str]:
    return (str(frame.getClassName()) for frame in java.getStackTrace())


def _kinds(java: Any) -> Iterator[str]:
    at = java.getClass()
    while at is not None and str(at.getName()) not in {
        "java.lang.Object",
        "java.lang.Throwable",
        "java.lang.Exception",
        "java.lang.RuntimeException",
    }:
        yield str(at.getName())
        at = at.getSuperclass()


def _codes(java: Any, name: str) -> Iterator[str]:
    if name == SPARKS:
        words = str(java.getMessage() or "")
        yield from ([WORKER_EXITED] if EXITED.match(words) else [PASSING] if LOST.match(words) else [])
    if name_of_errno := ERRNOS.get(_of_system(java, name)):
        yield f"errno:{name_of_errno}"
    for field, read in FIELDS:
        with contextlib.suppress(Exception):  # it has no such field
            if value := read(java):
                yield f"{field}:{value}"


def _of_system(java: Any, name: str) -> str:
    """The words of the operating system; "" where anybody else may have written them."""
    if name == "java.nio.file.FileSystemException":
        return str(java.getReason() or "")
    at = next(iter(java.getStackTrace()), None) if name in SYSTEMS else None
    if at is None or not at.isNativeMethod() or not SYSTEM.fullmatch(str(at.getClassName())):
        return ""
    words = str(java.getMessage() or "")
    return words if name != "java.io.FileNotFoundException" else words.rpartition(" (")[2].removesuffix(")")


def _sqlstate(java: Any) -> str:
    """PostgreSQL's with its routine, where that says more."""
    state = str(java.getSQLState() or "")
    with contextlib.suppress(Exception):
        if java.getServerErrorMessage().getRoutine() == BY_POLICY:
            return f"{state} {BY_POLICY}"
    return state


def _number(value: Any) -> str:
    return str(value) if int(value) >= 500 or int(value) in {401, 403, 429} else ""


FIELDS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("sql", _sqlstate),
    ("sqlstate", lambda java: java.getSqlState()),  # Spark's: each condition has one
    ("aws", lambda java: java.awsErrorDetails().errorCode()),
    ("http", lambda java: _number(java.statusCode())),
    ("aws", lambda java: java.getErrorCode() if "amazonaws" in str(java.getClass().getName()) else ""),
    ("http", lambda java: _number(java.getStatusCode())),
)

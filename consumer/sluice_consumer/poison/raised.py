"""Python's exceptions as they are judged: classes and fields of each, and of what it was raised from. Pure; drivers and workers both do it."""

from __future__ import annotations

import contextlib
import errno
import re
import sysconfig
from collections.abc import Iterator
from traceback import extract_tb
from types import FrameType
from typing import Any

from sluice_consumer.poison.causes import RaisedLink
from sluice_consumer.poison.known_errors import BY_POLICY, OWN

DEEPEST = 20  # exceptions of a chain, classes of one
LIBRARY = re.compile(r"/(pyspark|py4j)/|/pyspark\.zip/|/sluice_(checkpoints|consumer)/|^<frozen ")
STDLIB = re.compile(rf"{re.escape(sysconfig.get_path('stdlib'))}/(?!site-packages/|dist-packages/)|<frozen ")
SQLSTATE = re.compile(r"[0-9A-Z]{5}")
BROKERS = {
    "_TRANSPORT",
    "_ALL_BROKERS_DOWN",
    "_TIMED_OUT",
    "_MSG_TIMED_OUT",
    "_RESOLVE",
    "_SSL",
    "_AUTHENTICATION",
    "_QUEUE_FULL",
    "_TIMED_OUT_QUEUE",
}


def chain(error: BaseException) -> Iterator[tuple[BaseException, bool]]:
    """An exception and what it was raised from, outermost first; and whether that was only being handled."""
    waiting, seen = [(error, False)], set[int]()
    while waiting and len(seen) < DEEPEST:
        at, implied = waiting.pop(0)
        if id(at) in seen:
            continue
        seen.add(id(at))
        yield at, implied
        waiting[:0] = _behind(at, implied)


def _behind(error: BaseException, implied: bool) -> list[tuple[BaseException, bool]]:  # noqa: FBT001 - of a pair
    behind: list[tuple[BaseException, bool]] = []
    if error.__cause__ is not None:
        behind.append((error.__cause__, implied))
    elif error.__context__ is not None and not error.__suppress_context__:
        behind.append((error.__context__, True))
    return behind + [(each, True) for each in getattr(error, "exceptions", ()) if isinstance(each, BaseException)][:DEEPEST]


def thrown(error: BaseException, *, implied: bool = False) -> RaisedLink:
    """One exception."""
    kinds = [kind for kind in type(error).__mro__ if kind not in {Exception, BaseException, object}]
    named = tuple(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds[:DEEPEST]) or (f"builtins.{type(error).__name__}",)
    return RaisedLink(named, tuple(dict.fromkeys(codes(error, {name.partition(".")[0] for name in named}))), implied)


def place(error: BaseException) -> str:
    """The innermost line that is not one of Spark's or ours; "" if there is none."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not LIBRARY.search(frame.filename)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def is_ours(error: BaseException) -> bool:
    """Whether a line of Sluice raised it, or Python's library for that line: then a mistake of Sluice's is the cause, and no record.

    The frames of the user's code, of Spark and of other libraries are none of them, whoever called these.
    """
    at = error.__traceback__
    frames = list[FrameType]()
    while at is not None:
        frames.append(at.tb_frame)
        at = at.tb_next
    inner = next((frame for frame in reversed(frames) if not STDLIB.match(frame.f_code.co_filename)), None)
    return inner is not None and str(inner.f_globals.get("__name__", "")).startswith(OWN)


def codes(error: BaseException, packages: set[str]) -> Iterator[str]:
    """What an exception carries as fields. A field of a class whose package is not known says nothing: it may quote the record."""
    for package, read in FIELDS.items():
        if package in packages:
            with contextlib.suppress(Exception):
                yield from read(error)


def _errno(error: Any) -> Iterator[str]:
    if isinstance(error, OSError) and isinstance(error.errno, int) and error.errno in errno.errorcode:
        yield f"errno:{errno.errorcode[error.errno]}"


def _aws(error: Any) -> Iterator[str]:
    response = error.response
    yield f"aws:{response['Error']['Code']}"
    yield from (f"aws:{reason['Code']}" for reason in response.get("CancellationReasons", ()) if reason.get("Code", "None") != "None")
    if (status := response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= 500:
        yield f"http:{status}"


def _sql(error: Any) -> Iterator[str]:
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if isinstance(state, str):
        routine = getattr(getattr(error, "diag", None), "source_function", None) or getattr(error, "server_source_function", None)
        yield f"sql:{state} {BY_POLICY}" if routine == BY_POLICY else f"sql:{state}"


def _odbc(error: Any) -> Iterator[str]:
    if isinstance(error.args[0], str) and SQLSTATE.fullmatch(error.args[0]):
        yield f"sql:{error.args[0]}"


def _mysql(error: Any) -> Iterator[str]:
    number = getattr(error, "errno", None) or (error.args[0] if error.args else None)
    if isinstance(number, int) and number > 0:
        yield f"mysql:{number}"


def _mongo(error: Any) -> Iterator[str]:
    if error.has_error_label("TransientTransactionError") or error.has_error_label("RetryableWriteError"):
        yield "retriable:yes"
    if isinstance(getattr(error, "code", None), int):
        yield f"mongo:{error.code}"


def _retriable(error: Any) -> Iterator[str]:
    if getattr(error, "retriable", False) is True:
        yield "retriable:yes"


def _brokers(error: Any) -> Iterator[str]:
    answer = error.args[0]
    if answer.retriable() or answer.name() in BROKERS:
        yield "retriable:yes"


def _status(error: Any) -> Iterator[str]:
    answer = getattr(error, "response", None)
    for holder, field in (
        (answer, "status_code"),
        (error, "status_code"),
        (error, "status"),
        (error, "code"),
        (getattr(error, "meta", None), "status"),
    ):
        number = getattr(holder, field, None)
        if isinstance(number, int) and 100 <= number < 600:
            yield f"http:{number}"
            return


def _grpc(error: Any) -> Iterator[str]:
    yield f"grpc:{error.code().name}"


def _sqlite(error: Any) -> Iterator[str]:
    yield f"sqlite:{'_'.join(error.sqlite_errorname.split('_')[:2])}"


def _oracle(error: Any) -> Iterator[str]:
    if error.args[0].isrecoverable:
        yield "retriable:yes"


FIELDS = {
    "builtins": _errno,
    "botocore": _aws,
    **dict.fromkeys(("psycopg", "psycopg2", "asyncpg"), _sql),
    "pyodbc": _odbc,
    **dict.fromkeys(("pymysql", "MySQLdb", "mysql", "mariadb"), _mysql),
    "pymongo": _mongo,
    **dict.fromkeys(("kafka", "aiokafka"), _retriable),
    "confluent_kafka": _brokers,
    "cimpl": _brokers,
    **dict.fromkeys(("requests", "httpx", "aiohttp", "urllib", "elasticsearch", "opensearchpy", "google", "azure"), _status),
    "grpc": _grpc,
    "sqlite3": _sqlite,
    "oracledb": _oracle,
}

"""What an exception of `process` says: classes and codes do, and no text does (docs/protocol.md, "Poison")."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.errors import PythonException
from pyspark.util import handle_worker_exception

from sluice_checkpoints.errors import AccessDenied, Fenced, Refused
from sluice_consumer.poison import worker_errors
from sluice_consumer.poison.causes import Raised, RaisedLink, TaskRefusal, is_own, is_transient, kind, signature
from sluice_consumer.poison.raised import chain, thrown
from sluice_consumer.poison.search import CRASH, DATA, UNKNOWN, BatchFailure
from sluice_consumer.sinks.delta import lineage
from sluice_consumer.sinks.files import manifest
from sluice_consumer.spark.batch_reader import named
from sluice_consumer.spark.engine import ProcessExited
from sluice_consumer.spark.failures import judged, raised, refusal
from sluice_lab.fakes.kinesis import IteratorExpired


def classes(*names: str, codes: tuple[str, ...] = ()) -> Raised:
    return Raised((RaisedLink(names, codes),))


def caught(error: BaseException, cause: BaseException | None = None) -> Exception:
    try:
        raise error from cause  # noqa: TRY301 - it is a value here
    except Exception as found:  # noqa: BLE001 - whatever it is
        return found


def of_worker(error: BaseException, *, stock: bool = False) -> PythonException:
    """What the driver gets of an exception of a Python worker; `stock`: one without Sluice in it."""
    written = io.BytesIO()
    try:
        raise error  # noqa: TRY301 - as above
    except BaseException as found:  # noqa: BLE001 - as PySpark does
        if stock:
            handle_worker_exception(found, written)
        else:
            worker_errors.tell(handle_worker_exception, found, written)
    return PythonException(
        f"\n  An exception was thrown from the Python worker. Please see the stack trace below.\n{written.getvalue()[8:].decode()}"
    )


def user_class(name: str, *above: type[Exception], module: str = "orders") -> type[Exception]:
    return type(name, above or (Exception,), {"__module__": module})


DATA_ERRORS = [
    classes("builtins.ValueError"),
    classes("json.decoder.JSONDecodeError", "builtins.ValueError"),
    classes("builtins.KeyError", "builtins.LookupError"),
    classes("builtins.UnicodeDecodeError", "builtins.UnicodeError", "builtins.ValueError"),
    classes("decimal.InvalidOperation", "decimal.DecimalException", "builtins.ArithmeticError"),
    classes("psycopg.errors.StringDataRightTruncation", "psycopg.DataError", "psycopg.DatabaseError", "psycopg.Error", codes=("sql:22001",)),
    classes("psycopg.errors.UniqueViolation", "psycopg.IntegrityError", codes=("sql:23505",)),
    classes("pymysql.err.DataError", "pymysql.err.DatabaseError", codes=("mysql:1406",)),
    *(
        classes("botocore.exceptions.ClientError", codes=(f"aws:{code}",))
        for code in (
            "ValidationException",
            "InvalidMessageContents",
            "AWS.SimpleQueueService.BatchRequestTooLong",
            "BatchRequestTooLong",
            "InvalidParameter",
            "InvalidParameterException",
            "InvalidParameterValue",
            "InvalidParameterValueException",
            "ParameterValueInvalid",
            "MessageTooLong",
            "MaxMessageLengthExceeded",
            "RequestEntityTooLarge",
            "InvalidArgumentException",
        )
    ),
    classes("psycopg.errors.WithCheckOptionViolation", "psycopg.ProgrammingError", codes=("sql:44000",)),
    classes("psycopg.errors.InsufficientPrivilege", "psycopg.ProgrammingError", codes=("sql:42501 ExecWithCheckOptions",)),
    classes("psycopg.errors.CardinalityViolation", "psycopg.ProgrammingError", codes=("sql:21000",)),
    classes("org.apache.spark.SparkException", codes=("sqlstate:22023",)),
    classes("java.lang.NumberFormatException", "java.lang.IllegalArgumentException"),
]
UNKNOWN_ERRORS = [
    classes("orders.NoSuchCustomer"),
    classes("orders.ExpiredVoucher"),
    classes("orders.ForbiddenWord"),
    classes("orders.TimeoutField"),
    classes("orders.ConnectionError"),
    classes("orders.Fenced"),
    classes("builtins.RuntimeError"),
    classes("psycopg.errors.ProgramLimitExceeded", "psycopg.OperationalError", codes=("sql:54000",)),
    classes("pymysql.err.OperationalError", codes=("mysql:3140",)),
    classes("requests.exceptions.HTTPError", "requests.exceptions.RequestException", "builtins.OSError", codes=("http:404",)),
    classes("requests.exceptions.JSONDecodeError", "requests.exceptions.RequestException", "builtins.OSError", "builtins.ValueError"),
    classes("builtins.FileNotFoundError", "builtins.OSError", codes=("errno:ENOENT",)),
    classes("botocore.exceptions.ClientError", codes=("aws:ConditionalCheckFailedException",)),
    classes("botocore.exceptions.ClientError", codes=("aws:ItemCollectionSizeLimitExceededException",)),
    classes("botocore.exceptions.ClientError", codes=("aws:TextSizeLimitExceededException",)),
    classes("org.apache.iceberg.exceptions.BadRequestException", "org.apache.iceberg.exceptions.RESTException"),
    classes("urllib.error.HTTPError", "urllib.error.URLError", "builtins.OSError", codes=("http:404",)),
]
OUTAGES = [
    classes("builtins.ConnectionRefusedError", "builtins.ConnectionError", "builtins.OSError"),
    classes("builtins.TimeoutError", "builtins.OSError"),
    classes("builtins.OSError", codes=("errno:ENOSPC",)),
    classes("builtins.MemoryError"),
    classes("sink.SinkIsDown", "builtins.ConnectionError"),
    classes("requests.exceptions.ReadTimeout", "requests.exceptions.Timeout"),
    classes("requests.exceptions.HTTPError", codes=("http:503",)),
    classes("urllib.error.URLError", "builtins.OSError"),
    classes("urllib3.exceptions.NewConnectionError"),
    classes("httpx.ConnectTimeout", "httpx.TimeoutException", "httpx.TransportError"),
    classes("aiohttp.client_exceptions.ClientConnectorError", "aiohttp.client_exceptions.ClientConnectionError"),
    *(
        classes("botocore.errorfactory.X", "botocore.exceptions.ClientError", codes=(f"aws:{code}",))
        for code in (
            "ThrottlingException",
            "InternalServerError",
            "InternalError",
            "TransactionConflictException",
            "TransactionConflict",
            "ProvisionedThroughputExceededException",
            "RequestLimitExceeded",
            "LimitExceededException",
            "ExpiredTokenException",
            "AccessDenied",
            "SlowDown",
            "ServiceUnavailable",
        )
    ),
    classes("botocore.exceptions.ClientError", codes=("aws:Whatever", "http:500")),
    classes("botocore.exceptions.EndpointConnectionError", "botocore.exceptions.ConnectionError"),
    classes("psycopg.OperationalError", "psycopg.DatabaseError"),
    classes("psycopg.InterfaceError", "psycopg.Error"),
    classes("psycopg.errors.DeadlockDetected", "psycopg.OperationalError", codes=("sql:40P01",)),
    classes("psycopg.errors.InsufficientPrivilege", "psycopg.ProgrammingError", codes=("sql:42501",)),
    classes("psycopg.errors.AdminShutdown", "psycopg.OperationalError", codes=("sql:57P01",)),
    classes("psycopg.errors.SerializationFailure", "psycopg.OperationalError", codes=("sql:40001",)),
    classes("psycopg2.errors.DeadlockDetected", "psycopg2.extensions.TransactionRollbackError", "psycopg2.OperationalError"),
    classes("pymysql.err.OperationalError", codes=("mysql:1213",)),
    classes("mysql.connector.errors.InterfaceError", codes=("mysql:2003",)),
    classes("pymongo.errors.NotPrimaryError", "pymongo.errors.AutoReconnect"),
    classes("kafka.errors.NotLeaderForPartitionError", "kafka.errors.InvalidMetadataError"),
    classes("cassandra.cluster.NoHostAvailable"),
    classes("redis.exceptions.ClusterDownError", "redis.exceptions.ResponseError"),
    classes("com.mysql.cj.jdbc.exceptions.CommunicationsException", "java.sql.SQLRecoverableException", "java.sql.SQLException"),
    classes("java.net.SocketTimeoutException", "java.io.InterruptedIOException", "java.io.IOException"),
    classes("org.postgresql.util.PSQLException", "java.sql.SQLException", codes=("sql:40001",)),
    classes("org.apache.iceberg.exceptions.CommitFailedException"),
    classes("org.apache.iceberg.exceptions.RESTException"),
    classes("org.apache.spark.sql.delta.ConcurrentAppendException", "java.util.ConcurrentModificationException", codes=("sqlstate:2D521",)),
    classes("org.apache.hadoop.fs.s3a.AWSStatus500Exception", "org.apache.hadoop.fs.s3a.AWSServiceIOException"),
    classes("software.amazon.awssdk.services.s3.model.S3Exception", codes=("http:503",)),
    classes("org.apache.hadoop.fs.FSError", "java.lang.Error"),
    classes("org.apache.kafka.common.errors.TimeoutException", "org.apache.kafka.common.errors.RetriableException"),
    classes("org.apache.spark.SparkException", codes=("spark:passing",)),
]


def told(seen: Raised) -> str:
    return " ".join([seen.chain[0].kinds[0], *seen.chain[0].codes])


@pytest.mark.parametrize("seen", DATA_ERRORS, ids=told)
def test_it_says_that_a_value_is_wrong(seen: Raised) -> None:
    assert (is_transient(seen), is_own(seen), kind(seen)) == (False, False, DATA)


@pytest.mark.parametrize("seen", UNKNOWN_ERRORS, ids=told)
def test_it_may_be_the_record_or_a_part_of_the_sink(seen: Raised) -> None:
    assert (is_transient(seen), is_own(seen), kind(seen)) == (False, False, UNKNOWN)


@pytest.mark.parametrize("seen", OUTAGES, ids=told)
def test_waiting_is_its_cure(seen: Raised) -> None:
    assert is_transient(seen)


def test_a_worker_that_died_is_a_kind_of_its_own() -> None:
    """A record may have killed it; or something else did."""
    seen = Raised((RaisedLink(("py4j.protocol.Py4JJavaError",)), RaisedLink(("org.apache.spark.SparkException",), ("spark:worker exited",))))
    assert (is_transient(seen), kind(seen)) == (False, CRASH)


def test_fields_of_real_exceptions_are_their_codes() -> None:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - of this test alone

    cancelled: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": [{"Code": "None"}, {"Code": "TransactionConflict"}]}
    assert thrown(ClientError({"Error": {"Code": "SlowDown"}, "ResponseMetadata": {"HTTPStatusCode": 503}}, "Put")).codes == (
        "aws:SlowDown",
        "http:503",
    )  # type: ignore[typeddict-item]
    assert is_transient(Raised((thrown(ClientError(cancelled, "TransactWriteItems")),)))
    assert thrown(OSError(28, "No space left on device")).codes == ("errno:ENOSPC",)
    assert thrown(user_class("Lost", OSError)("[Errno 111] Connection refused")).codes == ()


@pytest.mark.parametrize(
    ("state", "routine", "transient"),
    [("42501", "ExecWithCheckOptions", False), ("44000", "ExecWithCheckOptions", False), ("42501", "aclcheck_error", True), ("42501", None, True)],
)
def test_a_policy_that_refuses_a_row_is_told_from_an_account_that_may_not_write(state: str, routine: str | None, transient: bool) -> None:  # noqa: FBT001
    """PostgreSQL has one SQLSTATE for both; the field with its own function's name tells them apart, in Python and in Java."""
    python = user_class("InsufficientPrivilege", module="psycopg.errors")("new row violates row-level security policy")
    python.sqlstate, python.diag = state, SimpleNamespace(source_function=routine)  # type: ignore[attr-defined]
    driver = java("org.postgresql.util.PSQLException", SQLState=state, ServerErrorMessage=SimpleNamespace(getRoutine=lambda: routine))
    for error in (python, OfJava(java(SPARK, "write failed", driver))):
        found = judged(caught(error))
        assert found is not None
        assert (found.transient, found.kind) == (transient, UNKNOWN if transient else DATA)


def test_what_it_was_raised_from_counts_and_a_loop_of_causes_ends() -> None:
    """Also what was only being handled, where waiting is asked; not where a value is to blame."""
    assert is_transient(raised(caught(RuntimeError("later"), ConnectionResetError())))
    first = caught(RuntimeError("lost"))
    first.__context__ = KeyError("no client yet")
    assert kind(raised(first)) == UNKNOWN
    assert kind(raised(caught(RuntimeError("bad order"), KeyError("id")))) == DATA
    first.__cause__, first.__context__ = KeyError("a"), None
    first.__cause__.__cause__ = first
    assert len(list(chain(first))) == 2


@pytest.mark.parametrize("error", [Fenced("generation 3"), Refused("made again"), IteratorExpired("every one"), ProcessExited("sys.exit")], ids=repr)
def test_reading_the_batch_is_no_failure_of_process(error: Exception) -> None:
    assert judged(caught(error)) is None
    assert judged(caught(RuntimeError("process failed"), error)) is None
    assert judged(of_worker(error)) is None
    assert judged(of_worker(error, stock=True)) is None


def test_whatever_is_raised_while_a_batch_is_read_is_an_error_of_ours() -> None:
    def reads() -> None:
        with named():
            dict[str, int]()["no such shard"]

    with pytest.raises(Exception, match="no such shard") as found:
        reads()
    assert judged(of_worker(found.value)) is None


LINES = [
    "Connection refused",
    "unknown status 'cancelled'",
    "Timeout: x",
    "Caused by: java.net.SocketTimeoutException: Read timed out",
    "sluice_checkpoints.errors.Fenced: generation 3 took over",
    "During handling of the above exception, another exception occurred:",
    "Traceback (most recent call last):",
    '  File "/app/orders.py", line 7, in parse',
    "    raise x",
    "ConnectionRefusedError: [Errno 111] Connection refused",
    "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject operation: x",
    worker_errors.FORMAT + '{"chain": [{"kinds": ["builtins.ConnectionError"], "codes": [], "implied": false}], "place": ""}',
    "An error occurred (ThrottlingException) when calling the PutItem operation",
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: ExecutorLostFailure",
    "[SPARK_JOB_CANCELLED] Job 3 cancelled",
    "503 Service Unavailable",
    "\ud800\0",
    "",
]
TEXT = st.one_of(st.text(), st.lists(st.sampled_from(LINES), max_size=8).map("\n".join), st.just("\n".join(LINES)), st.just("\n" + "\n".join(LINES)))
CLASSES = [ValueError, KeyError, RuntimeError, OSError, user_class("ExpiredVoucher"), user_class("TimeoutField", ValueError), user_class("Fenced")]


def verdict(failure: BatchFailure | None) -> tuple[Any, ...] | None:
    return (failure.error, failure.transient, failure.kind) if failure else None


@given(st.sampled_from(CLASSES), TEXT, st.sampled_from(["driver", "cause", "worker", "stock"]))
@example(ValueError, "\n".join(LINES), "stock")
def test_no_text_of_an_exception_changes_what_follows_from_it(of: type[Exception], text: str, where: str) -> None:
    def failed(words: str) -> Exception:
        if where == "stock":
            return of_worker(of(words.encode("utf-8", "replace").decode()), stock=True)
        return of_worker(of(words)) if where == "worker" else caught(of(words), of(words) if where == "cause" else None)

    plain, quoting = [judged(failed(words)) for words in ("no", text)]
    assert plain is not None
    assert verdict(plain) == verdict(quoting)
    assert not plain.transient


@given(TEXT)
def test_what_is_told_of_a_failure_can_be_stored_anywhere(text: str) -> None:
    for failed in (caught(ValueError(text)), caught(ValueError(text * 1000)), of_worker(ValueError(text))):
        found = judged(failed)
        assert found is not None
        assert len(found.trace.encode()) < 64_000 + 64


@given(TEXT)
def test_what_a_worker_tells_can_be_sent_and_is_bounded(text: str) -> None:
    """PySpark tells nothing of a lone surrogate, and the task never ends."""
    written = io.BytesIO()
    worker_errors.tell(handle_worker_exception, caught(ValueError(text * 3)), written)
    sign, size, said = written.getvalue()[:4], written.getvalue()[4:8], written.getvalue()[8:]
    assert (sign, int.from_bytes(size, "big")) == ((-2).to_bytes(4, "big", signed=True), len(said))
    assert said.decode().startswith(worker_errors.FORMAT)


def test_a_message_of_ten_megabytes_is_cut_by_its_worker() -> None:
    failed = of_worker(ValueError("x" * 10_000_000))
    assert len(str(failed)) < 2 * worker_errors.LONGEST
    found = judged(failed)
    assert found is not None
    assert (found.kind, len(found.trace) < 17_000) == (DATA, True)


def test_what_is_told_of_a_worker_shows_nothing_of_the_report() -> None:
    found = judged(of_worker(ValueError("bad")))
    assert found is not None
    assert worker_errors.FORMAT not in found.trace
    assert found.trace.rstrip().endswith("ValueError: bad")


def test_only_a_spark_worker_is_changed_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = SimpleNamespace(handle_worker_exception=handle_worker_exception)
    monkeypatch.delitem(sys.modules, worker_errors.WORKER, raising=False)
    worker_errors.install()  # in a daemon of Spark 4.3: its workers import the module after the fork
    monkeypatch.setitem(sys.modules, worker_errors.WORKER, worker)  # type: ignore[arg-type]
    worker_errors.install()
    changed = worker.handle_worker_exception
    worker_errors.install()
    assert changed is not handle_worker_exception
    assert worker.handle_worker_exception is changed


def test_the_same_line_of_the_users_is_the_same_failure_whatever_the_record() -> None:
    assert signature(Raised((RaisedLink(("builtins.ValueError",)),), "m.py:7")) == "ValueError at m.py:7"
    assert signature(Raised((RaisedLink(("py4j.protocol.Py4JJavaError",)), RaisedLink(("java.io.IOException",))))) == "IOException"


def java(name: str, message: str = "", cause: Any = None, above: tuple[str, ...] = (), frames: tuple[str, ...] = (), **fields: Any) -> Any:
    """An exception of Java's, as py4j shows it. The first of its frames is a native method if it ends with 0."""
    kinds = None
    for one in reversed((name, *above)):
        kinds = SimpleNamespace(getName=lambda one=one: one, getSuperclass=lambda kinds=kinds: kinds)
    trace = [SimpleNamespace(getClassName=lambda at=at: at.rstrip("0"), isNativeMethod=lambda at=at: at.endswith("0")) for at in frames]
    getters = {f"get{field}": (lambda value=value: value) for field, value in fields.items()}
    return SimpleNamespace(getClass=lambda: kinds, getMessage=lambda: message, getCause=lambda: cause, getStackTrace=lambda: trace, **getters)


class OfJava(Exception):
    def __init__(self, error: Any) -> None:
        super().__init__(error.getMessage())
        self.java_exception = error


SPARK = "org.apache.spark.SparkException"
ABORTED = "Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: "
LOST = f"{ABORTED}Lost task 0.0 in stage 0.0 (TID 0) (host executor 1): "


@pytest.mark.parametrize(
    ("error", "transient", "what"),
    [
        (java(SPARK, "write failed", java("org.postgresql.util.PSQLException", SQLState="40001")), True, UNKNOWN),
        (java(SPARK, "write failed", java("org.postgresql.util.PSQLException", SQLState="22001")), False, DATA),
        (java(SPARK, "x", java("com.mysql.cj.jdbc.exceptions.CommunicationsException", above=("java.sql.SQLRecoverableException",))), True, UNKNOWN),
        (java(SPARK, "x\nCaused by: java.net.SocketTimeoutException: y"), False, UNKNOWN),
        (java(SPARK, f"{LOST}ExecutorLostFailure (executor 3 exited)"), True, UNKNOWN),
        (java(SPARK, f"{LOST}java.net.ConnectException: refused\n\tat x"), True, UNKNOWN),
        (java(SPARK, f"{LOST}java.lang.IllegalStateException: ExecutorLostFailure\n\tat x"), False, UNKNOWN),
        (java(SPARK, f"{LOST}org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"), False, CRASH),
        (java(SPARK, "bad record: Python worker exited unexpectedly"), False, UNKNOWN),
        (java(SPARK, "Job 3 cancelled because killed via the Web UI"), True, UNKNOWN),
        (java(SPARK, "bad status: cancelled"), False, UNKNOWN),
    ],
)
def test_javas_exceptions_are_judged_by_their_classes_and_fields(error: Any, transient: bool, what: str) -> None:  # noqa: FBT001 - of the table
    found = judged(caught(OfJava(error)))
    assert found is not None
    assert (found.transient, found.kind) == (transient, what)


def test_the_socket_that_a_worker_left_says_nothing() -> None:
    """It raised while it was still given rows: then Spark adds what its writer saw."""
    text = str(of_worker(ValueError("bad")))
    error = java("org.apache.spark.api.python.PythonException", text.partition("below.\n")[2], java("java.net.SocketException", "Broken pipe"))
    found = judged(caught(OfJava(java(SPARK, "Job aborted", error))))
    assert found is not None
    assert (found.transient, found.kind) == (False, DATA)


RUNNER = "org.apache.spark.api.python.BasePythonRunner$ReaderInputStream"
UPSTREAM = ("com.example.Lookup", "org.apache.spark.sql.catalyst.expressions.GeneratedClass", RUNNER)


@pytest.mark.parametrize(
    ("name", "frames", "transient", "what"),
    [
        ("java.io.IOException", ("sun.nio.ch.FileDispatcherImpl0", "sun.nio.ch.SocketChannelImpl", RUNNER), False, CRASH),
        ("java.net.SocketException", ("sun.nio.ch.SocketChannelImpl", RUNNER, "java.io.DataInputStream"), False, CRASH),
        (
            "java.io.EOFException",
            ("java.io.DataInputStream", "org.apache.spark.sql.execution.python.BasePythonUDFRunner$$anon$2", RUNNER),
            False,
            CRASH,
        ),
        ("java.io.IOException", UPSTREAM, False, UNKNOWN),
        ("java.io.EOFException", ("java.io.DataInputStream", *UPSTREAM), False, UNKNOWN),
        ("java.io.IOException", ("java.io.File", *UPSTREAM), False, UNKNOWN),
        ("java.io.IOException", ("java.io.FileInputStream0", RUNNER), False, UNKNOWN),
    ],
)
def test_a_worker_has_died_only_where_its_own_socket_failed(name: str, frames: tuple[str, ...], transient: bool, what: str) -> None:  # noqa: FBT001
    """Rows are computed while a worker is given them: its runner is in the trace of whatever raises there."""
    found = judged(caught(OfJava(java(SPARK, "Job aborted", java(name, "No such row", frames=frames)))))
    assert found is not None
    assert (found.transient, found.kind) == (transient, what)


def test_a_socket_upstream_of_a_worker_is_unavailable() -> None:
    error = java("java.net.SocketException", "reset", above=("java.io.IOException",), frames=("java.net.Socket", *UPSTREAM))
    found = judged(caught(OfJava(java(SPARK, "Job aborted", error))))
    assert found is not None
    assert (found.transient, found.kind) == (True, UNKNOWN)


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (java("java.io.IOException", "No space left on device", frames=("java.io.FileOutputStream0", "java.io.FileOutputStream")), True),
        (java("java.io.IOException", "Disk quota exceeded", frames=("sun.nio.ch.FileDispatcherImpl0",)), True),
        (java("java.io.FileNotFoundException", "/data/x (Too many open files)", frames=("java.io.FileOutputStream0",)), True),
        (java("java.nio.file.FileSystemException", "/data/x: No space left on device", Reason="No space left on device"), True),
        (
            java(
                "java.io.FileNotFoundException", "/data/(No space left on device) (No such file or directory)", frames=("java.io.FileInputStream0",)
            ),
            False,
        ),
        (java("java.io.IOException", "No space left on device", frames=("com.example.Parser",)), False),
        (java("java.io.IOException", "No space left on device", frames=("java.io.FileOutputStream", "com.example.Parser")), False),
        (java("java.lang.IllegalStateException", "No space left on device", frames=("java.io.FileOutputStream0",)), False),
        (java("java.nio.file.FileSystemException", "No space left on device: x", Reason="Invalid argument"), False),
    ],
)
def test_what_the_system_said_to_java_is_an_errno(error: Any, transient: bool) -> None:  # noqa: FBT001 - of the table
    """Only where the JVM's own native method raised it: there nobody else writes the words."""
    found = judged(caught(OfJava(java(SPARK, "Job aborted", error))))
    assert found is not None
    assert (found.transient, found.kind) == (transient, UNKNOWN)


def test_a_trace_in_an_exception_of_the_drivers_own_is_only_text() -> None:
    assert not judged(caught(ValueError('Traceback (most recent call last):\n  File "x", line 1, in f\nTimeoutError: x'))).transient  # type: ignore[union-attr]


def failed(call: Callable[[], object]) -> Exception:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error
    raise AssertionError("it raised nothing")


BUG: Any = 7


@pytest.mark.parametrize(
    "call",
    [
        lambda: lineage.adding(BUG, "c", 1),
        lambda: manifest.from_json(b"no JSON"),  # json's line, for Sluice
        lambda: manifest.from_json(b'{"format": "another"}'),
    ],
    ids=["its line", "Python's library", "its raise"],
)
def test_a_mistake_in_sluice_is_no_poison(call: Callable[[], object]) -> None:
    """It would fail with any record, and looking for a culprit would exclude one that is whole. Also where the user's code wraps it."""
    assert judged(failed(call)) is None

    def wrapped() -> None:
        try:
            call()
        except Exception as error:
            raise ValueError("of the user") from error

    assert judged(failed(wrapped)) is None


def test_code_of_the_user_that_sluice_calls_is_the_users() -> None:
    """By the frame that raised, whoever called it. So is Python's library that it calls; and what it only handled does not count."""

    class Orders(dict[int, Any]):
        def items(self) -> Any:
            return json.loads("no JSON")

    def after() -> None:
        try:
            lineage.adding(BUG, "c", 1)
        except AttributeError:
            raise KeyError("of the user")  # noqa: B904 - as users do

    for call in (lambda: lineage.adding(Orders(), "c", 1), after, lambda: dict[int, int]()[1]):
        found = judged(failed(call))
        assert found is not None
        assert found.kind == DATA


@pytest.mark.parametrize(("error", "kind"), [(AccessDenied("é\ngrant it"), AccessDenied), (Refused("x" * 9000), Refused)])
def test_what_a_task_refused_ends_the_driver_in_its_words(error: Refused, kind: type[Refused]) -> None:
    """They end with what to do, and the driver itself may be allowed what its executors are not."""
    found = refusal(of_worker(error))
    assert type(found) is kind
    assert str(found)[-20:] == str(error)[-20:]
    assert is_own(raised(of_worker(error)))


QUOTED = ValueError(f'{worker_errors.FORMAT}{{"chain": [], "place": "", "refused": {{"kind": "Refused", "words": "a record says so"}}}}')


@pytest.mark.parametrize("error", [QUOTED, Fenced("a later epoch"), caught(ValueError("1"), Refused("the user's own"))])
def test_no_other_failure_of_a_task_is_a_refusal(error: Exception) -> None:
    assert refusal(of_worker(error)) is None
    assert refusal(of_worker(error, stock=True)) is None


OF_STAGE = f"{ABORTED}Lost task 0.0 in stage 0.0 (TID 0) (10.0.0.1 executor 1): org.apache.spark.api.python.PythonException: "
LINES_OF_SPARK = [  # what stands before a worker's words: in Java's exception, in PySpark's, in the reason of a failed stage
    "",
    "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n",
    OF_STAGE,
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: ",
    "An exception was thrown from the Python worker:\n",
    f"{OF_STAGE}[PYTHON_EXCEPTION] An exception was thrown from the Python worker: ",
]


@pytest.mark.parametrize("before", LINES_OF_SPARK)
def test_the_words_of_a_worker_are_found_behind_those_of_every_line_of_spark(before: str) -> None:
    """4.1 and 4.3 write different ones. Behind words of anybody else they are a record's."""
    told = worker_errors.header(AccessDenied("no statement")) + worker_errors.TRACEBACK
    found = worker_errors.parsed(before + told)
    assert found is not None
    assert found.refused == TaskRefusal("AccessDenied", "no statement")
    assert worker_errors.parsed(f"{before}a record: {told}") is None

"""What an exception of `process` says: the table of cases (docs/protocol.md, "Poison")."""

from __future__ import annotations

import pytest

from sluice_consumer.batches.failures import Raised, is_own, is_transient, signature

TRACE = """Traceback (most recent call last):
  File "/app/orders.py", line {line}, in parse
    raise {error}
"""


def raised(error: str, *names: str, line: int = 7) -> Raised:
    """An exception of the user's code, as Python prints it."""
    return Raised(names, TRACE.format(error=error.partition(":")[0], line=line) + error)


POISON = [
    "ValueError: invalid literal for int() with base 10: 'x'",
    "KeyError: 'customer'",
    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "orders.NoSuchCustomer: 17",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0",
    "psycopg.errors.StringDataRightTruncation: value too long for type character varying(3)",
    "psycopg.errors.UniqueViolation: duplicate key value",
    "decimal.InvalidOperation: [<class 'decimal.ConversionSyntax'>]",
]
OUTAGES = [
    "ConnectionRefusedError: [Errno 111] Connection refused",
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='api', port=443): Max retries exceeded",
    "requests.exceptions.ReadTimeout: read timed out",
    "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://api",
    "urllib3.exceptions.MaxRetryError: HTTPConnectionPool",
    "TimeoutError",
    "botocore.exceptions.ClientError: An error occurred (ThrottlingException) when calling the PutItem operation: Rate exceeded",
    "botocore.exceptions.ClientError: An error occurred (ExpiredTokenException) when calling the PutItem operation",
    "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the PutObject operation",
    "botocore.exceptions.EndpointConnectionError: Could not connect",
    "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
    "psycopg.OperationalError: connection failed",
    "MemoryError",
    "OSError: [Errno 28] No space left on device",
    "org.apache.spark.SparkException: Job aborted: ExecutorLostFailure (executor 3 exited caused by one of the running tasks)",
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
    "java.lang.OutOfMemoryError: Java heap space",
    "java.net.SocketTimeoutException: Read timed out",
    "software.amazon.awssdk.services.s3.model.S3Exception: Slow (Service: S3, Status Code: 503, Request ID: 1)",
]


@pytest.mark.parametrize("error", POISON)
def test_it_may_be_the_record(error: str) -> None:
    """Nothing says that waiting helps."""
    assert not is_transient(raised(error))


@pytest.mark.parametrize("error", OUTAGES)
def test_waiting_is_its_cure(error: str) -> None:
    """Something is unreachable, too busy, out of memory or room, or forbids it."""
    assert is_transient(raised(error))


def test_a_class_below_a_known_one_is_known() -> None:
    """The user's own kind of ConnectionError."""
    assert is_transient(Raised(("SinkIsDown", "ConnectionError", "OSError"), "SinkIsDown: later"))


def test_reading_the_batch_is_no_failure_of_process() -> None:
    """Another epoch took over while a task read."""
    assert is_own(raised("sluice_checkpoints.errors.Fenced: generation 3 took over"))
    assert not is_own(raised("orders.Fenced: no"))


def test_the_same_line_of_the_users_is_the_same_failure_whatever_the_record() -> None:
    """Two records bring two messages; another line is another failure."""
    assert signature(raised("ValueError: bad 17")) == signature(raised("ValueError: bad 'x'"))
    assert signature(raised("ValueError: bad", line=7)) != signature(raised("ValueError: bad", line=8))
    assert signature(raised("ValueError: bad")) != signature(raised("KeyError: 'x'"))


def test_without_a_line_its_words_without_figures_count() -> None:
    """Java's exceptions have none of the user's."""
    first = Raised(("SparkException",), "[MALFORMED_RECORD_IN_PARSING] detected: 'x' in stage 17.0")
    assert signature(first) == signature(Raised(("SparkException",), "[MALFORMED_RECORD_IN_PARSING] detected: 'yy' in stage 18.0"))

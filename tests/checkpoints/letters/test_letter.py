"""The form in which dead letters are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.letter import DeadLetter

ERROR = "Traceback (most recent call last):\n  x\nValueError: no"
LETTER = DeadLetter("c-1", "orders", "shardId-000000000000", "49", 2, 1_700_000_000_123, "k", b"\xff{", 7, 3, ERROR)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.binary(), TEXT, TEXT, st.integers(0, 2**41), st.integers(0, 10**6))
def test_any_record_and_any_error_are_read_as_they_were_written(data: bytes, key: str, error: str, arrival: int, sub: int) -> None:
    letter = DeadLetter("c", "s", "shardId-1", "7", sub, arrival, key, data, 1, 1, error)
    assert DeadLetter.from_json(letter.to_json(), "n") == letter


def test_its_name_is_that_of_the_record() -> None:
    """Written again, it is the same file."""
    assert LETTER.path == "c-1/shardId-000000000000/49-2.json"


OF_JAVA = """Traceback (most recent call last):
  File "/app/orders.py", line 9, in process
    rows.write.parquet(path)
pyspark.errors.exceptions.captured.SparkException: [MALFORMED_RECORD_IN_PARSING] it is not exactly one JSON document
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.malformed(QueryExecutionErrors.scala:1618)
Caused by: com.fasterxml.jackson.core.JsonParseException: Unrecognized token
\tat com.fasterxml.jackson.core.JsonParser._constructError(JsonParser.java:2477)
\t... 1 more
"""
OF_A_WORKER = """Traceback (most recent call last):
  File "/app/orders.py", line 9, in process
pyspark.errors.exceptions.captured.PythonException: \n  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/app/orders.py", line 3, in parse
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)

\tat org.apache.spark.api.python.BasePythonRunner
\t... 1 more
"""


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ERROR, "ValueError: no"),
        (OF_JAVA, "SparkException: [MALFORMED_RECORD_IN_PARSING] it is not exactly one JSON document"),
        (OF_A_WORKER, "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        ("rejected: no customer\nsecond line", "rejected: no customer"),
        ("orders.v1: too old", "orders.v1: too old"),
        ("", "no words"),
    ],
    ids=["Python's", "Java's", "a worker's", "a reason", "a reason like a module", "none"],
)
def test_its_cause_is_the_exception_in_a_line(error: str, cause: str) -> None:
    """For a list, in which one cause is one line: the same words as in the driver's exit message."""
    assert replace(LETTER, error=error).cause == cause


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "sluice-dead-letter/2"}, "format 'sluice-dead-letter/2' is not known to this version, which knows"),
        ({"data": "%"}, "is not a dead letter of Sluice"),
        ({"approximateArrivalTimestamp": "soon"}, "is not a dead letter of Sluice"),
        ({"subSequenceNumber": None}, "is not a dead letter of Sluice"),
    ],
)
def test_what_is_no_letter_is_refused_by_its_name(change: dict[str, Any], said: str) -> None:
    """Anybody may put a file into the folder."""
    text = json.dumps(json.loads(LETTER.to_json()) | change)
    with pytest.raises(Refused, match=f"a/b.json: {said}"):
        DeadLetter.from_json(text, "a/b.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", "no"])
def test_a_file_that_is_something_else_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="n: "):
        DeadLetter.from_json(text, "n")

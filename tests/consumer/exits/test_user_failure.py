"""What is left of an exception for the person whose code raised it, from what Python, Spark and Java say."""

from __future__ import annotations

import json

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.exits.user_failure import LONGEST, Frame, UserFailure, failure_of

HERE = __file__


class PythonException(Exception):
    """Stands for PySpark's."""


class Py4JJavaError(Exception):
    """Stands for py4j's."""


FRAMES = """\
  File "/opt/venv/lib/python3.11/site-packages/pyspark/worker.py", line 4327, in invoke_udf
    run_process()
  File "/opt/sluice/app/orders.py", line 11, in checked
    amount(row)
  File "/opt/sluice/app/orders.py", line 2, in amount
    return int(data["amount"])
               ~~~~^^^^^^^^^^
"""
OF_A_WORKER = (Frame("/opt/sluice/app/orders.py", 2, "amount"), Frame("/opt/sluice/app/orders.py", 11, "checked"))
NEW = f"An exception was thrown from the Python worker:\nTraceback (most recent call last):\n{FRAMES}KeyError: 'amount'\n SQLSTATE: 38000"
OLD = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n: org.apache.spark.SparkException: Job aborted due to "
    "stage failure: Task 1 in stage 0.0 failed 1 times, most recent failure: Lost task 1.0 in stage 0.0 (TID 1) (host executor driver): "
    f"org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n{FRAMES}KeyError: 'amount'\n\n"
    "\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)\n\nDriver stacktrace:\n\tat org.apache.spark.scheduler.X\n"
    f"Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n{FRAMES}KeyError: 'amount'\n\n\tat org.apache.X\n"
)


@pytest.mark.parametrize("error", [PythonException(NEW), Py4JJavaError(OLD)], ids=["PySpark's exception", "py4j's"])
def test_an_exception_of_a_worker_is_the_users_own_with_the_users_frames(error: Exception) -> None:
    assert failure_of(error, "orders") == UserFailure("KeyError", "'amount'", OF_A_WORKER)


def test_the_source_of_a_frame_is_its_line_and_not_what_underlines_it() -> None:
    """Python 3.11 draws below it."""
    assert [frame.source for frame in failure_of(PythonException(NEW), "orders").frames] == ['return int(data["amount"])', "amount(row)"]


def test_an_exception_of_a_worker_that_was_raised_from_another_names_both() -> None:
    text = (
        f"Traceback (most recent call last):\n{FRAMES}KeyError: 'amount'\n\nThe above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "/opt/sluice/app/orders.py", line 20, in order\n    raise shop.BadOrder(n) from error\n'
        "shop.BadOrder: order 7\nhas no amount\n"
    )
    failure = failure_of(PythonException(text), "orders")
    assert failure == UserFailure("BadOrder", "order 7\nhas no amount", (Frame("/opt/sluice/app/orders.py", 20, "order"),), "KeyError: 'amount'")


def test_a_recursion_without_end_is_named_though_python_leaves_lines_out() -> None:
    """Its trace has a line that is no frame."""
    text = f"Traceback (most recent call last):\n{FRAMES}  [Previous line repeated 996 more times]\nRecursionError: maximum recursion depth exceeded"
    assert failure_of(PythonException(text), "orders").summary == "RecursionError: maximum recursion depth exceeded"


def raised(text: str) -> Exception:
    try:
        json.loads(text)
    except ValueError as error:
        return error
    raise AssertionError


def test_where_a_library_raised_the_users_call_of_it_is_the_place() -> None:
    failure = failure_of(raised("{"), "orders")
    assert [(frame.file, frame.function) for frame in failure.frames] == [(HERE, "raised")]
    assert failure.kind == "JSONDecodeError"


def test_a_pipeline_that_is_installed_as_a_package_is_the_users_code_and_others_are_not() -> None:
    """`pip install` puts both into the same folder."""
    site = "/opt/venv/lib/python3.11/site-packages"
    text = (
        f'Traceback (most recent call last):\n  File "{site}/orders/sink.py", line 3, in store\n    session.post(url)\n'
        f'  File "{site}/requests/api.py", line 9, in post\n    send()\nOSError: no route\n'
    )
    assert [frame.file for frame in failure_of(PythonException(text), "orders").frames] == [f"{site}/orders/sink.py"]
    assert len(failure_of(PythonException(text), "other").frames) == 2


def test_of_an_exception_of_java_the_class_and_words_are_left_and_its_cause() -> None:
    """py4j's class and words only say which call it was in."""
    outer = "Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0: shop.Bad: no\n\tat shop.X\n"
    error = Py4JJavaError("An error occurred while calling o92.save")
    failure = failure_of(error, "orders", (("SparkException", outer), ("SocketTimeoutException", "5 s")))
    assert failure.kind == "SparkException"
    assert failure.words.endswith("Lost task 0.0: shop.Bad: no")
    assert failure.cause == "SocketTimeoutException: 5 s"


def test_of_a_query_that_spark_refuses_the_sentence_is_left_without_its_plan() -> None:
    """The plan is long, and the sentence names the column."""
    words = "[UNRESOLVED_COLUMN] `amount` cannot be resolved. SQLSTATE: 42703;\n'Project ['amount]\n+- RelationV2[data#1] sluice\n"
    assert failure_of(PythonException(words), "orders", (("ExtendedAnalysisException", words),)).summary == (
        "PythonException: [UNRESOLVED_COLUMN] `amount` cannot be resolved."
    )


def test_long_words_are_cut_and_those_of_a_refusal_are_not() -> None:
    assert len(failure_of(ValueError("x" * 9999), "orders").words) == LONGEST
    assert len(failure_of(ValueError("x\n" * 99), "orders").words.splitlines()) == 5
    assert failure_of(Refused("x" * 999), "orders").words == "x" * 999

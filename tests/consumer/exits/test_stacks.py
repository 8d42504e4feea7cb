"""Where a driver says that `process` stands."""

from __future__ import annotations

import threading
from traceback import FrameSummary

from sluice_consumer.exits import stacks

LOOP = [
    FrameSummary("/app/sluice_consumer/process/driver.py", 1, "main"),
    FrameSummary("/app/sluice_consumer/spark/engine.py", 2, "_call"),
]
USER = FrameSummary("/app/pipeline.py", 12, "write")
REQUESTS = FrameSummary("/usr/lib/python3.11/site-packages/requests/api.py", 59, "request")
SOCKET = FrameSummary("/usr/lib/python3.11/socket.py", 706, "readinto")


def test_it_is_the_line_of_the_user_that_called_into_a_package() -> None:
    assert stacks.place([*LOOP, USER, REQUESTS, SOCKET]) == "/app/pipeline.py:12 in write"


def test_before_process_was_called_it_is_sparks_turn() -> None:
    assert stacks.place([LOOP[0], SOCKET]) == "nowhere yet: Spark plans the batch"
    assert stacks.place([*LOOP, SOCKET]) == "/usr/lib/python3.11/socket.py:706 in readinto"


def test_all_threads_are_told_by_name() -> None:
    over = threading.Event()
    waiting = threading.Thread(target=over.wait, name="waits for the test")
    waiting.start()
    told = stacks.python_stacks()
    over.set()
    waiting.join()
    assert "thread waits for the test:" in told
    assert "test_all_threads_are_told_by_name" in told

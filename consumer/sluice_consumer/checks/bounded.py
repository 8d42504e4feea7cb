"""Gives a check its time. Python cannot end a thread, so one that hangs is left behind: it holds nothing and ends with the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from sluice_consumer.checks.model import OutOfTime

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` returns or raises.

    Raises:
        OutOfTime: it takes longer.
    """
    returned, raised = list[T](), list[Exception]()

    def run() -> None:
        try:
            returned.append(call())
        except Exception as error:  # noqa: BLE001 - raised again, in the caller's thread
            raised.append(error)

    thread = threading.Thread(target=run, name="check", daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not returned:
        raise OutOfTime(f"no end within {seconds:g} s")
    return returned[0]

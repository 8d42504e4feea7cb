"""SIGTERM as an event.

A signal handler runs in the main thread, in the middle of whatever that does; it may just hold the lock that `Event.set` needs, and then it waits for
itself for ever (seen: a driver that never ended, with a supervisor that went on beating). So the handler only puts into a queue that was made
for handlers, and a thread does the rest.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable


def set_on_term(event: threading.Event, say: Callable[[], None]) -> None:
    """From now on SIGTERM says so and sets `event`; further ones do nothing. To be called from the main thread."""
    told: queue.SimpleQueue[None] = queue.SimpleQueue()

    def wait() -> None:
        told.get()
        event.set()
        say()

    threading.Thread(target=wait, name="term", daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: told.put(None))

"""SIGTERM as an event.

A signal handler runs in the main thread, in the middle of whatever that does. It may just hold the lock that `Event.set` needs, and then it waits for
itself for ever (seen: a driver that never ended, with a supervisor that kept beating). So the handler only puts into a queue that was made for
handlers, and a thread does the rest.

A supervisor starts its driver with SIGTERM blocked, because one that comes while Python starts would kill it. It is pending until there is a handler.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections.abc import Callable, Iterator


def set_on_term(event: threading.Event, say: Callable[[], None]) -> None:
    """From now on SIGTERM is logged and sets `event`, even if it came before; further ones do nothing. To be called from the main thread."""
    received: queue.SimpleQueue[None] = queue.SimpleQueue()

    def wait() -> None:
        received.get()
        event.set()
        say()

    threading.Thread(target=wait, name="term", daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: received.put(None))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def ignore() -> None:
    """From now on SIGTERM does nothing here, since the supervisor decides what ends. It still ends programs that this process starts."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


@contextlib.contextmanager
def blocked() -> Iterator[None]:
    """Processes that are started in here have SIGTERM blocked; this process gets it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

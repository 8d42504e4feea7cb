"""Makes many calls to one service side by side, as many at once as there are connections to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")


def side_by_side(calls: Iterable[Callable[[], T]], most: int) -> list[T]:
    """What each of these calls brings, in their order; at most `most` run at once, and they may take effect in any order.

    When one raises, no further one is begun; those under way are waited for.

    Raises:
        What the first call in the list raised, of those that did.
    """
    made = list(calls)
    if len(made) < 2:
        return [call() for call in made]
    with ThreadPoolExecutor(min(most, len(made)), thread_name_prefix="calls") as threads:
        futures = [threads.submit(call) for call in made]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            threads.shutdown(cancel_futures=True)
    for future in futures:
        if not future.cancelled() and (error := future.exception()):
            raise error
    return [future.result() for future in futures]

"""Resolves host names within a time limit. The system's resolver has none: it waits for as long as its servers do not answer."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future


class Names:
    """Looks names up in threads of their own. Thread safe.

    Callers that ask for the same name share one look-up. So a server that does not answer holds one thread for each name.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[str, Future[list[str]]] = {}

    def addresses(self, host: str, limit: float) -> list[str]:
        """The addresses of a host, in the system's order of preference.

        Raises:
            OSError: there are none, or none came within `limit` seconds.
        """
        with self._lock:
            answer = self._asked.get(host)
            if answer is None or answer.done():
                answer = self._asked[host] = Future()
                threading.Thread(target=_look_up, args=(host, answer), name="names", daemon=True).start()
        try:
            return answer.result(limit)
        except TimeoutError:
            raise TimeoutError(f"no address of {host} came within {limit:g} s: does the name server answer?") from None


def _look_up(host: str, answer: Future[list[str]]) -> None:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        answer.set_result(list(dict.fromkeys(str(address[0]) for *_, address in found)))
    except Exception as error:  # noqa: BLE001 - the waiting caller gets it
        answer.set_exception(error)

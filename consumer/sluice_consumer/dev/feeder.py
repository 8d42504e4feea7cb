"""Puts lines into the stream: from a file and what is appended to it, or as they are typed."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sluice_checkpoints.names import plural

CHUNK = 2**16
MOST_RECORDS = 500  # API reference, PutRecords
LOOK_SECONDS = 0.5  # from one look at the end of a file to the next


class Feeder:
    """Reads in a thread of its own, which ends with the process."""

    def __init__(self, client: Any, stream: str, tell: Callable[[str], None]) -> None:
        self._client, self._stream, self._tell = client, stream, tell
        self._fed, self._at_end = 0, False

    def start(self, file: Path | None) -> None:
        """Feeds the lines of a file and those that are appended to it, or of standard input until its end."""
        threading.Thread(target=self.feed, args=(file,), name="feeder", daemon=True).start()

    def feed(self, file: Path | None) -> None:
        """Feeds here, until the source ends or fails; either is printed, and nothing is raised."""
        source = os.open(file, os.O_RDONLY) if file else 0
        try:
            for chunk in lines(source, lambda: self._goes_on(source, file)):
                for at in range(0, len(chunk), MOST_RECORDS):
                    self._put(chunk[at : at + MOST_RECORDS])
        except Exception as error:  # noqa: BLE001 - a thread has nobody to raise to
            self._tell(f"no more lines are read: {type(error).__name__}: {error}")

    def _goes_on(self, source: int, file: Path | None) -> bool:
        """At the end of what there is to read: whether to look again."""
        grows = stat.S_ISREG(os.fstat(source).st_mode)
        if not self._at_end:
            self._at_end = True
            self._tell(
                f"{self._fed} {plural(self._fed, 'line')} {'was' if self._fed == 1 else 'were'} read to the end of {file or 'standard input'}"
                + ("; lines that you append follow" if grows else "; press Ctrl-C to stop")
            )
        if grows:
            time.sleep(LOOK_SECONDS)
        return grows

    def _put(self, chunk: list[bytes]) -> None:
        """The partition key is the number of the line: lines are dealt to all shards."""
        records = [{"Data": line, "PartitionKey": str(self._fed + n)} for n, line in enumerate(chunk, 1)]
        self._client.put_records(StreamName=self._stream, Records=records)
        self._fed += len(records)


def lines(source: int, goes_on: Callable[[], bool]) -> Iterator[list[bytes]]:
    """Lines that are not empty, without their ends, as they come. Python's own reader would hold a lock that the end of the process needs.

    Args:
        source: a file descriptor.
        goes_on: called when everything was read and returned. True: look for more.
    """
    rest = b""
    while True:
        if chunk := os.read(source, CHUNK):
            *whole, rest = (rest + chunk).split(b"\n")
            yield [line for line in (each.rstrip(b"\r") for each in whole) if line]
            continue
        yield [rest] if rest else []
        rest = b""
        if not goes_on():
            return

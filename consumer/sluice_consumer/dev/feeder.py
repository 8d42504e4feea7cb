"""Puts lines into the stream: from a file, or as they are typed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CHUNK = 2**16
MOST_RECORDS = 500  # API reference, PutRecords


class Feeder:
    """Reads in a thread of its own, which ends with the process."""

    def __init__(self, client: Any, stream: str, tell: Callable[[str], None]) -> None:
        self._client, self._stream, self._tell, self._fed = client, stream, tell, 0

    def start(self, file: Path | None) -> None:
        """Feeds the lines of a file, or of standard input until its end."""
        threading.Thread(target=self._run, args=(file,), name="feeder", daemon=True).start()

    def _run(self, file: Path | None) -> None:
        source = os.open(file, os.O_RDONLY) if file else 0
        try:
            for found in lines(source):
                for at in range(0, len(found), MOST_RECORDS):
                    self._put(found[at : at + MOST_RECORDS])
        except Exception as error:  # noqa: BLE001 - a thread has nobody to raise to
            self._tell(f"no more lines are fed: {type(error).__name__}: {error}")
        else:
            self._tell(f"{self._fed} lines were fed; {file or 'standard input'} is at its end")

    def _put(self, found: list[bytes]) -> None:
        """The partition key is the number of the line: lines are dealt to all shards."""
        records = [{"Data": line, "PartitionKey": str(self._fed + n)} for n, line in enumerate(found, 1)]
        self._client.put_records(StreamName=self._stream, Records=records)
        self._fed += len(records)


def lines(source: int) -> Iterator[list[bytes]]:
    """Lines that are not empty, without their ends, as they come. Python's own reader would hold a lock that the end of the process needs."""
    rest = b""
    while chunk := os.read(source, CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        yield [line for line in (each.rstrip(b"\r") for each in whole) if line]
    yield [rest] if rest else []

"""Standard output and error that never end a command: what was done counts, whether or not somebody could read of it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO


class LastingStream:
    """A text stream that is written to for as long as it takes text, and after that says nothing.

    A character that its encoding does not have is written as an escape.

    Attributes:
        problem: why text was lost; None: none was. A reader that left on purpose (`| head -1`) has lost nothing.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        """`stream` is None where the program was started with it closed."""
        self._stream, self._closed = stream, stream is None
        self.problem: str | None = None
        with suppress(AttributeError, OSError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # only a TextIOWrapper has it

    @property
    def encoding(self) -> str:
        """Of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        with suppress(OSError, ValueError):
            return self._stream is not None and self._stream.isatty()
        return False

    def fileno(self) -> int:
        if self._stream is None:
            raise OSError("it was closed")
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """See `IO.write`; it raises nothing."""
        try:
            if self._stream is not None:
                self._stream.write(text)
            elif self._closed:
                self.problem = "it is closed"
        except (OSError, ValueError) as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """See `IO.flush`; it raises nothing."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except (OSError, ValueError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """What the stream still holds would be written, and fail, once more when Python ends: it goes nowhere instead."""
        self.problem = None if isinstance(error, BrokenPipeError) else str(error)
        with suppress(OSError, ValueError):
            nowhere, broken = os.open(os.devnull, os.O_WRONLY), self.fileno()
            os.dup2(nowhere, broken)
            os.close(nowhere)
        self._stream = None

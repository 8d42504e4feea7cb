"""Log lines: for people on a terminal, JSON everywhere else."""

from __future__ import annotations

import contextlib
import contextvars
import datetime
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping

log = logging.getLogger("sluice")
CONSUMER: contextvars.ContextVar[str] = contextvars.ContextVar("consumer", default="")
LEVEL = "SLUICE_LOG_LEVEL"


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the consumer in a group, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Renders a record."""
        line = {
            "time": datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {"consumer": name} if (name := CONSUMER.get()) else {}
        return json.dumps(line | ({"error": self.formatException(record.exc_info)} if record.exc_info else {}))


def configure() -> None:
    """Sends all logs to stderr. `SLUICE_LOG=json|text` overrides what the terminal suggests; `SLUICE_LOG_LEVEL=debug` shows full traces."""
    handler = logging.StreamHandler(sys.stderr)
    text = os.environ.get("SLUICE_LOG", "text" if sys.stderr.isatty() else "json") == "text"
    handler.addFilter(_labelled)
    handler.setFormatter(logging.Formatter("%(asctime)s %(consumer)s%(message)s", "%H:%M:%S") if text else JsonLines())
    logging.basicConfig(level=level(), handlers=[handler], force=True)
    for noisy in ("py4j", "botocore", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _labelled(record: logging.LogRecord) -> bool:
    record.consumer = f"{name}: " if (name := CONSUMER.get()) else ""
    return True


@contextlib.contextmanager
def of(consumer: str) -> Iterator[None]:
    """Lines of this thread are a consumer's: where several run in one process, each line names whose it is."""
    token = CONSUMER.set(consumer)
    try:
        yield
    finally:
        CONSUMER.reset(token)


def level(environment: Mapping[str, str] = os.environ) -> int:
    """What `SLUICE_LOG_LEVEL` names; INFO where it names none."""
    return logging.getLevelNamesMapping().get(environment.get(LEVEL, "").upper(), logging.INFO)


def debugging(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether somebody wants to see everything."""
    return level(environment) <= logging.DEBUG


class _Saying(logging.Handler):
    def __init__(self, tell: Callable[[str], object]) -> None:
        super().__init__(logging.INFO)
        self._tell = tell
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        """Says one."""
        self._tell(self.format(record))


_TELLING = threading.Lock()
_told: list[logging.Handler] = []
_before: list[int] = []


@contextlib.contextmanager
def told_to(tell: Callable[[str], object]) -> Iterator[None]:
    """Hands the lines of progress to `tell` only, for a while. Logging as a whole belongs to the owner of the process.

    Runs side by side print all lines, those of each other too. What was set before is set again when the last one ends.
    """
    handler = _Saying(tell)
    with _TELLING:
        if not _told:
            _before.extend((log.level, log.propagate))
        _told.append(handler)
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
    try:
        yield
    finally:
        with _TELLING:
            log.removeHandler(handler)
            _told.remove(handler)
            if not _told:
                log.setLevel(_before[0])
                log.propagate = bool(_before[1])
                _before.clear()


def say(message: str) -> None:
    """One line of progress."""
    log.info("%s", message)


def warn(message: str) -> None:
    """Something a person should look at."""
    log.warning("%s", message)


def in_seconds(seconds: float) -> str:
    """The time that many seconds from now, ISO 8601."""
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).isoformat(timespec="seconds")


def now_millis() -> int:
    """Now, in epoch milliseconds, as rows and reports have it for people."""
    return round(datetime.datetime.now(datetime.UTC).timestamp() * 1000)

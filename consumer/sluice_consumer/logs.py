"""Log lines: for people on a terminal, JSON everywhere else."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping

log = logging.getLogger("sluice")
LEVEL = "SLUICE_LOG_LEVEL"


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Renders a record."""
        line = {
            "time": datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return json.dumps(line | ({"error": self.formatException(record.exc_info)} if record.exc_info else {}))


def configure() -> None:
    """Sends all logs to stderr. `SLUICE_LOG=json|text` overrides what the terminal suggests; `SLUICE_LOG_LEVEL=debug` shows full traces."""
    handler = logging.StreamHandler(sys.stderr)
    text = os.environ.get("SLUICE_LOG", "text" if sys.stderr.isatty() else "json") == "text"
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S") if text else JsonLines())
    logging.basicConfig(level=level(), handlers=[handler], force=True)
    for noisy in ("py4j", "botocore", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def level(environment: Mapping[str, str] = os.environ) -> int:
    """What `SLUICE_LOG_LEVEL` names; INFO where it names none."""
    return logging.getLevelNamesMapping().get(environment.get(LEVEL, "").upper(), logging.INFO)


def debugging(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether somebody wants to see everything."""
    return level(environment) <= logging.DEBUG


class _Saying(logging.Handler):
    """Hands every line to a function."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        super().__init__(logging.INFO)
        self._tell = tell
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        """Says one."""
        self._tell(self.format(record))


@contextlib.contextmanager
def told_to(tell: Callable[[str], object]) -> Iterator[None]:
    """Hands the lines of progress to `tell` only, for a while. Logging as a whole belongs to the owner of the process."""
    handler, level, passed_on = _Saying(tell), log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = passed_on


def say(message: str) -> None:
    """One line of progress."""
    log.info("%s", message)


def warn(message: str) -> None:
    """Something a person should look at."""
    log.warning("%s", message)


def in_seconds(seconds: float) -> str:
    """The time that many seconds from now, ISO 8601."""
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).isoformat(timespec="seconds")

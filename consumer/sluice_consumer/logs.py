"""Log lines: for people on a terminal, JSON everywhere else."""

from __future__ import annotations

import datetime
import json
import logging
import os
import sys

log = logging.getLogger("sluice")


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
    """Sends all logs to stderr. `SLUICE_LOG=json|text` overrides what the terminal suggests."""
    handler = logging.StreamHandler(sys.stderr)
    text = os.environ.get("SLUICE_LOG", "text" if sys.stderr.isatty() else "json") == "text"
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S") if text else JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for noisy in ("py4j", "botocore", "urllib3", "kubernetes"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def say(message: str) -> None:
    """One line of progress."""
    log.info("%s", message)


def warn(message: str) -> None:
    """Something a person should look at."""
    log.warning("%s", message)


def in_seconds(seconds: float) -> str:
    """The time that many seconds from now, ISO 8601."""
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).isoformat(timespec="seconds")

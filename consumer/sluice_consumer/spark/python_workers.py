"""Python workers that print nothing when Spark has hung up on them, and send what they raise in a form that can be judged (`worker_errors`).

Spark closes the sockets of workers that are idle when it stops, and of those whose task is over. PySpark's daemon, from which each was forked, prints
a stack for each of them, below the exit message of a driver. For tasks this module is Spark's daemon (`spark.python.daemon.module`): it may import
nothing that starts a thread. Workers that plan a query have PySpark's own, always; the data source calls `fold_hang_ups` there, and `pyspark_sluice`
in the one that lists data sources.
"""

from __future__ import annotations

import functools
import re
import sys
import traceback
from types import SimpleNamespace
from typing import Any
from zipimport import zipimporter

from sluice_consumer import logs
from sluice_consumer.poison import worker_errors

MODULE = "sluice_consumer.spark.python_workers"
DAEMON = "pyspark.daemon"
JAR = re.compile(r"[/\\]spark-core_[^/\\]*\.jar([/\\]|$)")


@functools.cache
def fold_hang_ups() -> None:
    """In a worker of PySpark's own daemon, once; it loses Spark's jar from its path, too. Elsewhere nothing."""
    program = sys.modules["__main__"]
    if getattr(getattr(program, "__spec__", None), "name", None) == DAEMON:
        _fold(program)
        leave_out_jar()


def leave_out_jar() -> None:
    """Takes Spark's jar off the path of this worker: no module is in it.

    Spark 4.1 asks Python in each task to forget what it knows of its path; the jar's directory, 5,000 names, is then read again: 50 ms of CPU.
    """
    sys.path[:] = [entry for entry in sys.path if not JAR.search(entry)]
    for entry in [entry for entry in sys.path_importer_cache if JAR.search(entry)]:
        del sys.path_importer_cache[entry]


def forget_archives() -> None:
    """Lets go of what Python knows of the archives on its path; they stay there, and are looked at again when something is imported from them.

    At the end of each call that Spark makes, so that the next one's `invalidate_caches` finds none whose directory it would read. The session may be
    somebody else's, with PySpark's archive on the path of its workers (`embedded`): then each would be read for each package in it, in every task.
    """
    for entry in [entry for entry, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]:
        del sys.path_importer_cache[entry]


def print_exc() -> None:
    """`traceback.print_exc`, unless the exception that is handled only says that Spark has hung up."""
    if not isinstance(sys.exc_info()[1], BrokenPipeError | ConnectionResetError):
        traceback.print_exc()


def _fold(daemon: Any) -> None:
    if not logs.debugging():
        daemon.traceback = SimpleNamespace(print_exc=print_exc, format_exc=traceback.format_exc)


def main() -> None:
    """PySpark's daemon, until Spark ends it."""
    from pyspark import daemon  # noqa: PLC0415 - workers that only call `fold_hang_ups` have it as their program

    _fold(daemon)
    leave_out_jar()
    worker_errors.install_ahead()
    daemon.manager()


if __name__ == "__main__":
    main()

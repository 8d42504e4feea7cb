"""Sees what `process` has the JVM write: Spark's writers, Iceberg, Delta, file systems, any library, by the names of their methods."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from py4j.java_gateway import JavaMember
from py4j.protocol import STATIC_PREFIX

from sluice_consumer.testing.watch import WatchedRun

VERBS = re.compile(
    "(append|commit|concat|copy|create|delete|drop|execute|flush|hflush|hsync|insert|merge|mkdirs?|move|overwrite|publish|put|remove|rename|replace"
    "|save|send|sync|truncate|update|upload|upsert|write)([A-Z_].*)?"
)
"""Methods that write, by their first word."""
FORMATS = frozenset({"csv", "jdbc", "json", "orc", "parquet", "text", "xml"})
"""Methods that write if they are a `DataFrameWriter`'s."""
JOBS = frozenset(["collectAndServe", "collectAsArrowToPython", "collectToPython", "count", "isEmpty", "runJob", "tailToPython", "toPythonIterator"])
"""Methods that run a job, whose tasks may write."""
IN_MEMORY = re.compile(
    r"java\.(lang|util|math|time)\.|scala\.|org\.apache\.spark\.(api|util|rdd|broadcast)\.|org\.apache\.spark\.SparkConf"
    r"|org\.apache\.spark\.sql\.(.*\.)?(functions|Column|Dataset|RelationalGroupedDataset|DataFrame(Na|Stat)Functions|RuntimeConfig|DataFrameReader)\b"
    r"|.*InputStream$"
)
"""Classes whose methods of such names change nothing outside of Spark."""
TEMPORARY = re.compile(r"TempView|createDataFrame|createDataset")
READS = re.compile(
    r"\s*(--[^\n]*\n\s*)*\(?"
    r"(SELECT|SHOW|DESC|DESCRIBE|EXPLAIN|SET|USE|VALUES|WITH(?!.*\bINSERT\b)|TABLE|LIST|CACHE|UNCACHE|REFRESH)\b",
    re.IGNORECASE | re.DOTALL,
)
"""Texts of SQL that write nothing."""


@contextlib.contextmanager
def watched(watch: WatchedRun, task_killed: Callable[[], bool]) -> Iterator[None]:
    """Watches the calls of all threads while the block runs.

    Args:
        watch: of the run.
        task_killed: whether the kill was in a task; the driver then ends with the call that ran the task's job.
    """
    original = JavaMember.__call__

    def call(member: Any, *args: Any) -> Any:
        watch.check()
        what = write(member, args)
        if what:
            watch.at("before", what)
        try:
            answer = original(member, *args)
        finally:
            if task_killed():
                watch.kill()
        if what or (what := job(member)):
            watch.at("after", what)
        return answer

    JavaMember.__call__ = call
    try:
        yield
    finally:
        JavaMember.__call__ = original


def write(member: Any, args: tuple[Any, ...]) -> str:
    """What a call writes, such as `DataFrameWriter.parquet`; empty if it writes nothing, as far as its name says."""
    name = str(member.name)
    if not VERBS.fullmatch(name) and name not in FORMATS and name != "sql":
        return ""
    owner = class_of(member)
    kind = re.split(r"[.$]", owner)[-1]
    if name == "sql":
        return "" if not args or READS.match(str(args[0])) else f"{kind}.sql({str(args[0]).split()[0]} …)"
    if name in FORMATS and kind != "DataFrameWriter":
        return ""
    return "" if IN_MEMORY.match(owner) or TEMPORARY.search(name) else f"{kind}.{name}"


def job(member: Any) -> str:
    """What a call runs as a job; empty if it is not known to run one."""
    return f"{re.split(r'[.$]', class_of(member))[-1]}.{member.name}" if member.name in JOBS else ""


def class_of(member: Any) -> str:
    """The full name of the Java class."""
    if member.container is None:
        return str(member.target_id).removeprefix(STATIC_PREFIX)
    return str(member.container.getClass().getName())

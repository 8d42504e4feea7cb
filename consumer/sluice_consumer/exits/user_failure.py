"""What a failure says to the person whose code failed: the exception, where their code raised it, and no stack of Spark's. Pure.

An exception of a Python worker arrives as text inside one of Spark's; the worker's class, words and frames are taken from there.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field

from sluice_checkpoints.errors import SluiceError
from sluice_consumer.spark.status import SQL_STATE, last_words

TRACEBACK = "Traceback (most recent call last):\n"
FRAME = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)\n(?: +(?P<source>(?!File ")\S.*)\n)?', re.MULTILINE)
RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<words>.*))?\Z", re.MULTILINE | re.DOTALL)
END_OF_TRACE = re.compile(r"\n\s+at |\n\nDriver stacktrace|\s+SQLSTATE: \w+")
UNTOLD = {"Py4JJavaError", "UnknownException"}  # classes that stand for any of Java's
NEXT_TRACE = re.compile(r"\n\n(?:During handling of|The above exception)[^\n]*:\n\n")
SPARKS = r"/(site-packages|dist-packages|python|pyspark\.zip|py4j-[\w.-]+\.zip)/(pyspark|py4j)/"
MACHINERY = re.compile(rf"{SPARKS}|/sluice_(checkpoints|consumer/(spark|batches|process|shards|kinesis|metrics|embedded))\b|^<frozen ")
INSTALLED = re.compile(r"/(site|dist)-packages/|/lib/python3\.\d+/|/sluice_consumer/|\.pyx$|^<")
LONGEST, LINES = 300, 5  # of an exception's own words: a condition has room for what follows them


@dataclass(frozen=True)
class Frame:
    """A call. Two are the same whatever is known of their source."""

    file: str
    line: int
    function: str
    source: str = field(default="", compare=False)

    @property
    def place(self) -> str:
        """As an editor opens it."""
        return f"{self.file}:{self.line} in {self.function}"


@dataclass(frozen=True)
class UserFailure:
    """An exception as its author knows it.

    Attributes:
        kind: its class, without module.
        words: what it says.
        frames: of the user's code, the innermost first.
        cause: class and words of what it was raised from, or of what Java's exception was caused by.
    """

    kind: str
    words: str
    frames: tuple[Frame, ...] = ()
    cause: str = ""

    @property
    def summary(self) -> str:
        """Class and words."""
        return f"{self.kind}: {self.words}" if self.words else self.kind


def cut(text: str, longest: int) -> str:
    """Its beginning, if it is too long."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def failure_of(error: BaseException, package: str, java: tuple[tuple[str, str], ...] = ()) -> UserFailure:
    """What an exception says.

    Args:
        error: as it was raised in the driver.
        package: the outermost one of the pipeline's entrypoint: its code is the user's, wherever it is installed.
        java: classes and messages of Java's exceptions behind it, outermost first.
    """
    here = tuple(Frame(at.filename, at.lineno or 0, at.name, at.line or "") for at in traceback.extract_tb(error.__traceback__))
    text = str(error)
    if isinstance(error, SluiceError):  # its words are whole: they end with what to do
        return UserFailure(type(error).__name__, text)
    if TRACEBACK in text:
        worker = _of_worker(text)
        calls = (*(frame for frame in here if frame not in worker.frames), *worker.frames)
        return UserFailure(worker.kind, _short(worker.words), users(calls, package), worker.cause)
    kind = type(error).__name__
    words = java[0][1] if java else text
    if java and kind in UNTOLD:
        kind = java[0][0]
    return UserFailure(kind, _short(_first(words)), users(here, package), _cause(error, words, java))


def _of_worker(text: str) -> UserFailure:
    """The last exception of the first trace: what follows is the same again, as Java quotes it."""
    trace = END_OF_TRACE.split(text[text.index(TRACEBACK) :], maxsplit=1)[0]
    parts = [trace_part.partition(TRACEBACK)[2] for trace_part in NEXT_TRACE.split(trace)]
    matches = [RAISED.search(FRAME.sub("", _unmarked(trace_part)).strip()) for trace_part in parts]
    raised = [(match["kind"].rpartition(".")[2], (match["words"] or "").strip()) for match in matches if match]
    kind, words = raised[-1] if raised else ("PythonException", trace.strip().rpartition("\n")[2])
    frames = tuple(Frame(at["file"], int(at["line"]), at["function"], at["source"] or "") for at in FRAME.finditer(_unmarked(parts[-1])))
    return UserFailure(kind, words, frames, ": ".join(raised[0]) if len(raised) > 1 else "")


def _unmarked(trace: str) -> str:
    return re.sub(r"^ +[~^]+ *\n", "", trace, flags=re.MULTILINE)


def _short(words: str) -> str:
    return cut("\n".join(words.splitlines()[:LINES]), LONGEST)


def _first(words: str) -> str:
    """Of Spark's words what happened, without the query's plan and Java's stack."""
    if "\n\tat " in words:
        return last_words(words)
    return SQL_STATE.sub("", words.partition(";\n")[0]) if "SQLSTATE" in words else words.strip()


def _cause(error: BaseException, words: str, java: tuple[tuple[str, str], ...]) -> str:
    if java:
        kind, message = java[-1]
        return "" if len(java) == 1 or message in words else f"{kind}: {_first(message)}"
    cause = error.__cause__
    return "" if cause is None else f"{type(cause).__name__}: {_first(str(cause))}"


def users(calls: Iterable[Frame], package: str) -> tuple[Frame, ...]:
    """The user's frames, the innermost first; if none is, those of libraries.

    Args:
        calls: the outermost first.
        package: the pipeline's, or "".
    """
    outside = [frame for frame in calls if not MACHINERY.search(frame.file)]
    of_package = re.compile(rf"/{re.escape(package)}(/|\.py$)")
    own = [frame for frame in outside if (package and of_package.search(frame.file)) or not INSTALLED.search(frame.file)]
    return tuple(reversed(own or outside))

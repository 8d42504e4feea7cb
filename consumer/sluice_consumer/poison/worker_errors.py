"""How a Python worker reports to Spark what it raised: classes and codes, then the trace, bounded and in characters that can be sent.

PySpark's own way sends the trace alone, and what a record says is part of that. It sends nothing for text that has no UTF-8 form (a lone surrogate,
which JSON allows): then the task never ends. What is sent here comes *before* the trace, where no message of an exception can be. It may import
nothing that starts a thread: workers are forked from what has imported it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import re
import sys
import traceback
from dataclasses import asdict
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_consumer.poison import raised
from sluice_consumer.poison.causes import Raised, RaisedLink, TaskRefusal

FORMAT = "sluice-raised/1 "
LONGEST = 100_000  # characters of a trace
REFUSAL = 8_000  # characters of a refusal's words
WORKER, DEFINED_IN = "pyspark.worker", "pyspark.util"
HANDLER = "handle_worker_exception"
LENGTHS = 8  # bytes before the text: a sign and its length
TRACEBACK = "Traceback (most recent call last):\n"
FIRST = re.compile(r"(?:  [^\n]*\n|\n)+(?P<kind>[A-Za-z_][\w.]*)(?=:|\n|\Z)")
FRAME = re.compile(r'^  File "([^"\n]+)", line (\d+), in ', re.MULTILINE)
AWS = re.compile(r": An error occurred \((\w+)\) when calling the ")
BEFORE = re.compile(
    r"\s*(An exception was thrown from the Python worker\. Please see the stack trace below\.\n)?"
    r"(org\.apache\.spark\.[\w.]+: )?"
    r"(Job aborted due to stage failure: Task [\d.]+ in stage [\d.]+ failed \d+ times?, most recent failure: "
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^()\n]*\): )?"
    r"(org\.apache\.spark\.api\.python\.PythonException: )?"
    r"(\[PYTHON_EXCEPTION\] )?(An exception was thrown from the Python worker:[ \n])?"
)
"""What Spark puts before a worker's words; the last line is of 4.3."""


def install() -> None:
    """In a Python worker: what it raises from now on is sent in this form. Elsewhere nothing happens."""
    for name in (WORKER, "__main__"):
        module = sys.modules.get(name)
        if module is not None and (name == WORKER or getattr(getattr(module, "__spec__", None), "name", None) == WORKER):
            _install(module)


def install_ahead() -> None:
    """In the daemon of Python workers, before it forks: the same in each of them.

    That of Spark 4.1 has imported the worker's module by then. From 4.2 each worker imports it, and takes the function from where it is defined.
    """
    install()
    _install(importlib.import_module(DEFINED_IN))


def _install(module: Any) -> None:
    sparks = getattr(module, HANDLER)
    if getattr(sparks, "func", None) is not tell:
        setattr(module, HANDLER, functools.partial(tell, sparks))


def tell(sparks: Any, error: BaseException, outfile: Any, *how: Any, **named: Any) -> None:
    """PySpark's `handle_worker_exception`. `sparks`: its own, which knows Spark's settings of traces."""
    written, first = io.BytesIO(), header(error)  # PySpark forgets the causes of some
    with contextlib.redirect_stderr(io.StringIO()):
        sparks(error, written, *how, **named)
    trace = written.getvalue()[LENGTHS:].decode() or _trace(error)
    message = (first + bounded(trace, LONGEST)).encode("utf-8", "backslashreplace")
    with contextlib.suppress(OSError):  # Spark has hung up
        outfile.write(written.getvalue()[:4] + len(message).to_bytes(4, "big") + message)


def header(error: BaseException) -> str:
    """The first line: the chain of the exception, the user's line, and the words of a refusal of ours."""
    chain = [asdict(raised.thrown(each, implied=implied)) for each, implied in raised.chain(error)]
    document: dict[str, Any] = {"chain": chain, "place": raised.place(error)}
    if isinstance(error, Refused):
        document["refused"] = asdict(TaskRefusal(type(error).__name__, bounded(str(error), REFUSAL)))
    return f"{FORMAT}{json.dumps(document)}\n"


def parsed(text: str) -> Raised | None:
    """What a worker sent, from the text of Spark's exception; None: the text is not a worker's.

    Of the words of a worker without this module only the first exception is believed: its line follows on lines that Python wrote.
    What comes after it may be a record's.
    """
    start = BEFORE.match(text)
    words = text[start.end() :] if start else text
    if words.startswith(FORMAT):
        return _parsed(words[len(FORMAT) :].partition("\n")[0])
    if not words.startswith(TRACEBACK):
        return None
    match = FIRST.match(words, len(TRACEBACK))
    if match is None:
        return Raised(())
    kind = match["kind"] if "." in match["kind"] else f"builtins.{match['kind']}"
    codes = AWS.match(words, match.end()) if kind.startswith("botocore.") else None
    frames = [frame for frame in FRAME.findall(words[: match.start("kind")]) if not raised.LIBRARY.search(frame[0])]
    place = ":".join(frames[-1]) if frames else ""
    return Raised((RaisedLink((kind,), (f"aws:{codes[1]}",) if codes else (), implied=True),), place)


def without_header(text: str) -> str:
    """The words without the line that is not for people."""
    return re.sub(rf"{re.escape(FORMAT)}[^\n]*\n", "", text, count=1)


def bounded(text: str, longest: int) -> str:
    """Its beginning and its end, if it is too long."""
    return text if len(text) <= longest else f"{text[: longest // 2]}\n…\n{text[-longest // 2 :]}"


def _parsed(line: str) -> Raised | None:
    try:
        document = json.loads(line)
        chain = tuple(RaisedLink(tuple(link["kinds"]), tuple(link["codes"]), link["implied"]) for link in document["chain"])
        return Raised(chain, document["place"], refused=TaskRefusal(**document["refused"]) if "refused" in document else None)
    except (ValueError, KeyError, TypeError):
        return None


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))

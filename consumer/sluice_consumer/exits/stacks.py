"""Where the threads of this process are: for the log and the exit message of a driver whose batch does not end."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from types import FrameType

from sluice_consumer.exits.user_failure import Frame, users

CHECKED = "check"  # of the jobs, after that
CALLED = "_call"  # of the engine: what it calls is the user's


def python_stacks(frames: Mapping[int, FrameType] | None = None) -> str:
    """All threads of Python with their frames, the innermost last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = (frames or sys._current_frames()).items()  # noqa: SLF001 - the documented way to see other threads
    return "\n".join(f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame)).rstrip()}" for ident, frame in stacks)


def main_stack(ident: int | None = None) -> list[traceback.FrameSummary]:
    """The frames of the thread that runs `process`, the main thread unless it is named; the innermost last."""
    return list(traceback.extract_stack(sys._current_frames()[ident or threading.main_thread().ident or 0]))  # noqa: SLF001


def innermost(ident: int | None = None) -> str:
    """Where the thread that `main_stack` means is, as `file:line in function`, whoever wrote that code."""
    frame = main_stack(ident)[-1]
    return Frame(frame.filename, frame.lineno or 0, frame.name).place


def in_process(ident: int) -> bool:
    """Whether this thread is inside of the user's function, and not in what calls it."""
    return bool(_called(main_stack(ident)))


def _called(frames: Sequence[traceback.FrameSummary]) -> Sequence[traceback.FrameSummary]:
    called = [i for i, frame in enumerate(frames) if frame.name == CALLED and frame.filename.endswith("sluice_consumer/spark/engine.py")]
    return frames[called[-1] + 1 :] if called else ()


def place(frames: Sequence[traceback.FrameSummary]) -> str:
    """Where the user's code is, as `file:line in function`: its innermost frame in no package. Before it is called: that Spark plans."""
    if any(frame.name == CHECKED and frame.filename.endswith("sluice_consumer/spark/jobs.py") for frame in frames):
        return "its end: it has returned, and Spark jobs that read the batch run on"
    calls = [Frame(at.filename, at.lineno or 0, at.name) for at in _called(frames)]
    if not calls:
        return "nowhere yet: Spark plans the batch"
    return (users(calls, "") or calls[::-1])[0].place

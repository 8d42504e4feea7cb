"""Sees what `process` writes from the driver's Python: files, and calls of functions that a test names."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import io
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_consumer.testing.watch import WatchedRun, is_in

FUNCTIONS = {
    os: ("link", "mkdir", "open", "remove", "rename", "replace", "rmdir", "symlink", "truncate", "unlink"),
    shutil: ("copy", "copy2", "copyfile", "copytree", "move", "rmtree"),
}
THROUGH = ("os", "shutil", "pathlib", "contextlib", __name__)
"""Modules that only pass a call on."""
NOT_THE_PIPELINES = (
    "_frozen_importlib_external",
    "_pytest",
    "importlib",
    "linecache",
    "logging",
    "py4j",
    "pyspark",
    "pytest",
    "tempfile",
    "warnings",
)


@contextlib.contextmanager
def watched(watch: WatchedRun, named: Iterable[str]) -> Iterator[None]:
    """Watches files, and the named functions, while the block runs.

    Raises:
        Refused: there is no such function, or it is not one of Python's.
    """
    inside = threading.local()
    with contextlib.ExitStack() as stack:
        for module, names in FUNCTIONS.items():
            for name in names:
                stack.enter_context(_replaced(module, name, _seen(watch, f"{module.__name__}.{name}", getattr(module, name), inside)))
        for opens in (builtins, io):
            stack.enter_context(_replaced(opens, "open", _seen(watch, "open", builtins.open if opens is builtins else io.open, inside)))
        for name in named:
            owner, attribute = _resolved(name)
            stack.enter_context(_replaced(owner, attribute, _named(watch, name, getattr(owner, attribute))))
        yield


def _seen(watch: WatchedRun, what: str, function: Callable[..., Any], inside: threading.local) -> Callable[..., Any]:
    """A function of files. What it calls itself is a part of it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if getattr(inside, "yes", False) or not _writes(what, args, kwargs) or not _of_the_pipeline():
            return function(*args, **kwargs)
        watch.at("before", what)
        inside.yes = True
        try:
            answer = function(*args, **kwargs)
        finally:
            inside.yes = False
        watch.at("after", what)
        return answer

    return call


def _named(watch: WatchedRun, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        watch.at("before", what)
        answer = function(*args, **kwargs)
        watch.at("after", what)
        return answer

    return call


def _writes(what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if what == "os.open":
        return bool((args[1] if len(args) > 1 else kwargs.get("flags", 0)) & (os.O_WRONLY | os.O_RDWR))
    return what != "open" or bool(set("wax+") & set(str(args[1] if len(args) > 1 else kwargs.get("mode", "r"))))


def _of_the_pipeline() -> bool:
    """Whether it is called by other code than Python's imports and logs, pytest, and Spark."""
    frame = sys._getframe(1)  # noqa: SLF001 - see `watch.where`
    while frame.f_back is not None and is_in(frame.f_globals.get("__name__", ""), THROUGH):
        frame = frame.f_back
    return not is_in(frame.f_globals.get("__name__", ""), NOT_THE_PIPELINES)


def _resolved(name: str) -> tuple[Any, str]:
    module, _, path = name.partition(":")
    *owners, attribute = path.split(".")
    try:
        owner = functools.reduce(getattr, owners, importlib.import_module(module))
        getattr(owner, attribute)
    except (ImportError, AttributeError) as error:
        raise Refused(f"writes: {name!r}: {error}; name it as in my_module:insert or my_module:Client.insert") from error
    return owner, attribute


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    former = owner.__dict__[name] if isinstance(owner, type) and name in owner.__dict__ else getattr(owner, name)
    try:
        setattr(owner, name, value)
    except TypeError as error:
        raise Refused(
            f"writes: {owner.__name__}.{name} is not written in Python and cannot be watched; name a function of yours that calls it"
        ) from error
    try:
        yield
    finally:
        setattr(owner, name, former)

"""Imports the user's function. Needs no Spark and imports no PySpark, so that a check can do it too."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from sluice_checkpoints.errors import Refused

ENTRYPOINT = "pipeline.entrypoint"
Process = Callable[..., Any]
"""`process(batch, info)`: a DataFrame, and `pipelines.BatchInfo`."""


def find_in_working_folder() -> None:
    """Lets this process find modules in its working folder first, as `python -m` does. The program `sluice` would look in its own folder."""
    sys.path[:0] = [str(Path.cwd())]


def load(entrypoint: str, field: str = ENTRYPOINT) -> Process:
    """The user's function. Needs no table, no lease and no Spark, so a wrong name can be refused before there are any.

    Args:
        entrypoint: `module:function`.
        field: of the configuration, which has it.

    Raises:
        Refused: the module or the function is missing, the module cannot be imported, or the function cannot be called.
    """
    module, _, name = entrypoint.partition(":")
    value = getattr(_module(entrypoint, module, field), name, None)
    if value is None:
        raise Refused(f"{field}: module {module} has no {name}")
    if not callable(value):
        raise Refused(f"{field}: {entrypoint} is not a function")
    process: Process = value
    return process


def _module(entrypoint: str, module: str, field: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Refused(f"{field}: {entrypoint}: there is no module {error.name}; is it in the image, or in the folder where you run this?") from error
    except (ImportError, SyntaxError) as error:
        raise Refused(f"{field}: {entrypoint}: module {module} cannot be imported: {type(error).__name__}: {error}") from error

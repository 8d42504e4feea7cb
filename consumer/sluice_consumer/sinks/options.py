"""The options of a sink: `pipeline.args` of the resource, or keyword arguments of a call. Pure."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from sluice_checkpoints.errors import Refused

PARTITIONS = ("day", "hour")
INDEX = "documentIndex"
"""The place of a document in its record, from 0. A column that `decode: json-lines` can keep."""
LINES = "json-lines"
FUNCTION = re.compile(r"[\w.]+:\w+")


class RowArguments(TypedDict, total=False):
    """The options that all sinks know, by their names in `pipeline.args`; `RowOptions` says what they mean."""

    decode: str
    schema: str
    keep: Sequence[str]
    transform: str
    partition: str
    fileBytes: int


class FileArguments(RowArguments, total=False):
    """Those of `parquet`."""

    path: str


class TableArguments(RowArguments, total=False):
    """Those of `iceberg`."""

    table: str
    create: bool


class DeltaArguments(FileArguments, TableArguments, total=False):
    """Those of `delta`: a table by its path or by its name."""


@dataclass(frozen=True)
class RowOptions:
    """How records become rows.

    Attributes:
        schema: DDL of the JSON documents in `data`; None: records are stored as they came.
        keep: columns of the batch that are kept beside the document's.
        transform: `module:function`, DataFrame to DataFrame; runs after decoding.
        partition: `day` or `hour` of arrival adds the column `arrival_day` or `arrival_hour`.
        file_bytes: the size that files should have, in bytes; None: a file for each task.
        lines: a record holds any number of documents, not one.
    """

    schema: str | None = None
    keep: tuple[str, ...] = ()
    transform: str | None = None
    partition: str | None = None
    file_bytes: int | None = None
    lines: bool = False


def known(args: Mapping[str, Any], kind: type[RowArguments]) -> Mapping[str, Any]:
    """The arguments, if a sink of this kind knows each of them.

    Raises:
        Refused: there is another one.
    """
    names = sorted(kind.__annotations__, key=RowArguments.__annotations__.__contains__)  # its own first
    if unknown := sorted(set(args) - set(names)):
        raise Refused(f"pipeline.args.{unknown[0]}: this sink has no such option; it knows {', '.join(names)}")
    return args


def text(args: Mapping[str, Any], name: str, what: str) -> str:
    """An option that is needed.

    Raises:
        Refused: it is missing, or no text.
    """
    value = args.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(f"pipeline.args.{name}: {'missing' if value is None else f'{value!r} is not text'}; {what}")
    return value


def rows(args: Mapping[str, Any]) -> RowOptions:
    """How records become rows.

    Raises:
        Refused: an option has a value that it cannot have; the message names it.
    """
    return RowOptions(_schema(args), _keep(args), _transform(args), _partition(args), _file_bytes(args), args.get("decode") == LINES)


def _schema(args: Mapping[str, Any]) -> str | None:
    decode = args.get("decode")
    if decode not in (None, "json", LINES):
        raise Refused(f"pipeline.args.decode: {decode!r} is not known; leave it out, or say json or {LINES}")
    if decode is None and args.get("schema") is not None:
        raise Refused("pipeline.args.schema: has no effect without decode: json")
    return text(args, "schema", 'the columns of the JSON documents, as in "id BIGINT, name STRING"') if decode else None


def _keep(args: Mapping[str, Any]) -> tuple[str, ...]:
    keep = args.get("keep", ())
    if isinstance(keep, str) or not all(isinstance(name, str) for name in keep):
        raise Refused(f"pipeline.args.keep: {keep!r} is not a list of column names")
    if INDEX in keep and args.get("decode") != LINES:
        raise Refused(f"pipeline.args.keep: only decode: {LINES} has a column {INDEX}; leave it out")
    return tuple(keep)


def _transform(args: Mapping[str, Any]) -> str | None:
    name = args.get("transform")
    if name is not None and not (isinstance(name, str) and FUNCTION.fullmatch(name)):
        raise Refused(f"pipeline.args.transform: {name!r} is not of the form module:function")
    return name


def _partition(args: Mapping[str, Any]) -> str | None:
    unit = args.get("partition")
    if unit not in (None, *PARTITIONS):
        raise Refused(f"pipeline.args.partition: must be one of {', '.join(PARTITIONS)}, not {unit!r}")
    return unit


def _file_bytes(args: Mapping[str, Any]) -> int | None:
    size = args.get("fileBytes")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise Refused(f"pipeline.args.fileBytes: {size!r} is not a number of bytes")
    return size


def create(args: Mapping[str, Any]) -> bool:
    """Whether a table that is not there is made.

    Raises:
        Refused: it is neither true nor false.
    """
    asked = args.get("create", False)
    if not isinstance(asked, bool):
        raise Refused(f"pipeline.args.create: {asked!r} is neither true nor false")
    return asked


def function(name: str, field: str) -> Any:
    """The function of `module:function`.

    Raises:
        Refused: there is none, or its module cannot be imported.
    """
    module, _, attribute = name.partition(":")
    try:
        function_found = getattr(importlib.import_module(module), attribute, None)
    except (ImportError, SyntaxError) as error:
        raise Refused(
            f"{field}: {name}: module {module} cannot be imported: {error}; is it in the image, or in the folder where you run this?"
        ) from error
    if not callable(function_found):
        raise Refused(f"{field}: module {module} has no function {attribute}")
    return function_found

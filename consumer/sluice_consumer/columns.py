"""Arrow arrays made of buffers.

pyarrow's own ways from Python's and numpy's values (`array`, `scalar`, `repeat`, `to_numpy`) import pandas wherever it is installed: the better part
of a second of a worker's first task, and as many objects again for PySpark's garbage collection after every task. These do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def numbers(values: npt.NDArray[np.int64] | Sequence[int]) -> Any:
    """Arrow int64."""
    held = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(held), [None, pa.py_buffer(held)])


def binary(offsets: npt.NDArray[np.int32], content: Any) -> Any:
    """Arrow binary: content[offsets[i]:offsets[i + 1]] for each i; `content` is anything with a buffer."""
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(content)])


def payloads(values: Sequence[bytes]) -> Any:
    """Arrow binary."""
    offsets = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, values), np.int32, len(values)), out=offsets[1:])
    return binary(offsets, b"".join(values))


def texts(values: Sequence[str]) -> Any:
    """Arrow strings."""
    return payloads([value.encode() for value in values]).cast(pa.string())


def constant(text: str, rows: int) -> Any:
    """Arrow strings that are all the same."""
    return runs([(text, rows)])


def runs(texts_: Sequence[tuple[str, int]]) -> Any:
    """Arrow strings: each text so many times."""
    contents, rows = [text.encode() for text, _ in texts_], [count for _, count in texts_]
    offsets = np.zeros(sum(rows) + 1, dtype=np.int32)
    np.cumsum(np.repeat(np.fromiter(map(len, contents), np.int32, len(rows)), rows), out=offsets[1:])
    return binary(offsets, b"".join(content * count for content, count in zip(contents, rows, strict=True))).cast(pa.string())


def lengths(values: Any) -> npt.NDArray[np.int32]:
    """Of an Arrow binary: bytes of each."""
    _, offsets, _ = values.buffers()
    places = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4)
    return places[1:] - places[:-1]

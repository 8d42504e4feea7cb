"""Arrow arrays made of buffers.

pyarrow's own ways from Python's and numpy's values (`array`, `scalar`, `repeat`, `to_numpy`) import pandas wherever it is installed. That takes the
better part of a second of a worker's first task. It leaves as many objects again for PySpark's garbage collection after every task. These functions
do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sluice_checkpoints.names import counted

FEW, MANY = 1_000, 10_000  # rows: columns of one text between the two are slices of one that is kept
MOST_BYTES = 2**31 - 1  # in an array: its offsets have 32 bits
KEPT = 32  # such columns: 240 kB each with the name of a shard


def numbers(values: npt.NDArray[np.int64] | Sequence[int]) -> Any:
    """Arrow int64."""
    held = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(held), [None, pa.py_buffer(held)])


def binary(offsets: npt.NDArray[np.int32], content: Any) -> Any:
    """Arrow binary: content[offsets[i]:offsets[i + 1]] for each i; `content` is anything with a buffer."""
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(content)])


def payloads(values: Sequence[bytes]) -> Any:
    """Arrow binary."""
    return binary(_offsets(np.fromiter(map(len, values), np.int64, len(values))), b"".join(values))


def _offsets(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Where each value begins, and where the last ends.

    Raises:
        ValueError: together they are more than an Arrow array holds.
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > MOST_BYTES:
        raise ValueError(f"{counted(int(offsets[-1]), 'byte')} are more than one Arrow array holds; set batch.maxBytesPerShard lower")
    return offsets.astype(np.int32)


def texts(values: Sequence[str]) -> Any:
    """Arrow strings."""
    return strings(payloads([value.encode() for value in values]))


def strings(values: Any) -> Any:
    """Arrow strings of Arrow binary; of nothing but ASCII in one look, which costs a tenth of a look at each.

    Raises:
        ValueError: one is no UTF-8.
    """
    _, offsets, content = values.buffers()
    if content is not None and (not content.size or np.frombuffer(content, np.uint8).max() < 128):
        return pa.Array.from_buffers(pa.string(), len(values), [None, offsets, content], offset=values.offset)
    return values.cast(pa.string())


def constant(text: str, rows: int) -> Any:
    """Arrow strings that are all the same."""
    return runs([(text, rows)])


def runs(texts_: Sequence[tuple[str, int]]) -> Any:
    """Arrow strings: each text so many times."""
    if len(texts_) == 1 and FEW <= (rows := texts_[0][1]) <= MANY:
        return _kept(texts_[0][0])[:rows]
    return _made(texts_)


@lru_cache(maxsize=KEPT)
def _kept(text: str) -> Any:
    return _made([(text, MANY)])


def _made(texts_: Sequence[tuple[str, int]]) -> Any:
    contents, rows = [text.encode() for text, _ in texts_], [count for _, count in texts_]
    offsets = _offsets(np.repeat(np.fromiter(map(len, contents), np.int64, len(rows)), rows))
    return strings(binary(offsets, b"".join(content * count for content, count in zip(contents, rows, strict=True))))


def lengths(values: Any) -> npt.NDArray[np.int32]:
    """Length in bytes of each value of an Arrow binary array."""
    _, offsets, _ = values.buffers()
    places = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4)
    return places[1:] - places[:-1]

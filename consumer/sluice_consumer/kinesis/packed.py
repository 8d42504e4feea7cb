"""Kinesis records as Arrow columns over the bytes of a reply, without a Python object for each record.

A gigabyte of records is a million small ones; to make five objects of each costs as much as Spark does with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from sluice_consumer.kinesis import arrow_arrays


@dataclass(frozen=True, slots=True)
class PackedRecords:
    """Implements `client.RecordColumns`.

    Attributes:
        sequences, keys: Arrow strings.
        payloads: Arrow binary.
        arrivals: Arrow int64, epoch milliseconds.
    """

    sequences: Any
    keys: Any
    payloads: Any
    arrivals: Any

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def sequence(self) -> list[str]:
        return list(self.sequences.to_pylist())

    @property
    def partition_key(self) -> list[str]:
        return list(self.keys.to_pylist())

    @property
    def data(self) -> list[bytes]:
        return list(self.payloads.to_pylist())

    @property
    def arrival_millis(self) -> list[int]:
        return list(self.arrivals.to_pylist())

    def between(self, start: int, stop: int) -> PackedRecords:
        """See `RecordColumns.part`; nothing is copied."""
        if (start, stop) == (0, len(self)):
            return self
        return PackedRecords(*(column[start:stop] for column in (self.sequences, self.keys, self.payloads, self.arrivals)))

    def number(self, index: int) -> str:
        return str(self.sequences[index])

    def totals(self) -> Sequence[int]:
        totals: Any = np.cumsum(arrow_arrays.lengths(self.payloads), dtype=np.int64)
        return totals  # type: ignore[no-any-return]

    def any_with(self, prefix: bytes) -> bool:
        return bool(pc.any(pc.starts_with(self.payloads, pattern=prefix)).as_py())


def cut(body: bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> Any:
    """Arrow binary: body[start:end] for each pair; pairs are in order and do not overlap.

    The pairs and the gaps between them are one array over `body` itself, of which every other element is taken: one pass in C++. Arrow makes room for
    as many elements of mean length as it is asked for, and gaps are short. Without the empty ones at the end it would make room, and copy, twice.
    """
    count = len(starts)
    if not count:
        return arrow_arrays.payloads(())
    offsets = np.empty(2 * count + 1, dtype=np.int32)
    offsets[0:-1:2], offsets[1::2], offsets[-1] = starts, ends, ends[-1]
    wanted = np.full(2 * count + 1, 2 * count - 1)
    wanted[:count] = np.arange(0, 2 * count, 2)
    return arrow_arrays.binary(offsets, body).take(arrow_arrays.numbers(wanted))[:count]


def cut_even(body: bytes, starts: npt.NDArray[np.int64], length: int) -> Any:
    """Arrow binary: as `cut`, for values of one length."""
    if not length:
        return cut(body, starts, starts)
    values = np.ndarray((len(body) - length + 1,), f"V{length}", buffer=body, strides=(1,))[starts]
    return arrow_arrays.binary(np.arange(0, (len(starts) + 1) * length, length, dtype=np.int32), values)

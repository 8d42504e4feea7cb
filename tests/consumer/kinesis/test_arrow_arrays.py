"""Arrow arrays made of buffers are what pyarrow makes of the same values, and pandas stays out of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from sluice_consumer.kinesis import arrow_arrays

READS = """
import sys
from reading.cbor import Style
from sluice_consumer.kinesis import cbor
from sluice_consumer.spark.arrow import to_arrow
from sluice_consumer.shards.collect import RecordColumnSet, RecordSlice
from sluice_consumer.kinesis.client import Records
from sluice_consumer.shards.ranges import Fetched
from sluice_checkpoints.position import END

made = Records([str(n) for n in range(99)], ["k"] * 99, [b"data"] * 99, [1_700_000_000_000] * 99)
packed = cbor.decode(Style().reply(made))["Records"]
assert packed.totals()[-1] == 4 * 99 and not packed.any_with(b"x")
parts = [RecordSlice(made), RecordSlice(made, list(range(99))), RecordSlice(packed), RecordSlice(packed.between(5, 9))]
(batch,) = to_arrow([Fetched("shard", END, END, RecordColumnSet(parts))], "stream")
assert batch.num_rows == 3 * 99 + 4
assert "pandas" not in sys.modules
"""


@pytest.mark.parametrize("values", [[], [b""], [b"a", b"", b"\xff\x00" * 300]])
def test_payloads_are_as_they_came(values: list[bytes]) -> None:
    found = arrow_arrays.payloads(values)
    assert found.equals(pa.array(values, pa.binary()))
    assert list(arrow_arrays.lengths(found)) == [len(value) for value in values]
    assert list(arrow_arrays.lengths(found[1:])) == [len(value) for value in values[1:]]


@pytest.mark.parametrize("values", [[], ["", "é", "€" * 20, "k"]])
def test_texts_are_utf_8(values: list[str]) -> None:
    assert arrow_arrays.texts(values).equals(pa.array(values, pa.string()))


@pytest.mark.parametrize("values", [[], [b""], [b"k", b"", b"key"], ["é".encode(), b"k", "€".encode() * 20]])
@pytest.mark.parametrize("start", [0, 1])
def test_strings_are_of_the_same_bytes(values: list[bytes], start: int) -> None:
    found = arrow_arrays.strings(arrow_arrays.payloads(values)[start:])
    found.validate(full=True)
    assert found.equals(pa.array([value.decode() for value in values[start:]], pa.string()))


@pytest.mark.parametrize("values", [[b"\xff"], [b"k" * 99, b"\xc3", b"\xa9"]])
def test_strings_are_utf_8_each_for_itself(values: list[bytes]) -> None:
    with pytest.raises(ValueError, match="UTF8"):
        arrow_arrays.strings(arrow_arrays.payloads(values))


@pytest.mark.parametrize("rows", [arrow_arrays.FEW - 1, arrow_arrays.FEW, arrow_arrays.MANY, arrow_arrays.MANY + 1])
def test_a_long_constant_is_a_part_of_one_that_is_kept(rows: int) -> None:
    found = arrow_arrays.constant("größe", rows)
    found.validate(full=True)
    assert found.equals(pa.array(["größe"] * rows, pa.string()))
    fresh, kept = (pa.record_batch([each], ["text"]).serialize().size for each in (pa.array(["größe"] * rows, pa.string()), found))
    assert kept <= fresh + 64  # alignment
    again = arrow_arrays.constant("größe", rows)
    assert (again.buffers()[2].address == found.buffers()[2].address) is (arrow_arrays.FEW <= rows <= arrow_arrays.MANY)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_constant_stands_in_every_row(rows: int) -> None:
    assert arrow_arrays.constant("größe", rows).equals(pa.array(["größe"] * rows, pa.string()))


def test_runs_follow_each_other() -> None:
    assert arrow_arrays.runs([("é", 2), ("", 1), ("b", 0), ("c", 1)]).equals(pa.array(["é", "é", "", "c"], pa.string()))


def test_numbers_may_stand_apart_in_memory() -> None:
    assert arrow_arrays.numbers([1, -(2**62)]).equals(pa.array([1, -(2**62)], pa.int64()))
    table = arrow_arrays.np.arange(10, dtype="int64").reshape(5, 2)
    assert arrow_arrays.numbers(table[:, 1]).to_pylist() == [1, 3, 5, 7, 9]


def test_records_become_rows_without_pandas() -> None:
    subprocess.run([sys.executable, "-c", READS], cwd=Path(__file__).parents[1], check=True, timeout=120)


def test_more_bytes_than_offsets_can_count_are_refused() -> None:
    """Before they are joined: 32 bits would wrap without a word."""
    with pytest.raises(ValueError, match=r"2147483648 bytes are more than one Arrow array holds; set batch\.maxBytesPerShard lower"):
        arrow_arrays.payloads([bytes(2**20)] * 2**11)
    with pytest.raises(ValueError, match="one Arrow array"):
        arrow_arrays.runs([("k" * 2**20, 2**11)])

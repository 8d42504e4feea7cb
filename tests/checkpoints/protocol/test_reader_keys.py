from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.protocol.batch_writes import generation_of, is_of, reader_key

GENERATIONS = st.integers(min_value=0, max_value=10**6)


def test_a_key_is_stored_as_generation_stage_and_partition() -> None:
    """Rows of earlier versions have it so; of what is no task, the name in place of both."""
    assert (reader_key(3, "12.0"), reader_key(3, "stored.0")) == ("3.12.0", "3.stored.0")


@given(mine=GENERATIONS, other=GENERATIONS, task=st.from_regex(r"(stored|[0-9]{1,4})\.[0-9]{1,4}", fullmatch=True))
def test_a_reader_is_of_its_own_epoch_and_of_no_other(mine: int, other: int, task: str) -> None:
    key = reader_key(mine, task)
    assert generation_of(key) == mine
    assert is_of(key, mine)
    assert is_of(key, other) == (mine == other)

"""A number of things is written as a person writes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.names import counted, plural
from sluice_lab.site.sentences import habits

SEVERAL = sorted({"shards", "batches", "tries", "days", "boxes", "more rows", "dead letters", *habits().counted})
ONE = {"batches": "batch", "tries": "try", "boxes": "box"}


@pytest.mark.parametrize("several", SEVERAL)
@given(number=st.integers(-(10**6), 10**6))
def test_only_one_thing_is_singular(several: str, number: int) -> None:
    one = ONE.get(several, several.removesuffix("s"))
    assert plural(number, one) == (one if number == 1 else several)
    assert counted(number, one) == f"{number} {plural(number, one)}"

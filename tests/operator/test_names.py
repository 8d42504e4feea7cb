"""Words that more than one room uses."""

from __future__ import annotations

import pytest

from sluice_operator.names import lasting


@pytest.mark.parametrize(
    ("millis", "text"),
    [(0, "0s"), (999, "0s"), (59_999, "59s"), (60_000, "1m00s"), (133_000, "2m13s"), (11_100_000, "3h05m"), (187_200_000, "2d04h")],
)
def test_a_duration_has_two_units_at_most(millis: int, text: str) -> None:
    assert lasting(millis) == text

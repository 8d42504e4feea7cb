"""Axes whose values a person can read: few, round, and whole where things are counted. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

MOST = 4  # steps
SECONDS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


def levels(low: float, high: float, unit: str) -> list[float]:
    """Two to five values around the lowest and the highest that are drawn, in steps of the unit.

    They begin at 0, unless all that is drawn is in the upper half: a number that only grows.
    """
    factor = 1000.0 if unit == "ms" else 1.0
    if high <= 0:
        return [0.0, factor]
    bottom, top = (low / factor if high / 2 < low < high else 0.0), high / factor
    for step in _steps(top, unit):
        first, last = math.floor(bottom / step), math.ceil(top / step)
        if last - first <= MOST:
            return [number * step * factor for number in range(first, last + 1)]
    raise ValueError(f"{high} {unit} has no axis")


def _steps(top: float, unit: str) -> Iterator[float]:
    """Round steps, the smallest first. What is counted has no part of one."""
    power = math.floor(math.log10(top)) - 2
    least = 1.0 if unit == "short" and top >= 1 else 0.0
    powers = (part * 10.0**exponent for exponent in itertools.count(power) for part in (1, 2, 5))
    if unit in {"s", "ms"} and top > 1:
        yield from SECONDS
    yield from (step for step in powers if step >= least)

"""Kubernetes quantities, and how a pod's memory is shared between Spark's heap and all else. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

FORM = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?$"
"""Kubernetes' own pattern (API reference, Quantity), without a minus sign, and with an exponent that can be computed."""
LONGEST = 64  # characters
MOST = 2**63 - 1  # as in Kubernetes
PARTS = re.compile(r"\+?([0-9.]+)(.*)")
POWERS = {suffix: Decimal(10) ** power for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)}
POWERS |= {f"{prefix}i": Decimal(2) ** (10 * power) for power, prefix in enumerate("KMGTPE", 1)}
MEBI = 2**20
PYTHON_SHARE = 0.4  # of the pod, for Python workers and Arrow; Spark's default for non-JVM jobs


@dataclass(frozen=True, slots=True)
class Least:
    """What the parts of a pod cannot do without, MiB."""

    who: str
    heap: int
    overhead: int


# Spark refuses to start with a heap of less than 450 MiB, one and a half times what it reserves, and adds 384 for all else.
EXECUTOR = Least("an executor", heap=450, overhead=384)
# Of a driver Spark asks the JVM, which leaves out a survivor space. Beside the heap are the supervisor, PySpark and a worker that plans.
DRIVER = Least("a driver", heap=512, overhead=512)


def shares(memory: str | int, least: Least) -> tuple[int, int]:
    """How a pod's memory is shared between Spark's heap and all else, MiB.

    Raises:
        ValueError: Spark would not start with so little, or `memory` is not a quantity.
    """
    total = quantity(memory) // MEBI
    overhead = max(least.overhead, int(total * PYTHON_SHARE))
    if total - overhead < least.heap:
        raise ValueError(f"memory: {memory} is too little for {least.who}; Spark needs at least {least.heap + least.overhead}Mi")
    return total - overhead, overhead


def quantity(text: object) -> int:
    """Whole units of a Kubernetes quantity such as 2Gi, 1500M, 500m or 2147483648.

    Raises:
        ValueError: `text` is not a quantity, is negative, or is greater than 2^63 - 1.
    """
    return int(amount(text))


def amount(text: object) -> Decimal:
    """The same with its fraction.

    Raises:
        ValueError: as `quantity`.
    """
    written = str(text) if isinstance(text, str | int) and not isinstance(text, bool) else ""
    if len(written) > LONGEST or not re.fullmatch(FORM, written):
        raise ValueError(f"{repr(text)[:LONGEST]} is not a valid quantity; write for example 500m or 2Gi")
    number = _amount(written)
    if number > MOST:
        raise ValueError(f"{written!r} is more than 2^63 - 1, the most that Kubernetes counts")
    return number


def _amount(written: str) -> Decimal:
    digits, suffix = PARTS.fullmatch(written).groups()  # type: ignore[union-attr]  # it has the form
    if suffix in POWERS:
        return Decimal(digits) * POWERS[suffix]
    return Decimal(f"{digits}{suffix}")  # an exponent, or nothing

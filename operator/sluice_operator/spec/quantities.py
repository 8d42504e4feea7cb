"""Kubernetes quantities, and how a pod's memory is shared between Spark's heap and all else. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kubernetes.utils.quantity import parse_quantity

FORM = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?")  # API reference, Quantity; without a sign
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
        ValueError: Spark would not start with so little, or `memory` is no quantity.
    """
    total = quantity(memory) // MEBI
    overhead = max(least.overhead, int(total * PYTHON_SHARE))
    if total - overhead < least.heap:
        raise ValueError(f"memory: {memory} is too little for {least.who}; Spark needs at least {least.heap + least.overhead}Mi")
    return total - overhead, overhead


def quantity(text: str | int) -> int:
    """Whole units of a Kubernetes quantity such as 2Gi, 1500M, 500m or 2147483648.

    Raises:
        ValueError: it is none, or it is negative.
    """
    if not FORM.fullmatch(str(text)):
        raise ValueError(f"{text!r} is no quantity such as 500m or 2Gi, from 0 on")
    return int(parse_quantity(str(text)))

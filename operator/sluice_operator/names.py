"""Names on the wire that more than one room writes or reads. Pure."""

from __future__ import annotations

GROUP = "sluice.dev"
FINALIZER = f"{GROUP}/operator"


def camel(name: str) -> str:
    """`last_good_spec` → `lastGoodSpec`: names on the wire are camelCase."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def counted(number: int, thing: str) -> str:
    """`1 executor`, `3 executors`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"

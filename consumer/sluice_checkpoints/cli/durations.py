"""Times and durations, for people. `now` is an argument."""

from __future__ import annotations

from datetime import UTC, datetime

UNITS = (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1))


def lasting(millis: int) -> str:
    """`13s`, `2m13s`, `3h05m`, `2d04h`: two units at most."""
    seconds = millis // 1000
    for unit, size, below, part in UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit}{seconds % size // part:02}{below}"
    return f"{seconds}s"


def ago(millis: int, now: datetime) -> str:
    """`2m13s ago`; a clock that is behind the writer's gives `0s ago`."""
    return f"{lasting(max(0, round(now.timestamp() * 1000) - millis))} ago"


def moment(millis: int) -> str:
    """`2026-11-21 10:00:19Z`."""
    return f"{datetime.fromtimestamp(millis / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"


def parsed(text: str | None) -> int | None:
    """An ISO 8601 time in epoch milliseconds; None: it is none, or has no time zone."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return None if found.tzinfo is None else round(found.timestamp() * 1000)

"""What a driver knows of a batch that did not end, as the row `isolation` keeps it (docs/protocol.md, "Poison"). Pure.

Downtime does not count: a time is kept as the seconds since then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from sluice_consumer.batches.isolation import Evidence, Search


def stored(search: Search, now: float) -> dict[str, Any]:
    """What outlives the driver. What is suspected is only kept while a record of another shard is tried; else it is what the batch holds.

    Args:
        search: as it is.
        now: monotonic seconds, on the clock of its failures.
    """
    known: dict[str, Any] = asdict(search.evidence)
    seconds = now - known.pop("since")
    known["seconds"] = int(seconds) if search.evidence.alone else 0
    control = {"control": search.control, "suspects": dict(search.suspects)} if search.control is not None else {}
    return {"evidence": known, "controls": search.controls, **control}


def restored(beginning: Search, known: Mapping[str, Any], now: float) -> Search:
    """The search of the driver before.

    Args:
        beginning: a search with nothing known, for its limits.
        known: what `stored` made.
        now: monotonic seconds of this driver.
    """
    evidence = dict(known["evidence"])
    since = now - evidence.pop("seconds")
    return replace(
        beginning,
        evidence=Evidence(**evidence, since=since),
        controls=known["controls"],
        control=known.get("control"),
        suspects=dict(known.get("suspects", {})),
    )

"""What a driver knows of a batch that did not end, as the row `isolation` keeps it (docs/protocol.md, "Poison"). Pure.

Downtime does not count: a time is kept as the seconds since then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sluice_consumer.poison.search import Evidence, Search


def stored(search: Search, now: float) -> dict[str, Any]:
    """What outlives the driver. What is suspected is only kept while a record of another shard is tried; else it is what the batch holds.

    Args:
        search: as it is.
        now: monotonic seconds, on the clock of its failures.
    """
    evidence = search.evidence
    known: dict[str, Any] = {
        "error": evidence.error,
        "failures": evidence.failures,
        "alone": evidence.alone,
        "seconds": int(now - evidence.since) if evidence.alone else 0,
        "refused": evidence.refused,
    }
    control: dict[str, Any] = {}
    if search.control is not None:
        control = {"control": search.control, "suspects": dict(search.suspects)}
    return {
        "evidence": known,
        "kind": evidence.kind,
        "witnesses": sorted(evidence.witnesses),
        "controls": search.controls,
        "tally": dict(search.counts),
        "known": sorted(search.known),
        "lasts": int(search.waited(now)),
        **control,
    }


def restored(beginning: Search, known: Mapping[str, Any], now: float) -> Search:
    """The search of the driver before.

    Args:
        beginning: a search with nothing known, for its limits.
        known: what `stored` made.
        now: monotonic seconds of this driver.
    """
    told = known["evidence"]
    evidence = Evidence(
        error=told["error"],
        failures=told["failures"],
        alone=told["alone"],
        since=now - told["seconds"],
        witnesses=frozenset(known["witnesses"]),
        refused=told["refused"],
        kind=known["kind"],
    )
    return replace(
        beginning,
        evidence=evidence,
        controls=known["controls"],
        control=known.get("control"),
        counts=dict(known["tally"]),
        known=frozenset(known["known"]),
        suspects=dict(known.get("suspects", {})),
        failing=now - known["lasts"] if known["lasts"] else None,
    )

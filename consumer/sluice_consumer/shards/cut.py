"""Where a shard is cut in a run that ends at a timestamp (docs/protocol.md, "Where a run ends"). Pure."""

from __future__ import annotations

from sluice_consumer.kinesis.client import RecordColumns


def before(records: RecordColumns, until_millis: int | None) -> int:
    """How many of the records of a reply are in front of the first one that arrived at `until_millis` (epoch milliseconds) or later."""
    if until_millis is None:
        return len(records)
    return next((i for i, arrival in enumerate(records.arrival_millis) if arrival >= until_millis), len(records))

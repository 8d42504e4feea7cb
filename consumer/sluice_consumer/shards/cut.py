"""Where a shard is cut in a run that ends at a timestamp (docs/protocol.md, "Where a run ends"). Pure."""

from __future__ import annotations

from dataclasses import replace

from sluice_consumer.kinesis.client import RecordColumns
from sluice_consumer.shards.ranges import Fetched

SETTLED_MILLIS = 120_000  # by the service's clock after an arrival: a record that is not readable by then does not come any more


def before(records: RecordColumns, until_millis: int | None) -> int:
    """How many of the records of a reply are in front of the first one that arrived at `until_millis` (epoch milliseconds) or later."""
    if until_millis is None:
        return len(records)
    return next((i for i, arrival in enumerate(records.arrival_millis) if arrival >= until_millis), len(records))


def within(fetched: Fetched, until_millis: int | None) -> Fetched:
    """The range, with a `read_to` before `until_millis` unless nothing earlier can come any more: it was cut, or the tip is settled."""
    if until_millis is None or fetched.cut or _is_settled(fetched, until_millis):
        return fetched
    return replace(fetched, read_to=min(fetched.read_to, until_millis - 1))


def _is_settled(fetched: Fetched, until_millis: int) -> bool:
    """Whether the range came to the tip, a while after `until_millis`. It has to be empty: after records a closed shard has yet to say its end."""
    return not (fetched.records or fetched.behind) and fetched.read_to >= until_millis + SETTLED_MILLIS

"""On the path of a catch-up run only: the canned server has no limits, so the consumer keeps to none. What is measured is the work, not the wait."""

from __future__ import annotations

from sluice_consumer.kinesis import pacing

pacing.CALLS_PER_SECOND = pacing.BYTES_PER_SECOND = 1e12

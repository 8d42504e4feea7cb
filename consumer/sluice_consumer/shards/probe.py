"""Looks whether a shard is idle, without reading it: one small call, no batch, no write."""

from __future__ import annotations

from sluice_checkpoints.position import Position
from sluice_consumer.kinesis.client import IteratorExpired, KinesisClient, Page, ShardNotFound

FOLLOWED = 5  # empty replies far from the tip (sparse shards) that one look follows; the shard's calls of one second


class Probe:
    """Keeps an iterator behind one position of a shard between looks.

    Attributes:
        calls: GetRecords that succeeded so far; throttled: those that the service refused, as the shard had given all its calls of the second.
    """

    def __init__(self, client: KinesisClient, shard_id: str, position: Position) -> None:
        self._client, self._shard_id, self._position = client, shard_id, position
        self._iterator: str | None = None
        self.calls = self.throttled = 0

    def idle(self) -> bool:
        """Whether a look came to the tip, and found neither a record nor the shard's end (or that it vanished: the next batch says what happened).

        What was found is found again by the next look, until the position has moved. A look that did not come to the tip is gone on with by the next.

        Raises:
            Refused, ServiceUnavailable: see `KinesisClient`.
        """
        for _ in range(FOLLOWED):
            try:
                page = self._page()
            except IteratorExpired:
                self._iterator = None
                continue
            except ShardNotFound:
                return False
            found = len(page.records) > 0 or page.next_iterator is None
            self._iterator = None if found else page.next_iterator
            if found or page.behind_millis == 0:
                return not found
        return False

    def _page(self) -> Page:
        iterator = self._iterator or self._client.get_iterator(self._shard_id, self._position)
        page = self._client.get_records(self._shard_id, iterator, 1)
        self.calls, self.throttled = self.calls + 1, self.throttled + page.throttled
        return page

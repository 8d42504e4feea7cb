"""Asks whether an idle shard has new records, without reading them: one small call, no batch, no write."""

from __future__ import annotations

from sluice_checkpoints.position import Position
from sluice_consumer.kinesis.client import IteratorExpired, KinesisClient, ShardNotFound

FOLLOWED = 5  # empty replies far from the tip (sparse shards) that one question follows; the shard's calls of one second


class Probe:
    """Keeps an iterator at one position of a shard between calls. To be asked at most once a second."""

    def __init__(self, client: KinesisClient, shard_id: str, position: Position) -> None:
        self._client, self._shard_id, self._position = client, shard_id, position
        self._iterator: str | None = None

    def ask(self) -> bool:
        """Whether there is a record after the position, or the shard has ended (or vanished: the next batch will say what happened).

        Raises:
            Refused, ServiceUnavailable: see `KinesisClient`.
        """
        try:
            for _ in range(FOLLOWED):
                if self._iterator is None:
                    self._iterator = self._client.get_iterator(self._shard_id, self._position)
                page = self._client.get_records(self._shard_id, self._iterator, 1)
                self._iterator = page.next_iterator
                news = len(page.records) > 0 or page.next_iterator is None
                if news or page.behind_millis == 0:
                    return news
        except IteratorExpired:
            self._iterator = None
        except ShardNotFound:
            return True
        return False

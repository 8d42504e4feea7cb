"""Looking whether an idle shard has news, without reading it: one small call, no batch, no write."""

from __future__ import annotations

from sluice_checkpoints.model import Position
from sluice_consumer.kinesis import IteratorExpired, KinesisClient, ShardNotFound


class Probe:
    """Keeps an iterator at one position of a shard between calls."""

    def __init__(self, client: KinesisClient, shard_id: str, position: Position) -> None:
        self._client, self._shard_id, self._position = client, shard_id, position
        self._iterator: str | None = None

    def ask(self) -> bool:
        """Whether there is a record after the position, or the shard has ended (or vanished: the next batch will say what happened)."""
        try:
            if self._iterator is None:
                self._iterator = self._client.get_iterator(self._shard_id, self._position)
            page = self._client.get_records(self._shard_id, self._iterator, 1)
        except IteratorExpired:
            self._iterator = None
            return False
        except ShardNotFound:
            return True
        self._iterator = page.next_iterator
        return len(page.records) > 0 or page.next_iterator is None

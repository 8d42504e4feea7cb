"""Reads one shard reply after reply, and gets a new iterator when one is lost."""

from __future__ import annotations

from dataclasses import dataclass, field

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import Position
from sluice_consumer.kinesis.client import IteratorExpired, KinesisClient, Page, ShardNotFound
from sluice_consumer.shards.collect import RangeBuffer

RENEWALS = 3  # of an iterator that is expired at once again: then it is not its age


@dataclass(slots=True)
class ShardPages:
    """Reads one shard page after page; gets a new iterator whenever there is none.

    Attributes:
        iterator: the next; at the beginning a hint, if any. One that the service refuses is discarded: only its errors about
            a fresh iterator count.
        asked: how many records the last reply might have held.
        astray: the hint was not taken.
        begin: where the first iterator is got, if that is not where the buffer begins, which leaves out what it has no use for.
    """

    client: KinesisClient
    shard_id: str
    buffer: RangeBuffer
    iterator: str | None = None
    asked: int = 0
    begin: Position | None = None
    astray: bool = field(init=False, default=False)
    _hinted: bool = field(init=False)

    def __post_init__(self) -> None:
        self._hinted = self.iterator is not None

    def page(self, limit: int) -> Page:
        """The next reply. An iterator that expired is renewed from the last position.

        Raises:
            IteratorExpired: every new one is said to be expired, too.
            ShardNotFound, Refused, ServiceUnavailable: see `KinesisClient`.
        """
        for _ in range(RENEWALS):
            try:
                return self._next(limit)
            except (IteratorExpired, ShardNotFound, Refused) as error:
                if not (self._hinted or isinstance(error, IteratorExpired)):
                    raise
            self.iterator, self._hinted, self.astray = None, False, self.astray or self._hinted
        return self._next(limit)

    def _next(self, limit: int) -> Page:
        if self.iterator is None:
            position = self.buffer.position if self.buffer.taken else self.begin or self.buffer.position
            self.iterator = self.client.get_iterator(self.shard_id, position)
        page = self.client.get_records(self.shard_id, self.iterator, limit)
        self.iterator, self.asked, self._hinted = page.next_iterator, limit, False
        return page

    def at_tip(self, page: Page) -> bool:
        """Whether the last reply reached the tip.

        If it holds all that was asked for, the limit may have cut between two records of one millisecond, and MillisBehindLatest does not show it
        (kinesis-local's is 0 then).
        """
        return page.behind_millis == 0 and len(page.records) < self.asked

"""Ranges of a shard: a new one from a position on, or exactly one that was bound (docs/protocol.md, "A batch"; "Shards come and go"; "Retention").

Ranges end on whole Kinesis records. A range is held in memory until it is bound: `Limits.max_bytes` and one reply more bound that memory.
"""

from __future__ import annotations

import math
from dataclasses import replace

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_checkpoints.names import counted
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import ShardList, StreamCatalog, StreamIdentity
from sluice_consumer.kinesis.client import MAX_RECORDS_PER_CALL, KinesisClient, Page, RecordColumns, ShardNotFound
from sluice_consumer.shards import ranges
from sluice_consumer.shards.collect import RangeBuffer, RecordColumnSet
from sluice_consumer.shards.pages import ShardPages
from sluice_consumer.shards.ranges import BoundRange, Fetched, FetchRequest, Limits

TIMESTAMP_SLACK_MILLIS = 120_000  # an idle shard's TIMESTAMP follows the service's clock at this distance
UNLIMITED = 2**62
FOLLOWED = 25  # empty replies far from the tip (sparse shards) that one range follows: five seconds of a shard's calls
SIZE_MARGIN = 1.1  # asked for above what the mean size says, so that one call mostly fills a range
ADVICE = "; to continue with these, set acceptLossOfBatch to the number of the open batch, once you know that your sink can do without the former"


class EndUnknown(SluiceError):
    """The service says that a shard has ended, and neither its reply nor ListShards names what follows: an error, not an end."""


class ReplayShort(SluiceError):
    """The stream no longer gives exactly a range that was bound: nothing skips that silently.

    Attributes:
        left: what it gives.
        met: the range was read to its end, so that `left` is all there is.
    """

    def __init__(self, message: str, left: Fetched | None = None, *, met: bool = False) -> None:
        super().__init__(message)
        self.left, self.met = left, met


class ShardReader:
    """Reads the shards of one stream. Thread safe, as its ports are."""

    def __init__(self, client: KinesisClient, catalog: StreamCatalog, identity: StreamIdentity) -> None:
        self._client, self._catalog, self._identity = client, catalog, identity
        self._mean_sizes: dict[str, float] = {}
        self._whole: set[str] = set()  # shards that were found to hold all that the shorter retention might have taken

    def fetch(self, place: FetchRequest, limits: Limits) -> Fetched:
        """A new range: to a limit, to the tip, or to the end of the shard.

        Without any record it continues to the tip or the end, or for some seconds.

        Raises:
            EndUnknown: the shard ended and its children are unknown.
            ShardNotFound: the service does not know a shard that it lists.
            Refused: the stream was deleted and made again, or a call was refused.
            ServiceUnavailable: a call had no success within its deadline.
        """
        buffer = RangeBuffer(place.position)
        try:
            fetched = self._fetch(ShardPages(self._client, place.shard_id, buffer, place.iterator, begin=_at(place.checkpoint)), place, limits)
        except ShardNotFound:
            fetched = self._vanished(buffer, place)
        nameless = place.position.sequence is None or fetched.note  # a sequence number is refused by any stream but its own
        if nameless and (fetched.records or fetched.end == END or fetched.cut):
            self._same_stream()
        if buffer.taken:
            self._mean_sizes[place.shard_id] = buffer.delivered / buffer.taken
        return replace(fetched, read_to=self._read_to(fetched, place))

    def _read_to(self, fetched: Fetched, place: FetchRequest) -> int:
        """What the row says of the range (docs/protocol.md, "Ages")."""
        if fetched.end == END:
            return fetched.read_to or self._open_at(place)
        if fetched.behind and fetched.iterator is None:
            return fetched.read_to  # it ends in front of a record, and whatever the tip was before, this one is not read
        known = max(fetched.read_to, place.read_to)
        return max(known, place.earliest_arrival_millis) if fetched.end == place.position else known  # on its way, it is as old as before

    def _open_at(self, place: FetchRequest) -> int:
        """When a shard was open whose end came without a record. Read to the tip with its last records, it may have been closed long before that."""
        if place.was_open or place.position.sequence is None:
            return max(place.read_to, place.earliest_arrival_millis)
        arrival = self._arrival(place.shard_id, place.position.sequence)
        return min(place.read_to or arrival, arrival)  # 0: another consumer came to this record, and nobody has read after it

    def _arrival(self, shard_id: str, sequence: str) -> int:
        """When a record arrived; of one that has expired the latest time at which it can have."""
        pages = ShardPages(self._client, shard_id, RangeBuffer(TRIM_HORIZON), begin=_at(sequence))
        try:
            page = _first(pages, FOLLOWED)
        except ShardNotFound:
            return max(1, self._listed().date_millis - self._identity.retention_millis)
        if len(page.records) and page.records.number(0) == sequence:
            return int(page.records.arrival_millis[0])
        return max(1, page.server_millis - self._identity.retention_millis)

    def _fetch(self, pages: ShardPages, place: FetchRequest, limits: Limits) -> Fetched:
        page = pages.page(self._limit(pages, limits))
        loss = self._overtaken(place, page)
        if loss and not len(page.records) and place.position.millis is None:  # Kinesis takes a time that is too old for the oldest record's
            pages.iterator = self._client.get_iterator(place.shard_id, TRIM_HORIZON)
            page = pages.page(self._limit(pages, limits))
        tips, empty, unmet = list[int](), 0, place.checkpoint
        while True:
            if unmet and (len(page.records) or page.next_iterator is None):
                loss, unmet = self._gone(place, page, unmet), None
            fetched = self._completed(pages, page, limits)
            if pages.at_tip(page) and not len(page.records):
                tips.append(page.server_millis)
            if fetched is not None and (fetched.records or fetched.end == END or fetched.cut):
                return replace(fetched, note=loss)
            if fetched is not None and len(tips) > 1:  # it may have been closed between the two
                return replace(fetched, note=loss, read_to=min(fetched.read_to, tips[-2]))
            empty += 1
            if empty >= FOLLOWED and page.behind_millis and not (pages.astray or unmet or loss or len(pages.buffer.columns)):
                return self._on_the_way(pages, page)
            page = pages.page(self._limit(pages, limits))

    def _completed(self, pages: ShardPages, page: Page, limits: Limits) -> Fetched | None:
        """The range, if this reply is its last; None to continue.

        An empty one is believed to be at the tip only when two replies say so. A closed shard may answer "nothing, at the tip" once before it answers
        that it has ended (kinesalite does). The next range would then begin with the same answer again.
        """
        buffer, wanted = pages.buffer, ranges.before(page.records, limits.until_millis)
        if not buffer.take(page.records.between(0, wanted), limits.max_records, limits.max_bytes):
            return self._cut(pages, page)
        if limits.until_millis is not None and wanted < len(page.records):
            arrival = int(page.records.arrival_millis[wanted])  # all in front of this record was read
            behind = max(page.behind_millis, page.server_millis - arrival, 1)  # never 0: a record follows
            return replace(self._range(pages, buffer.position, behind, arrival), cut=True)
        if page.next_iterator is None:
            return self._ended(pages, page)
        full = len(buffer.columns) >= limits.max_records or buffer.delivered >= limits.max_bytes
        return self._to_tip(pages, page) if pages.at_tip(page) or (full and len(buffer.columns)) else None

    def _on_the_way(self, pages: ShardPages, page: Page) -> Fetched:
        """Nothing yet, far from the tip: an empty range, so that the other shards of the batch need not wait.

        The next range continues with the iterator. If that has expired by then, the reading is `astray` and has no bound: it might never come
        further.
        """
        read_to = page.server_millis - page.behind_millis
        return replace(self._range(pages, pages.buffer.position, page.behind_millis, read_to), iterator=page.next_iterator)

    def _limit(self, pages: ShardPages, limits: Limits) -> int:
        """Kinesis records to ask for: what is thrown away because it does not fit still counts against the shard's 2 MiB a second."""
        buffer = pages.buffer
        records = limits.max_records - len(buffer.columns)
        mean = buffer.delivered / buffer.taken if buffer.taken else self._mean_sizes.get(pages.shard_id, 0)
        if mean:
            records = min(records, int((limits.max_bytes - buffer.delivered) / mean * SIZE_MARGIN) + 1)
        return max(1, min(MAX_RECORDS_PER_CALL, records))

    def _cut(self, pages: ShardPages, page: Page) -> Fetched:
        """A limit fell inside a reply: the range was read up to the arrival of its last record."""
        read_to = pages.buffer.last_arrival_millis
        behind = max(page.behind_millis, page.server_millis - read_to, 1)
        return self._range(pages, pages.buffer.position, behind, read_to)

    def _to_tip(self, pages: ShardPages, page: Page) -> Fetched:
        """All of a reply was taken, and it reaches the tip or fills the range."""
        end = pages.buffer.position
        if end.millis is not None:
            end = Position.timestamp(max(end.millis, page.server_millis - TIMESTAMP_SLACK_MILLIS))
        read_to = page.server_millis - page.behind_millis
        if not pages.at_tip(page) and len(pages.buffer.columns):  # emulators count MillisBehindLatest from the newest record, not from now
            read_to = min(read_to, pages.buffer.last_arrival_millis)
        fetched = self._range(pages, end, page.behind_millis, read_to)
        return replace(fetched, iterator=page.next_iterator) if end.sequence is not None else fetched

    def _ended(self, pages: ShardPages, page: Page) -> Fetched:
        children = page.children or self._listed().children_of(pages.shard_id)
        if not children:
            raise EndUnknown(f"{pages.shard_id} has no next iterator, but neither its reply nor ListShards names a child; it is asked again")
        # `read_to` is the last arrival: the service does not say when the shard was closed, and its children begin then.
        return replace(self._range(pages, END, 0, pages.buffer.last_arrival_millis), children=children)

    def _range(self, pages: ShardPages, end: Position, behind: int, read_to: int) -> Fetched:
        taken = pages.buffer
        return Fetched(pages.shard_id, taken.start, end, taken.columns, taken.first, taken.size, behind, read_to)

    def _vanished(self, buffer: RangeBuffer, place: FetchRequest) -> Fetched:
        """ResourceNotFound: only with a complete list of the same stream that no longer has the shard is it an end, and a loss.

        What was read before it vanished is a range of its own; the next one finds out more.
        """
        if len(buffer.columns):
            columns = buffer.columns
            return Fetched(place.shard_id, place.position, buffer.position, columns, buffer.first, buffer.size, 0, buffer.last_arrival_millis)
        listed = self._listed()
        if listed.get(place.shard_id) is not None:
            raise ShardNotFound(f"{place.shard_id} is in the list of shards, but Kinesis does not find it at {place.position}")
        children = listed.children_of(place.shard_id)
        return Fetched(place.shard_id, place.position, END, RecordColumnSet(), children=children, note=ranges.vanished(place))

    def _listed(self) -> ShardList:
        """All shards, of the very stream that the table is of: ids of shards repeat in one that was made again.

        Raises:
            Refused: it is another stream.
        """
        listed = self._catalog.list_shards()
        self._same_stream()
        return listed

    def _same_stream(self) -> None:
        """Asks who the stream is, after something was read: if it is still the same, that was read of it.

        Raises:
            Refused: it is another stream.
        """
        identity = self._catalog.describe()
        if identity.created_millis != self._identity.created_millis:
            raise Refused(f"stream {identity.name} was deleted and created again: the positions in this table are of another stream")

    def _overtaken(self, place: FetchRequest, page: Page) -> str | None:
        loss = ranges.overtaken(place, self._identity, page.server_millis)
        if loss is None and (earlier := ranges.overtaken_before(place, self._identity, page.server_millis)):
            return None if self._is_whole(place) else earlier
        return loss

    def _is_whole(self, place: FetchRequest) -> bool:
        """See `_holds`. Where it does, nothing can be missing later either, so a shard that is far behind is not asked with every range."""
        if place.shard_id not in self._whole and self._holds(place):
            self._whole.add(place.shard_id)
        return place.shard_id in self._whole

    def _holds(self, place: FetchRequest) -> bool:
        """Whether there still is a record at a position or before it. The oldest expire first: with that, all that followed is there."""
        position = place.position
        if position.sequence is None and position.millis is None:
            return any(map(self._has_record, sorted(place.parents)))
        oldest = self._oldest(place.shard_id).records
        if position.sequence is not None:
            return bool(_up_to(oldest, position.sequence))
        return any(arrival <= (position.millis or 0) for arrival in oldest.arrival_millis)

    def _has_record(self, shard_id: str) -> bool:
        """Whether a shard still has a record; one that has left the stream has none."""
        try:
            return len(self._oldest(shard_id).records) > 0
        except ShardNotFound:
            return False

    def _gone(self, place: FetchRequest, page: Page, came_to: str) -> str | None:
        """What to say if a shard holds nothing that its former consumer had read. The oldest expire first: with that, all that followed is there.

        Its position is mostly a record's, which this first reply begins with. Where it is not (KCL takes any number), the oldest record is asked for.
        """
        if _up_to(page.records.between(0, 1), came_to):
            return None
        if _up_to(self._oldest(place.shard_id).records, came_to):
            return None
        return ranges.gone(place)

    def _oldest(self, shard_id: str) -> Page:
        """A reply with the oldest record of a shard, or without any if it has none."""
        return _first(ShardPages(self._client, shard_id, RangeBuffer(TRIM_HORIZON)))

    def replay(self, bound: BoundRange) -> Fetched:
        """Exactly the user records in (start, end].

        Raises:
            ReplayShort: the stream does not give `records` of them from `first` on, or does not meet `end`.
            Refused, ServiceUnavailable: see `KinesisClient`.
        """
        buffer = RangeBuffer(bound.start, bound.end)
        if bound.first is not None:
            try:
                met = self._replay(ShardPages(self._client, bound.shard_id, buffer, begin=_at(bound.first)), bound)
            except ShardNotFound as gone:
                raise ReplayShort(f"{bound.shard_id} is gone, with {counted(bound.records, 'record')} from {bound.first} to {bound.end}") from gone
            self._check(buffer, bound, met=met)
        return Fetched(bound.shard_id, bound.start, bound.end, buffer.columns, buffer.first, buffer.size)

    def _replay(self, pages: ShardPages, bound: BoundRange) -> bool:
        """Reads the range; whether its end was met."""
        while True:
            left = bound.records - len(pages.buffer.columns)
            page = pages.page(min(left, MAX_RECORDS_PER_CALL) if left > 0 else 1)
            last = bound.end.sequence
            wanted = len(page.records) if last is None else _up_to(page.records, last)
            beyond = wanted < len(page.records)
            pages.buffer.take(page.records.between(0, wanted), UNLIMITED, UNLIMITED)
            met = bool(pages.buffer.taken) and pages.buffer.position.sequence == last  # `start` may have that number, too
            if last is not None and (beyond or met):
                return met
            if page.next_iterator is None:
                return bound.end == END
            if last is not None and page.behind_millis == 0 and not len(page.records):
                return False

    def _check(self, buffer: RangeBuffer, bound: BoundRange, *, met: bool) -> None:
        columns = buffer.columns
        if met and len(columns) == bound.records and buffer.first == bound.first:
            return
        raise ReplayShort(
            f"{bound.shard_id}: the range from {bound.first} to {bound.end} had {counted(bound.records, 'record')}, and now has {len(columns)}, "
            f"from {buffer.first}{ADVICE if met else ', and its end is not met'}",
            Fetched(bound.shard_id, bound.start, bound.end, columns, buffer.first, buffer.size),
            met=met,
        )


def _at(sequence: str | None) -> Position | None:
    """Begins with this record itself."""
    return Position("AFTER", sequence=sequence, sub=-1) if sequence else None


def _first(pages: ShardPages, follow: float = math.inf) -> Page:
    """A reply with the first record that comes, or without any: at the tip, at the end of the shard, or after so many more empty replies."""
    page = pages.page(1)
    while follow > 0 and not (len(page.records) or page.next_iterator is None or pages.at_tip(page)):
        page, follow = pages.page(1), follow - 1
    return page


def _up_to(records: RecordColumns, sequence: str) -> int:
    """How many of the records have this sequence number or a lower one."""
    keep, last = len(records), int(sequence)
    while keep and int(records.number(keep - 1)) > last:
        keep -= 1
    return keep

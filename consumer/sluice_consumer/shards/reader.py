"""Ranges of a shard: a new one from a position on, or exactly one that was bound (docs/protocol.md, "A batch"; "Shards come and go"; "Retention").

Ranges end on whole Kinesis records. A range is held in memory until it is bound: `Limits.max_bytes` and one reply more bound that memory.
"""

from __future__ import annotations

from dataclasses import replace

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import ShardList, StreamCatalog, StreamIdentity
from sluice_consumer.kinesis.client import MAX_RECORDS_PER_CALL, KinesisClient, Page, RecordColumns, ShardNotFound
from sluice_consumer.shards import losses
from sluice_consumer.shards.collect import RangeBuffer, RecordColumnSet
from sluice_consumer.shards.pages import ShardPages
from sluice_consumer.shards.ranges import BoundRange, Fetched, FetchRequest, Limits

TIMESTAMP_SLACK_MILLIS = 120_000  # an idle shard's TIMESTAMP follows the service's clock at this distance
UNLIMITED = 2**62
FOLLOWED = 25  # empty replies far from the tip (sparse shards) that one range follows: five seconds of a shard's calls
SIZE_MARGIN = 1.1  # asked for above what the mean size says, so that one call mostly fills a range
ADVICE = "; to go on with these, set acceptLossOfBatch to the number of the open batch, once you know that your sink can do without the former"


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

    def fetch(self, place: FetchRequest, limits: Limits) -> Fetched:
        """A new range: to a limit, to the tip, or to the end of the shard. Without any record it goes on to the tip or the end, or for some seconds.

        Raises:
            EndUnknown: the shard ended and its children are unknown.
            ShardNotFound: the service does not know a shard that it lists.
            Refused: the stream was deleted and made again, or a call was refused.
            ServiceUnavailable: a call had no success within its deadline.
        """
        gathering = RangeBuffer(place.position)
        try:
            fetched = self._fetch(ShardPages(self._client, place.shard_id, gathering, place.iterator, begin=_at(place.checkpoint)), place, limits)
        except ShardNotFound:
            fetched = self._vanished(gathering, place)
        nameless = place.position.sequence is None or fetched.possible_loss  # a sequence number is refused by any stream but its own
        if nameless and (fetched.records or fetched.end == END):
            self._same_stream()
        if gathering.taken:
            self._mean_sizes[place.shard_id] = gathering.size / gathering.taken
        return replace(fetched, read_to_millis=max(fetched.read_to_millis, place.read_to_millis))

    def _fetch(self, walk: ShardPages, place: FetchRequest, limits: Limits) -> Fetched:
        page = walk.page(self._limit(walk, limits))
        loss = self._overtaken(place, page)
        if loss and not len(page.records) and place.position.millis is None:  # a time that is too old is the oldest record's by itself
            walk.iterator = self._client.get_iterator(place.shard_id, TRIM_HORIZON)
            page = walk.page(self._limit(walk, limits))
        tips, empty, unmet = 0, 0, place.checkpoint
        while True:
            if unmet and (len(page.records) or page.next_iterator is None):
                loss, unmet = self._gone(place, page, unmet), None
            fetched = self._settled(walk, page, limits)
            tips += walk.at_tip(page) and not len(page.records)
            if fetched is not None and (fetched.records or fetched.end == END or tips > 1):
                return replace(fetched, possible_loss=loss)
            empty += 1
            if empty >= FOLLOWED and page.behind_millis and not (walk.astray or unmet or loss or len(walk.gathering.columns)):
                return self._on_the_way(walk, page)
            page = walk.page(self._limit(walk, limits))

    def _settled(self, walk: ShardPages, page: Page, limits: Limits) -> Fetched | None:
        """The range, if this reply is its last; None to go on.

        An empty one is believed to be at the tip only when two replies say so: a closed shard may answer "nothing, at the tip" once before it
        answers that it has ended (kinesalite does), and the next range would begin with the same answer again.
        """
        gathering = walk.gathering
        if not gathering.take(page.records, limits.max_records, limits.max_bytes):
            return self._cut(walk, page)
        if page.next_iterator is None:
            return self._ended(walk, page)
        full = len(gathering.columns) >= limits.max_records or gathering.size >= limits.max_bytes
        return self._to_tip(walk, page) if walk.at_tip(page) or (full and len(gathering.columns)) else None

    def _on_the_way(self, walk: ShardPages, page: Page) -> Fetched:
        """Nothing yet, far from the tip: an empty range, so that the other shards of the batch need not wait.

        The next range goes on with the iterator. If that has expired by then, the walk is `astray` and has no bound: it might never come further.
        """
        read_to = page.server_millis - page.behind_millis
        return replace(self._range(walk, walk.gathering.position, page.behind_millis, read_to), iterator=page.next_iterator)

    def _limit(self, walk: ShardPages, limits: Limits) -> int:
        """Kinesis records to ask for: what is thrown away because it does not fit still counts against the shard's 2 MiB a second."""
        gathering = walk.gathering
        records = limits.max_records - len(gathering.columns)
        mean = gathering.size / gathering.taken if gathering.taken else self._mean_sizes.get(walk.shard_id, 0)
        if mean:
            records = min(records, int((limits.max_bytes - gathering.size) / mean * SIZE_MARGIN) + 1)
        return max(1, min(MAX_RECORDS_PER_CALL, records))

    def _cut(self, walk: ShardPages, page: Page) -> Fetched:
        """A limit fell inside a reply: the range was read up to the arrival of its last record."""
        read_to = walk.gathering.columns.last_arrival_millis
        behind = max(page.behind_millis, page.server_millis - read_to)
        return self._range(walk, walk.gathering.position, behind, read_to)

    def _to_tip(self, walk: ShardPages, page: Page) -> Fetched:
        """All of a reply was taken, and it reaches the tip or fills the range."""
        end = walk.gathering.position
        if end.millis is not None:
            end = Position.timestamp(max(end.millis, page.server_millis - TIMESTAMP_SLACK_MILLIS))
        read_to = page.server_millis - page.behind_millis
        if not walk.at_tip(page) and len(walk.gathering.columns):  # emulators count MillisBehindLatest from the newest record, not from now
            read_to = min(read_to, walk.gathering.columns.last_arrival_millis)
        fetched = self._range(walk, end, page.behind_millis, read_to)
        return replace(fetched, iterator=page.next_iterator) if end.sequence is not None else fetched

    def _ended(self, walk: ShardPages, page: Page) -> Fetched:
        children = page.children or self._listed().children_of(walk.shard_id)
        if not children:
            raise EndUnknown(f"{walk.shard_id} has no next iterator, but neither its reply nor ListShards names a child; it is asked again")
        last = walk.gathering.columns.last_arrival_millis if len(walk.gathering.columns) else 0
        return replace(self._range(walk, END, 0, last), children=children)  # the service does not say when it was closed, and its children begin then

    def _range(self, walk: ShardPages, end: Position, behind: int, read_to: int) -> Fetched:
        taken = walk.gathering
        return Fetched(walk.shard_id, taken.start, end, taken.columns, taken.first, taken.bytes, behind, read_to)

    def _vanished(self, gathering: RangeBuffer, place: FetchRequest) -> Fetched:
        """ResourceNotFound: only with a complete list of the same stream that no longer has the shard is it an end, and a loss.

        What was read before it vanished is a range of its own; the next one finds out more.
        """
        if len(gathering.columns):
            found = gathering.columns
            return Fetched(place.shard_id, place.position, gathering.position, found, gathering.first, gathering.bytes, 0, found.last_arrival_millis)
        listed = self._listed()
        if listed.get(place.shard_id) is not None:
            raise ShardNotFound(f"{place.shard_id} is listed, but the service does not find it at {place.position}")
        children = listed.children_of(place.shard_id)
        return Fetched(place.shard_id, place.position, END, RecordColumnSet(), children=children, possible_loss=losses.vanished(place))

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
            raise Refused(f"stream {identity.name} was deleted and made again: the positions in this table are of another stream")

    def _overtaken(self, place: FetchRequest, page: Page) -> str | None:
        told = losses.overtaken(place, self._identity, page.server_millis)
        if told is None and (earlier := losses.overtaken_before(place, self._identity, page.server_millis)):
            return None if self._holds(place) else earlier
        return told

    def _holds(self, place: FetchRequest) -> bool:
        """Whether a shard still has a record at its place or before it. The oldest expire first: with that, all that followed is there."""
        oldest, position = self._oldest(place.shard_id).records, place.position
        if position.sequence is not None:
            return bool(_up_to(oldest, position.sequence))
        return position.millis is not None and any(arrival <= position.millis for arrival in oldest.arrival_millis)

    def _gone(self, place: FetchRequest, page: Page, came_to: str) -> str | None:
        """What to say if a shard holds nothing that its former consumer had read. The oldest expire first: with that, all that followed is there.

        Its place is mostly a record's, which this first reply begins with. Where it is not (KCL takes any number), the oldest record is asked for.
        """
        if _up_to(page.records.part(0, 1), came_to):
            return None
        if _up_to(self._oldest(place.shard_id).records, came_to):
            return None
        return losses.gone(place)

    def _oldest(self, shard_id: str) -> Page:
        """A reply with the oldest record of a shard, or without any if it has none."""
        walk = ShardPages(self._client, shard_id, RangeBuffer(TRIM_HORIZON))
        oldest = walk.page(1)
        while not (len(oldest.records) or oldest.next_iterator is None or walk.at_tip(oldest)):
            oldest = walk.page(1)
        return oldest

    def replay(self, bound: BoundRange) -> Fetched:
        """Exactly the user records in (start, end].

        Raises:
            ReplayShort: the stream does not give `records` of them from `first` on, or does not meet `end`.
            Refused, ServiceUnavailable: see `KinesisClient`.
        """
        gathering = RangeBuffer(bound.start, bound.end)
        if bound.first is not None:
            try:
                met = self._replay(ShardPages(self._client, bound.shard_id, gathering, begin=_at(bound.first)), bound)
            except ShardNotFound as gone:
                raise ReplayShort(f"{bound.shard_id} is gone, with {bound.records} records from {bound.first} to {bound.end}") from gone
            self._check(gathering, bound, met=met)
        return Fetched(bound.shard_id, bound.start, bound.end, gathering.columns, gathering.first, gathering.bytes)

    def _replay(self, walk: ShardPages, bound: BoundRange) -> bool:
        """Reads the range; whether its end was met."""
        while True:
            left = bound.records - len(walk.gathering.columns)
            page = walk.page(min(left, MAX_RECORDS_PER_CALL) if left > 0 else 1)
            last = bound.end.sequence
            wanted = len(page.records) if last is None else _up_to(page.records, last)
            beyond = wanted < len(page.records)
            walk.gathering.take(page.records.part(0, wanted), UNLIMITED, UNLIMITED)
            if last is not None and (beyond or walk.gathering.position.sequence == last):
                return walk.gathering.position.sequence == last
            if page.next_iterator is None:
                return bound.end == END
            if last is not None and page.behind_millis == 0 and not len(page.records):
                return False

    def _check(self, gathering: RangeBuffer, bound: BoundRange, *, met: bool) -> None:
        found = gathering.columns
        if met and len(found) == bound.records and gathering.first == bound.first:
            return
        raise ReplayShort(
            f"{bound.shard_id}: the range from {bound.first} to {bound.end} had {bound.records} records; now there are {len(found)}, "
            f"from {gathering.first}{ADVICE if met else ', and its end is not met'}",
            Fetched(bound.shard_id, bound.start, bound.end, found, gathering.first, gathering.bytes),
            met=met,
        )


def _at(sequence: str | None) -> Position | None:
    """Begins with this record itself."""
    return Position("AFTER", sequence=sequence, sub=-1) if sequence else None


def _up_to(records: RecordColumns, sequence: str) -> int:
    """How many of the records have this sequence number or a lower one."""
    keep, last = len(records), int(sequence)
    while keep and int(records.number(keep - 1)) > last:
        keep -= 1
    return keep

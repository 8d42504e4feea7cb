"""What may be missing before a range, in words for people (docs/protocol.md, "Retention"). Pure. The caller names the shard."""

from __future__ import annotations

import datetime

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.shards.ranges import FetchRequest

WHOLE_SECOND_MILLIS = 1000  # the service gives its clock in whole seconds: up to so much more may have passed
HOUR_MILLIS = 3_600_000


def overtaken(place: FetchRequest, stream: StreamIdentity, now_millis: int) -> str | None:
    """What to say if retention may have passed a position: the oldest record that may be unread there is older than records are kept.

    No record is older than its stream. An empty reply that is a whole retention behind looks the same for a shard that is merely idle, so the reply
    alone says nothing.
    """
    return _told_of(place, stream, now_millis, stream.retention_millis, "keeps records for")


def overtaken_before(place: FetchRequest, stream: StreamIdentity, now_millis: int) -> str | None:
    """What to say if the retention that the stream had before it was raised may have passed a position. The caller looks what is still there."""
    if not stream.shorter_millis:
        return None
    return _told_of(place, stream, now_millis, stream.shorter_millis, "kept records only for")


def _told_of(place: FetchRequest, stream: StreamIdentity, now_millis: int, kept_millis: int, how: str) -> str | None:
    since, what = _since(place)
    unread_since = max(since, stream.created_millis) if since else 0
    if not since or now_millis - unread_since <= kept_millis - WHOLE_SECOND_MILLIS:
        return None
    return what.format(time=iso(since), keeps=f"{how} {kept_millis / HOUR_MILLIS:g} h", place=_told(place.position))


def _since(place: FetchRequest) -> tuple[int, str]:
    """From when on records may be unread (0: unknown), and what to say of that."""
    follows = "it follows shards that were read up to {time}, and the stream {keeps}: its first records may have expired"
    if place.read_to and place.position != TRIM_HORIZON:
        return (
            place.read_to,
            "it was last read up to {time}, and the stream {keeps}: what came after {place} may have expired",
        )
    if place.position.millis:
        begins = "it was to begin at {time}, and the stream {keeps}: what came between then and the oldest record may have expired"
        return place.position.millis, begins
    return max(place.read_to, place.earliest_arrival_millis), follows


def gone(place: FetchRequest) -> str:
    """What to say of a shard that holds no record any more that its former consumer had read."""
    return f"it holds nothing any more that its former consumer had read: what came after {_told(place.position)} may have expired"


def vanished(place: FetchRequest) -> str:
    """What to say of a shard that the service does not know any more."""
    read = f"last read up to {iso(place.read_to)}" if place.read_to else "never read"
    return f"it expired before it was read to its end: unread after {_told(place.position)}, {read}"


def iso(millis: int) -> str:
    """A time of the service, in UTC."""
    exact = "milliseconds" if millis % 1000 else "seconds"
    return datetime.datetime.fromtimestamp(millis / 1000, datetime.UTC).isoformat(timespec=exact).replace("+00:00", "Z")


def _told(position: Position) -> str:
    return str(position) if position.millis is None else iso(position.millis)

"""What a Kinesis stream is to Sluice: its identity, and its shards with their parents.

Pure data and the port that delivers it. The adapter is `stream.catalog`, the in-memory fake `sluice_lab.fakes.stream`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol.rows import Child

ShardPlace = tuple[str, str]  # a shard's id, and a sequence number that is said to be one of it


class StreamNotFound(Refused):
    """There is no stream of this name in this account and region; the message names all three that are known."""


@dataclass(frozen=True, slots=True)
class StreamIdentity:
    """Which stream this is. One that was deleted and made again under its name has another `created_millis`: another stream.

    Attributes:
        created_millis: epoch milliseconds; retention_millis: how long records are kept.
        status: CREATING, ACTIVE, UPDATING or DELETING.
        shorter_millis: the retention that a consumer knew before it was raised, as long as some shard may have expired under it; 0: none.
    """

    name: str
    arn: str
    created_millis: int
    retention_millis: int
    status: str
    shorter_millis: int = 0


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard as ListShards returns it.

    Attributes:
        parents: ParentShardId, then AdjacentParentShardId; none, one (after a split) or two (after a merge). They may have expired.
        starting_hash, ending_hash: the hash keys it serves, both ends included, in [0, 2^128).
        ending_sequence: None while the shard is open.
    """

    id: str
    parents: tuple[str, ...]
    starting_hash: int
    ending_hash: int
    starting_sequence: str
    ending_sequence: str | None = None

    @property
    def closed(self) -> bool:
        """Whether nothing more can be put into it."""
        return self.ending_sequence is not None


@dataclass(frozen=True, slots=True)
class ShardList:
    """All shards of a stream, in the order of their ids.

    Attributes:
        date_millis: the service's clock (HTTP Date, whole seconds) when it sent the **last** page: every shard that was made before that is here.
    """

    shards: tuple[Shard, ...]
    date_millis: int

    def get(self, shard_id: str) -> Shard | None:
        """The shard of this id, or None."""
        return next((shard for shard in self.shards if shard.id == shard_id), None)

    def children_of(self, shard_id: str) -> tuple[Child, ...]:
        """The shards that name `shard_id` as a parent."""
        return tuple(Child(s.id, frozenset(s.parents)) for s in self.shards if shard_id in s.parents)


class StreamCatalog(Protocol):
    """One stream's identity and shards. Throttling and lost connections are retried inside, up to a deadline."""

    def describe(self) -> StreamIdentity:
        """The stream's identity (DescribeStreamSummary).

        Raises:
            StreamNotFound: no such stream.
            Refused: access denied.
            ServiceUnavailable: no answer within the deadline.
        """
        ...

    def list_shards(self) -> ShardList:
        """All shards, complete: every page was followed, and an expired page token starts the listing again.

        Raises:
            StreamNotFound, Refused, ServiceUnavailable: as for `describe`.
        """
        ...


class PositionCatalog(StreamCatalog, Protocol):
    """A catalog that also finds out which sequence numbers belong to its stream."""

    def disowned(self, places: Iterable[ShardPlace]) -> dict[ShardPlace, str]:
        """The positions whose number Kinesis does not accept for their shard, with its reason (GetShardIterator, AFTER_SEQUENCE_NUMBER).

        A number that retention has passed is accepted. A shard that expired after it was listed is left out.

        Raises:
            Refused: access denied.
            ServiceUnavailable: no answer within the deadline.
        """
        ...


class PassedRecords(Protocol):
    """Finds out which records are gone."""

    def passed(self, places: Iterable[ShardPlace]) -> frozenset[ShardPlace]:
        """Those of these records that are certainly no longer in their shards.

        Raises:
            Refused: access denied. ServiceUnavailable: no answer within the deadline.
        """
        ...


class RecentRecords(Protocol):
    """Finds out which shards hold a record since a time."""

    def since(self, shard_ids: Iterable[str], millis: int) -> frozenset[str]:
        """Those of these shards that hold a record which arrived at `millis` (epoch milliseconds) or later, or may hold one.

        Raises:
            Refused: access denied. ServiceUnavailable: no answer within the deadline.
        """
        ...

"""To which positions a file moves shards. Pure: what changed in the file is moved, if parents still come before their children."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.positions.placement import CLOCK_SLACK_MILLIS, Placed, ResetPlacement
from sluice_checkpoints.positions.scope import ShardGraph, named
from sluice_checkpoints.positions.target import ResetRequest, iso
from sluice_checkpoints.protocol.rows import ConsumerRow

AGAIN = "print the file again with `sluice show --json`, and edit that"


def edited(request: ResetRequest, consumer: ConsumerRow, shards: ShardGraph) -> dict[str, Position]:
    """The positions of a file that are others than those of the table, by shard; none without a file.

    If the open batch is given up, they are compared with those behind it: a shard that is to stay in front of it is moved back.

    Raises:
        Refused: the file is of another consumer or an earlier moment, or names shards that cannot be moved.
    """
    file = request.file
    if file is None:
        return {}
    if file.consumer != consumer.consumer_id:
        raise Refused(f"consumerId: the file is of consumer {file.consumer}, and the table of {consumer.consumer_id}")
    if (file.committed, file.last_reset) != (consumer.committed, consumer.last_reset):
        raise Refused(f"committed: positions have moved since the file was printed at batch {file.committed} (now {consumer.committed}); {AGAIN}")
    if unknown := file.positions.keys() - shards.parents.keys() - shards.found.folded.keys():
        raise Refused(f"shards: neither the table nor the stream has {named(unknown)}")
    given_up = request.give_up == consumer.committed + 1
    now = shards.positions(consumer.committed + given_up)
    found = {shard: position for shard, position in file.positions.items() if now.get(shard, END) != position}
    if gone := found.keys() - shards.shards.keys():
        raise Refused(f"shards: {named(gone)} has left the stream, so nothing of it can be read again; leave it as it was printed")
    return found


@dataclass(kw_only=True)
class FilePlacement(ResetPlacement):
    """Decides where the shards begin that a file moves.

    Attributes:
        positions: by shard, as the file has them.
        accept_expired: a time may lie before the oldest record.
    """

    positions: Mapping[str, Position]
    accept_expired: bool

    def _placed(self, shard: str) -> Placed | None:
        position = self.positions[shard]
        if position == TRIM_HORIZON:
            return self._from_beginning(shard)
        if position.sequence is not None:  # when that record arrived is not known: a reader looks whether it is still there
            return Placed(position, "what comes after this record")
        if position == END:
            return self._ended(shard)
        return self._at_time(shard, position.millis or 0)

    def _ended(self, shard: str) -> Placed | None:
        if not self._closed(shard):
            raise Refused(f"shards.{shard}.at: the shard is open, so it has no END; use TIMESTAMP")
        found = self._passed_over(shard)
        return replace(found, why="its end") if found else None

    def _at_time(self, shard: str, millis: int) -> Placed | None:
        if millis > self.shards.listed.date_millis - CLOCK_SLACK_MILLIS:
            raise Refused(f"shards.{shard}.millis: {iso(millis)} lies in the future, or is now")
        if millis < self.expired_millis:
            if not self.accept_expired:
                raise Refused(f"shards.{shard}.millis: {iso(millis)} lies before the oldest record; add --accept-expired, or name a later time")
            return self._from_beginning(shard)
        return self._at(millis) if self._holds(shard) else self._passed_over(shard)

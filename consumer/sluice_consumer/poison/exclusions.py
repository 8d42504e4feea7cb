"""Takes a poison record out of its batch: its dead letter, the limit of an hour, the write (docs/protocol.md, "Poison")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.open_range import exclude
from sluice_checkpoints.protocol.poison_note import IsolationNote, note
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.batches.batch_letters import BatchLetters
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.retention import Replays
from sluice_consumer.shards.ranges import BoundRange


class TooMuchPoison(Refused):
    """More records were found on which `process` raises than `onError.maxExcludedPerHour` allows. This one is not excluded."""


@dataclass(frozen=True)
class ExclusionPorts:
    """What the driver brings.

    Attributes:
        source: reads a bound range again.
        letters: where dead letters go.
        most: records excluded in an hour of the clock.
        hour: the present one, since 1970.
    """

    source: Replays
    letters: BatchLetters
    most: int = 100
    hour: Callable[[], int] = lambda: 0


class Exclusions:
    """Excludes records, and counts them."""

    def __init__(self, consumer: Consumer, ports: ExclusionPorts, before: IsolationNote) -> None:
        """`before`: what earlier drivers excluded."""
        self._consumer, self._ports, self.note = consumer, ports, before

    def exclude(self, row: ShardRow, attempts: int, trace: str) -> str:
        """The dead letter first; then the record is not read again.

        Args:
            row: its range, of this one record.
            attempts: how often `process` failed.
            trace: by what.

        Returns:
            Which record it was.

        Raises:
            TooMuchPoison: the limit is reached. Fenced, ProtocolViolation, or what reading the stream or writing a dead letter raises.
        """
        counted = self._counted(row)
        letter = self._letter(row, attempts, trace)
        entry = self._ports.letters.exclude(letter)
        self.write(counted)
        self._consumer.know(exclude(self._consumer.store, self._consumer.epoch, row, entry))
        return f"{letter.sequence}/{letter.sub}"

    def write(self, wanted: IsolationNote) -> None:
        """Leaves a note for the next driver.

        Raises:
            Fenced: a later epoch took over.
        """
        note(self._consumer.store, self._consumer.epoch, wanted)
        self.note = wanted

    def _counted(self, row: ShardRow) -> IsolationNote:
        hour = max(self._ports.hour(), self.note.hour)  # a clock that was set back begins no hour
        before = self.note.excluded if self.note.hour == hour else 0
        if before >= self._ports.most:
            raise TooMuchPoison(
                f"onError.maxExcludedPerHour: {counted(before, 'record')} went to the dead letters within an hour, and {row.id} has another one at "
                f"{row.first}; find out what is wrong with them, or raise the limit"
            )
        return replace(self.note, hour=hour, excluded=before + 1, ever=self.note.ever + 1)

    def _letter(self, row: ShardRow, attempts: int, trace: str) -> DeadLetter:
        assert self._consumer.row is not None  # noqa: S101 - begin() set it
        assert self._consumer.identity is not None  # noqa: S101 - begin() set it
        ((sequence, sub, key, data, arrival),) = self._ports.source.replay(BoundRange.of(row)).columns.rows()
        consumer, stream = self._consumer.row.consumer_id, self._consumer.identity.name
        return DeadLetter(consumer, stream, row.id, sequence, sub, arrival, key, data, row.batch, attempts, trace)

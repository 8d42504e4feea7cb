"""What a pipeline gets and raises, and the built-in one: `console`. Sinks are in `sinks`.

A pipeline is `process(batch, info)`. It is a function of its batch alone, and lets failures of a read out. Its return says that the batch is dealt
with, read or not; a pipeline that cannot deal with it now raises `NotNow` (docs/protocol.md, "What returning means").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pyspark.sql import DataFrame, Row

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.names import counted
from sluice_consumer.columns import readable

Prepare = TypeVar("Prepare", bound=Callable[..., Any])


def standby_safe(prepare: Prepare) -> Prepare:
    """Marks a `prepare` that may run while another driver works, and again under the lease.

    A driver that stands by then calls it early. It must neither create nor change anything that `process` uses outside of its own process: no
    table, no folder, no transaction. It loads models, opens connections, imports modules.
    """
    prepare.standby_safe = True  # type: ignore[attr-defined]  # what `is_standby_safe` looks for
    return prepare


def is_standby_safe(process: Callable[..., Any]) -> bool:
    """Whether the function's own `prepare` is marked by `standby_safe`."""
    return getattr(getattr(process, "prepare", None), "standby_safe", False) is True


class NotNow(SluiceError):
    """`process` cannot deal with this batch now: nothing is committed, the epoch ends, and the next one is given the batch with the same content.

    To be raised by a pipeline whose sink is down, in maintenance or behind an open circuit breaker. Unlike other exceptions it does not count as a
    failure of the driver (exit code 75).
    """

    exit_code = 75


@dataclass(frozen=True)
class BatchInfo:
    """What a pipeline gets beside its rows.

    Attributes:
        consumer: the table's `consumerId`; with `batch` it is the idempotency key. The number alone is not: it begins at 1 in every table.
        batch: number of this micro-batch over the consumer's whole life.
        replay: this batch was issued before. Its content is the same, or a part of that (docs/protocol.md, "Poison").
        stream: name of the stream.
        shards: ids of the shards in it.
        args: `pipeline.args` of the resource.
    """

    consumer: str
    batch: int
    replay: bool
    stream: str
    shards: tuple[str, ...]
    args: Mapping[str, Any] = field(default_factory=dict)

    def reject(self, rows: DataFrame, reason: str) -> int:
        """Keeps records of the batch that cannot be dealt with as dead letters (docs/dead-letters.md).

        To be called in the driver, before `process` returns. The dead letters are pending until the batch is committed. If the function raises, it
        has rejected nothing, unless it had called a sink of Sluice, which may hold the batch. Then, and if the driver dies, the batch comes again
        without the records. The function leaves them out of its sink itself, whole, and rejects them before it calls the sink.

        Args:
            rows: one of each record, with the columns of a batch; others are left out of the dead letters.
            reason: what is wrong with them, for people.

        Returns:
            How many there were.

        Raises:
            Refused: there is no `onError.deadLetter`, a column is missing, or rows are parts of a record. SinkUnavailable: the store did not take
                a dead letter.
        """
        store = LETTERS.of(self.consumer)
        if store is None:
            raise Refused("info.reject: onError.deadLetter is not set, or this is not a driver")
        if missing := [name for name in OF_A_LETTER if name not in rows.columns]:
            raise Refused(f"info.reject: the rows have no column {missing[0]}; keep the batch's own columns beside yours")
        letters = [self._letter(row, reason) for row in rows.select(*OF_A_LETTER).collect()]
        if len({letter.place for letter in letters}) < len(letters):
            raise Refused(
                "info.reject: a record has several of these rows, and a dead letter is a whole record. Reject rows of the batch itself, one of each "
                'record, and leave out all rows of these records (docs/dead-letters.md, "Records of several rows")'
            )
        store.reject(letters)
        return len(letters)

    def _letter(self, row: Row, reason: str) -> DeadLetter:
        arrival = round(row.approximateArrivalTimestamp.timestamp() * 1000)
        place = (row.shardId, row.sequenceNumber, row.subSequenceNumber)
        return DeadLetter(self.consumer, self.stream, *place, arrival, row.partitionKey, bytes(row.data), self.batch, 1, reason)


class Rejections(Protocol):
    """Takes what `process` rejects."""

    def reject(self, letters: Sequence[DeadLetter]) -> None:
        """Keeps dead letters; a record that was rejected before stays the dead letter that it is."""
        ...

    def raised(self) -> None:
        """Forgets what the `process` that raised has rejected."""
        ...


@dataclass
class DriverLetters:
    """The stores of the consumers of this process. They are not part of `BatchInfo`, which travels to tasks.

    Attributes:
        stores: by consumer. stored: consumers whose batch, as it was issued last, a sink of Sluice has begun to store, or has found stored.
    """

    stores: dict[str, Rejections] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)

    def keep(self, consumer: str, store: Rejections | None) -> None:
        """From now on this is the consumer's store; None: it has none."""
        self.stores.pop(consumer, None)
        if store is not None:
            self.stores[consumer] = store

    def of(self, consumer: str) -> Rejections | None:
        """The store of a consumer. None: it has none."""
        return self.stores.get(consumer)

    def begin(self, consumer: str) -> None:
        """A batch is issued: nothing of it is stored in this issue."""
        self.stored.discard(consumer)

    def storing(self, consumer: str) -> None:
        """A sink may hold the batch, or a part of it, from now on."""
        self.stored.add(consumer)

    def raised(self, consumer: str) -> None:
        """`process` raised: it has rejected nothing, unless a sink may hold the batch or a part of it, which would skip a rejected row later."""
        if (store := self.of(consumer)) is not None and consumer not in self.stored:
            store.raised()


LETTERS = DriverLetters()
OF_A_LETTER = ("shardId", "sequenceNumber", "subSequenceNumber", "approximateArrivalTimestamp", "partitionKey", "data")


def console(batch: DataFrame, info: BatchInfo) -> None:
    """Prints the first rows of every batch to the driver's log, bytes that are not UTF-8 as `base64:…`. `args.rows`: how many (20)."""
    rows = int(info.args.get("rows", 20))
    collected = batch.selectExpr("shardId", "sequenceNumber", "subSequenceNumber", "partitionKey", f"{readable('data')} AS data").collect()
    print(f"-- batch {info.batch} of {info.consumer}: {counted(len(collected), 'record')}", flush=True)  # noqa: T201 - what this pipeline is for
    for row in collected[:rows]:
        print("   " + "  ".join(str(value) for value in row), flush=True)  # noqa: T201

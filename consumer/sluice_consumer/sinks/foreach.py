"""Calls a function of the user's for each shard of a batch: databases, queues, HTTP (docs/sinks.md, "Databases").

A position is of a shard, whose rows have to be in one part of the DataFrame, neighbours of each other. Those that come in a second part would be
skipped as old. So this is known before any is stored.

A batch that fails may come again shortened, and its rest under the next number. A row's own position does not change then.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_consumer import pipelines
from sluice_consumer.columns import FORMAT
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.poison import worker_errors
from sluice_consumer.sinks import options

DIGITS, SUB_DIGITS = 129, 10
POSITION = re.compile(rf"[0-9]{{{DIGITS}}}-[0-9]{{{SUB_DIGITS}}}")
Rows = Iterator[dict[str, Any]]
COUNTED = "shardId STRING, rows BIGINT"
REDRIVE = "-redrive"  # the consumer of a redrive of dead letters ends in it (docs/dead-letters.md)
PARTS = "shardId STRING"
KEEPS = frozenset({"Project", "Filter", "Generate", "BatchEvalPython", "ArrowEvalPython"})  # row by row, in the task that has the row
READS = "DataSourceV2ScanRelation"


class PositionMisuse(SluiceError):
    """A function of `foreach` handles rows or positions in a way that would lose or double records. Nothing of the part may be stored."""


def position(row: Mapping[str, Any]) -> str:
    """The position of a row: sequence and sub-sequence number, padded with zeros to 140 characters, so that text sorts as the stream does.

    Raises:
        PositionMisuse: the row lacks the columns.
    """
    try:
        return f"{row['sequenceNumber']:0>{DIGITS}}-{row['subSequenceNumber']:0>{SUB_DIGITS}}"
    except KeyError as missing:
        raise PositionMisuse(f"the rows have no column {missing}; hand the batch's own columns to `foreach` beside yours") from None


class PartReading:
    """How far the rows of one part were read."""

    def __init__(self) -> None:
        self._at, self._begun, self._ended = "", False, False

    def after(self, rows: Rows, stored: str | None) -> Rows:
        """The rows behind a stored position; see `Part.after`."""
        if self._begun:
            raise PositionMisuse("part.after was called before, and its rows come once; let the error out, and the batch comes again")
        stored = (stored or "").strip()  # CHAR columns pad with blanks
        if stored and not POSITION.fullmatch(stored):
            raise PositionMisuse(
                f"stored: {stored[:60]!r} is not a part.position; pass what was stored for this part.consumer and part.shard, or None"
            )
        self._at, self._begun = stored, True
        return self._behind(rows, stored)

    def _behind(self, rows: Rows, stored: str) -> Rows:
        before = ""
        for row in rows:
            here = position(row)
            if here < before:
                raise PositionMisuse(f"position {here} comes after {before}; hand the rows of a shard to `foreach` in their order")
            before = here
            if here > stored:
                self._at = here
                yield row
        self._ended = True

    @property
    def at(self) -> str:
        if not self._ended:
            problem = "not all rows of part.after were taken" if self._begun else "part.after was not called"
            raise PositionMisuse(f"part.position: {problem}; store the rows of part.after(rows, stored) first, then the position, in one transaction")
        return self._at


@dataclass(frozen=True)
class Part:
    """What one call of the function gets: rows of one shard, in their order.

    Under one `(consumer, shard)` positions only grow. So a database that keeps the last stored position of each can distinguish new rows from rows
    that come again. The batch number cannot: a batch that fails may be shortened, and its rest then comes under the next number.

    Attributes:
        consumer: the table's `consumerId`. Each redrive has one of its own, such as `<consumerId>-redrive-000002`: dead letters are
            older than the stream's position. A call of `foreach` with a `name` has one of its own, too: `<consumerId>.<name>`.
        batch: number of the batch, for information. It is not a key.
        shard: id of the shard.
        args: `pipeline.args`.
    """

    consumer: str
    batch: int
    shard: str
    args: dict[str, Any]
    _reading: PartReading = field(default_factory=PartReading, init=False, repr=False, compare=False)

    def after(self, rows: Rows, stored: str | None) -> Rows:
        """The rows behind the stored position. Those at or before it are skipped: they are stored.

        To be called once, within the transaction that read `stored` and holds a lock on it.

        Args:
            rows: what the function got.
            stored: the `position` that was stored last for this consumer and shard; None or an empty text if there is none.

        Raises:
            PositionMisuse: `stored` is not a position, or it is the second call. While rows are taken: they are not in order, or lack columns.
        """
        return self._reading.after(rows, stored)

    @property
    def position(self) -> str:
        """The position of the last row, to be stored in the transaction of the rows: 140 characters that sort as text.

        It is never before the stored position.

        Raises:
            PositionMisuse: `after` was not called, or not all of its rows were taken.
        """
        return self._reading.at


EXAMPLE = "as in my_module:upsert"
Function = Callable[[Rows, Part], None]


class Foreach:
    """The sink `sluice_consumer.sinks:foreach`; `args.function` is `module:function`.

    The function runs in Spark's tasks. It gets the rows of one shard in their order, and a `Part`. It stores `part.position` in the same transaction
    as the rows of `part.after`. Rows may come again in another part, even while a former attempt at them is being ended.
    """

    def __init__(self) -> None:
        """Nothing was called yet."""
        self._issues: dict[str, tuple[BatchInfo, frozenset[str]]] = {}

    def prepare(self, _spark: SparkSession, args: dict[str, Any]) -> None:
        """Refuses what would fail, before the first batch.

        Raises:
            Refused: `args.function` is missing, or there is no such function.
        """
        options.function(options.text(args, "function", EXAMPLE), "pipeline.args.function")

    def __call__(self, batch: DataFrame, info: BatchInfo, function: Function | None = None, *, name: str = "") -> None:
        """Calls the function for each shard of the batch that has rows.

        Args:
            batch: rows of the batch, with its columns, those of a shard together and in order.
            info: what `process` got.
            function: instead of `args.function`.
            name: of this call, where `process` calls `foreach` more than once. The same in every batch: positions belong to it (`Part.consumer`).

        Raises:
            Refused: see `prepare`; the rows of a shard are not neighbours; or there was a call of that name. Else what the function raises, as
                Spark reports it; parts that were stored stay stored.
        """
        called = function or options.function(options.text(dict(info.args), "function", EXAMPLE), "pipeline.args.function")
        self._begin(info, name)
        refuse_apart(batch)
        pipelines.LETTERS.storing(info.consumer)
        key = (f"{identity(info)}.{name}" if name else identity(info), info.batch)
        counted = batch.mapInArrow(calls(called, key, dict(info.args)), COUNTED).collect()
        together((row.shardId for row in counted), "rows may be missing")

    def _begin(self, info: BatchInfo, name: str) -> None:
        issue, before = self._issues.get(info.consumer, (None, frozenset[str]()))
        names = before if issue is info else frozenset[str]()
        if name in names:
            raise Refused(
                f"foreach: a second call in batch {info.batch}; the positions of the first would skip its rows. Call it once, with a function that "
                "distinguishes rows; or pass name=… to all calls but one: each then has a part.consumer, and so positions, of its own"
            )
        self._issues[info.consumer] = info, names | {name}


def identity(info: BatchInfo) -> str:
    """The id under which positions only grow: that of the consumer, or of one redrive of its dead letters."""
    return f"{info.consumer}-{info.batch:06d}" if info.consumer.endswith(REDRIVE) else info.consumer


def calls(function: Function, key: tuple[str, int], args: dict[str, Any]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task runs. A task's shards come one after the other, so a shard's rows are neighbours."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        worker_errors.install()
        every = (row for batch in batches for row in batch.to_pylist())
        for shard, group in groupby(every, lambda row: str(row["shardId"])):
            counted = _Counted(group)
            function(counted, Part(*key, shard, args))
            for _ in counted:  # the function had enough
                pass
            yield pa.RecordBatch.from_pydict({"shardId": [shard], "rows": [counted.rows]})

    return run


class _Counted:
    def __init__(self, group: Iterator[dict[str, Any]]) -> None:
        self._group, self.rows = group, 0

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> dict[str, Any]:
        row = next(self._group)
        self.rows += 1
        return row


foreach = Foreach()


def refuse_apart(batch: DataFrame) -> None:
    """Refuses rows that came apart. What the data source gives is never apart; other plans are looked at first, which runs them once more.

    Raises:
        Refused: naming a shard. Else what reading raises.
    """
    if as_read(batch._jdf.queryExecution().optimizedPlan()):  # noqa: SLF001 - Spark has no other way to ask
        return
    together((row.shardId for row in batch.mapInArrow(_parts, PARTS).collect()), "nothing was stored")


def together(shards: Iterable[str], state: str) -> None:
    """Refuses a shard that is named twice: once for each of its parts. `state`: what has become of its rows.

    Raises:
        Refused: naming it.
    """
    if apart := sorted(shard for shard, parts in Counter(shards).items() if parts > 1):
        raise Refused(
            f"foreach: the rows of {apart[0]} came in several parts, so their positions are not in order; {state}. "
            "Leave `repartition`, `union` and joins out before `foreach`, or sort: repartition('shardId').sortWithinPartitions('shardId', …)"
        )


def as_read(plan: Any) -> bool:
    """Whether a plan takes the batch's rows one by one as the data source gives them, with nothing that moves or mixes them. Unknown is no."""
    while plan.nodeName() in KEEPS:
        plan = plan.children().head()
    return str(plan.nodeName()) == READS and str(plan.relation().table().name()) == FORMAT


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    worker_errors.install()
    every = (shard for batch in batches for shard in batch.column("shardId").to_pylist())
    for shard, _ in groupby(every):
        yield pa.RecordBatch.from_pydict({"shardId": [shard]})

"""An old checkpoint directory of a query whose table folds shards is refused (docs/protocol.md, "Folded shards")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from streaming_world import Content, Crash, Steps, World

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import END
from sluice_consumer.batches.folding import FoldLimits

ALL = FoldLimits(least=1)


class Full(dict[int, Content]):
    """A sink that takes no further batch: the driver dies of it."""

    def __setitem__(self, key: int, value: Content) -> None:
        raise Crash


@dataclass
class Lives:
    """A query that is started again and again.

    Attributes:
        filled: which shards each committed batch contained, for those that contained some. It is read from the rows as each commit is made.
    """

    world: World = field(default_factory=lambda: World(audits=True, folds=ALL))
    filled: dict[int, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        steps, self.world.table.hook = self.world.table.hook, self._look
        self._steps = steps

    def _look(self, when: str, operation: str, members: Any) -> None:
        self._noted(when, operation)
        self._steps(when, operation, members)

    def _noted(self, when: str, operation: str) -> None:
        row = self.world.table.rows.get("consumer")
        if (when, operation) == ("after", "write") and row is not None:
            number, rows = row["committed"], self.world.table.rows
            found = {key.removeprefix("shard/") for key, shard in rows.items() if key.startswith("shard/") and shard["batch"] == number}
            if number and found:
                self.filled.setdefault(number, found)

    @property
    def live(self) -> list[str]:
        return [shard.id for shard in self.world.stream.list_shards().shards if not shard.closed]

    def lives(self, crash: int | None) -> None:
        self.world.steps = Steps(crash)
        self.world.survive()

    def puts(self, number: int) -> None:
        self.world.put(self.live[number % len(self.live) :], 1)

    def splits(self, number: int) -> None:
        if len(self.live) < 4:
            self.world.stream.split(self.live[number % len(self.live)])

    def expires(self, _number: int) -> None:
        """Closed shards leave the stream that were read to their end."""
        rows, committed = self.world.store.shards(), self.world.committed()
        self.world.now += 2 * self.world.stream.retention_millis
        for shard in self.world.stream.list_shards().shards:
            row = rows.get(shard.id)
            if shard.closed and (row is None or row.committed_position(committed) == END):
                self.world.stream.expire_shard(shard.id)

    def dies(self) -> None:
        self.world.put(self.live, 1)
        self.world.sink = Full(self.world.sink)
        with pytest.raises(Crash):
            self.world.query()
        self.world.sink = {}

    def goes_back(self, batches: int) -> int:
        """The checkpoint directory is restored from a backup; where that stands."""
        spark = self.world.spark
        spark.offsets = spark.offsets[: max(1, len(spark.offsets) - batches)]
        spark.commits, self.world.sink = len(spark.offsets), {}
        return int(spark.offsets[-1]["batch"])


EVENT = st.sampled_from(["puts", "splits", "expires"])
EVENTS = st.lists(st.tuples(EVENT, st.integers(0, 3), st.none() | st.integers(0, 40)), min_size=1, max_size=9)


def test_a_batch_that_a_directory_lacks_is_seen_though_its_shards_are_in_an_open_batch_and_another_waits_to_join() -> None:
    """No row says any more that batch 6 had records. Rows alone left it open whether its number had passed without shards, and it was skipped."""
    lives = Lives()
    lives.world.query()
    lives.splits(0)
    lives.dies()
    rows, committed = lives.world.store.shards(), lives.world.committed()
    assert lives.filled[committed]
    assert not [row.id for row in rows.values() if row.batch == committed]
    assert [row.id for row in rows.values() if row.joins > committed]
    assert lives.goes_back(2) == committed - 1
    with pytest.raises(Refused):
        lives.world.query()


@settings(max_examples=60, deadline=None)
@example(events=[("splits", 0, 0)], batches=2, opened=True)
@given(events=EVENTS, batches=st.integers(0, 6), opened=st.booleans())
def test_a_directory_that_lacks_a_batch_is_refused_and_no_other(events: list[tuple[str, int, int | None]], batches: int, *, opened: bool) -> None:
    """It is accepted if no batch came between that contained shards; or one, the last, as a whole, and only while its rows hold its ranges."""
    lives = Lives()
    lives.world.query()
    for event, number, crash in events:
        getattr(lives, event)(number)
        lives.lives(crash)
    if opened:
        lives.dies()
    at, committed = lives.goes_back(batches), lives.world.committed()
    missed = sorted(number for number in lives.filled if at < number <= committed)
    numbers = len(lives.world.spark.offsets)
    try:
        lives.world.query()
    except Refused:
        assert missed
        return
    assert missed in ([], [committed])
    if missed:
        assert {shard for shard, _ in lives.world.sink[numbers]} == lives.filled[committed]

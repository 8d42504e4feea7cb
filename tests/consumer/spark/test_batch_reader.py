"""What a task hands over, and in which order."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sluice_checkpoints.errors import SluiceError
from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.shards.collect import RecordColumnSet
from sluice_consumer.shards.ranges import Fetched
from sluice_consumer.spark import batch_reader
from sluice_consumer.spark.batch_reader import MOST_READERS, in_order, with_room
from sluice_lab.fakes.table import MemoryTable

NAMES = ("a", "b", "c")


def fetched(name: str) -> Fetched:
    return Fetched(name, TRIM_HORIZON, TRIM_HORIZON, RecordColumnSet())


@pytest.mark.parametrize("fastest", [NAMES, NAMES[::-1], ("b", "c", "a")])
def test_shards_come_in_the_same_order_whichever_is_read_first(fastest: tuple[str, ...]) -> None:
    """Spark repeats a part of a stage after a lost shuffle file: rows in another order would be doubled or lost inside a job that succeeds."""
    over = {name: threading.Event() for name in NAMES}

    def read(name: str) -> Fetched:
        before = fastest[: fastest.index(name)]
        assert all(over[other].wait(30) for other in before)
        over[name].set()
        return fetched(name)

    with ThreadPoolExecutor(len(NAMES)) as threads:
        found = [one.shard_id for one in in_order(threads, [lambda name=name: read(name) for name in NAMES], threading.Event())]  # type: ignore[misc]
    assert found == list(NAMES)


def test_nothing_of_a_task_goes_on_after_it() -> None:
    ended: list[str] = []
    go = threading.Event()

    def fails() -> Fetched:
        go.set()
        raise ValueError("a")

    def late() -> Fetched:
        go.wait(30)
        ended.append("b")
        return fetched("b")

    with ThreadPoolExecutor(2) as threads, pytest.raises(ValueError, match="a"):
        list(in_order(threads, [fails, late], threading.Event()))
    assert ended == ["b"]


def test_a_batch_that_is_read_too_often_is_refused_with_advice_until_the_next_epoch() -> None:
    """Before its row has no room for another reader: then no replay of it could be registered any more."""
    row = ShardRow("a", TRIM_HORIZON, TRIM_HORIZON, generation=3, batch=7, readers={f"3.{n}.0": n for n in range(MOST_READERS)})
    store = CheckpointStore(MemoryTable())
    store.put_new(row.to_item())
    with pytest.raises(SluiceError, match=r"a: `process` has read batch 7 in 5000 tasks.*batch\.persist"):
        with_room(store, Epoch(3, "t"), row)
    heir = Epoch(4, "u")
    store.fence(heir, "a")
    assert with_room(store, heir, store.read(["a"])["a"]).readers == {}
    assert store.read(["a"])["a"].readers == {}


def test_what_was_found_of_shards_is_kept_for_an_epoch_and_no_longer() -> None:
    """A shard that was whole then may have lost records while nobody read it; connections of the former epoch are let go in the end."""
    identity = StreamIdentity("s", "arn:aws:kinesis:eu-west-1:123456789012:stream/s", 1, 86_400_000, "ACTIVE")
    readers = [batch_reader._reader(identity, StreamAddress("s", "eu-west-1", "http://127.0.0.1:1"), generation) for generation in (1, 1, 2)]
    assert readers[0] is readers[1] is not readers[2]
    for generation in range(3, 3 + batch_reader.READERS):
        batch_reader._reader(identity, StreamAddress("s", "eu-west-1", "http://127.0.0.1:1"), generation)
    assert batch_reader._reader(identity, StreamAddress("s", "eu-west-1", "http://127.0.0.1:1"), 1) is not readers[0]

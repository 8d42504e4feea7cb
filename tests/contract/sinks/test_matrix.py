"""Each built-in way to deliver, by each way a batch ends or changes: what a reader counts in the end (docs/sinks.md, "What is tried").

The cells that these tests do not fill are in `matrix_cells.py`.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from conftest_sinks import has_class
from matrix_sinks import WAYS, Delivery
from matrix_world import POISON, World, document, frame, killed_at
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.sinks.iceberg.catalog import CATALOG_CLASS

pytestmark = pytest.mark.spark
SEARCHED = [pytest.param(name, marks=() if name == "parquet" else pytest.mark.lake) for name in WAYS]  # many batches; the others in `make test-lake`


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Delivery:
    """One of them, empty. All are run together, where the jars are: `make test-more` does that on the image's line of Spark."""
    if not has_class(spark, CATALOG_CLASS):
        pytest.skip("not run: this Spark has no jars of the sinks; the run with the image's jars has the whole matrix")
    return WAYS[request.param](spark, tmp_path)


@pytest.fixture
def world(spark: SparkSession, way: Delivery) -> World:
    return World(spark, way.process)


def test_killed_before_and_after_its_writes(world: World, way: Delivery) -> None:
    """Every first issue of a batch ends with the driver, before or after the sink had it."""
    world.around = killed_at(("before", 1), ("after", 1), ("after", 3))
    world.put(*range(6))
    world.put(*range(6, 9), shard=1)
    assert world.until_idle() == 3
    world.put(9)
    world.dies_after(1)
    world.until_idle()
    assert way.ids() == list(range(10))


def test_poison_alone(world: World, way: Delivery) -> None:
    """One document of a shard is none; the other shard has no record at all."""
    world.put(0, 1, POISON, 2, 3)
    world.until_idle()
    assert way.ids() == [0, 1, 2, 3]
    assert world.excluded == [POISON]


@pytest.mark.parametrize("way", SEARCHED, indirect=True)
def test_poison_in_two_shards(world: World, way: Delivery) -> None:
    """The driver is killed on the way, after the sink had a part of the batch."""
    world.around = killed_at(("after", 1), ("after", 2))
    world.put(0, POISON, 1, 2)
    world.put(3, 4, 5, POISON + b" either", shard=1)
    assert world.until_idle() > 0
    assert way.ids() == list(range(6))
    assert world.excluded == [POISON, POISON + b" either"]


@pytest.mark.parametrize("way", SEARCHED, indirect=True)
def test_a_drain_in_a_search(world: World, way: Delivery) -> None:
    """The next driver goes on with a batch that is shorter."""
    begun = []

    def drains(when: str, _info: BatchInfo) -> None:
        begun.append(when)
        if begun.count("before") == 5:
            world.drain.set()

    world.around = drains
    world.put(*range(8), POISON)
    world.put(*range(8, 12), shard=1)
    _drained(world)
    world.until_idle()
    assert way.ids() == list(range(12))
    assert world.excluded == [POISON]


def _drained(world: World) -> None:
    """One driver that is told to drain: it may end by the error of the batch that it had."""
    with contextlib.suppress(Exception):
        world.epoch()
    assert world.drain.is_set()


def test_a_replay_after_hours_of_the_owners_maintenance(world: World, way: Delivery, spark: SparkSession) -> None:
    """The sink has the batch, the driver died, another consumer writes on, and old versions go."""
    world.put(0, 1)
    world.dies_after(1)
    other = World(spark, way.process, consumer="another")
    for number in (100, 101, 102):
        other.put(number)
        other.until_idle()
        way.maintain()
    world.until_idle()
    assert way.ids() == [0, 1, 100, 101, 102]


def test_the_owner_takes_back_what_an_open_batch_stored(world: World, way: Delivery) -> None:
    """It is stored again, or the driver refuses and says so; it is never left out, and never there twice."""
    world.put(0, 1)
    world.until_idle()
    world.put(2, 3)
    world.dies_after(1)
    assert way.ids() == [0, 1, 2, 3]
    way.undo()
    assert way.ids() == [0, 1]
    before = world.committed
    if way.refuses:
        with pytest.raises(Refused, match="batch"):
            world.until_idle()
        assert (world.committed, way.ids()) == (before, [0, 1])
    else:
        world.until_idle()
        assert way.ids() == [0, 1, 2, 3]


def test_a_second_writer(world: World, way: Delivery, spark: SparkSession) -> None:
    """Two consumers take turns; each has batches of the same numbers, and each replays one."""
    other = World(spark, way.process, consumer="another")
    for turn in range(3):
        world.put(turn)
        other.put(100 + turn)
        world.dies_after(1)
        other.until_idle()
        world.until_idle()
    assert way.ids() == [0, 1, 2, 100, 101, 102]


def test_an_empty_batch(world: World, way: Delivery) -> None:
    world.dies_after(1)
    world.until_idle()
    world.put(0)
    world.until_idle()
    world.until_idle()
    assert (0, 1) in {(records, number) for number, _, records in world.batches}
    assert way.ids() == [0]


def test_the_owner_adds_a_column(world: World, way: Delivery) -> None:
    world.put(0, 1)
    world.dies_after(1)
    way.alter()
    world.put(2, shard=1)
    world.until_idle()
    assert way.ids() == [0, 1, 2]


def test_documents_of_another_shape(world: World, way: Delivery) -> None:
    """From one record on they do not fit the schema: that batch fails, and nothing of it is left out."""
    world.attempts = None
    world.put(0)
    world.until_idle()
    world.put(b'{"id": "one"', shard=1)
    before = world.committed
    with pytest.raises(Exception, match=r"(?s)."):
        world.until_idle()
    assert world.committed == before
    assert way.ids() == [0]


def test_rejected_rows(world: World, way: Delivery) -> None:
    """`process` rejects them and gives the rest to the sink; the driver dies before the commit, and the same rows come again."""
    world.attempts, deliver = None, world.process

    def rejecting(batch: DataFrame, info: BatchInfo) -> None:
        bad = "get(split(decode(data, 'UTF-8'), ' '), 0) = 'no'"
        info.reject(batch.filter(bad), "no document")
        deliver(batch.filter(f"NOT ({bad})"), info)

    world.process = rejecting
    world.put(0, POISON, 1)
    world.dies_after(1)
    world.until_idle()
    assert way.ids() == [0, 1]
    assert world.excluded == [POISON]


def test_rejected_rows_of_a_process_that_raises_and_is_repaired(world: World, way: Delivery) -> None:
    """The sink was called before it raised. The next `process` can deal with all rows: each is in the sink or in the letters, and in one of them."""
    world.attempts, deliver = None, world.process

    def rejecting(batch: DataFrame, info: BatchInfo) -> None:
        info.reject(batch.filter("data LIKE '%order 1\"%'"), "not yet")
        deliver(batch.filter("data NOT LIKE '%order 1\"%'"), info)
        raise RuntimeError("the other sink is down")

    world.process = rejecting
    world.put(0, 1, 2)
    with pytest.raises(RuntimeError, match="the other sink"):
        world.epoch()
    world.process = deliver
    world.until_idle()
    assert sorted([*way.ids(), *(json.loads(data)["id"] for data in world.excluded)]) == [0, 1, 2]


def test_redriven_letters(world: World, way: Delivery, spark: SparkSession) -> None:
    """Newer letters first, then older ones, each redrive twice: as one that was resumed."""
    world.put(*range(3))
    world.until_idle()
    records = {n: ("k", document(n), "orders", "shardId-000000000000", str(n), 0, None) for n in (50, 51, 60)}
    for redrive, numbers in enumerate(((60,), (50, 51)), 1):
        for replay in (False, True):
            info = BatchInfo(f"{world.consumer}-redrive", redrive, replay, "orders", ("shardId-000000000000",))
            world.process(frame(spark, [records[n] for n in numbers]), info)
    assert way.ids() == [0, 1, 2, 50, 51, 60]

"""A take-over from real tables of other systems delivers exactly what it must: nothing is lost, nothing comes that was stored as done."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from takeover import dumps, handmade_nifi, handmade_sluice
from takeover.consuming import REGION, Consumed, configuration, consume, migrate
from takeover.dumps import Dump, Tables
from takeover.expected import by_nifi_rules, expected, nifi_only, nothing_left
from takeover.replay import Recorded, Replay, serve

from sluice_checkpoints.position import END
from sluice_consumer.config import StreamConfig
from sluice_consumer.process import wiring

HANDMADE = [*handmade_nifi.DUMPS, handmade_sluice.DUMP]
REAL = dumps.found(dumps.folders())
CASES = [pytest.param(dump, id=dump.name) for dump in (*HANDMADE, *REAL) if not nothing_left(dump)]


@pytest.mark.spark
@pytest.mark.parametrize("dump", CASES)
def test_a_take_over_delivers_exactly_what_it_must(dump: Dump, dynamodb_endpoint: str, spark: SparkSession) -> None:
    tables = Tables(dump, dynamodb_endpoint)
    before = tables.contents()
    with serve(Replay(dump.streams)) as kinesis:
        for number, (name, must) in enumerate(expected(dump).items()):
            config = configuration(
                StreamConfig(name, REGION, kinesis, dynamodb_endpoint), tables.named(dump.source), tables.named(f"target-{number}")
            )
            code, result = migrate(config)
            assert code == 0, result
            consumed = consume(spark, config)
            assert consumed.delivery == must
            check_order_and_ends(consumed, dump.streams[name])
    assert tables.contents() == before


def check_order_and_ends(consumed: Consumed, stream: Recorded) -> None:
    for shard in stream.shards:
        parents = [shard[key] for key in ("ParentShardId", "AdjacentParentShardId") if key in shard]
        before = [batch for parent in parents for batch in consumed.batches[parent]]
        after = consumed.batches[shard["ShardId"]]
        assert not before or not after or max(before) < min(after)
        assert (consumed.rows[shard["ShardId"]].end == END) is ("EndingSequenceNumber" in shard["SequenceNumberRange"])
    assert "DataLossSuspected" not in consumed.warnings


@pytest.mark.parametrize("dump", [handmade_nifi.NOTHING_LEFT, *filter(nothing_left, REAL)], ids=lambda dump: dump.name)
def test_tables_that_hold_no_place_are_refused(dump: Dump, dynamodb_endpoint: str) -> None:
    """To begin every shard again is a decision of people, not of a migration; no target is made."""
    tables = Tables(dump, dynamodb_endpoint)
    before = tables.contents()
    with serve(Replay(dump.streams)) as kinesis:
        (name,) = dump.streams
        config = configuration(StreamConfig(name, REGION, kinesis, dynamodb_endpoint), tables.named(dump.source), tables.named("target"))
        code, result = migrate(config)
    assert (code, result["reason"]) == (65, "Refused")
    assert wiring.targets(config).find(config.checkpoints.table) is None
    assert tables.contents() == before


@pytest.mark.parametrize(
    "dump", [pytest.param(dump, id=dump.name) for dump in (*HANDMADE, *REAL) if nifi_only(dump) and "source_dump" not in dump.document]
)
def test_nifis_rules_agree_with_what_is_known(dump: Dump) -> None:
    """What a dump must deliver that does not say it itself is worked out by rules; where a dump says it, they agree."""
    assert by_nifi_rules(dump) == expected(dump)

"""The demo's records: numbered, spread over shards, and packed as the Kinesis Producer Library packs them."""

import itertools

from sluice_consumer.shards.aggregation import UserRecord, user_records
from sluice_lab.scenario import records
from sluice_lab.scenario.records import AGGREGATE, NumberedRecord


def test_an_aggregate_comes_out_as_its_user_records() -> None:
    """The reader is held to KCL's own (tests/contract/kcl)."""
    users = [NumberedRecord(n, 300 + n % 2) for n in (1, 2, 98, 99)]
    assert user_records("a", records.aggregate(users)) == [UserRecord(sub, user.key, user.data) for sub, user in enumerate(users)]


def test_a_series_reaches_every_hash_key_without_a_gap_and_its_last_record_is_an_aggregate() -> None:
    """The demo's checkpoints lie in the middle of the last one."""
    for count in range(3, 8):
        packed = records.series(itertools.count(1), [7, 8, 9], count)
        assert [user.n for each in packed for user in each.user_records] == [*range(1, sum(len(each.user_records) for each in packed) + 1)]
        assert [each.user_records[0].hash_key for each in packed] == [7, 8, 9, 7, 8, 9, 7][:count]
        assert len(packed[-1].user_records) == AGGREGATE

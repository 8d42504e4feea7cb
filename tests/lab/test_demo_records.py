"""The demo's records: numbered, spread over shards, and packed as the Kinesis Producer Library packs them."""

import hashlib
import itertools
import json

from sluice_lab.scenario import records
from sluice_lab.scenario.records import AGGREGATE, HASH_KEYS, MAGIC, KinesisRecord, NumberedRecord


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Protobuf's variable-length number at an offset, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        number, shift, at = number | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return number, at


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a protobuf message: an independent decoder, of numbers and byte strings only."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if tag & 7 == 2:
            found.append((tag >> 3, data[at : at + value]))
            at += value
        else:
            found.append((tag >> 3, value))
    return found


def test_an_aggregate_decodes_to_its_user_records() -> None:
    users = [NumberedRecord(n, 300 + n % 2) for n in (1, 2, 98, 99)]
    packed = records.aggregate(users)
    body, digest = packed[len(MAGIC) : -16], packed[-16:]
    assert packed.startswith(MAGIC)
    assert digest == hashlib.md5(body).digest()  # noqa: S324 - the format's checksum
    found = fields(body)
    keys = [value.decode() for number, value in found if number == 1 and isinstance(value, bytes)]
    hashes = [value.decode() for number, value in found if number == 2 and isinstance(value, bytes)]
    inner = [dict(fields(value)) for number, value in found if number == 3 and isinstance(value, bytes)]
    assert [keys[int(record[1])] for record in inner] == [user.key for user in users]
    assert [hashes[int(record.get(2, 0))] for record in inner] == [str(user.hash_key) for user in users]
    assert [json.loads(bytes(record[3]))["n"] for record in inner] == [1, 2, 98, 99]


def test_a_body_longer_than_127_bytes_has_lengths_of_several_bytes() -> None:
    """Lengths above 127 take two bytes; an encoder that forgets that breaks every larger aggregate."""
    users = [NumberedRecord(n, HASH_KEYS - 1) for n in range(1, 60)]
    inner = [value for number, value in fields(records.aggregate(users)[4:-16]) if number == 3]
    assert len(inner) == 59


def test_numbers_run_on_without_a_gap() -> None:
    numbers = itertools.count(1)
    both = records.series(numbers, [5], 4) + records.series(numbers, [5], 3)
    assert [user.n for packed in both for user in packed.user_records] == list(range(1, next(numbers)))


def test_the_last_record_of_a_series_is_an_aggregate() -> None:
    """The demo's checkpoints lie in the middle of the last one."""
    for count in range(1, 8):
        packed = records.series(itertools.count(), [5], count)
        assert len(packed) == count
        assert len(packed[-1].user_records) == AGGREGATE


def test_records_take_their_hash_keys_in_turn() -> None:
    """Each Kinesis record goes to the next hash key, so a series reaches every shard."""
    packed = records.series(itertools.count(), [7, 8, 9], 5)
    assert [each.user_records[0].hash_key for each in packed] == [7, 8, 9, 7, 8]


def test_every_quarter_of_the_keys_has_four_in_use() -> None:
    quarter = HASH_KEYS // 4
    found = [records.hash_keys(i * quarter, (i + 1) * quarter - 1) for i in range(4)]
    assert [len(part) for part in found] == [4, 4, 4, 4]
    assert sorted(itertools.chain(*found)) == records.hash_keys()


def test_a_record_alone_is_put_as_it_is() -> None:
    user = NumberedRecord(3, 12)
    assert KinesisRecord((user,)).entry() == {"PartitionKey": user.key, "ExplicitHashKey": "12", "Data": user.data}
    assert KinesisRecord((user, user)).entry()["PartitionKey"] == "a"

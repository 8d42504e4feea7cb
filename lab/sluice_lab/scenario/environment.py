"""The environment before Sluice: a stream with earlier reshards, and the table of the KCL application that read it.

Shards 0 to 3 get records. Shard 0 is split into 4 and 5; 1 and 2 are merged into 6. Then 3, 4, 5 and 6 get more. The application has finished the
parents. Of each other shard it has processed a part, up to the middle of an aggregate.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import boto3

from sluice_checkpoints.names import plural
from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.scenario import kcl_table, records
from sluice_lab.scenario.account import Record, RecordPosition
from sluice_lab.scenario.producer import Producer, last_positions
from sluice_lab.scenario.topology import Stream, shard_id
from sluice_lab.steps import step

REGION = "eu-west-1"
STREAM = "readings"
TABLE = "readings-kcl"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo"}
PARENTS = (0, 1, 2)
STARTED = (3, 4, 5, 6)
RECORDS = 40  # Kinesis records put on each shard, before and after the reshard
SUB = 4  # index of the last user record of the aggregate that the application had processed


@dataclass(frozen=True)
class Aws:
    """The emulators: endpoints and clients."""

    kinesis_endpoint: str
    dynamodb_endpoint: str
    kinesis: Any
    dynamodb: Any


@dataclass(frozen=True)
class Environment:
    """The stream, its producer, and the checkpoints of the KCL application."""

    aws: Aws
    stream: Stream
    producer: Producer
    checkpoints: Mapping[str, RecordPosition]

    @property
    def processed(self) -> int:
        """How many user records the application had processed."""
        pairs = ((record.position, self.checkpoints.get(record.shard)) for record in self.producer.produced)
        return sum(checkpoint is not None and position <= checkpoint for position, checkpoint in pairs)


@contextmanager
def prepared(host: str) -> Iterator[Environment]:
    """Start emulated AWS on an address of this machine, and prepare the environment in it."""
    work = places.work()
    with ExitStack() as stack:
        with step("emulated AWS: DynamoDB Local, kinesis-local") as current:
            dynamodb = stack.enter_context(emulators.dynamodb_local(work, host))
            kinesis = stack.enter_context(emulators.kinesis_local(work, host))
            current.note(f"{dynamodb}, {kinesis}")
        with step("a stream with earlier reshards, and its KCL 3 table") as current:
            found = prepare(aws(kinesis, dynamodb))
            current.note(
                f"{len(found.producer.produced):,} {plural(len(found.producer.produced), 'record')}, {found.processed:,} of them processed by KCL"
            )
        yield found


def aws(kinesis_endpoint: str, dynamodb_endpoint: str) -> Aws:
    """Clients for the emulators."""
    session = boto3.Session("demo", "demo", region_name=REGION)
    kinesis = session.client("kinesis", endpoint_url=kinesis_endpoint)
    dynamodb = session.client("dynamodb", endpoint_url=dynamodb_endpoint)
    return Aws(kinesis_endpoint, dynamodb_endpoint, kinesis, dynamodb)


def prepare(found: Aws) -> Environment:
    """Create the stream, its records, and the application's table."""
    stream, producer = Stream(found.kinesis, STREAM), Producer(found.kinesis, STREAM)
    stream.create(4)
    earlier = _fill(stream, producer, (0, 1, 2, 3), RECORDS)
    stream.split(0)
    stream.merge(1, 2)
    first_half = _fill(stream, producer, STARTED, RECORDS // 2)
    checkpoints = {**_ends(earlier), **{shard: _inside(first_half, shard) for shard in map(shard_id, STARTED)}}
    dump = kcl_table.dump()
    rows = kcl_table.rekeyed(dump["rows"], stream.shards(), checkpoints)
    kcl_table.write(found.dynamodb, TABLE, dump["description"], rows)
    _fill(stream, producer, STARTED, RECORDS // 2)
    return Environment(found, stream, producer, checkpoints)


def _fill(stream: Stream, producer: Producer, numbers: Sequence[int], count: int) -> list[Record]:
    shards = stream.shards()
    wanted = [shards[shard_id(number)] for number in numbers]
    return [record for shard in wanted for record in producer.put(records.hash_keys(shard.low, shard.high), count)]


def _ends(produced: Sequence[Record]) -> dict[str, RecordPosition]:
    last = last_positions(produced)
    return {shard: last[shard] for shard in map(shard_id, PARENTS)}


def _inside(produced: Sequence[Record], shard: str) -> RecordPosition:
    """A position in the middle of the shard's last aggregate."""
    last = last_positions(produced)[shard]
    return RecordPosition(last.sequence, SUB)

"""Dead letters as files: one a record, made only if there is none (docs/dead-letters.md)."""

from __future__ import annotations

import base64
import datetime
import json

from pyspark.sql import SparkSession

from sluice_consumer.batches.isolating import DeadLetter
from sluice_consumer.sinks import edge, stores

FIELD = "onError.deadLetter.path"
FORMAT = "sluice-dead-letter/1"


class FileLetters:
    """`<path>/<consumer>/<shard>/<sequence>-<sub>.json`, on S3, HDFS or a disk."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        """Makes nothing yet.

        Raises:
            Refused: the file system is not known to create a file on a condition.
        """
        with edge.told(FIELD, path):
            self._store, self._path = stores.of(spark, path, FIELD), path.rstrip("/")

    def write(self, letter: DeadLetter) -> None:
        """See `DeadLetters`.

        Raises:
            Refused, SinkUnavailable: the store did not take it.
        """
        with edge.told(FIELD, self._path):
            self._store.create(f"{self._path}/{letter.consumer}/{letter.shard}/{letter.sequence}-{letter.sub}.json", to_json(letter).encode())


def to_json(letter: DeadLetter) -> str:
    """The file's content; `data` is base64."""
    arrival = datetime.datetime.fromtimestamp(letter.arrival_millis / 1000, datetime.UTC).isoformat(timespec="milliseconds")
    values = {
        "format": FORMAT,
        "consumer": letter.consumer,
        "stream": letter.stream,
        "shardId": letter.shard,
        "sequenceNumber": letter.sequence,
        "subSequenceNumber": letter.sub,
        "approximateArrivalTimestamp": arrival,
        "partitionKey": letter.partition_key,
        "data": base64.b64encode(letter.data).decode(),
        "batch": letter.batch,
        "attempts": letter.attempts,
        "error": letter.error,
    }
    return json.dumps(values, ensure_ascii=False, indent=1) + "\n"

"""Writes dead letters as files: one a record, made only if there is none (docs/dead-letters.md)."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sluice_checkpoints.letters.letter import DeadLetter
from sluice_consumer.sinks import edge, stores

FIELD = "onError.deadLetter.path"


class FileLetters:
    """A folder of letters on S3, HDFS or a disk."""

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
            self._store.create(f"{self._path}/{letter.path}", letter.to_json().encode())

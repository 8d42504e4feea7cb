"""Where dead letters go (docs/dead-letters.md): files, one a record and made only if there is none; or a queue or stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sluice_checkpoints.errors import SluiceError
from sluice_checkpoints.letters.letter import DeadLetter, DeadLetters, writable
from sluice_consumer.config import DeadLetterConfig
from sluice_consumer.process.kinesis_letters import KinesisLetters
from sluice_consumer.process.sqs_letters import SqsLetters
from sluice_consumer.sinks import edge, stores
from sluice_consumer.spark.engine import SparkEngine

FIELD = "onError.deadLetter.path"
WORDS = 300  # characters of an error in an error


class LetterNotWritten(SluiceError):
    """A dead letter was not stored, for a reason that nobody foresaw. Its record is not left out; it is no failure of `process`."""


class NamedFailures:
    """Letters whose failures have a name."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    def write(self, letter: DeadLetter) -> None:
        """See `DeadLetters`.

        Raises:
            LetterNotWritten: the store raised what none of ours does. Else what the store raises.
        """
        try:
            self._letters.write(letter)
        except SluiceError:
            raise
        except Exception as error:
            raise LetterNotWritten(
                f"onError.deadLetter: the letter of record {letter.sequence}/{letter.sub} of {letter.shard} was not stored "
                f"({type(error).__name__}: {writable(str(error), WORDS)}); the record is not left out, and its batch comes again. Open an issue"
            ) from error


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


def letters_of(engine: SparkEngine, where: DeadLetterConfig) -> DeadLetters:
    """The store that `onError.deadLetter` names.

    Raises:
        Refused: the file system cannot keep letters; the queue or stream does not exist, or is denied.
    """
    return NamedFailures(_store(engine, where))


def _store(engine: SparkEngine, where: DeadLetterConfig) -> DeadLetters:
    if where.sqs:
        return SqsLetters(where.sqs, engine.stream.region)
    if where.kinesis:
        return KinesisLetters(where.kinesis, engine.stream, engine.identity)
    assert where.path  # noqa: S101 - the configuration has one of the three
    return FileLetters(engine.spark, where.path)

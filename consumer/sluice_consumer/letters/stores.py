"""Where dead letters go (docs/dead-letters.md): files, one a record and made only if there is none; or a queue or stream.

Until their batch is committed they wait: in a folder as files of another kind, those for a queue or stream in the checkpoint table.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Protocol

from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_checkpoints.letters import pending
from sluice_checkpoints.letters.letter import DeadLetter, DeadLetters, writable
from sluice_checkpoints.letters.pending import PendingName
from sluice_checkpoints.protocol import pending_letters
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_consumer.batches.batch_letters import Letters, LetterStore
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.config import DeadLetterConfig
from sluice_consumer.letters.services import KinesisLetters, SqsLetters
from sluice_consumer.sinks import edge
from sluice_consumer.sinks.files import stores
from sluice_consumer.spark.engine import SparkEngine

log = logging.getLogger(__name__)
FIELD = "onError.deadLetter.path"
ROW = "letters/"
WORDS = 300  # characters of an error in an error


class LetterNotWritten(SluiceError):
    """Dead letters were not stored, for a reason that nobody foresaw. Their records are not left out; it is not a failure of `process`."""


class NamedFailures:
    """A store of dead letters whose failures have a name. Implements `LetterStore`."""

    def __init__(self, store: LetterStore) -> None:
        self._store = store

    def hold(self, name: PendingName, letters: Letters) -> str | None:
        first = letters[0]
        with _named(f"the dead letter of record {first.sequence}/{first.sub} of {first.shard}"):
            return self._store.hold(name, letters)

    def held(self) -> Mapping[str, tuple[PendingName, Letters]]:
        return self._store.held()

    def publish(self, entry: str) -> bool:
        with _named(f"{entry}: a dead letter of a committed batch"):
            return self._store.publish(entry)

    def drop(self, entries: Iterable[str]) -> frozenset[str]:
        return self._store.drop(entries)


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    try:
        yield
    except SluiceError:
        raise
    except Exception as error:
        raise LetterNotWritten(
            f"onError.deadLetter: {what} was not stored ({type(error).__name__}: {writable(str(error), WORDS)}); "
            "no record is left out without its dead letter: the epoch ends, and the next driver tries it again. Open an issue"
        ) from error


class FileLetters:
    """A folder of dead letters on S3, HDFS or a disk."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        """Makes nothing yet.

        Raises:
            Refused: the file system is not known to create a file on a condition.
        """
        with edge.in_terms_of(FIELD, path):
            self._store, self._path = stores.hadoop_store(spark, path, FIELD), path.rstrip("/")

    def write(self, letter: DeadLetter) -> None:
        with edge.in_terms_of(FIELD, self._path):
            self._store.create(f"{self._path}/{letter.path}", letter.to_json().encode())


class FolderLetters(FileLetters):
    """The same with the pending dead letters of one consumer; their entries are paths of files. Implements `LetterStore`.

    Every method raises SinkUnavailable where the store does not answer, and Refused where it never will.
    """

    def __init__(self, spark: SparkSession, path: str, consumer: str, place: Callable[[str, int], None] = lambda _folder, _batch: None) -> None:
        """`place`: says in the table that rejected records of a batch wait in this folder; raises Fenced."""
        super().__init__(spark, path)
        self._place, self._pending = place, f"{self._path}/{consumer}/{pending.FOLDER}"
        self._newest = 0  # batch of which rejected records wait here: what a batch lets go is held under the next number while that batch is open

    def hold(self, name: PendingName, letters: Letters) -> str:
        entry, before = f"{self._pending}/{name}{pending.SUFFIX}", self._newest
        if name.kind == pending.REJECTED:
            self._newest = max(self._newest, name.batch)
            self._place(self._path, self._newest)
        try:
            with edge.in_terms_of(FIELD, self._path):
                self._store.create(entry, pending.to_text(letters).encode())
        except Refused:  # nothing waits here for it, and another folder may be named
            if self._newest != before:
                self._newest = before
                self._place(self._path, before)
            raise
        return entry

    def held(self) -> dict[str, tuple[PendingName, Letters]]:
        with edge.in_terms_of(FIELD, self._path):
            paths = [f"{self._pending}/{path}" for path, _ in self._store.files(self._pending) if path.endswith(pending.SUFFIX)]
            held = {path: (PendingName.parse(path), self._read(path)) for path in paths}
        self._newest = max((name.batch for name, _ in held.values() if name.kind == pending.REJECTED), default=0)
        return held

    def publish(self, entry: str) -> bool:
        if not entry.startswith(f"{self._path}/"):
            return False
        with edge.in_terms_of(FIELD, self._path):
            if self._store.exists(entry):
                for letter in self._read(entry):
                    self.write(letter)
            else:
                log.warning("%s: pending dead letters of a committed batch are gone; somebody deleted them", entry)
        return True

    def drop(self, entries: Iterable[str]) -> frozenset[str]:
        return frozenset(entry for entry in entries if self._dropped(entry))

    def _dropped(self, entry: str) -> bool:
        with edge.in_terms_of(FIELD, self._path):
            self._store.delete(entry)
            return not self._store.exists(entry)

    def _read(self, path: str) -> Letters:
        return pending.from_text(self._store.read(path).decode(), path)


class Queue(DeadLetters, Protocol):
    """A queue or stream of dead letters."""

    def check(self, letter: DeadLetter) -> None:
        """Refuses a dead letter that it would not take.

        Raises:
            Refused: it is too large. SinkUnavailable: the service did not say what it takes.
        """
        ...


class TableLetters:
    """Dead letters for a queue or stream; they wait in the row `letters` of the checkpoint table. Implements `LetterStore`.

    What finds no room there is sent at once.
    """

    def __init__(self, queue: Queue, store: CheckpointStore, epoch: Epoch) -> None:
        self._queue, self._store, self._epoch = queue, store, epoch
        self._texts = pending_letters.held(store)

    def hold(self, name: PendingName, letters: Letters) -> str | None:
        for letter in letters:
            self._queue.check(letter)
        texts = self._texts | {str(name): pending.to_text(letters)}
        if pending_letters.hold(self._store, self._epoch, texts):
            self._texts = texts
            return f"{ROW}{name}"
        for letter in letters:
            self._queue.write(letter)
        return None

    def held(self) -> Mapping[str, tuple[PendingName, Letters]]:
        return {f"{ROW}{name}": (PendingName.parse(name), pending.from_text(text, f"row letters: {name}")) for name, text in self._texts.items()}

    def publish(self, entry: str) -> bool:
        text = self._texts.get(entry.removeprefix(ROW))
        for letter in pending.from_text(text, entry) if text is not None else ():
            self._queue.write(letter)
        return text is not None

    def drop(self, entries: Iterable[str]) -> frozenset[str]:
        gone = frozenset(entries)
        texts = {name: text for name, text in self._texts.items() if f"{ROW}{name}" not in gone}
        pending_letters.hold(self._store, self._epoch, texts)
        self._texts = texts
        return gone


def check_former(store: CheckpointStore, committed: int, where: DeadLetterConfig | None) -> None:
    """Refuses to begin if dead letters of the open batch wait for another queue or in another folder: nobody would know what to leave out.

    Args:
        store: read after the lease was taken.
        committed: number of the last batch that is.
        where: `onError.deadLetter` as it is now.

    Raises:
        Refused: it is not a queue or stream any more, or not that folder.
    """
    folder = pending_letters.folder_of(store, committed + 1)
    if folder is not None and (where is None or (where.path or "").rstrip("/") != folder):
        raise Refused(
            f"onError.deadLetter: `process` rejected records of batch {committed + 1}, which is open, and their dead letters wait in {folder}; "
            "set onError.deadLetter.path back to it, let that batch be committed, then change it"
        )
    if where is not None and not where.path:
        return
    names = map(PendingName.parse, pending_letters.held(store))
    if any(name.batch > committed and name.kind == pending.REJECTED for name in names):
        raise Refused(
            f"onError.deadLetter: `process` rejected records of batch {committed + 1}, which is open, and their dead letters wait in row `letters` "
            f"of {store.table.name} for the former queue or stream; set onError.deadLetter back to it, let that batch be committed, then change it"
        )


def letters_of(engine: SparkEngine, where: DeadLetterConfig) -> Queue:
    """The queue or stream that `onError.deadLetter` names.

    Raises:
        Refused: it does not exist, or is denied.
    """
    if where.sqs:
        return SqsLetters(where.sqs, engine.stream.region)
    assert where.kinesis  # noqa: S101 - the configuration has one of the three, and this is not a folder
    return KinesisLetters(where.kinesis, engine.stream, engine.identity)


def store_of(engine: SparkEngine, where: DeadLetterConfig, consumer: Consumer) -> LetterStore:
    """The store that `onError.deadLetter` names, for one epoch.

    Raises:
        Refused: the file system cannot keep dead letters; the queue or stream does not exist, or is denied.
    """
    return NamedFailures(_store(engine, where, consumer))


def _store(engine: SparkEngine, where: DeadLetterConfig, consumer: Consumer) -> LetterStore:
    if not where.path:
        return TableLetters(letters_of(engine, where), consumer.store, consumer.epoch)
    assert consumer.row is not None  # noqa: S101 - begin() set it
    return FolderLetters(engine.spark, where.path, consumer.row.consumer_id, partial(pending_letters.place, consumer.store, consumer.epoch))

"""`redrive`: gives dead letters to `process` again, as a batch of their own (docs/dead-letters.md, "Redrive").

It needs no lease: its batches are those of another consumer, `<consumerId>-redrive`, so that no number of the stream's is used.
"""

from __future__ import annotations

import datetime
import json
import os
import socket
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_checkpoints.letters import pending
from sluice_checkpoints.letters.letter import DeadLetter, order
from sluice_checkpoints.letters.redrives import BEGUN, ENDED, FOLDER, GIVEN_UP, PROCESSED, REJECTED, Redrive, RedriveLog, log_of
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_consumer import logs, pipelines
from sluice_consumer.config import Config, configuration
from sluice_consumer.exits.ending import ending_of, report
from sluice_consumer.letters.stores import FIELD
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.process import spark_start, wiring
from sluice_consumer.sinks import edge
from sluice_consumer.sinks.files import stores
from sluice_consumer.sinks.files.stores import HadoopStore
from sluice_consumer.spark.engine import prepare
from sluice_consumer.spark.entrypoint import load
from sluice_consumer.spark.jobs import Jobs
from sluice_consumer.spark.schema import SCHEMA
from sluice_consumer.spark.status import SparkStatus

MOST = 10_000  # dead letters of a batch: the driver holds them


@dataclass(frozen=True)
class ConsumerLetters:
    """The dead letters of one consumer, and the log of its redrives."""

    store: HadoopStore
    root: str
    consumer: str

    def names(self) -> list[str]:
        """Of all final dead letters, below the consumer's folder, in the order of each shard."""
        return sorted((path for path, _ in self.store.files(self.path("")) if path.endswith(".json")), key=order)

    def pending(self) -> dict[str, DeadLetter]:
        """Dead letters of batches that are not committed, or that nobody has published, by name.

        Raises:
            Refused: a file of them is none.
        """
        files = [path for path, _ in self.store.files(self.path(pending.FOLDER)) if path.endswith(pending.SUFFIX)]
        letters = (letter for file in files for letter in self._held(self.path(f"{pending.FOLDER}/{file}")))
        return {letter.name: letter for letter in letters}

    def publish(self, entries: Sequence[str]) -> None:
        """Makes dead letters final of which the checkpoint table says that their batch is committed; the next driver does what is left to do.

        Raises:
            Refused: a file of them holds something else.
        """
        for entry in entries:
            if entry.startswith(f"{self.root}/") and self.store.exists(entry):
                for letter in self._held(entry):
                    self.store.create(f"{self.root}/{letter.path}", letter.to_json().encode())

    def letter(self, name: str) -> DeadLetter:
        """One of them.

        Raises:
            Refused: it is not there, or it is not a dead letter.
        """
        if ".." not in name.split("/") and not self.store.exists(self.path(name)) and (letter := self.pending().get(name)) is not None:
            raise Refused(
                f"{name}: is pending: batch {letter.batch} is not known to be committed. Wait until it is; a driver that has just "
                "started publishes what the previous one left"
            )
        if ".." in name.split("/") or not self.store.exists(self.path(name)):
            raise Refused(f"{name}: there is no such dead letter of {self.consumer}; `dead-letters list` has them")
        return DeadLetter.from_json(self.store.read(self.path(name)).decode(), name)

    def log(self) -> RedriveLog:
        """What was redriven.

        Raises:
            Refused: see `log_of`.
        """
        files = (f"{FOLDER}/{path}" for path, _ in self.store.files(self.path(FOLDER)) if path.endswith((BEGUN, ENDED)))
        return log_of((name, self.store.read(self.path(name)).decode()) for name in files)

    def begin(self, redrive: Redrive) -> None:
        """Fixes what a redrive contains.

        Raises:
            Refused: somebody else began one at the same time.
        """
        if not self.store.create(self.path(redrive.name + BEGUN), redrive.begun_json().encode()):
            raise Refused(
                f"another redrive was begun at the same time: look at it with `dead-letters list`, and run this again ({redrive.name}{BEGUN})"
            )

    def end(self, redrive: Redrive) -> None:
        """Says how it ended.

        Raises:
            Refused: somebody else has ended it since.
        """
        path, content = self.path(redrive.name + ENDED), redrive.ended_json()
        if not self.store.create(path, content.encode()) and self.store.read(path).decode() != content:
            raise Refused(f"redrive {redrive.number} is {redrive.ended}, but somebody else has ended it in another way: {path}")

    def path(self, name: str) -> str:
        """Where a file of this consumer is."""
        return f"{self.root}/{self.consumer}/{name}".rstrip("/")

    def _held(self, path: str) -> tuple[DeadLetter, ...]:
        return pending.from_text(self.store.read(path).decode(), path)


class RejectedAgain:
    """Takes what `process` rejects of a redrive: those dead letters stay dead letters. Implements `pipelines.Rejections`.

    A run that died may have stored the others, so they stay rejected: the next run is without them. One that raised has rejected nothing.
    """

    def __init__(self, letters: ConsumerLetters, redrive: Redrive) -> None:
        """Reads what runs of it that died have rejected."""
        self._letters, self._name, self._mine = letters, redrive.name, dict[str, set[str]]()
        files = [f"{FOLDER}/{path}" for path, _ in letters.store.files(letters.path(FOLDER)) if path.endswith(REJECTED)]
        mine = [name for name in files if name.startswith(f"{redrive.name}.")]
        self.before: frozenset[str] = frozenset().union(*(json.loads(letters.store.read(letters.path(name))) for name in mine))

    @property
    def names(self) -> tuple[str, ...]:
        """Of all that are rejected."""
        return tuple(sorted(self.before.union(*self._mine.values()), key=order))

    def reject(self, letters: Sequence[DeadLetter]) -> None:
        if names := {letter.name for letter in letters}:
            file = self._letters.path(f"{self._name}.{uuid.uuid4().hex}{REJECTED}")
            self._letters.store.create(file, json.dumps(sorted(names)).encode())
            self._mine[file] = names

    def raised(self) -> None:
        for file in self._mine:
            self._letters.store.delete(file)
        self._mine.clear()


def chosen(letters: ConsumerLetters, log: RedriveLog, names: Sequence[str]) -> list[str]:
    """The dead letters to redrive: those that are named, or all that were not redriven."""
    if names:
        return sorted({name.removeprefix(f"{letters.consumer}/") for name in names}, key=order)
    return [name for name in letters.names() if log.of(name) is None][:MOST]


def run(spark: SparkSession, config: Config, letters: ConsumerLetters, redrive: Redrive, *, replay: bool) -> Redrive:
    """Gives the dead letters to `process`, and returns the redrive as ended.

    Raises:
        JobsNotDone, or whatever `process` raises: the redrive has not ended.
    """
    rejected = RejectedAgain(letters, redrive)
    chosen = [letters.letter(name) for name in redrive.letters if name not in rejected.before]
    process, jobs = load(config.pipeline.entrypoint), Jobs(SparkStatus(spark))
    prepare(process, spark, config.pipeline.args)
    shards = tuple(sorted({letter.shard for letter in chosen}))
    info = BatchInfo(f"{letters.consumer}-redrive", redrive.number, replay, config.stream.name, shards, config.pipeline.args)
    pipelines.LETTERS.keep(info.consumer, rejected)
    pipelines.LETTERS.begin(info.consumer)
    try:
        process(frame(spark, chosen), info)
    except Exception:
        pipelines.LETTERS.raised(info.consumer)
        raise
    jobs.check()
    return replace(redrive, ended=PROCESSED, rejected=rejected.names)


def frame(spark: SparkSession, letters: Sequence[DeadLetter]) -> DataFrame:
    """The records of dead letters, as a batch has them: those of a shard in one partition, in their order. Spark would deal a list to all cores."""
    return spark.createDataFrame(list(_rows(letters)), SCHEMA).coalesce(1)


def _rows(letters: Sequence[DeadLetter]) -> Iterator[tuple[Any, ...]]:
    for each in sorted(letters, key=lambda letter: (letter.shard, int(letter.sequence), letter.sub)):
        arrival = datetime.datetime.fromtimestamp(each.arrival_millis / 1000, datetime.UTC)
        yield (each.partition_key, bytearray(each.data), each.stream, each.shard, each.sequence, each.sub, arrival)


def _folder(config: Config) -> str:
    where = config.on_error.dead_letter if config.on_error else None
    if where is None or not where.path:
        raise Refused(f"{FIELD}: missing; dead letters are redriven from a folder. A queue or a stream has consumers of its own")
    return where.path.rstrip("/")


def _owner(config: Config) -> ConsumerRow:
    row = wiring.store(config).consumer()
    if row is None:
        raise Refused(f"checkpoints.table: {config.checkpoints.table} holds no consumer; name one with --consumer")
    return row


def redrive(spark: SparkSession, config: Config, consumer: str | None, names: Sequence[str], how: str = "new") -> dict[str, Any]:
    """One redrive, and what is printed about it.

    Args:
        spark: a session with what the pipeline needs.
        config: of the consumer.
        consumer: whose dead letters; None: those of the checkpoint table's consumer.
        names: of dead letters; none: all that were not redriven.
        how: "new", "resume" or "give-up".

    Raises:
        Refused: see `RedriveLog.next`; or nothing is open that could be resumed. SinkUnavailable: the folder does not answer.
        Else what `process` raises.
    """
    root, row = _folder(config), None if consumer else _owner(config)
    owner = consumer or (row.consumer_id if row else "")
    with edge.in_terms_of(FIELD, root):
        letters = ConsumerLetters(stores.hadoop_store(spark, root, FIELD), root, owner)
        letters.publish(row.letters if row else ())
        log = letters.log()
        begun = log.open if how != "new" else _next(letters, log, names)
        if how != "new" and begun is None:
            raise Refused(f"no redrive of {owner} is open: there is nothing to --{how}")
        waiting = len(letters.pending().keys() - set(letters.names()))
        if begun is None:
            return {"redriven": 0, "pending": waiting}
        if how == "new":
            letters.begin(begun)
    ended = replace(begun, ended=GIVEN_UP) if how == "give-up" else _run(spark, config, letters, begun, replay=how == "resume")
    with edge.in_terms_of(FIELD, root):
        letters.end(ended)
    result = {"batch": ended.number, "ended": ended.ended, "redriven": len(ended.processed), "rejected": ended.rejected, "pending": waiting}
    return {"consumer": f"{owner}-redrive", **result}


def _next(letters: ConsumerLetters, log: RedriveLog, names: Sequence[str]) -> Redrive | None:
    wanted = chosen(letters, log, names)
    by = f"{socket.gethostname()}/{os.getpid()} at {datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')}"
    following = log.next(wanted, by)  # refuses what is open, too
    for name in wanted:
        letters.letter(name)  # all of them are there, and are dead letters, before anything is begun
    return following if wanted else None


def _run(spark: SparkSession, config: Config, letters: ConsumerLetters, redrive: Redrive, *, replay: bool) -> Redrive:
    many = len(redrive.letters)
    logs.say(f"redrive {redrive.number}: {counted(many, 'letter')} of {letters.consumer} {'goes' if many == 1 else 'go'} through process")
    try:
        return run(spark, config, letters, redrive, replay=replay)
    except Exception:
        logs.warn(
            f"redrive {redrive.number} failed, and is open: --resume gives its dead letters to `process` again, --give-up leaves them as they were"
        )
        raise


@click.command()
@click.option("--config", "path", type=click.Path(path_type=Path), required=True)
@click.option("--consumer")
@click.option("--how", type=click.Choice(["new", "resume", "give-up"]), default="new")
@click.option("--master", default="local[2]")
@click.argument("names", nargs=-1)
def main(path: Path, consumer: str | None, how: str, master: str, names: tuple[str, ...]) -> None:
    """The program behind `python -m sluice_consumer redrive`; prints a document."""
    logs.configure()
    try:
        config = configuration(path)
        _folder(config)  # refused before Spark starts
        result = redrive(spark_start.session(config, master), config, consumer, names, how)
    except SluiceError as error:
        report(ending_of(error))
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001 - whatever `process` raised
        logs.log.exception("process failed")
        report(ending_of(error))
        sys.exit(1)
    print(json.dumps(result), flush=True)  # noqa: T201 - what this program is for
    os._exit(0)  # Spark has nothing left to say


if __name__ == "__main__":
    main()

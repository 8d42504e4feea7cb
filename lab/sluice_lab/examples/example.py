"""One example: records for its stream, its program run to the tip, and killed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.migrate.store import MigrationStore
from sluice_checkpoints.names import counted
from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.examples import manifest
from sluice_lab.examples.manifest import Json
from sluice_lab.examples.surroundings import ExampleSurroundings
from sluice_lab.machine import processes
from sluice_lab.machine.processes import Program, Running
from sluice_lab.scenario.producer import MAX_PUT
from sluice_lab.scenario.topology import Stream

CONSUMER = ("-m", "sluice_consumer", "--master", "local[2]")
SHARDS = 2
LEASE_SECONDS = 10  # the next driver waits so long after a kill; the manifests' 20 s would only make the tests longer
INTERVAL_SECONDS = 1  # likewise, for the manifests' minute
SECONDS = 300.0
CREATE = """
import json, sys
from pyspark.sql import SparkSession

settings, statements = json.loads(sys.argv[1]), open(sys.argv[2]).read()
builder = SparkSession.builder.master("local[1]").config(map={**settings, "spark.ui.enabled": "false"})
spark = builder.getOrCreate()
for statement in filter(str.strip, statements.split(";")):
    spark.sql(statement)
"""


@dataclass(frozen=True)
class Example:
    """An example's folder, what is around it, and a folder for what its runs leave.

    Attributes:
        environment: what a Secret of the manifest gives to its pods.
        spark: Spark's settings that replace a service which is not emulated.
    """

    folder: Path
    around: ExampleSurroundings
    scratch: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)

    def configuration(self) -> Json:
        """What the operator makes of consumer.yaml, with the emulators' endpoints, a short lease and a short interval."""
        made = manifest.configuration(self.folder / "consumer.yaml", self.endpoints())
        settings = {**made["sparkConf"], **self.around.spark_settings(), **self.spark}
        batch = {**made.get("batch", {}), "intervalSeconds": INTERVAL_SECONDS}
        return {**made, "sparkConf": settings, "leaseDurationSeconds": LEASE_SECONDS, "batch": batch}

    def endpoints(self) -> dict[str, str]:
        """Where the stream and the checkpoint table are."""
        return {"kinesisEndpoint": self.around.aws.kinesis_endpoint, "dynamodbEndpoint": self.around.aws.dynamodb_endpoint}

    def create(self, statements: str) -> None:
        """Run a file of SQL of the example, with the settings of its manifest."""
        settings = {name: value for name, value in self.configuration()["sparkConf"].items() if name.startswith(("spark.sql.", "spark.hadoop."))}
        argv = (str(self.around.python), "-c", CREATE, json.dumps(settings), str(self.folder / statements))
        processes.run(*argv, cwd=self.scratch, env=self._environment(), seconds=SECONDS)

    def story(self, documents: Sequence[Json], *, key: str, run: ExampleRun | None = None) -> Iterator[Sequence[Json]]:
        """Half of the documents, to the tip; the others, killed in a batch, then to the tip. Yields what the sink must hold each time.

        Args:
            documents: records of the stream, as JSON.
            key: the field that is the partition key.
            run: the example's own program; None: the consumer of consumer.yaml.
        """
        if run is None:
            config = self.configuration()
            run = ExampleRun(self, CONSUMER, config, config["stream"]["name"], config["checkpoints"]["table"])
        half = len(documents) // 2
        Stream(self.around.aws.kinesis, run.stream).create(SHARDS)
        run.put(documents[:half], key)
        run.to_the_tip()
        yield documents[:half]
        run.put(documents[half:], key)
        run.killed_in_a_batch()
        run.to_the_tip()
        yield documents

    def _environment(self) -> dict[str, str]:
        found = {**self.around.environment(), **self.environment}
        return {**found, "PYTHONPATH": f"{self.folder}:{found['PYTHONPATH']}"}


@dataclass(frozen=True)
class ExampleRun:
    """A program, run again and again.

    Attributes:
        command: what Python is given; it takes `--config FILE` and `--until-tip`.
        config: what is in the file.
        stream, table: names of the stream, and of the checkpoint table.
    """

    example: Example
    command: tuple[str, ...]
    config: Json
    stream: str
    table: str

    def put(self, documents: Sequence[Json], key: str) -> None:
        """Put documents into the stream.

        Raises:
            LabError: the stream refused some.
        """
        for start in range(0, len(documents), MAX_PUT):
            records = [{"PartitionKey": str(each[key]), "Data": json.dumps(each).encode()} for each in documents[start : start + MAX_PUT]]
            reply = self.example.around.aws.kinesis.put_records(StreamName=self.stream, Records=records)
            if reply["FailedRecordCount"]:
                raise LabError(f"{self.stream}: {counted(reply['FailedRecordCount'], 'record')} refused")

    def to_the_tip(self) -> None:
        """Run the program until it has processed all that is in the stream.

        Raises:
            LabError: it failed, or did not end.
        """
        running = self._start()
        try:
            code = self._process(running).wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            processes.kill_tree(running)
            running.stop()
        if code != 0:
            raise LabError(f"{running.name} ended with {code}; its log, {running.log}, ends:\n{self._said(running)}")

    def killed_in_a_batch(self) -> None:
        """Kill the program, and all that it started, as soon as the content of a new batch is written down.

        Raises:
            LabError: it ended without being stopped.
        """
        running, committed = self._start(), self._batches()[0]
        try:
            if not processes.poll(lambda: self._batches()[1] > committed or not running.alive(), SECONDS, pause=0.02) or not running.alive():
                raise LabError(f"{running.name} had no new batch; its log, {running.log}, ends:\n{self._said(running)}")
        finally:
            processes.kill_tree(running)
            running.stop()

    def _batches(self) -> tuple[int, int]:
        """The last batch that is committed, and the last one that a shard was read for."""
        store = MigrationStore(DynamoTable(self.table, self.example.around.aws.dynamodb))
        consumer = store.consumer()
        return (consumer.committed if consumer else 0), max((row.batch for row in store.shards().values()), default=0)

    def _start(self) -> Running:
        path = self.example.scratch / "config.json"
        path.write_text(json.dumps(self.config))
        argv = (str(self.example.around.python), *self.command, "--until-tip", "--config", str(path))
        name = f"example-{self.example.folder.name}"
        return processes.start(places.work(), Program(name, argv, env=self.example._environment(), cwd=self.example.scratch))  # noqa: SLF001 - its own

    @staticmethod
    def _process(running: Running) -> subprocess.Popen[bytes]:
        assert running.process is not None  # noqa: S101 - it was started here
        return running.process

    @staticmethod
    def _said(running: Running) -> Any:
        return processes.tail(running.log.read_text(errors="replace"), lines=40)

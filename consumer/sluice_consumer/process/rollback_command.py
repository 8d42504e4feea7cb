"""`rollback-sink`: prints what takes a consumer's batches out of its sink again (docs/how-to/undo-a-deploy.md). It carries nothing out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from rich.markup import escape

from sluice_checkpoints.cli.guard import guarded
from sluice_checkpoints.cli.report import Output
from sluice_checkpoints.errors import Refused
from sluice_consumer.config import Config, configuration
from sluice_consumer.process import spark_start, wiring
from sluice_consumer.sinks import rollback, rollback_reading
from sluice_consumer.sinks.rollback import Rollback


@dataclass(frozen=True)
class RollbackOptions:
    """The options of the command, as click names them."""

    config: Path
    to_batch: int
    sink: str | None
    place: str | None
    consumer: str | None
    master: str


def run(options: RollbackOptions, *, as_json: bool) -> int:
    """Prints the statements, and returns the exit code."""
    output = Output(as_json=as_json)
    return guarded(output, lambda: _report(statements(options), output), terminal=False, to_be_read=True)


def statements(options: RollbackOptions) -> Rollback:
    """The statements for a configuration's sink.

    Raises:
        Refused: the configuration names no sink that can be rolled back, or its table does not show what was in front of the batch.
        SinkUnavailable: it does not answer.
    """
    config = configuration(options.config)
    sink = options.sink or rollback_reading.sink_of(config)
    place = options.place or rollback_reading.place_of(config, sink)
    consumer = options.consumer or _consumer(config)
    return rollback_reading.read(spark_start.session(config, options.master), sink, place, consumer, options.to_batch)


def _consumer(config: Config) -> str:
    row = wiring.store(config).consumer()
    if row is None:
        raise Refused(f"checkpoints.table: {config.checkpoints.table} holds no consumer; name one with --consumer")
    return row.consumer_id


def _report(plan: Rollback, output: Output) -> None:
    if output.as_json:
        output.document({**asdict(plan), "message": rollback.summary(plan)})
        return
    end = ";" if plan.sink != "parquet" else ""
    for statement in plan.statements:
        output.out.file.write(f"{statement}{end}\n")
    output.log.print(escape(rollback.summary(plan)), soft_wrap=True)
    for each in plan.others:
        output.log.print(f"[yellow]also taken out[/] {escape(each)}", soft_wrap=True)
    for each in plan.stays:
        output.log.print(f"stays: {escape(each)}", soft_wrap=True)

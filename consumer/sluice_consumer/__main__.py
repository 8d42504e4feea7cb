"""`python -m sluice_consumer --config FILE [--master local[2]] [--until tip|TIME]`: runs a consumer, in a pod or on a laptop.

With `--check` it only looks whether one could start. `… dev` runs one on emulators; `… redrive` gives dead letters to `process` again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click

from sluice_checkpoints.errors import SluiceError
from sluice_checkpoints.protocol.lease import Watcher
from sluice_consumer import config as configs
from sluice_consumer import logs
from sluice_consumer.checks.model import SECONDS, StartFacts
from sluice_consumer.config import UntilConfig
from sluice_consumer.driver_report import DriverReport, ReportPhase
from sluice_consumer.exits.ending import Interrupted, Stopped, ending_of, finish
from sluice_consumer.process import child_process, configmap_code, pod
from sluice_consumer.process.pod import PodAnnotations
from sluice_consumer.spark.entrypoint import find_in_working_folder

STANDBY = "--standby"
UNTAKEN = "stopped before the lease was taken: nothing was read"


def supervise(path: Path, arguments: list[str], until: UntilConfig | None = None, check_seconds: float = SECONDS) -> int:
    """Runs one epoch and returns its exit code. The driver takes longest to start, so it begins before this process imports what it needs itself."""
    with child_process.starting([sys.executable, "-m", "sluice_consumer.process.driver_program", *arguments]) as driver:
        return _hold(path, driver, until, check_seconds, standby=STANDBY in arguments)


def _hold(path: Path, driver: child_process.DriverProcess, until: UntilConfig | None, check_seconds: float, *, standby: bool) -> int:
    from sluice_consumer.checks import run as checks  # noqa: PLC0415 - see `supervise`
    from sluice_consumer.process import standby as standing  # noqa: PLC0415
    from sluice_consumer.process import supervisor, wiring  # noqa: PLC0415

    config, environment = checks.before_start(path, os.environ, until, check_seconds)
    if standby:
        standing.check(config)
    os.environ.update(environment)
    child_process.permit(driver, environment)
    here = pod.from_environment()
    reporter = pod.Reporter(PodAnnotations(here) if here else None)
    reporter.update(lambda report: replace(report, phase=ReportPhase.STARTING))
    store = supervisor.open_table(config, made=pod.table_made())
    keeper = supervisor.Supervisor(config, store, wiring.beating_store(config))
    signal.signal(signal.SIGTERM, keeper.on_term)
    signal.signal(signal.SIGINT, keeper.on_term)
    try:
        if standby:
            phases = standing.Readiness(lambda: reporter.update(_standing_by), lambda: reporter.update(_not_ready))
            taken = standing.take(keeper, config, driver, readiness=phases)
        else:
            taken = keeper.take(Watcher(notify=_announce(reporter)))
    except standing.DriverOver:
        return finish(standing.ending(driver))
    child_process.order(driver, taken, reporter.hand_over(_starting(taken.epoch.generation)))
    return finish(keeper.watch(driver, taken))


def _standing_by(report: DriverReport) -> DriverReport:
    """What the operator waits for before it drains the driver that works."""
    return replace(report, phase=ReportPhase.STANDING_BY)


def _not_ready(report: DriverReport) -> DriverReport:
    """The table does not answer a standby. Nobody may count on it."""
    return replace(report, phase=ReportPhase.STARTING)


def _starting(generation: int) -> pod.ReportChange:
    return lambda report: replace(report, phase=ReportPhase.STARTING, deadline=None, generation=generation)


def _announce(reporter: pod.Reporter) -> Callable[[float], None]:
    def announce(seconds: float) -> None:
        logs.say(f"the previous driver did not release its lease; waiting {seconds:.0f} s to be sure that it has stopped")
        reporter.update(lambda report: replace(report, phase=ReportPhase.WAITING_OUT_LEASE, deadline=logs.in_seconds(seconds)))

    return announce


RUNNING = (
    click.option("--master", help="Master URL of Spark.  [default: spark.master of sparkConf, else local[2]]"),
    click.option(
        "--until",
        metavar="tip|TIME",
        help="`tip`: stop once every record is processed that had arrived at the start. An ISO 8601 time with a zone: stop in each shard before the "
        "first record that arrived then or later.",
    ),
    click.option(
        "--standby",
        is_flag=True,
        help="Start Spark and load the pipeline, then wait until the driver that works releases its lease or loses it.",
    ),
    click.option(
        "--slot-share",
        type=click.FloatRange(0.01, 1),
        default=0.25,
        show_default=True,
        help="Share of Spark's slots in which a batch of one consumer is read, if --config is given more than once.",
    ),
    click.option("--check", "only_check", is_flag=True, help="Check whether a consumer can start. Nothing is written, held or started."),
    click.option("--json", "as_json", is_flag=True, help="Print the result of --check as one JSON document."),
    click.option(
        "--check-seconds",
        type=click.FloatRange(0.1, 60),
        default=SECONDS,
        show_default=True,
        help="Time limit for each check, of --check or before a start.",
    ),
)


def _running(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(RUNNING):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@click.option(
    "--config",
    "paths",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Configuration file (JSON, docs/interfaces.md). Required, except for `dev`. Repeat it to run several consumers in one Spark.",
)
@_running
@click.pass_context
def main(context: click.Context, /, paths: tuple[Path, ...], **options: Any) -> None:
    """Run a consumer until SIGTERM, which drains it.

    Exit codes: 0 drained, or done · 65 refused: you have to act · 75 try again later · 76 another driver took over · 1 anything else.
    With --check: 0 a consumer can start · 65 it cannot, or a service does not answer.
    """
    if context.invoked_subcommand is not None:
        return
    if not paths:
        raise click.UsageError("Missing option '--config'.")
    check_or_consume(paths, **options)


def check_or_consume(
    paths: tuple[Path, ...], *, only_check: bool, check_seconds: float, as_json: bool, slot_share: float, standby: bool, **options: Any
) -> NoReturn:
    """Runs a consumer, or several in one Spark, or looks whether one could."""
    find_in_working_folder()
    path, *others = paths
    if only_check:
        if others:
            raise click.UsageError("Option '--check' takes one '--config'; check each configuration separately.")
        with tempfile.TemporaryDirectory() as scratch:
            sys.exit(check(StartFacts(path, check_seconds, scratch=Path(scratch), until=options["until"]), as_json=as_json))
    if as_json:
        raise click.UsageError("Option '--json' needs '--check'.")
    if standby and others:
        raise click.UsageError("Option '--standby' takes one '--config'.")
    if standby and options["until"]:
        raise click.UsageError("Option '--standby' is for a run without an end: leave out '--until'.")
    if others:
        consume_together(paths, slot_share=slot_share, check_seconds=check_seconds, **options)
    consume(path, check_seconds=check_seconds, standby=standby, **options)


def check(facts: StartFacts, *, as_json: bool) -> int:
    """Prints what speaks against a start, and returns the exit code."""
    from sluice_consumer.checks import report, run  # noqa: PLC0415 - imports rich, which only a person needs

    results = list(run.results(facts))
    if as_json:
        click.echo(report.as_json(results))
    else:
        report.show(results, report.console())
    report.terminate(results)
    return report.exit_code(results)


@click.command()
@click.option(
    "--config",
    "paths",
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    help="Configuration file (JSON, docs/interfaces.md). Repeat it to run several consumers in one Spark.",
)
@_running
def run(paths: tuple[Path, ...], **options: Any) -> None:
    """Run a consumer until SIGTERM, which drains it. The same program as `python -m sluice_consumer`."""
    check_or_consume(paths, **options)


@main.command()
@click.argument("entrypoint", metavar="[MODULE:FUNCTION]", required=False)
@click.option(
    "--manifest",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with a KinesisConsumer. Its entrypoint, args, env, batch, onError and sparkConf are used, as in its driver.",
)
@click.option(
    "--file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File whose lines are the records, including lines that you append.  [default: standard input]",
)
@click.option("--arg", "args", multiple=True, metavar="NAME=VALUE", help="Argument of info.args, as JSON or text. Repeatable.")
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="Setting of Spark, as in sparkConf. Repeatable.")
@click.option("--shards", type=click.IntRange(1, 50), default=2, show_default=True, help="Number of shards of the stream.")
@click.option("--interval", type=click.FloatRange(min=0), help="Seconds from batch to batch.  [default: that of the manifest, or 1]")
def dev(**options: Any) -> None:
    """Run your function, or a manifest, on emulated Kinesis. Each line is a record, and a saved file is reloaded. Needs the extra `local`."""
    from sluice_consumer.dev import program  # noqa: PLC0415 - imports Spark, which this process does not need otherwise

    sys.exit(program.run(program.CommandLine(**options)))


@main.command()
@click.option(
    "--config", required=True, metavar="FILE", help="Configuration file of the consumer. It names the pipeline and the folder of the dead letters."
)
@click.option("--consumer", metavar="ID", help="Consumer id whose dead letters are redriven.  [default: that of the checkpoint table]")
@click.option("--resume", "how", flag_value="resume", help="Continue the redrive that has not ended, with the same dead letters and the same number.")
@click.option("--give-up", "how", flag_value="give-up", help="End the open redrive without `process`. Its dead letters can be redriven again.")
@click.option("--master", default="local[2]", show_default=True, help="Master URL of Spark.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.argument("names", nargs=-1)
def redrive(config: str, consumer: str | None, how: str | None, master: str, names: tuple[str, ...], *, as_json: bool) -> None:
    """Redrive dead letters: give those NAMES, or all, to the pipeline's `process` as a separate batch. Each only once."""
    from sluice_consumer.redrive import redrive_command  # noqa: PLC0415 - imports rich, which only a person needs

    whose = ["--consumer", consumer] if consumer else []
    arguments = ["--config", config, *whose, "--how", how or "new", "--master", master, "--", *names]
    sys.exit(redrive_command.run(arguments, as_json=as_json))


@main.command()
@click.option(
    "--config", "path", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Configuration file of the pool (JSON, docs/pools.md)."
)
def pool(path: Path) -> None:
    """Run the consumers that have a seat in this pod, in one Spark. For the pods that the operator makes."""
    from sluice_consumer.group import pool_program  # noqa: PLC0415 - only a pool needs it

    def run() -> int:
        with _stopping_early((), None):
            return pool_program.run(path)

    _end_with(run)


@main.command("rollback-sink")
@click.option(
    "--config", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Configuration file of the consumer. It names the sink."
)
@click.option("--to-batch", required=True, type=click.IntRange(1), metavar="N", help="First batch to take out. The sink becomes as it was before N.")
@click.option("--sink", type=click.Choice(["iceberg", "delta", "parquet"]), help="Kind of sink, if your own `process` calls it.")
@click.option("--place", metavar="TABLE", help="Table or path of the sink.  [default: that of pipeline.args]")
@click.option("--consumer", metavar="ID", help="Consumer id whose batches are taken out.  [default: that of the checkpoint table]")
@click.option("--master", default="local[2]", show_default=True, help="Master URL of Spark.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def rollback_sink(*, as_json: bool, **options: Any) -> None:
    """Print the statements that take batch N and all later ones out of a sink. Nothing is carried out."""
    from sluice_consumer.process import rollback_command  # noqa: PLC0415 - imports Spark, which this process does not need otherwise

    sys.exit(rollback_command.run(rollback_command.RollbackOptions(**options), as_json=as_json))


COMMANDS = {"run": run, "dev": dev, "rollback-sink": rollback_sink}  # of the program `sluice`


def consume(path: Path, *, check_seconds: float, master: str | None, until: str | None, standby: bool) -> NoReturn:
    """Runs one consumer, and ends this process with its exit code."""
    arguments = [
        "--config",
        str(path),
        *(["--master", master] if master else []),
        *(["--until", until] if until else []),
        *([STANDBY] if standby else []),
    ]

    def run() -> int:
        end = configs.until(until)
        with _stopping_early([path], end):
            return supervise(path, arguments, end, check_seconds)

    _end_with(run)


def consume_together(paths: tuple[Path, ...], *, slot_share: float, check_seconds: float, master: str | None, until: str | None) -> NoReturn:
    """Runs several consumers in one Spark, and ends this process with the exit code of the group."""
    from sluice_consumer.group import program  # noqa: PLC0415 - only a group needs it

    def run() -> int:
        end = configs.until(until)
        with _stopping_early(paths, end):
            return program.run(program.GroupOptions(paths, master, slot_share, end, check_seconds))

    _end_with(run)


@contextlib.contextmanager
def _stopping_early(paths: Sequence[Path], until: UntilConfig | None) -> Iterator[None]:
    """Names a stop that comes before there is a driver to drain. Both signals raise here until the supervisor handles them, before it takes a lease.

    A container's first process would not even hear of a SIGTERM that it does not handle.

    Raises:
        Stopped: nothing was read. Interrupted: the same, of a run with an end; only 0 means that an end was reached.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except (Stopped, KeyboardInterrupt) as error:
        words = str(error) if isinstance(error, Stopped) else UNTAKEN
        if until or any(configs.configuration(path).until for path in paths):
            raise Interrupted(words) from error
        raise Stopped(words) from error


def _end_with(run: Callable[[], int]) -> NoReturn:
    """Ends this process with the exit code of a supervisor. If it raises, the error is the container's exit message."""
    logs.configure()
    try:
        configmap_code.take(os.environ)
        code = run()
    except SluiceError as error:
        code = finish(ending_of(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, the container's exit message must name it
        logs.log.exception("the supervisor failed")
        code = finish(ending_of(error))
    sys.stdout.flush()
    os._exit(code)  # a heart's thread may be inside a call that has no end


if __name__ == "__main__":
    main()

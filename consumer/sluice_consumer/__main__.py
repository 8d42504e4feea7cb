"""`python -m sluice_consumer --config FILE [--master local[2]] [--until-tip]`: runs a consumer, in a pod or on a laptop; `… dev`: on emulators."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click

from sluice_checkpoints.errors import SluiceError
from sluice_checkpoints.protocol.lease import Watcher
from sluice_consumer import logs
from sluice_consumer.config import Config, configuration
from sluice_consumer.process import child_process, entrypoint_check, pod, source, supervisor, wiring
from sluice_consumer.process.ending import Interrupted, ending_of
from sluice_consumer.process.supervisor import Stopped, Supervisor


def supervise(config: Config, arguments: list[str]) -> int:
    """Runs one epoch and returns its exit code."""
    entrypoint_check.check(config.pipeline.entrypoint)
    here = pod.from_environment()
    reporter = pod.Reporter(pod.PodAnnotations(here) if here else None)
    reporter.update(phase="Starting")
    store = supervisor.open_table(config, made=pod.table_made())
    keeper = Supervisor(config, store, wiring.beating_store(config))
    signal.signal(signal.SIGTERM, keeper.on_term)
    signal.signal(signal.SIGINT, keeper.on_term)
    with child_process.starting([sys.executable, "-m", "sluice_consumer.process.driver", *arguments]) as driver:
        taken = keeper.take(Watcher(notify=_announce(reporter)))
        child_process.order(driver, taken, reporter.hand_over(phase="Starting", deadline=None, generation=taken.epoch.generation))
        return supervisor.finish(keeper.watch(driver, taken))


def _announce(reporter: pod.Reporter) -> Callable[[float], None]:
    def announce(seconds: float) -> None:
        logs.say(f"the lease was not released: watching it for {seconds:.0f} s before taking it")
        reporter.update(phase="WaitingOutLease", deadline=logs.in_seconds(seconds))

    return announce


MASTER = click.option("--master", help="Spark master; default: sparkConf's spark.master, else local[2]")
UNTIL_TIP = click.option("--until-tip", is_flag=True, help="stop, drained, once everything that is in the stream was processed")


@click.group(invoke_without_command=True)
@click.option("--config", "path", type=click.Path(path_type=Path), help="configuration (JSON, docs/interfaces.md); required, but for `dev`")
@MASTER
@UNTIL_TIP
@click.pass_context
def main(context: click.Context, path: Path | None, master: str | None, until_tip: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Runs a consumer until SIGTERM, which drains it."""
    if context.invoked_subcommand is not None:
        return
    if path is None:
        raise click.UsageError("Missing option '--config'.")
    consume(path, master, until_tip=until_tip)


@click.command()
@click.option("--config", "path", type=click.Path(path_type=Path), required=True, help="configuration (JSON, docs/interfaces.md)")
@MASTER
@UNTIL_TIP
def run(path: Path, master: str | None, until_tip: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Runs a consumer until SIGTERM, which drains it: `python -m sluice_consumer` under the name `sluice run`."""
    consume(path, master, until_tip=until_tip)


@main.command()
@click.argument("entrypoint", metavar="MODULE:FUNCTION")
@click.option("--file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="feed its lines; default: those of standard input")
@click.option("--arg", "args", multiple=True, metavar="NAME=VALUE", help="of info.args; several times; JSON, or text")
@click.option("--shards", type=click.IntRange(1, 50), default=2, show_default=True, help="of the stream")
@click.option("--interval", type=click.FloatRange(min=0), default=1.0, show_default=True, help="seconds from batch to batch")
def dev(entrypoint: str, file: Path | None, args: tuple[str, ...], shards: int, interval: float) -> None:
    """Runs your function on emulated Kinesis: each line is a record, a saved file runs anew. Needs the extra `local`."""
    from sluice_consumer.dev import program  # noqa: PLC0415 - imports Spark, which this process does not need otherwise

    sys.exit(program.run(entrypoint, file, args, shards=shards, interval=interval))


def consume(path: Path, master: str | None, *, until_tip: bool) -> None:
    """Runs one consumer, and ends this process with its exit code."""
    logs.configure()
    arguments = ["--config", str(path), *(["--master", master] if master else []), *(["--until-tip"] if until_tip else [])]
    try:
        source.take(os.environ)
        code = supervise(configuration(path), arguments)
    except SluiceError as error:
        unfinished = until_tip and isinstance(error, Stopped)
        code = supervisor.finish(ending_of(Interrupted(str(error)) if unfinished else error))
    except Exception as error:  # noqa: BLE001 - whatever it is, the container's last words must say it
        logs.log.exception("the supervisor failed")
        code = supervisor.finish(ending_of(error))
    sys.stdout.flush()
    os._exit(code)  # the heart's thread may be inside a call that has no end


if __name__ == "__main__":
    main()

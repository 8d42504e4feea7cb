"""The driver's program. Its JVM takes longest to start, so it is begun first, and everything else is imported while it boots.

The supervisor starts it (`python -m sluice_consumer`) before it holds the lease, and before it knows whether Spark may start.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from sluice_consumer import logs
from sluice_consumer.config import configuration, with_end
from sluice_consumer.exits.ending import OwnWord, leave
from sluice_consumer.process.child_process import die_with_parent
from sluice_consumer.process.lease_handoff import permission, standard_input
from sluice_consumer.process.spark_start import SparkStart


@click.command()
@click.option("--config", "path", type=click.Path(path_type=Path), required=True)
@click.option("--master")
@click.option("--until")
@click.option("--standby", is_flag=True)
def main(path: Path, master: str | None, until: str | None, standby: bool) -> None:  # noqa: FBT001 - click passes flags so
    """The driver process; started by `python -m sluice_consumer`."""
    logs.configure()
    die_with_parent()
    OwnWord.open()
    pipe = standard_input()
    start = SparkStart(path, master)
    from sluice_consumer.process.driver import Driver, attempt, finish  # noqa: PLC0415 - the JVM boots in that time

    environment = permission(pipe)
    os.environ.update(environment)
    config = with_end(configuration(path), until)
    driver = Driver(config, pipe, lambda: start.session(config, environment), standby=standby)
    leave(finish(driver, attempt(driver)))  # Spark's and probes' threads have nothing left to say


if __name__ == "__main__":
    main()

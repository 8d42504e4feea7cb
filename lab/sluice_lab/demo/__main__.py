"""`python -m sluice_lab.demo [--local | --clean]`: exit 0 only if nothing was lost, repeated or out of order."""

import sys
import time

import click

from sluice_lab import program
from sluice_lab.machine import cluster
from sluice_lab.steps import console, duration


@click.command()
@click.option("--local", "where", flag_value="local", help="Spark in local mode, no cluster: about a minute.")
@click.option("--clean", "where", flag_value="clean", help="Remove all that the demo made.")
@click.option("--cluster", "name", default=cluster.default_name, show_default="one a checkout", help="Name of the kind cluster.")
def main(where: str | None, name: str) -> None:
    """Sluice takes over from a KCL application. It loses and repeats no record, whatever happens to it."""
    began = time.monotonic()
    right = _run(where, name)
    console.print(f"{duration(time.monotonic() - began)} in all", style="dim")
    sys.exit(0 if right else 1)


def _run(where: str | None, name: str) -> bool:
    if where == "local":
        from sluice_lab.demo import local  # noqa: PLC0415 - needs no Kubernetes client

        return local.run()
    if where == "clean":
        from sluice_lab.demo import clean  # noqa: PLC0415

        clean.clean(name)
        return True
    from sluice_lab.demo import in_cluster  # noqa: PLC0415

    return in_cluster.run(name)


if __name__ == "__main__":
    program.run(main)

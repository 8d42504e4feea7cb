"""`python -m sluice_lab.nemesis [--seed N] [--seconds S] [--sink KIND] [--plan]`: exit 0 only if every check held."""

import random
import sys

import click

from sluice_lab import places, program
from sluice_lab.machine import cluster
from sluice_lab.nemesis.schedule import NemesisRun, SinkKind
from sluice_lab.scenario.scenario_run import exclusive
from sluice_lab.steps import console

SECONDS = 300.0


@click.command()
@click.option("--seed", type=int, help="Which schedule; any, and printed, by default.")
@click.option("--seconds", default=SECONDS, show_default=True, help="How long faults are injected.")
@click.option("--sink", type=click.Choice([str(kind) for kind in SinkKind]), default="files", show_default=True, help="Which sink is tried.")
@click.option("--poison", is_flag=True, help="Records come on which the pipeline raises, and its sink is down at times.")
@click.option("--resets", is_flag=True, help="Positions are moved (spec.position), and faults come meanwhile.")
@click.option("--standby", is_flag=True, help="A standby stands behind the driver, and both are killed, frozen and cut off.")
@click.option("--pool", is_flag=True, help="The consumer is a member of a pool, beside two others; faults of pools come, too.")
@click.option("--plan", is_flag=True, help="Print the schedule, and inject nothing.")
@click.option("--cluster", "name", default=cluster.default_name, show_default="one a checkout", help="Name of the kind cluster.")
def main(seed: int | None, seconds: float, sink: str, poison: bool, resets: bool, standby: bool, pool: bool, plan: bool, name: str) -> None:  # noqa: FBT001, PLR0913, PLR0917 - click passes flags so
    """Run a consumer on a real cluster, and inject a seeded schedule of faults into it."""
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    if poison and resets:
        raise click.UsageError("--poison and --resets: a poison record that comes again is a dead letter again. Leave one of them out.")
    trial = NemesisRun(seed, seconds, SinkKind(sink), poison, resets, standby, pool)
    if pool and (why := _no_pool(trial)):
        raise click.UsageError(f"--pool and {why}. Leave one of them out.")
    console.print(f"seed {seed}")
    if plan:
        for fault in trial.faults():
            console.print(f"{fault.at:6.1f} s  {fault.title}" + (f", for {fault.seconds:.0f} s" if fault.seconds else ""))
        return
    sys.exit(0 if _run(name, trial) else 1)


def _no_pool(trial: NemesisRun) -> str:
    """What cannot be tried in a pool, and why; empty if nothing of it was asked for."""
    if trial.standby:
        return "--standby: a pool has no standby"
    if trial.poison:
        return "--poison: all members read one stream, and a neighbour whose pipeline raises is among the faults of a pool"
    if trial.resets:
        return "--resets: the account by passes is of one consumer with a driver of its own"
    return "" if trial.sink is SinkKind.FILES else f"--sink={trial.sink}: all members store files, each in a folder of its own"


def _run(name: str, trial: NemesisRun) -> bool:
    from sluice_lab.nemesis import checker, experiment  # noqa: PLC0415
    from sluice_lab.scenario import installing  # noqa: PLC0415 - only with a cluster

    home = places.work() / "nemesis"
    with exclusive():
        result = experiment.run(installing.install(name), trial, home)
    checker.show(result, home)
    return not result.problems


if __name__ == "__main__":
    program.run(main)

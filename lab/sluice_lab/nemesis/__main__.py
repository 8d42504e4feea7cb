"""`python -m sluice_lab.nemesis [--seed N] [--seconds S] [--plan]`: exit 0 only if everything held."""

import random
import sys

import click

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.nemesis import schedule
from sluice_lab.scenario.stage import alone
from sluice_lab.steps import console

SECONDS = 300.0


@click.command()
@click.option("--seed", type=int, help="Which schedule; any, and printed, by default.")
@click.option("--seconds", default=SECONDS, show_default=True, help="How long harm is done.")
@click.option("--plan", is_flag=True, help="Print the schedule, and do nothing.")
@click.option("--cluster", "name", default="sluice", show_default=True, help="Name of the kind cluster.")
def main(seed: int | None, seconds: float, plan: bool, name: str) -> None:  # noqa: FBT001 - click passes flags so
    """A consumer on a real cluster, and a seeded schedule of harm against it."""
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    console.print(f"seed {seed}")
    if plan:
        for deed in schedule.schedule(seed, seconds):
            console.print(f"{deed.at:6.1f} s  {deed.title}" + (f", for {deed.seconds:.0f} s" if deed.seconds else ""))
        return
    sys.exit(0 if _run(name, seed, seconds) else 1)


def _run(name: str, seed: int, seconds: float) -> bool:
    from sluice_lab.nemesis import judgement, trial  # noqa: PLC0415
    from sluice_lab.scenario import installing  # noqa: PLC0415 - only with a cluster

    home = places.work() / "nemesis"
    with alone():
        found = trial.run(installing.install(name), seed, seconds, home)
    judgement.show(found, home)
    return not found.problems


if __name__ == "__main__":
    try:
        main()
    except LabError as error:
        console.print(f"[bold red]{type(error).__name__}[/]", end=": ")
        console.print(str(error), markup=False, soft_wrap=True)
        sys.exit(1)

"""`python -m sluice_lab build|up|down|status|emulators|prune`: a cluster with Sluice's images, and emulated AWS."""

import signal
import threading
from pathlib import Path

import click
from rich.table import Table

from sluice_checkpoints.names import counted
from sluice_lab import everything, places, program
from sluice_lab.aws import emulators
from sluice_lab.errors import LabError
from sluice_lab.machine import cluster, docker, images, processes, pruning
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.machine.listening import LOOPBACK
from sluice_lab.scenario import installing
from sluice_lab.steps import console, step

_name = click.option("--cluster", "name", default=cluster.default_name, show_default="one a checkout", help="Name of the cluster.")


@click.group()
def main() -> None:
    """The real parts of Sluice on one machine."""


@main.command()
@_name
@click.option("--workers", default=0, show_default=True, help="Nodes beside the control plane.")
def up(name: str, workers: int) -> None:
    """Ensure Docker, a cluster, and Sluice's images on it. Existing parts are kept."""
    work = places.work()
    docker.ensure(work)
    images.base(work)
    made = cluster.create(name, workers)
    tags = images.build(work)
    cluster.load_image(made, tags.operator, tags.consumer)
    console.print(f"export KUBECONFIG={made.kubeconfig}", soft_wrap=True)


@main.command()
@click.argument("groups", nargs=-1, type=click.Choice(list(everything.GROUPS)))
def build(groups: tuple[str, ...]) -> None:
    """Build what tests are made of, unless it is there: `light` needs neither Go nor Docker. Without GROUPS: all but `gitops`."""
    if failed := everything.build(groups or [group for group in everything.GROUPS if group != "gitops"]):
        raise LabError(f"{counted(failed, 'part')} could not be built here, see above")


@main.command()
@_name
def down(name: str) -> None:
    """Delete the cluster and those of tests beside it, and stop the emulators and the Docker daemon that the lab started. Images stay."""
    work = places.work()
    for running in processes.recorded(work):
        if running.name not in docker.DAEMONS:
            with step(f"stop {running.name}"):
                running.stop()
    if docker.answering():
        for each in cluster.lanes(name):
            cluster.delete(each)
            installing.Note(work, each).drop()
    else:
        console.print(f"no Docker daemon answers, so a cluster {name} of it cannot be deleted: run `up`, then `down`")
    docker.stop(work)


@main.command()
@_name
def prune(name: str) -> None:
    """Remove Sluice's older images from Docker and from the cluster."""
    pruning.prune(cluster.find(name, places.work()))


@main.command()
@_name
def status(name: str) -> None:
    """Show which parts exist and which run. This starts and builds nothing."""
    work = places.work()
    table = Table("part", "state", "where", box=None, pad_edge=False)
    answering = docker.answering()
    table.add_row("docker", "answers" if answering else "does not answer", "")
    if answering:
        table.add_row(*_cluster_row(name, work))
        for repository in ("sluice-operator", "sluice-consumer"):
            tags = processes.run("docker", "image", "ls", "--format", "{{.Tag}} {{.Size}}", repository).splitlines()
            table.add_row(repository, tags[0] if tags else "not built", "")
    for running in processes.recorded(work):
        table.add_row(running.name, f"runs, pid {running.pid}", str(running.log))
    console.print(table)


@main.command(name="emulators")
@click.option("--host", help="Address to listen on. [default: one that the cluster's pods can reach, else 127.0.0.1]")
@click.option("--dynamodb-port", default=8000, show_default=True)
@click.option("--kinesis-port", default=4568, show_default=True)
@_name
def run_emulators(host: str | None, dynamodb_port: int, kinesis_port: int, name: str) -> None:
    """Run DynamoDB and Kinesis in the foreground until Ctrl-C. Their data is lost then."""
    work = places.work()
    host = host or _pod_address(name, work) or LOOPBACK
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with (
        emulators.dynamodb_local(work, host, dynamodb_port) as dynamodb,
        emulators.kinesis_local(work, host, kinesis_port) as kinesis,
    ):
        console.print(f"DynamoDB  {dynamodb}\nKinesis   {kinesis}\nany credentials, any region; Ctrl-C ends them")
        ended.wait()


def _cluster_row(name: str, work: Path) -> tuple[str, str, str]:
    found = KindCluster(name, work / f"{name}.kubeconfig", work)
    if not cluster.exists(name):
        return f"cluster {name}", "none", ""
    if not found.kubeconfig.exists():
        return f"cluster {name}", "not of this checkout", ""
    return f"cluster {name}", "ready" if cluster.healthy(found) else "not ready", str(found.kubeconfig)


def _pod_address(name: str, work: Path) -> str | None:
    found = cluster.find(name, work) if docker.answering() else None
    return cluster.host_address(found).listen if found else None


if __name__ == "__main__":
    program.run(main)

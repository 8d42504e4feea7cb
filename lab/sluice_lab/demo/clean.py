"""`make demo-clean`: removes what the demo made. What existed before stays, and so do the caches, which it names."""

import shutil

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import cluster, docker, processes, pruning
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.scenario import installing
from sluice_lab.scenario.installing import Note
from sluice_lab.scenario.scenario_run import exclusive
from sluice_lab.steps import console, step

KEPT = "kept for the next run: downloads and build caches in .work and of Go, npm, Maven; `make clean` removes .work"


def clean(name: str, *, with_images: bool = True) -> None:
    """Remove those of consumer, operator, cluster, images, daemon and sink that the demo made. Tests keep the images for the next run."""
    work = places.work()
    with exclusive() as home:
        note = Note(work, name)
        made = note.read()
        for running in processes.recorded(work):
            if running.name.startswith("demo-"):
                with step(f"stop {running.name}"):
                    running.stop()
        if docker.answering():
            _clean_cluster(made, name)
            if with_images:
                pruning.remove()
        if note.drop():
            docker.stop(work)
        with step(f"remove {home}"):
            shutil.rmtree(home, ignore_errors=True)
    if with_images:
        console.print(KEPT, soft_wrap=True)


def _clean_cluster(made: dict[str, str], name: str) -> None:
    if made.get("cluster") == name:
        cluster.delete(name)
        return
    found = cluster.find(name, places.work())
    if found and made.get("release") == name:
        _uninstall(found)


def _uninstall(found: KindCluster) -> None:
    """Remove the release from a cluster that the demo did not make. The CRD stays, as after any `helm uninstall` of the chart."""
    with step(f"namespaces {installing.NAMESPACE}, {installing.OPERATOR_NAMESPACE}"):
        try:
            installing.delete_namespace(found)
        except LabError as error:
            console.print(f"  {error}", style="dim")
        found.kubectl("delete", "namespace", installing.OPERATOR_NAMESPACE, "--ignore-not-found", "--timeout=120s")

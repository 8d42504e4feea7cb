"""All that tests, a cluster and an API server are made of. `python -m sluice_lab build` builds it, and a run of tests builds nothing."""

from collections.abc import Callable, Iterable

from sluice_lab import places, spark_lines
from sluice_lab.errors import LabError
from sluice_lab.lake import catalog
from sluice_lab.machine import (
    argocd,
    cluster,
    docker,
    downloads,
    flux,
    images,
    kcl_jars,
    node_image,
    postgres,
    prometheus,
    pruning,
    pypi,
    spark_classes,
    spark_jars,
    tools,
)
from sluice_lab.scenario.installing import Note
from sluice_lab.steps import console


def _docker() -> None:
    if not docker.answering():
        Note(places.work(), cluster.default_name()).add(docker=True)
    docker.ensure(places.work())


GROUPS: dict[str, tuple[Callable[[], object], ...]] = {
    "light": (
        lambda: spark_classes.build(places.work()),
        downloads.dynamodb_local,
        downloads.node_modules,
        downloads.dynalite_modules,
        downloads.site_scripts,
        lambda: prometheus.program("prometheus"),
        lambda: postgres.binaries(places.work()),
    ),
    "programs": (
        node_image.programs,
        tools.kind,
        tools.helm,
        tools.versitygw,
        tools.registry,
        tools.skopeo,
        prometheus.operator_crds,
        kcl_jars.fetched,
        spark_jars.avro,
        pypi.java_21,
        pypi.kcl_library,
        catalog.jars,
        lambda: spark_lines.jars(spark_lines.default()),
    ),
    "cluster": (
        _docker,
        lambda: images.base(places.work()),
        lambda: cluster.node(places.work()),
        lambda: images.build(places.work()),
        lambda: pruning.prune(None),
    ),
    "gitops": (argocd.built, argocd.redis, lambda: flux.built(flux.SOURCE), lambda: flux.built(flux.KUSTOMIZE)),
}
"""`light` needs neither Go nor Docker, and is all that `make test` uses."""


def build(groups: Iterable[str]) -> int:
    """Build what is missing, each with its duration; returns how many parts cannot be built on this machine."""
    failed = 0
    for make in (make for group in groups for make in GROUPS[group]):
        try:
            make()
        except LabError as error:
            failed += 1
            console.print(str(error), style="bold red", soft_wrap=True)
    return failed

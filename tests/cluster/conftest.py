"""A real cluster with the operator in it, and emulated AWS that its pods reach. Set up once, in minutes; what was not there before is removed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from cluster_bench import Bench
from published import Published
from published import published as publishing

from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.demo import clean
from sluice_lab.machine import cluster as clusters
from sluice_lab.scenario import environment, installing


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    """The cluster with the operator and an empty namespace. SLUICE_LANE is of another run of tests beside this one: it has another cluster."""
    name = clusters.default_name() + os.environ.get("SLUICE_LANE", "")
    found = installing.install(name)
    work, listen = places.work(), clusters.host_address(found).listen
    try:
        with emulators.dynamodb_local(work, listen) as dynamodb, emulators.kinesis_local(work, listen) as kinesis:
            yield Bench(found, environment.aws(kinesis, dynamodb))
    finally:
        clean.clean(name, with_images=False)


@pytest.fixture(scope="session")
def published(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """These files as a release in a registry that the nodes pull from (2 minutes: both images are written out and pushed)."""
    with publishing(bench, tmp_path_factory.mktemp("release")) as found:
        yield found

"""The main job, as `make demo` runs it: migrate, run, split, merge, scale, kill, drain, delete; and count."""

from __future__ import annotations

import pytest
from cluster_bench import Bench

from sluice_lab.demo import in_cluster
from sluice_lab.scenario.installing import NAMESPACE

pytestmark = pytest.mark.cluster


def test_a_kcl_consumer_is_taken_over_and_nothing_is_lost_or_repeated_whatever_happens(bench: Bench) -> None:
    assert in_cluster.run(bench.cluster.name)


def test_nothing_of_a_deleted_consumer_is_left(bench: Bench) -> None:
    assert bench.cluster.kubectl("get", "pods,jobs", f"--namespace={NAMESPACE}", "--output=name").split() == []
    left = bench.cluster.kubectl("get", "configmaps", f"--namespace={NAMESPACE}", "--output=name").split()
    assert [name for name in left if "kube-root-ca" not in name] == []

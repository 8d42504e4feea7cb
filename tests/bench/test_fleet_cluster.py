"""What the pool's bench asks of its pods: its options reach the manifests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

sys.path.append(str(Path(__file__).parents[2] / "bench"))

from fleet_cluster import CPU, FleetCluster, Sizes


def _fleet(sizes: Sizes) -> FleetCluster:
    aws = Mock(kinesis_endpoint="http://kinesis", dynamodb_endpoint="http://dynamodb")
    return FleetCluster(Mock(), aws, sizes)


def _cpu(spec: dict[str, Any], role: str) -> str:
    return str(spec[role]["resources"]["requests"]["cpu"])


def test_the_cpu_of_the_pools_driver_is_that_of_no_other_pod() -> None:
    """So a large pool gets the CPU that its start needs, and all else stays comparable."""
    fleet = _fleet(Sizes(2, "2Gi", "1Gi", cpu="500m"))
    pool, alone = fleet.pool()["spec"], fleet.alone(Mock(), "orders")["spec"]
    assert (_cpu(pool, "driver"), _cpu(pool, "executor")) == ("500m", CPU)
    assert (_cpu(alone, "driver"), _cpu(alone, "executor")) == (CPU, CPU)


def test_the_lease_is_that_of_members() -> None:
    fleet = _fleet(Sizes(2, "2Gi", "1Gi", lease=60))
    assert fleet.member(Mock(), "orders")["spec"]["leaseDurationSeconds"] == 60
    assert "leaseDurationSeconds" not in fleet.alone(Mock(), "orders")["spec"]

"""Partitions of AWS, by the names of their regions: operator and consumer know the same, and botocore knows them, too."""

from __future__ import annotations

import re

from botocore.loaders import Loader

from sluice_checkpoints.aws import role
from sluice_operator.resource import stream

PARTITIONS = Loader().load_data("partitions")["partitions"]


def partition(region: str) -> str:
    return next((name for name, prefix in stream.OF_REGIONS.items() if region.startswith(prefix)), "aws")


def test_operator_and_consumer_know_the_same_partitions() -> None:
    """What the one takes, the other would refuse for ever."""
    assert stream.OF_REGIONS == role.OF_REGIONS


def test_each_region_is_in_the_partition_that_its_prefix_says() -> None:
    """Of all that botocore knows. One that is missing here is a role that is taken, and never works."""
    regions = {region: one["id"] for one in PARTITIONS for region in one["regions"] if re.fullmatch(one["regionRegex"], region)}
    assert {region: partition(region) for region in regions} == regions
    assert set(regions.values()) == {"aws", *stream.OF_REGIONS}

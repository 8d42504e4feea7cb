"""The demo with Spark in local mode: the whole consumer, on a laptop."""

from __future__ import annotations

import pytest

from sluice_lab.demo import local

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_kcl_consumer_is_taken_over_on_a_laptop_and_nothing_is_lost_or_repeated() -> None:
    assert local.run()

"""Which consumers can share one Spark, and how it is set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.config import BatchConfig, CheckpointsConfig, Config, MetricsConfig, PipelineConfig, StreamConfig
from sluice_consumer.group import shared_spark
from sluice_consumer.group.shared_spark import MAX_SECONDS, Member
from sluice_consumer.spark.conf import EXTENSIONS


def member(name: str, /, **more: Any) -> Member:
    config = Config(StreamConfig("s", "r"), CheckpointsConfig(f"table-{name}"), PipelineConfig("m:f"), name=name)
    return shared_spark.member(Path(f"{name}.json"), replace(config, **more))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"name": "a"}, r"b\.json: name: a\.json has the same"),
        ({"checkpoints": CheckpointsConfig("table-a")}, r"b\.json: checkpoints\.table: a\.json has the same"),
        ({"spark_conf": {"spark.x": "2"}}, r"b\.json: sparkConf\.spark\.x: a\.json has another value"),
        ({"metrics": MetricsConfig(2)}, r"b\.json: metrics: a\.json has another value"),
    ],
)
def test_consumers_that_cannot_share_a_process_are_refused_by_file_and_field(more: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        shared_spark.check([member("a", spark_conf={"spark.x": "1"}, metrics=MetricsConfig(1)), member("b", **more)])


def test_a_setting_of_one_is_a_setting_of_all_and_names_are_each_consumers_own() -> None:
    """The shortest lease decides how soon an executor that is cut off ends."""
    one = member("a", spark_conf={"spark.x": "1", "spark.app.name": "one"}, lease_duration_seconds=60)
    other = member("b", spark_conf={"spark.app.name": "other", "spark.scheduler.mode": "FIFO"}, lease_duration_seconds=30)
    shared_spark.check([one, other])
    whole = shared_spark.of_all([one, other])
    assert (whole.spark_conf["spark.x"], whole.spark_conf["spark.scheduler.mode"], whole.lease_duration_seconds) == ("1", "FIFO", 30)
    assert "spark.app.name" not in whole.spark_conf


def test_a_batch_in_a_group_has_ten_minutes_unless_you_say_otherwise() -> None:
    """Its slots are shared."""
    assert member("a").config.batch.max_seconds == MAX_SECONDS
    assert member("a", batch=BatchConfig(max_seconds=0)).config.batch.max_seconds == 0


def test_sinks_of_two_consumers_may_each_bring_an_extension_and_not_two_values() -> None:
    """Iceberg and Delta fit into one session."""
    assert shared_spark.joined(EXTENSIONS, "a.A", "b.B", member("b")) == "a.A,b.B"
    assert shared_spark.joined("spark.x", None, "1", member("b")) == shared_spark.joined("spark.x", "1", "1", member("b")) == "1"
    with pytest.raises(Refused, match=r"b\.json: its sink asks for spark\.x=2"):
        shared_spark.joined("spark.x", "1", "2", member("b"))

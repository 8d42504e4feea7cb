"""The configuration of a pool: what its consumers share (docs/pools.md, "The contract of operator and driver")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_checkpoints.errors import Refused
from sluice_consumer import config as configs
from sluice_consumer.config import BatchConfig, CheckpointsConfig, Config, MetricsConfig, PipelineConfig, StreamConfig
from sluice_consumer.group.seats import SeatLimits
from sluice_consumer.group.shared_spark import FAIR, MAX_SECONDS


@dataclass(frozen=True)
class PoolConfig:
    """A pool's.

    Attributes:
        name: of the pool.
        slot_share: share of the slots in which a batch of one consumer is read.
        lease_duration_seconds: the shortest lease of a consumer. Executors that are cut off fall silent within a third of it.
        drain_timeout_seconds: the longest drain, of a consumer or an executor.
        executors: their number at the start. None: as `spark_conf` says.
    """

    name: str
    format: int = 1
    slot_share: float = 0.25
    lease_duration_seconds: float = 20
    drain_timeout_seconds: float = 120
    executors: int | None = None
    metrics: MetricsConfig | None = None
    spark_conf: Mapping[str, Any] = field(default_factory=dict)

    @property
    def limits(self) -> SeatLimits:
        """What a consumer of it may have."""
        return SeatLimits(self.lease_duration_seconds, self.drain_timeout_seconds, self.spark_conf)

    @property
    def whole(self) -> Config:
        """As Spark is started with it: a driver's configuration without a stream."""
        return Config(
            StreamConfig(),
            CheckpointsConfig(""),
            PipelineConfig(""),
            name=self.name,
            batch=BatchConfig(max_seconds=MAX_SECONDS),
            lease_duration_seconds=self.lease_duration_seconds,
            drain_timeout_seconds=self.drain_timeout_seconds,
            executors=self.executors,
            metrics=self.metrics,
            spark_conf=FAIR | dict(self.spark_conf),
        )


def read(path: Path) -> PoolConfig:
    """Reads the file.

    Raises:
        Refused: there is none, or it is wrong; the message names the key.
    """
    return parse(configs.text_of(path))


def parse(text: str) -> PoolConfig:
    """Reads a configuration.

    Raises:
        Refused: see `read`.
    """
    pool = configs.read(PoolConfig, text)
    configs.check_format(pool.format)
    if not 0.01 <= pool.slot_share <= 1:
        raise Refused(f"slotShare: must be from 0.01 to 1, not {pool.slot_share}")
    least = {"leaseDurationSeconds": (pool.lease_duration_seconds, 3), "drainTimeoutSeconds": (pool.drain_timeout_seconds, 1)}
    for key, (value, bound) in (least | {"executors": (pool.executors or 0, 0)}).items():
        if value < bound:
            raise Refused(f"{key}: must be at least {bound}, not {value}")
    return pool

"""A consumer to plan for, of Sluice and of KCL: its requests to DynamoDB and its pods in a month, and what they cost. Pure.

`tests/lab/site/test_cost.py` counts that a batch of Sluice writes and reads so often. KCL's intervals are those of KCL 3.5.1, from its source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluice_checkpoints.protocol.lease import LOOK_SECONDS
from sluice_checkpoints.protocol.lease_keeper import BEATS_A_LEASE
from sluice_consumer.batches.planner import STALE_MILLIS
from sluice_consumer.config import BatchConfig, Config

MONTH = 30 * 24 * 3600  # seconds
REFRESHES = MONTH * 1000 // STALE_MILLIS  # batches a month in which an idle shard takes part
CALLS_A_SHARD = 5  # GetRecords a second and shard, for all consumers that poll it: Kinesis' quota

# KCL 3.5.1, in seconds
RENEWAL = 3.308  # a third of failoverTimeMillis (10 s), less 25 ms: each lease is renewed by a write
ASSIGNMENT = 20.0  # the leader scans all leases and the workers' metrics
DISCOVERY = 9.975  # each worker queries the index of leases by owner
WORKER_METRICS = 30.0  # each worker writes its row
LEADER_BEAT = 30.0  # the leader writes its lock
ROW_BYTES = 512  # an assumption: a lease, with the index of its owner


@dataclass(frozen=True)
class PlannedConsumer:
    """A consumer to plan for.

    Attributes:
        what: for people.
        shards: open ones.
        active: those of them that bring records while the stream is busy; None: all.
        busy: the part of the time in which batches have records, 0 to 1; else the stream is idle.
        interval: seconds from batch to batch, `batch.intervalSeconds`.
        lease: seconds, `leaseDurationSeconds`.
        executors: `replicas`; 0 with `executor.inDriver`.
        driver, executor: GiB, memory limits of the pods.
        driver_cpu, executor_cpu: vCPU, requests of the pods.
        standby: whether another driver stands by all the time (`spec.rollout.standby: Always`), with as many executors.
    """

    what: str
    shards: int
    busy: float = 1.0
    interval: float = BatchConfig.interval_seconds
    lease: float = Config.lease_duration_seconds
    executors: int = 2
    driver: float = 2.0
    executor: float = 2.0
    active: int | None = None
    driver_cpu: float = 0.5
    executor_cpu: float = 1.0
    standby: bool = False

    @property
    def taking_part(self) -> int:
        """Shards of a batch."""
        return self.shards if self.active is None else self.active

    @property
    def batches(self) -> float:
        """A month."""
        return self.busy * MONTH / self.interval

    @property
    def writes(self) -> float:
        """DynamoDB writes a month: a batch's binds or closes and its commit, idle shards once an hour, and the beats of the lease."""
        hourly = self.refreshes + REFRESHES * (1 - self.busy)  # an hour without other batches has a commit of its own
        return self.batches * writes_a_batch(self.taking_part) + hourly + MONTH * BEATS_A_LEASE / self.lease

    @property
    def refreshes(self) -> float:
        """How often a month an idle shard takes part in a batch, all shards together."""
        return REFRESHES * (self.shards - self.busy * self.taking_part)

    @property
    def reads(self) -> float:
        """Consistent reads a month: of each shard of a batch, by its task and at the end of the batch. And the looks of a standby."""
        looks = MONTH / LOOK_SECONDS if self.standby else 0
        return self.batches * reads_a_batch(self.taking_part) + 2 * self.refreshes + looks

    @property
    def share(self) -> float:
        """The part of the GetRecords quota of a shard that is used while batches have records, one call a batch and shard."""
        return 1 / self.interval / CALLS_A_SHARD

    @property
    def pods(self) -> int:
        """The driver and its executors, and those of a standby."""
        return self._drivers * (1 + self.executors)

    @property
    def _drivers(self) -> int:
        return 2 if self.standby else 1

    @property
    def memory(self) -> float:
        """GiB of its pods."""
        return self._drivers * (self.driver + self.executors * self.executor)

    @property
    def cpu(self) -> float:
        """Requested vCPU of its pods."""
        return self._drivers * (self.driver_cpu + self.executors * self.executor_cpu)


@dataclass(frozen=True)
class KclApplication:
    """An application of KCL 3 that reads one stream by polling, with KCL's defaults.

    Attributes:
        shards: open ones, each of which is a lease.
        workers: pods.
        checkpoint: seconds from checkpoint to checkpoint of a shard; the application decides it.
        worker_cpu, worker: vCPU and GiB of a pod.
    """

    shards: int
    workers: int = 2
    checkpoint: float = 60.0
    worker_cpu: float = 0.5
    worker: float = 1.0

    @property
    def writes(self) -> float:
        """DynamoDB writes a month: renewals and checkpoints of each lease, metrics of each worker, and the leader's lock."""
        return MONTH * (self.shards / RENEWAL + self.shards / self.checkpoint + self.workers / WORKER_METRICS + 1 / LEADER_BEAT)

    @property
    def reads(self) -> float:
        """Read units a month: the leader scans leases and metrics, and each worker asks for leases that it was given."""
        scans = scan_units(self.shards) + scan_units(self.workers)
        return MONTH * (scans / ASSIGNMENT + self.workers * scan_units(1) / DISCOVERY)

    @property
    def pods(self) -> int:
        """Its workers."""
        return self.workers

    @property
    def memory(self) -> float:
        """GiB of its pods."""
        return self.workers * self.worker

    @property
    def cpu(self) -> float:
        """Requested vCPU of its pods."""
        return self.workers * self.worker_cpu


Consumer = PlannedConsumer | KclApplication


@dataclass(frozen=True)
class Prices:
    """US dollars for a million DynamoDB write units and read units, of rows below 1 KB, and for an hour of a vCPU and of a GiB."""

    writes: float
    reads: float
    vcpu: float = 0.0
    gib: float = 0.0

    def requests(self, consumer: Consumer) -> float:
        """What its requests to DynamoDB cost in a month. Storage and Kinesis are not in it."""
        return (consumer.writes * self.writes + consumer.reads * self.reads) / 1e6

    def pods(self, consumer: Consumer) -> float:
        """What its pods cost in a month."""
        return MONTH / 3600 * (consumer.cpu * self.vcpu + consumer.memory * self.gib)


def scan_units(rows: int) -> float:
    """Read units of an eventually consistent scan or query: half a unit for each 4 KB."""
    return math.ceil(rows * ROW_BYTES / 4096) / 2


def writes_a_batch(shards: int) -> int:
    """Each shard of the batch is bound or closed, and one write commits all of them."""
    return shards + 1


def reads_a_batch(shards: int) -> int:
    """Each row of the batch, by the task that reads the shard and by the driver before it commits."""
    return 2 * shards

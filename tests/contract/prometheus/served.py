"""An operator and a driver that serve their metrics on loopback, and to which something happens whenever it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count

import prometheus_client
from consuming import S0, Bench, Engine
from metered import Metered, experienced
from simulated_cluster import BEGIN, KEY, MIGRATING, SPEC, ready

from sluice_checkpoints.position import Position
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.config import MetricsConfig
from sluice_consumer.driver_report import DriverWarning, WarningReason
from sluice_consumer.metrics.driver import DriverMetrics
from sluice_consumer.metrics.rows import RequestFigures, RowFigures
from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND
from sluice_operator.observe import parse
from sluice_operator.observe.cache import ResourceKey
from sluice_operator.plan.events import Reason
from sluice_operator.state.actions import EventToSend, Plan
from sluice_operator.state.objects import Observed
from sluice_operator.state.status import Status

NAMESPACE, NAME = KEY
POOL = {
    "metadata": {"namespace": NAMESPACE, "name": "small", "uid": "pool", "resourceVersion": "1"},
    "spec": {},
    "status": {"members": 3, "readyMembers": 2},
}
STANDS_BY = {
    "metadata": {"namespace": NAMESPACE, "name": "stands-by", "uid": "stands-by", "resourceVersion": "1"},
    "spec": {**SPEC, "checkpoints": {"table": "stands-by"}, "rollout": {"strategy": "Standby", "standby": "Always"}},
    "status": {"conditions": [{"type": "StandbyReady", "status": "True", "reason": "Ready", "message": ""}]},
}
OUT_OF_MEMORY = {"status": {"containerStatuses": [{"name": "executor", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}}


class Operator:
    def __init__(self) -> None:
        self.world: Metered = experienced()
        self._changes = count(10)

    def live(self) -> None:
        """The spec changes, so another driver becomes ready; it reports, a drain is cut short, and an executor is killed for its memory."""
        change = next(self._changes)
        self.world.apply({**MIGRATING, "batch": {"intervalSeconds": change}})
        assert self.world.run(240, until=lambda: ready(self.world)), self.world.status
        self.world.context.cache.see(
            "Pod", self.world.told(millisBehindLatest=7_000, recordsPerSecond=7.5, busy=0.5, openBatch=None, deadLetters=1), datetime.now(UTC)
        )
        self.world.context.pools.see(POOL_KIND, POOL, datetime.now(UTC))
        self.world.context.cache.see(CONSUMER_KIND, STANDS_BY, datetime.now(UTC))
        metrics = self.world.metrics
        with metrics.waits.time(), metrics.passes.labels("ok").time():
            metrics.saw("Pod", reported=True)
        body = {"metadata": {"namespace": "a", "name": "b", "uid": "u", "resourceVersion": "1"}, "spec": SPEC}
        forced = Plan(status=Status(), events=(EventToSend(Reason.FORCED, ""),))
        metrics.on_status_written(parse.view(body, Observed(), BEGIN), forced)
        metrics.saw_executor(f"executor-{change}", ResourceKey(NAMESPACE, NAME), OUT_OF_MEMORY, gone=False)

    @contextmanager
    def serving(self) -> Iterator[int]:
        server, thread = prometheus_client.start_http_server(0, "127.0.0.1", self.world.metrics.registry)
        try:
            yield server.server_port
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class Driver:
    def __init__(self) -> None:
        self._bench, self._numbers = Bench(2), count(1)
        self._metrics, self._calls = DriverMetrics(), RequestFigures()
        epoch = self._bench.take().epoch
        self._consumer = Consumer(self._bench.store, self._bench.stream, epoch, self._metrics.phase)
        for collector in (self._calls, RowFigures(self._consumer, lambda: self._bench.now / 1000)):
            self._metrics.registry.register(collector)
        self._metrics.took("new")
        self._consumer.begin()
        self._consumer.identify()

    def live(self) -> None:
        """A batch is committed, a warning given, a request made twice."""
        plan = self._consumer.plan()
        assert plan is not None
        read = self._bench.bind(self._consumer, S0, Position.after(str(next(self._numbers))))
        committed = self._consumer.run(plan, Engine(read))
        self._metrics.batch(committed)
        self._calls.carried(committed.rows)
        self._metrics.warned(DriverWarning(WarningReason.BATCH_SLOW, "it is"))
        table = self._calls.requests.listener("dynamodb")
        table.called("GetItem")
        table.again("GetItem", "ThrottlingException")

    @contextmanager
    def serving(self) -> Iterator[int]:
        port = self._metrics.serve(MetricsConfig(0), everywhere=False)
        assert port is not None
        try:
            yield port
        finally:
            self._metrics.close()

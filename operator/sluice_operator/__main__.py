"""`python -m sluice_operator`: the whole process, put together."""

from __future__ import annotations

import logging
import os
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import kopf

from sluice_operator.apply.events import EventWriter
from sluice_operator.cluster.client import ApiServer, connect
from sluice_operator.election.candidate import Candidate, ElectionTimings, LeaseRef
from sluice_operator.election.thread import Election, LeaderOnly
from sluice_operator.observe.cache import Cache
from sluice_operator.observe.kept import of_pod_or_job
from sluice_operator.observe.watch import Watches
from sluice_operator.observe.watch_health import Freshness
from sluice_operator.run.handlers import EventSink, registry
from sluice_operator.run.loops import Loops
from sluice_operator.run.pool_events import BothLoops, PoolSink
from sluice_operator.run.services import Audits, LeaderService
from sluice_operator.run.shared import ReconcileContext, of_pools
from sluice_operator.settings import Settings, read
from sluice_operator.telemetry.gauges import Gauges, Sources
from sluice_operator.telemetry.metrics import MeteredCluster, OperatorMetrics
from sluice_operator.telemetry.serving import HttpServer

if TYPE_CHECKING:
    from collections.abc import Iterator

QUIET = ("kopf.objects", "kopf.activities", "aiohttp.access")  # they log every event of every pod, and every probe
IMPATIENT = (2.0, 3.0)  # seconds to connect, and between bytes, of the election's calls: two calls and a pause fit into its deadline


def main() -> None:
    """Run until SIGTERM."""
    settings = read(os.environ)
    kopf.configure(log_format=kopf.LogFormat[settings.log_format.upper()])
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    kopf.run(
        registry=assembled(settings),
        standalone=True,
        identity=cast("Any", settings.identity),  # else kopf asks for a user name, which a bare uid has not
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
    )


def assembled(settings: Settings) -> kopf.OperatorRegistry:
    """All parts, and the handlers that kopf calls."""
    cache, metrics, freshness, client = Cache(), OperatorMetrics(), Freshness(resource_class=settings.resource_class), connect()
    api = ApiServer(client, keep=of_pod_or_job)  # a reconcile lists nothing else
    candidate = candidate_for(settings)
    leads = candidate.leads if candidate else lambda: True
    port = LeaderOnly(MeteredCluster(api, metrics), leads)
    event_writer = EventWriter(port)
    context = ReconcileContext(event_writer, cache, settings, on_status_written=metrics.on_status_written)
    loops = BothLoops(Loops(context, metrics, leading=False, listed=False), Loops(of_pools(context), metrics, leading=False, listed=False))
    metrics.registry.register(Gauges(Sources(lambda: context.hosts.drivers(cache.snapshots()), leads, freshness.behind, context.pools.snapshots)))
    consumers = EventSink(cache, loops.consumers, freshness, metrics, settings.resource_class)
    sink = PoolSink(cache, context.pools, context.hosts, loops.consumers, loops.pools, consumers, settings.resource_class)
    services = (
        HttpServer(settings.port, partial(problems, loops, freshness), freshness.cold, metrics.registry),
        Watches(client, settings.namespaces, sink.see, loops.listed),
        Audits(freshness, api, settings.namespaces),
        LeaderService(loops, port, partial(Election, candidate) if candidate else None),
        event_writer,
    )
    return registry(services)


def candidate_for(settings: Settings) -> Candidate | None:
    """None where there is no election."""
    if settings.lease is None:
        return None
    lease = LeaseRef(*settings.lease, identity=f"{settings.identity}_{uuid.uuid4().hex[:8]}")
    return Candidate(ApiServer(connect(), IMPATIENT), lease, ElectionTimings())


def problems(loops: Loops | BothLoops, freshness: Freshness) -> Iterator[str]:
    """What only a restart of the process cures."""
    yield from (f"the reconcile of {'/'.join(key)} hangs" for key in loops.stuck())
    yield from (f"the watch of {kind}s shows nothing any more" for kind in freshness.stuck())


if __name__ == "__main__":
    main()

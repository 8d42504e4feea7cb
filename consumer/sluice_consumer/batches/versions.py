"""Begins a version of the spec in the table, before the first batch of its first epoch (docs/protocol.md, "Versions"). May not read a clock."""

from __future__ import annotations

import logging

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.protocol import versions
from sluice_checkpoints.protocol.versions import SpecName, Version
from sluice_consumer.batches.consumer import Consumer

log = logging.getLogger(__name__)


def begin(consumer: Consumer, spec: SpecName, at: int) -> tuple[Version, ...]:
    """Keeps the positions of a consumer that has begun, and names its version, unless the last one continues.

    Args:
        consumer: it holds the lease, and has issued no batch.
        spec: what its driver knows of its version.
        at: now, epoch milliseconds, for people.

    Returns:
        The versions that the table names, the oldest first. The last one is this epoch's, unless it continues.

    Raises:
        Fenced: a later epoch took over. ServiceUnavailable: the version could not be named.
    """
    store, view = consumer.store, consumer.view
    former = versions.known(store)
    assert consumer.row is not None  # noqa: S101 - begin() set it
    version = versions.next_version(former, spec, view.committed + 1, consumer.epoch.generation, at, consumer.row.last_reset)
    if version is None:
        return former
    try:
        version = versions.keep(store, version, versions.places(view.rows, view.committed))
    except ServiceUnavailable as error:
        log.warning("positions in front of batch %d were not kept, so no reset goes back to it: %s", version.first, error)
    return versions.name(store, consumer.epoch, former, version)

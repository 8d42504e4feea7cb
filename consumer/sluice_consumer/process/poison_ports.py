"""Puts the search for poison records together for a session: what judges exceptions, where dead letters go, when nothing works any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sluice_consumer import pipelines
from sluice_consumer.batches.batch_letters import BatchLetters
from sluice_consumer.batches.consumer import Consumer
from sluice_consumer.batches.retention import Replays
from sluice_consumer.config import OnErrorConfig
from sluice_consumer.letters.stores import store_of
from sluice_consumer.poison.exclusions import ExclusionPorts
from sluice_consumer.poison.isolator import IsolationPorts, Isolator, SettlePatience
from sluice_consumer.poison.search import DoubtLimits, Search
from sluice_consumer.spark.engine import SparkEngine
from sluice_consumer.spark.failures import judged

PATIENCE = DoubtLimits()


@dataclass(frozen=True)
class SessionParts:
    """What a session has for it: its stream's reader, how it waits, for how long, and where it reports what happens (`IsolationPorts`)."""

    source: Replays
    wait: Callable[[float], bool]
    patience: SettlePatience
    state: Callable[[str | None], None]
    excluded: Callable[[str], None]


def isolator(consumer: Consumer, engine: SparkEngine, how: OnErrorConfig, here: SessionParts) -> Isolator | None:
    """What deals with batches that fail; None: nobody, as `onError.isolate` says.

    Raises:
        Refused: see `store_of`. SinkUnavailable: dead letters of a committed batch are not published, and cannot be now.
    """
    letters = BatchLetters(store_of(engine, how.dead_letter, consumer), consumer.epoch.generation) if how.dead_letter else None
    assert consumer.row is not None  # noqa: S101 - begin() set it
    pipelines.LETTERS.keep(consumer.row.consumer_id, letters)
    consumer.letters = letters
    consumer.publish()
    if not how.isolate or letters is None:
        return None
    ports = IsolationPorts(
        excluding=ExclusionPorts(here.source, letters, how.max_excluded_per_hour, hour=lambda: int(time.time() // 3600)),
        judge=judged,
        quiet=engine.quiet,
        wait=here.wait,
        clock=time.monotonic,
        cancel=engine.cancel,
        patience=here.patience,
        state=here.state,
        excluded=here.excluded,
    )
    return Isolator(consumer, ports, Search(how.attempts, PATIENCE))

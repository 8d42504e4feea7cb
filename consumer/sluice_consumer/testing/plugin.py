"""The pytest plugin: fixtures for tests of pipelines (docs/testing.md).

Every run of pytest loads it, so it imports nothing before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sluice_consumer.testing.verdict import ReplayVerdict


@pytest.fixture(scope="session")
def sluice_spark() -> Iterator[SparkSession]:
    """A local Spark session with the settings of a consumer; the one that is there already, if there is one.

    To have another one, define a fixture of this name in a `conftest.py`.
    """
    from sluice_consumer.spark.local_session import local_session  # noqa: PLC0415 - see the module

    with local_session() as session:
        yield session


@pytest.fixture
def sluice_batch(sluice_spark: SparkSession) -> Callable[..., DataFrame]:
    """Makes a batch: `testing.batch`, with the session filled in."""
    from sluice_consumer import testing  # noqa: PLC0415

    return lambda values, **how: testing.batch(sluice_spark, values, **how)


@pytest.fixture
def sluice_replay(sluice_batch: Callable[..., DataFrame]) -> Callable[..., ReplayVerdict]:
    """Fails the test unless a sink holds each record once: `testing.replays`, checked. Takes values in place of a batch, too."""
    from sluice_consumer import testing  # noqa: PLC0415

    def replay(process: Any, batch: Any, *, isolate: bool = True, **how: Any) -> ReplayVerdict:
        made = sluice_batch(batch) if isinstance(batch, list | tuple) else batch
        verdict = testing.replays(process, made, **how)
        verdict.check(isolate=isolate)
        return verdict

    return replay

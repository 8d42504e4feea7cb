"""Whose the jobs are that an epoch begins. Without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from spark_accounts import Spark
from supervising import CONFIG

from sluice_consumer.spark import engine
from sluice_consumer.spark.engine import SparkEngine
from sluice_consumer.spark.job_tags import tag_of

TAGS = set[str]()  # of the thread
SEEN = list[set[str]]()


class Session:
    sparkContext = property(lambda self: self)  # noqa: N815 - PySpark's name

    addJobTag = staticmethod(TAGS.add)  # noqa: N815
    removeJobTag = staticmethod(TAGS.discard)  # noqa: N815


def process(_batch: object, _info: object) -> None:
    """Nothing."""


def prepare(*_: object) -> None:
    SEEN.append(set(TAGS))


process.prepare = prepare  # type: ignore[attr-defined]


def test_jobs_of_prepare_are_the_consumers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails would otherwise refuse the open batches of all consumers of a group, and no lost lease would cancel it."""
    monkeypatch.setattr(engine, "SparkStatus", lambda _spark: Spark({}))
    monkeypatch.setattr(engine, "register", lambda *_: None)
    config = replace(CONFIG, pipeline=replace(CONFIG.pipeline, entrypoint=f"{__name__}:process"))
    made = SparkEngine(cast("Any", Session()), config, cast("Any", None), (3, "mine"))
    assert (SEEN, TAGS, made.tag) == ([{tag_of("mine", 3)}], set(), tag_of("mine", 3))

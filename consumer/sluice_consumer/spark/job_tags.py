"""Whose job it is, where several consumers run batches in one Spark: each job carries the tag of the epoch that began it.

A job without such a tag counts for every consumer. It comes from a thread that `process` started and that is no `InheritableThread`; a batch whose
read failed there must not be committed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator

from pyspark import SparkContext

PREFIX = "sluice-"
TAG = re.compile(f"{PREFIX}(.+)-[0-9]+")


def tag_of(consumer_id: str, generation: int) -> str:
    """The tag of an epoch's jobs. Spark's tags may be empty nowhere, and hold no comma; a consumer id is hexadecimal, or a name of a migration."""
    return f"{PREFIX}{consumer_id.replace(',', '_')}-{generation}"


def is_anothers(tags: Iterable[str], tag: str) -> bool:
    """Whether a job with these tags was begun by another consumer than that of `tag`. Without a tag of our own nobody knows.

    A former epoch of the same consumer is no other one. A thread that outlives a run, or one of a pool of Java's, hands on the tag that it was begun
    with. It may read the batch of the next epoch.
    """
    begun_by = {match[1] for match in map(TAG.fullmatch, tags) if match}
    own = TAG.fullmatch(tag)
    return own is not None and bool(begun_by) and own[1] not in begun_by


@contextlib.contextmanager
def tagged(context: SparkContext, tag: str) -> Iterator[None]:
    """Jobs that this thread begins in here carry the tag, and so do those of its `InheritableThread`s and of the queries that it runs."""
    context.addJobTag(tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)

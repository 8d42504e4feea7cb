"""What a driver says when a batch fails; the whole process runs in tests/lab and tests/contract/spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.memory import MemoryTable
from sluice_checkpoints.store import CheckpointStore, Life
from sluice_checkpoints.stream_twin import StreamTwin
from sluice_consumer import bootstrap, outcome
from sluice_consumer.config import Start
from sluice_consumer.driver import deeper
from sluice_consumer.life import Consumer


class Bench:
    """A life that is ready, and what may happen to it behind its back."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000
        self.stream, self.table = StreamTwin("s", now=lambda: self.now), MemoryTable()
        self.store = CheckpointStore(self.table)
        bootstrap.prepare(self.store, bootstrap.Seed("p", "id", self.stream.describe(), self.stream.list_shards()), Start())
        self.consumer = Consumer(self.store, self.stream, self.take())
        self.consumer.begin()

    def take(self) -> Life:
        """A later life takes the lease."""
        before = self.store.consumer()
        assert before is not None
        after = self.store.take(before, replace(before, token="t", lease_millis=1))
        assert after is not None
        return Life(after.generation, after.token)

    def recreate(self) -> None:
        """The stream is deleted and made again."""
        self.now += 1
        self.stream.recreate()

    def delete(self) -> None:
        """The stream is deleted."""
        self.stream.exists = False

    def cut(self) -> None:
        """Nothing answers."""

        def refuse(*_: object) -> None:
            raise ServiceUnavailable("no answer")

        self.table.hook = refuse
        self.stream.describe = refuse  # type: ignore[method-assign, assignment]  # a service that does not answer


@pytest.mark.parametrize(
    ("behind", "code", "reason"),
    [
        (Bench.take, 76, "Fenced"),
        (Bench.recreate, 65, "Refused"),
        (Bench.delete, 65, "StreamNotFound"),
        (Bench.cut, 1, "RuntimeError"),
        (lambda _bench: None, 1, "RuntimeError"),
    ],
    ids=["a later life took over", "the stream was made again", "the stream is gone", "nothing answers", "of itself"],
)
def test_a_batch_failed_because(behind: Callable[[Bench], object], code: int, reason: str) -> None:
    """Spark's words for it would hide the reason, and the exit code would promise that a restart helps."""
    bench = Bench()
    behind(bench)
    ending = outcome.of(deeper(bench.consumer, RuntimeError("Job aborted due to stage failure")))
    assert (ending.code, ending.reason) == (code, reason)

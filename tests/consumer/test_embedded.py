"""An epoch inside of somebody else's session ends once its lease is lost, and says so."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_consumer import embedded
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.embedded import LeaseLost
from sluice_consumer.process import supervisor
from sluice_consumer.process.lease_release import LeaseRelease
from sluice_consumer.process.supervisor import Heartbeats


def test_work_that_was_stopped_was_lost_also_if_a_beat_is_accepted_later() -> None:
    """Else a query or a backfill that was stopped half-way would look as if it had come to its end."""
    stopped, beats = threading.Event(), list[bool]()

    def beat(_promise: int | None) -> bool:
        beats.append(stopped.is_set())
        if not stopped.is_set():
            raise TimeoutError("the table does not answer")
        return True

    heart = Heartbeats(beat, lease=0.2, accepted=time.monotonic() - 0.2)
    with embedded.beating(heart, stopped.set):
        assert stopped.wait(60)
        heart.once()
        assert beats[-1]
        with pytest.raises(LeaseLost, match="no heartbeat was accepted"):
            embedded.raise_if_lost(heart)


def test_a_beat_that_is_accepted_in_time_keeps_the_epoch() -> None:
    heart = Heartbeats(lambda _promise: True, lease=60.0, accepted=time.monotonic() - 30)
    with embedded.beating(heart, lambda: pytest.fail("stopped")):
        heart.once()
        embedded.raise_if_lost(heart)


class Tracked:
    """A session's context of which jobs 1 to 3 belong to the group, and end `after` so many cancellations; 9 is somebody else's."""

    def __init__(self, after: int) -> None:
        self.after, self.cancelled = after, list[str]()

    def statusTracker(self) -> Tracked:  # noqa: N802 - Spark's name
        return self

    def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802 - Spark's name
        assert group == "mine"
        return [1, 2, 3]

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802 - Spark's name
        return [2, 3, 9] if len(self.cancelled) < self.after else [9]

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802 - Spark's name
        self.cancelled.append(group)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_jobs_of_a_run_that_ended_are_cancelled_until_none_is_left(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "LOOK_SECONDS", 0)
    context = Tracked(after)
    embedded.end_jobs(cast("Any", context), "mine", patience=60)
    assert context.cancelled == ["mine"] * after


def test_a_job_that_spark_never_calls_over_does_not_hold_a_notebook_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedded, "LOOK_SECONDS", 0)
    embedded.end_jobs(cast("Any", Tracked(10**9)), "mine", patience=0.01)
    assert "Spark jobs [2, 3] were cancelled and are not over after 0.01 s" in caplog.text


def test_a_mistyped_entrypoint_is_refused_before_a_notebook_has_a_table_or_a_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever corrects it and runs the cell again would wait for the lease."""
    monkeypatch.setattr(embedded, "check_session", lambda *_: None)
    monkeypatch.setattr(supervisor, "open_table", lambda *_: pytest.fail("too late"))
    config = Config(StreamConfig("s", "r"), CheckpointsConfig("abc"), PipelineConfig("math:florr"))
    with pytest.raises(Refused, match=r"pipeline\.entrypoint: module math has no florr"):
        embedded.run(cast("Any", None), config)


def test_a_run_that_ended_well_does_so_though_the_table_does_not_answer_its_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_answer(_epoch: object) -> None:
        raise ServiceUnavailable("no answer")

    store = SimpleNamespace(release=no_answer)
    heart = SimpleNamespace(clock=lambda: 1.0, keep_promise_until=0.0)
    monkeypatch.setattr(embedded, "supervisor", SimpleNamespace(open_table=lambda _config: store, claim=lambda _config: None))
    monkeypatch.setattr(embedded, "take_over", lambda *_: SimpleNamespace(epoch="epoch"))
    monkeypatch.setattr(embedded, "Heartbeats", SimpleNamespace(of=lambda *_: heart))
    monkeypatch.setattr(embedded.wiring, "beating_store", lambda _config: None)
    monkeypatch.setattr(embedded, "_beating", lambda *_: nullcontext(lambda: None))
    monkeypatch.setattr(embedded, "_work", lambda *_: None)
    end = LeaseRelease()
    embedded._run(cast("Any", None), cast("Any", None), threading.Event(), end)
    assert end.give is None

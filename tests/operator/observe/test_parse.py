"""Raw objects to facts: how a pod ended, what keeps it from starting, what its driver said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from simulated_cluster import BEGIN, SPEC

from sluice_operator.observe import parse
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.state.serialization import dump_status, load_report, load_status
from sluice_operator.state.status import DrainStatus, DriverStatus, Moved, Status

Json = dict[str, Any]
STAMP = "2026-11-21T10:00:00Z"


def raw(state: Json | None = None, *, role: str = "driver", meta: Json | None = None, **status: Any) -> Json:
    name = parse.CONTAINERS[role]
    labels = {parse.CONSUMER: "orders", parse.ROLE: role, parse.ATTEMPT: "2"}
    head = {"name": "orders-driver-2", "namespace": "default", "uid": "u", "creationTimestamp": STAMP, "labels": labels}
    statuses = [{"name": name, "state": state}] if state else []
    return {"kind": "Pod", "metadata": head | (meta or {}), "status": {"phase": "Failed", "containerStatuses": statuses, **status}}


def ended(code: int, message: str = "", **more: str) -> Json:
    return {"terminated": {"exitCode": code, "message": message, "finishedAt": STAMP, "startedAt": STAMP, **more}}


DELETED = {"deletionTimestamp": STAMP}
DISRUPTED: dict[str, Any] = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]}
REACHED = '{"reason": "EndReached", "message": "7 records"}'
INTERRUPTED = '{"reason": "Interrupted", "message": "x"}'
ENDS = [
    (raw(ended(65, '{"reason": "Refused", "message": "no stream"}')), 65, "Refused", "no stream"),
    (raw(ended(75, '{"reason": "LeaseHeld", "message": "x"}')), 75, "LeaseHeld", "x"),
    (raw(ended(76)), 76, "Fenced", ""),
    (raw(ended(1, "Traceback:\n  File\nValueError: boom\n")), 1, "Failed", "ValueError: boom"),
    (raw(ended(137, reason="OOMKilled")), 137, "OOMKilled", "killed by SIGKILL"),
    (raw(ended(137, message='{"level": "info", "message": "batch 15"}')), 137, "Failed", "killed by SIGKILL"),
    (raw(ended(0), phase="Succeeded"), 0, "Completed", ""),
    (raw(ended(0), meta=DELETED, phase="Succeeded"), 0, "Drained", ""),
    (raw(ended(0, REACHED), phase="Succeeded"), 0, "EndReached", "7 records"),
    (raw(ended(0, REACHED), meta=DELETED, phase="Succeeded"), 0, "EndReached", "7 records"),
    (raw(ended(0, REACHED), **DISRUPTED), 0, "EndReached", "7 records"),
    (raw(ended(1, REACHED)), 1, "Failed", "EndReached: 7 records"),
    (raw(ended(75, INTERRUPTED), meta=DELETED), 75, "Drained", "x"),
    (raw(ended(75, INTERRUPTED), **DISRUPTED), 75, "Evicted", "x"),
    (raw(ended(75, INTERRUPTED)), 75, "Interrupted", "x"),
    (raw(ended(137), meta=DELETED), 137, "Killed", "killed by SIGKILL"),
    (raw(ended(143), **DISRUPTED), 143, "Evicted", "killed by SIGTERM"),
    (raw(ended(75), **DISRUPTED), 75, "Held", ""),
    (raw(reason="Evicted", message="The node was low on resource"), None, "Evicted", "The node was low on resource"),
]


@pytest.mark.parametrize(("pod", "code", "reason", "message"), ENDS)
def test_an_exit_is_told_by_the_driver_then_by_who_took_the_pod_then_by_the_kernel(pod: Json, code: int | None, reason: str, message: str) -> None:
    end = parse.pod(pod).exit
    assert end is not None
    assert (end.code, end.reason, end.message) == (code, reason, message)


def test_an_evicted_pod_ended_when_its_conditions_last_changed() -> None:
    """It has no container that could tell; the time that it was made would make every eviction look like a failed start."""
    changed = [{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2026-11-21T12:00:00Z"}]
    end = parse.pod(raw(reason="Evicted", conditions=changed)).exit
    assert end is not None
    assert end.at == BEGIN.replace(hour=12)


def test_a_running_pod_has_no_exit() -> None:
    pod = parse.pod(raw({"running": {"startedAt": STAMP}}, phase="Running"))
    assert pod.exit is None
    assert pod.started_at == BEGIN


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_a_missing_image_is_named_by_one_word(reason: str) -> None:
    """Kubernetes alternates between two."""
    pod = parse.pod(raw({"waiting": {"reason": reason, "message": "not found"}}, phase="Pending"))
    assert pod.trouble is not None
    assert pod.trouble.reason == "ImagePullBackOff"


@pytest.mark.parametrize("state", [{"running": {"startedAt": STAMP}}, {"waiting": {"reason": "PodInitializing"}}])
def test_a_sidecar_that_crashes_is_a_trouble_only_until_the_driver_runs(state: Json) -> None:
    crashing = {"name": "shipper", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}}
    pod = parse.pod(raw(state, phase="Running", initContainerStatuses=[crashing]))
    found, other = (pod.beside, pod.trouble) if "running" in state else (pod.trouble, pod.beside)
    assert found is not None
    assert (found.reason, other) == ("CrashLoopBackOff", None)


def test_an_unschedulable_pod_says_what_the_scheduler_said() -> None:
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes: Insufficient cpu"}
    pod = parse.pod(raw(phase="Pending", conditions=[told]))
    assert pod.trouble is not None
    assert "Insufficient cpu" in pod.trouble.message


def test_a_migrations_figures_are_in_its_words() -> None:
    words = json.dumps({"message": "done", "shards": 7, "warnings": 2})
    pod = parse.pod(raw(ended(0, words), role="migration", phase="Succeeded"))
    assert (pod.rows, pod.warnings) == (7, 2)


def test_what_a_job_moved_is_in_its_words() -> None:
    """As docs/interfaces.md has them; whatever is of another form is absent."""
    said = {"reason": "Reset", "message": "moved", "to": "latest", "shards": 7, "recordsAgain": None, "recordsPassedOver": 0, "batch": 42}
    pod = parse.pod(raw(ended(0, json.dumps({**said, "digest": "ab12", "warnings": 1})), role="migration", phase="Succeeded"))
    assert pod.moved == Moved(to="latest", shards=7, records_passed_over=0, batch=42, digest="ab12", warnings=1)
    odd = parse.pod(raw(ended(0, json.dumps({**said, "to": ["x"], "shards": -1, "digest": "a\x1b[2Jb" * 99})), role="migration", phase="Succeeded"))
    assert odd.moved is not None
    assert (odd.moved.to, odd.moved.shards, len(odd.moved.digest or ""), (odd.moved.digest or "").isprintable()) == (None, None, 64, True)
    assert parse.pod(raw(ended(0, json.dumps({"reason": "Complete", "shards": 7})), role="migration", phase="Succeeded")).moved is None


def test_a_report_is_read_with_what_is_missing_null_or_new() -> None:
    report = load_report('{"number": 1, "phase": "Running", "heldShards": 2, "openShards": 2, "generation": null, "newer": 1,'
                         ' "draining": [{"pod": "x", "since": "2026-11-21T10:00:00Z"}]}')  # fmt: skip
    assert report is not None
    assert report.holds_all
    assert report.draining == (DrainStatus(pod="x", since=BEGIN),)


@pytest.mark.parametrize("text", [None, "", "null", "[]", "{", '{"number": "x"}', "7"])
def test_a_report_that_cannot_be_read_is_none(text: str | None) -> None:
    assert load_report(text) is None


def test_a_status_survives_storage_to_the_letter() -> None:
    """The last good spec keeps its nulls: the hash of what the user wrote depends on it."""
    status = Status(last_good_spec={"pipeline": {"args": {"x": None}}})
    assert load_status(json.loads(json.dumps(dump_status(status)))) == status


def test_a_reports_age_is_counted_by_our_clock_since_its_number_changed() -> None:
    """Clocks of drivers are not believed."""
    cache, key = Cache(), ResourceKey("default", "orders")
    meta = {"name": "orders", "namespace": "default", "uid": "r"}
    cache.see("KinesisConsumer", {"metadata": meta, "status": {"driver": {"pod": raw()["metadata"]["name"]}}}, BEGIN)
    for second, number in ((0, 5), (9, 5), (20, 6)):
        note = {"annotations": {parse.REPORT: json.dumps({"number": number, "phase": "Running"})}}
        cache.see("Pod", raw({"running": {}}, meta=note, phase="Running"), BEGIN.replace(second=second))
    assert cache.observed(key).drivers[0].reported_at == BEGIN.replace(second=20)


def test_a_driver_runs_since_it_was_seen_to_by_our_clock() -> None:
    """Its node's clock may be behind ours by hours."""
    cache, running = Cache(), {"running": {"startedAt": STAMP}}
    for second, state in ((1, {"waiting": {}}), (3, running), (9, running)):
        cache.see("Pod", raw(state, phase="Running"), BEGIN.replace(second=second))
    assert cache.observed(ResourceKey("default", "orders")).drivers[0].seen_at == BEGIN.replace(second=3)


def test_a_consumer_that_works_is_never_migrated_though_its_status_lost_that_it_was() -> None:
    """Not by its spec, and not by the last good one, which asks for the same: a migration's Job would run beside the driver."""
    spec = {**SPEC, "migrateFrom": {"table": "old"}}
    body = {
        "metadata": {"namespace": "default", "name": "orders", "uid": "u", "resourceVersion": "1"},
        "spec": spec,
        "status": dump_status(Status(driver=DriverStatus(attempt=1), last_good_spec=spec)),
    }
    seen = parse.view(body, parse.observed([], []), BEGIN)
    assert seen.wanted is None
    assert "cannot be added once the consumer has started" in str(seen.problem)


def test_the_exit_of_a_pod_that_is_gone_is_remembered() -> None:
    """And its first word counts: that it was deleted afterwards is no reason for its end."""
    cache, key = Cache(), ResourceKey("default", "orders")
    cache.see("KinesisConsumer", {"metadata": {"namespace": "default", "name": "orders", "uid": "r"}}, BEGIN)
    cache.see("Pod", raw({"running": {}}, phase="Running"), BEGIN)
    cache.see("Pod", raw(ended(1), phase="Running"), BEGIN)
    cache.see("Pod", raw(ended(1), meta=DELETED), BEGIN, gone=True)
    seen = cache.observed(key)
    assert seen.drivers == ()
    assert seen.exits["u"].reason == "Failed"


@pytest.mark.parametrize(("label", "attempt"), [("7", 7), (None, 0), ("", 0), ("seven", 0), ("9" * 40, 0), ("-1", 0)])
def test_the_attempt_of_an_executor_is_in_its_label(label: str | None, attempt: int) -> None:
    labels = {"sluice.dev/consumer": "orders", "sluice.dev/role": "executor"} | ({} if label is None else {"sluice.dev/attempt": label})
    assert parse.pod({"metadata": {"name": "orders-1-exec-4", "uid": "u", "labels": labels}}).attempt == attempt


@pytest.mark.parametrize(
    ("spec", "rests"), [({"suspend": True}, True), ({"replicas": 0}, True), ({"replicas": 1}, False), ({"suspend": "no"}, False)]
)
def test_a_spec_says_that_nothing_shall_run_whether_or_not_it_is_valid(spec: Json, *, rests: bool) -> None:
    body = {"metadata": {"namespace": "default", "name": "orders", "uid": "u", "resourceVersion": "1"}, "spec": {**spec, "pipelin": {}}}
    seen = parse.view(body, parse.observed([], []), BEGIN)
    assert (seen.wanted, seen.rests) == (None, rests)

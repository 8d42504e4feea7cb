"""What the watches showed and what a live look shows, together."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from simulated_cluster import SPEC

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.observe import cache as caches
from sluice_operator.observe import parse, seats
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.hosts import Hosts
from sluice_operator.run.reconcile import reconcile
from sluice_operator.run.shared import ReconcileContext
from sluice_operator.settings import Settings
from sluice_operator.state.seats import Seat

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ResourceKey("default", "orders")


def executor(uid: str, phase: str = "Running") -> dict[str, Any]:
    labels = {parse.CONSUMER: "orders", parse.ROLE: "executor"}
    meta = {"name": "orders-1-exec-4", "namespace": "default", "uid": uid, "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"kind": "Pod", "metadata": meta, "status": {"phase": phase}}


@pytest.fixture
def cache() -> Cache:
    found = Cache()
    found.see("Pod", executor("a"), NOW)
    found.begin_live_read(KEY)
    return found


def executors(cache: Cache) -> list[tuple[str, str]]:
    return [(pod.uid, pod.phase) for pod in cache.observed(KEY).executors]


def test_a_pod_whose_deletion_was_seen_during_a_look_does_not_come_back(cache: Cache) -> None:
    """The list was made before it went, and arrives after. No further event would ever remove it."""
    cache.see("Pod", executor("a"), NOW, gone=True)
    live = cache.live(KEY, [executor("a")], [], NOW)
    assert [pod.uid for pod in live.executors] == ["a"]
    assert executors(cache) == []


def test_a_change_seen_during_a_look_is_not_overwritten_by_the_older_list(cache: Cache) -> None:
    """The watch tells each change once."""
    cache.see("Pod", executor("a", "Failed"), NOW)
    cache.live(KEY, [executor("a")], [], NOW)
    assert executors(cache) == [("a", "Failed")]


def test_a_pod_made_during_a_look_is_not_forgotten(cache: Cache) -> None:
    cache.see("Pod", executor("a"), NOW, gone=True)
    cache.see("Pod", executor("b", "Pending"), NOW)
    cache.live(KEY, [executor("a")], [], NOW)
    assert executors(cache) == [("b", "Pending")]


def test_a_look_corrects_what_an_interrupted_watch_never_told(cache: Cache) -> None:
    """Deletions during a gap come as no event at all."""
    cache.live(KEY, [], [], NOW)
    assert executors(cache) == []


def driver(uid: str, number: int, phase: str = "Running") -> dict[str, Any]:
    labels = {parse.CONSUMER: "orders", parse.ROLE: "driver", parse.ATTEMPT: "1"}
    notes = {parse.REPORT: f'{{"number": {number}, "phase": "Running"}}'}
    meta = {
        "name": f"driver-{uid}",
        "namespace": "default",
        "uid": uid,
        "labels": labels,
        "annotations": notes,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"kind": "Pod", "metadata": meta, "status": {"phase": phase}}


def test_a_stray_driver_does_not_make_the_other_ones_report_young_again() -> None:
    cache = Cache()
    cache.see("KinesisConsumer", naming("driver-a", "driver-b"), NOW)
    cache.live(KEY, [driver("a", 5), driver("b", 1)], [], NOW)
    later = cache.live(KEY, [driver("a", 5), driver("b", 2, "Failed")], [], NOW.replace(minute=1))
    assert [(pod.uid, pod.reported_at) for pod in later.drivers] == [("a", NOW), ("b", NOW.replace(minute=1))]
    assert list(later.exits) == ["b"]


def naming(pod: str, standby: str | None = None) -> dict[str, Any]:
    return {**version("7"), "status": {"driver": {"pod": pod}, "standby": {"pod": standby}}}


def test_a_report_is_decoded_once_and_only_of_a_driver_that_the_status_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two labels and an annotation make no driver, and a watch shows a pod again for other reasons."""
    decoded, real = list[str | None](), caches.load_report
    monkeypatch.setattr(caches, "load_report", lambda text: (decoded.append(text), real(text))[1])
    cache, stray = Cache(), driver("b", 1)
    cache.see("KinesisConsumer", naming("driver-a"), NOW)
    shown = [cache.see("Pod", body, NOW) for body in (driver("a", 5), stray, driver("a", 5), driver("a", 6), stray)]
    cache.live(KEY, [driver("a", 6), stray], [], NOW)
    assert [change.reported for change in shown if change] == [True, False, False, True, False]
    assert len(decoded) == 2
    assert [pod.report and pod.report.number for pod in cache.observed(KEY).drivers] == [6, None]


def test_drivers_of_long_ago_are_forgotten() -> None:
    cache = Cache()
    for number in range(100):
        cache.live(KEY, [driver(str(number), 1, "Failed")], [], NOW)
    assert len(cache.observed(KEY).exits) < 10


def version(number: str, **meta: Any) -> dict[str, Any]:
    return {"kind": "KinesisConsumer", "metadata": {"name": "orders", "namespace": "default", "uid": "r", "resourceVersion": number, **meta}}


def test_a_resource_that_a_look_found_gone_is_gone_unless_the_watch_has_shown_it_since(cache: Cache) -> None:
    """Its deletion may never be shown. That it was made again was, or handed back to this operator."""
    cache.see("KinesisConsumer", version("7"), NOW)
    cache.lost(KEY, "7")
    assert cache.body(KEY) is None
    cache.see("KinesisConsumer", version("9"), NOW)
    cache.lost(KEY, "7")
    assert cache.body(KEY) == version("9")


def test_an_answer_replaces_the_version_that_was_there_before_the_call(cache: Cache) -> None:
    """So that the watch's event of an own write does not matter."""
    cache.see("KinesisConsumer", version("7"), NOW)
    cache.answered(version("8"), "7")
    assert cache.body(KEY) == version("8")
    assert cache.see("KinesisConsumer", version("8"), NOW) == (KEY, False, False)


def test_an_answer_does_not_replace_what_the_watch_has_shown_since(cache: Cache) -> None:
    """The watch shows each change once. An edit that an older answer replaces would wait for the next live read, for minutes."""
    cache.see("KinesisConsumer", version("7"), NOW)
    cache.see("KinesisConsumer", version("9"), NOW)
    cache.answered(version("8"), "7")
    assert cache.body(KEY) == version("9")


@pytest.mark.parametrize("seen", [[], [version("7", uid="q")]], ids=["gone", "made again"])
def test_an_answer_does_not_bring_back_a_resource_that_is_gone(cache: Cache, seen: list[dict[str, Any]]) -> None:
    """Its deletion is shown once."""
    cache.see("KinesisConsumer", version("7"), NOW)
    cache.see("KinesisConsumer", version("8"), NOW, gone=True)
    for body in seen:
        cache.see("KinesisConsumer", body, NOW)
    cache.answered(version("7", labels={"a": "b"}), "6")
    assert cache.body(KEY) == (seen[0] if seen else None)


def test_an_answer_does_not_bring_back_a_resource_that_was_handed_over(cache: Cache) -> None:
    cache.see("KinesisConsumer", version("7"), NOW)
    cache.forget(KEY)
    cache.answered(version("7"), "7")
    assert cache.body(KEY) is None


def test_the_end_of_a_loop_does_not_drop_a_resource_that_was_made_meanwhile(cache: Cache) -> None:
    cache.see("KinesisConsumer", version("7"), NOW)
    cache.forget_deleted(KEY)
    assert cache.body(KEY) == version("7")
    cache.see("KinesisConsumer", version("8"), NOW, gone=True)
    cache.forget_deleted(KEY)
    assert cache.known() == []


def reporting(**report: Any) -> dict[str, Any]:
    labels = {parse.CONSUMER: "orders", parse.ROLE: "driver"}
    notes = {parse.REPORT: json.dumps({"number": 1, "phase": "Running", "openShards": 4, "heldShards": 4, **report})}
    meta = {"name": "orders-driver-1", "namespace": "default", "uid": "d", "labels": labels, "annotations": notes}
    return {"kind": "Pod", "metadata": {**meta, "creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}}


FIGURES: dict[str, Any] = {"number": 2, "batch": 7, "millisBehindLatest": 900, "recordsPerSecond": 1.5, "records": 12, "deadLetters": 1}
FIGURES |= {"openBatch": 8, "busy": 0.5, "activeShards": 3, "farthestShard": "shardId-000000000000", "millisBehindOthers": 9}


@pytest.mark.parametrize(
    ("report", "matters"),
    [
        (FIGURES, False),
        ({**FIGURES, "phase": "Idle"}, True),
        ({**FIGURES, "heldShards": 3}, True),
        ({**FIGURES, "warnings": ["SourceMoved: x"]}, True),
        ({**FIGURES, "draining": [{"pod": "p"}]}, True),
    ],
)
def test_only_figures_do_not_matter(report: dict[str, Any], matters: bool) -> None:  # noqa: FBT001 - a table
    cache = Cache()
    cache.see("KinesisConsumer", {**version("7"), "status": {"driver": {"pod": "orders-driver-1"}}}, NOW)
    cache.see("Pod", reporting(), NOW)
    later = NOW + timedelta(seconds=5)
    assert cache.see("Pod", reporting(**report), later) == (KEY, matters, True)
    assert [pod.reported_at for pod in cache.observed(KEY).drivers] == [later]


BATCHES = ((8, 0), (8, 0), (9, 20), (None, None), (8, 40))
"""Of reports, one each 10 seconds: the open batch, and the second at which it began as far as anybody can tell."""


@pytest.mark.parametrize("in_pool", [False, True], ids=["a pod", "a seat"])
def test_a_batch_is_open_since_the_first_report_that_shows_it(in_pool: bool) -> None:  # noqa: FBT001 - pytest passes by name
    """Reports come again while it is open; one of them at last is written to the status, at a thousand resources minutes later."""
    cache, hosts = Cache(), Hosts()
    cache.see("KinesisConsumer", {**version("7"), "status": {"driver": {"pod": "orders-driver-1"}}}, NOW)
    for number, (batch, since) in enumerate(BATCHES):
        now, words = NOW + timedelta(seconds=10 * number), json.dumps({"number": number, "phase": "Running", "openBatch": batch})
        cache.see("Pod", reporting(**json.loads(words)), now)
        hosts.see(seated(words), now)
        (host,) = hosts.of_namespace("shop")
        drivers = tuple(seat.as_pod(host.pod) for seat in host.seats) if in_pool else cache.observed(KEY).drivers
        assert [pod.batch_at for pod in drivers] == [None if since is None else NOW + timedelta(seconds=since)]


def seated(report: str) -> dict[str, Any]:
    seat = Seat(consumer="u", name="orders", attempt=1)
    owner = {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumerPool", "name": "small", "uid": "pool-uid", "controller": True}
    notes: dict[str, Any] = seats.put(seat, "host", {}) | {f"{seats.REPORT}u.1": report}
    meta = {"namespace": "shop", "name": "small-pool-1", "uid": "host", "annotations": notes, "ownerReferences": [owner]}
    return {"metadata": meta, "status": {"phase": "Running"}}


def test_what_is_new_or_gone_matters() -> None:
    cache = Cache()
    assert cache.see("Pod", executor("a"), NOW) == (KEY, True, False)
    assert cache.see("Pod", executor("a"), NOW) == (KEY, False, False)
    assert cache.see("Pod", executor("a", "Failed"), NOW) == (KEY, True, False)
    assert cache.see("Pod", executor("a", "Failed"), NOW, gone=True) == (KEY, True, False)


def test_an_echo_of_our_own_write_does_not_matter() -> None:
    """The answer to a write is in the cache before the watch shows it; whatever another version says does."""
    cache = Cache()
    meta = {"namespace": "default", "name": "orders", "uid": "r"}
    assert cache.see("KinesisConsumer", {"metadata": {**meta, "resourceVersion": "7"}}, NOW) == (KEY, True, False)
    assert cache.see("KinesisConsumer", {"metadata": {**meta, "resourceVersion": "7"}}, NOW) == (KEY, False, False)
    assert cache.see("KinesisConsumer", {"metadata": {**meta, "resourceVersion": "8"}}, NOW) == (KEY, True, False)


COMMON = {**SPEC, "checkpoints": {"table": "shared"}, "pool": "small"}


def test_a_reconcile_reads_as_much_beside_a_thousand_resources_of_the_same_table_and_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_in_a_reconcile(0, monkeypatch) == read_in_a_reconcile(1000, monkeypatch)


def read_in_a_reconcile(others: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    memory, read = MemoryCluster(lambda: NOW), list[str]()
    context = ReconcileContext(memory, Cache(), Settings())
    for name in ("orders", *(f"other-{n}" for n in range(others))):
        body = memory.create({"kind": CONSUMER_KIND, "metadata": {"namespace": KEY.namespace, "name": name}, "spec": COMMON})
        context.cache.see(CONSUMER_KIND, body, NOW)

    def noted(real: Any) -> Any:
        return lambda *asked: (read.append(real.__name__), real(*asked))[1]

    with monkeypatch.context() as patch:
        for room, name in ((parse, "accept"), (caches, "unpacked"), (caches, "packed"), (caches, "part")):
            patch.setattr(room, name, noted(getattr(room, name)))
        reconcile(context, KEY, NOW)
    assert "accept" in read
    return read


@pytest.mark.parametrize("kind", [CONSUMER_KIND, "Pod", "Job"])
def test_nothing_is_parsed_while_the_cache_is_locked(cache: Cache, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The event loop waits for the lock at every event, and so do the probes."""
    locked, parsed = list[bool](), list[str]()

    class Lock:
        def __enter__(self) -> None:
            locked.append(True)

        def __exit__(self, *_: object) -> None:
            locked.pop()

    def outside(real: Any) -> Any:
        def called(*asked: Any) -> Any:
            assert not locked, f"{real.__name__} while the cache is locked"
            parsed.append(real.__name__)
            return real(*asked)

        return called

    cache._lock = Lock()  # type: ignore[assignment]
    for room, name in ((parse, "pod"), (parse, "job"), (caches, "packed"), (caches, "unpacked"), (caches, "load_report")):
        monkeypatch.setattr(room, name, outside(getattr(room, name)))
    meta = {"name": KEY.name, "namespace": KEY.namespace, "uid": "u", "resourceVersion": "1", "labels": {parse.CONSUMER: "orders"}}
    raw = {"kind": kind, "metadata": meta, "spec": SPEC}
    cache.see(kind, raw, NOW)
    cache.live(KEY, [raw], [raw], NOW)
    cache.answered(raw, "1")
    cache.body(KEY)
    cache.see(kind, raw, NOW, gone=True)
    cache.see(CONSUMER_KIND, naming("driver-a"), NOW)
    cache.see("Pod", driver("a", 1), NOW)
    assert {"pod", "job", "packed", "load_report"} <= {*parsed}

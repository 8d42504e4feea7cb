"""Objects that are too large to be decoded: cut before they become memory, and seen all the same, so that a deletion goes through."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from simulated_cluster import SPEC

from sluice_operator.observe import parse
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.kept import of_pod_or_job as kept_of
from sluice_operator.observe.watch_state import LONGEST, Lines, WatchRefused, WatchState
from sluice_operator.resource.fields import MAX_BYTES, TOO_LARGE
from sluice_operator.untrusted import decoding
from sluice_operator.untrusted.values import Unreadable, part

Json = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ResourceKey("shop", "orders")
META = {"name": "orders", "namespace": "shop", "uid": "u", "resourceVersion": "7", "finalizers": ["sluice.dev/finalizer"], "generation": 2}
STATUS = {
    "driver": {"attempt": 3, "pod": "orders-driver-3"},
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "Reading", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
    ],
}
EMPTIES: list[Any] = [[]] * 430_000
MANY = 6 * 2**20  # bytes of memory: the bytes of such an object four times; decoded it takes 27 MB


def written(value: Any) -> bytes:
    """As an API server writes what it knows by a schema only: keys sorted, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def resource(**change: Any) -> Json:
    spec = {**SPEC, "pipeline": {**SPEC["pipeline"], "args": {"a": EMPTIES}}}
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": META, "spec": spec, "status": STATUS} | change


def peak(call: Callable[[], Any]) -> tuple[Any, int]:
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


UNREAD = {"metadata": META, "spec": decoding.NOT_READ, "status": decoding.NOT_READ}


def test_of_an_object_that_is_too_large_the_metadata_alone_is_read() -> None:
    """By name, owner and finalizers it can be deleted. The rest is never decoded, and its place says why."""
    found, memory = peak(lambda: decoding.readable(written(resource())))
    assert found == UNREAD
    assert memory < MANY


def test_an_event_of_one_is_an_event() -> None:
    found, memory = peak(lambda: WatchState().line(b'{"type":"MODIFIED","object":%b}' % written(resource())))
    assert (found.body, found.gone) == (UNREAD, False)
    assert memory < MANY


def test_a_page_that_is_too_large_is_none_and_that_of_one_objects_metadata_is_a_page() -> None:
    """As the API server answers for PartialObjectMetadata."""
    assert decoding.page(b'{"items":[%b]}' % written(resource())) is None
    assert decoding.metadata_alone(b'{"metadata":{"continue":"x"},"items":[%b]}' % written({"metadata": META})) == {
        "metadata": {"continue": "x"},
        "items": [UNREAD],
    }


NOTED = [{"manager": "kubectl", "fieldsV1": {f"f:{number}": {} for number in range(70_000)}}]
METAS: dict[str, Json] = {
    "names of many fields": {"managedFields": NOTED},
    "deep": {"managedFields": "DEEP"},
    "many labels": {"labels": {f"team/l{number}": "uid" for number in range(70_000)}},
    "fields that are named like parts": {"labels": {"metadata": "5", "spec": "x", "uid": "another"}, "annotations": {"a": '"metadata":{"uid":"x"}'}},
}


@pytest.mark.parametrize("more", METAS.values(), ids=METAS)
@pytest.mark.parametrize("ordered", [True, False], ids=["custom resource", "pod"])
def test_whatever_else_metadata_holds_the_object_is_named(more: Json, *, ordered: bool) -> None:
    """The names of the fields of a large spec are noted in it, as deep as they are."""
    meta = {**META, **more}
    names = sorted(meta) if ordered else ["name", "namespace", *(name for name in meta if name not in {"name", "namespace"})]
    deep = '{"f:a":' * 1_200 + "{}" + "}" * 1_200
    data = json.dumps(resource(metadata={name: meta[name] for name in names}), separators=(",", ":")).replace('"DEEP"', deep).encode()
    found = decoding.readable(data)
    assert {name: found["metadata"][name] for name in META} == META
    assert found["spec"] == found["status"] == decoding.NOT_READ


def test_texts_are_no_values() -> None:
    commas = "," * 300_000
    body = resource(metadata={**META, "annotations": {"a": commas + '"['}}, spec={**SPEC, "pipeline": {**SPEC["pipeline"], "args": {"sql": commas}}})
    assert decoding.readable(written(body)) == body


@pytest.mark.parametrize("metadata", [b"5", b'{"name":"orders"', b""], ids=["a number", "without an end", "none"])
def test_an_object_without_metadata_is_not_read(metadata: bytes) -> None:
    with pytest.raises(Unreadable, match=r"metadata\.resourceVersion|metadata: not read"):
        WatchState().line(b'{"type":"ADDED","object":{"metadata":%b,"spec":%b}}' % (metadata, written(EMPTIES)))


def test_a_line_of_the_largest_object_ends_no_watch() -> None:
    """Etcd takes 1.5 MiB, and Go's JSON writes each of these characters with six bytes. What comes before and after it in a piece are lines, too."""
    large = written(resource()).replace(b'"spec":{', b'"spec":{"a":"' + rb"\u003c" * (3 * 2**19) + b'",', 1)
    data, lines = b'{"a":1}\n{"type":"ADDED","object":%b}\n\n{"b":2}\n{"c"' % large, Lines()
    found = [line for start in range(0, len(data), 2**16) for line in lines.feed(data[start : start + 2**16])]
    assert (found[0], found[2:], lines.feed(b":3}\n")) == (b'{"a":1}', [b'{"b":2}'], [b'{"c":3}'])
    assert len(found[1]) > 9 * 2**20
    assert WatchState().line(found[1]).body == UNREAD  # type: ignore[union-attr]  # it is an event


def test_a_line_without_end_is_not_kept() -> None:
    lines = Lines()
    lines.feed(b"x" * LONGEST)
    with pytest.raises(WatchRefused):
        lines.feed(b"x")


def test_one_of_which_the_metadata_alone_is_read_is_left_alone_and_can_be_deleted() -> None:
    """Its status says what runs, so nothing is decided without it. Pods and Jobs of one that is deleted are found by their owner."""
    with pytest.raises(Unreadable, match="status: not read: the object has more than"):
        parse.view(UNREAD, parse.observed([], []), NOW)
    deleted = {**UNREAD, "metadata": {**META, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert parse.view(deleted, parse.observed([], []), NOW).resource.deleting


def test_many_resources_as_large_as_may_be_take_as_much_memory_as_bytes() -> None:
    cache = Cache()
    most: list[Any] = [[]] * (MAX_BYTES // 3 - 500)

    def fill() -> None:
        for number in range(12):
            spec = {**SPEC, "pipeline": {**SPEC["pipeline"], "args": {"a": most if number % 2 else EMPTIES[:30_000]}}}
            meta = {**META, "name": f"r{number}", "managedFields": [{"x": "y" * 10_000}]}
            cache.see("KinesisConsumer", json.loads(json.dumps({"metadata": meta, "spec": spec})), NOW)

    tracemalloc.start()
    fill()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 12 * MAX_BYTES
    problems = {parse.view(cache.body(ResourceKey("shop", f"r{n}")) or {}, cache.observed(KEY), NOW).problem for n in (0, 2)}
    assert [cache.is_cut(ResourceKey("shop", f"r{n}")) for n in (0, 1)] == [True, False]
    assert problems == {f"spec: {TOO_LARGE}"}


def test_a_scrape_reads_no_resource_that_is_kept_as_bytes() -> None:
    """Every scrape would decode all of them at once: of valid ones a hundred times their bytes."""
    cache = Cache()
    nested: Any = []
    for _ in range(50):
        nested = [nested]
    spec = {**SPEC, "pipeline": {**SPEC["pipeline"], "args": {"a": [nested] * 150}}}
    for number in range(40):
        cache.see("KinesisConsumer", {"metadata": {**META, "name": f"r{number}"}, "spec": spec, "status": {**STATUS, "lastGoodSpec": spec}}, NOW)
    snapshots, memory = peak(cache.snapshots)
    assert memory < 100_000
    assert [part(one.body, "status")["conditions"] for one in snapshots] == [[{"type": "Ready", "status": "True"}]] * 40


def test_finalizers_and_annotations_of_pods_are_bounded() -> None:
    """Whoever may make pods may give them half a megabyte of either."""
    labels = {parse.CONSUMER: "orders", parse.ROLE: "driver"}
    notes = {parse.REPORT: "{}", "sluice.dev/x": "y" * 250_000}
    finalizers = [f"{'f' * 400}.io/{number}" for number in range(500)]
    meta = {**META, "name": "p", "labels": labels, "annotations": notes, "finalizers": finalizers}
    kept = kept_of({"metadata": meta, "status": {}})
    assert kept["metadata"]["annotations"] == {parse.REPORT: "{}"}
    assert sum(map(len, parse.pod(kept).finalizers)) <= 16 * 253


def test_reports_of_pods_that_no_status_names_are_not_kept() -> None:
    """Whoever may make pods may make many, each with a report as long as may be."""
    drains = [{"pod": f"x{number}", "since": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:00:00Z"} for number in range(1000)]
    report = json.dumps({"number": 1, "phase": "Running", "draining": drains}, separators=(",", ":"))
    cache = Cache()
    cache.see("KinesisConsumer", {"metadata": META, "spec": SPEC, "status": STATUS}, NOW)

    def pod(name: str, consumer: str) -> Json:
        labels = {parse.CONSUMER: consumer, parse.ROLE: "driver"}
        return {"metadata": {"name": name, "namespace": "shop", "uid": name, "labels": labels, "annotations": {parse.REPORT: report}}, "status": {}}

    for name, consumer in (("stray", "orders"), ("orders-driver-3", "orders"), ("nobodys", "none")):
        cache.see("Pod", pod(name, consumer), NOW)
    kept = {driver.name: driver.report for key in (KEY, ResourceKey("shop", "none")) for driver in cache.observed(key).drivers}
    assert kept["stray"] is kept["nobodys"] is None
    assert kept["orders-driver-3"] is not None
    assert len(kept["orders-driver-3"].draining) == 50
    assert cache.see("Pod", pod("stray", "orders"), NOW) == (KEY, False, False)

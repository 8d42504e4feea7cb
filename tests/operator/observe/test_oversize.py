"""Objects that are too large to be decoded: cut before they become memory, and seen all the same, so that a deletion goes through."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_cluster import SPEC

from sluice_operator.observe import parse
from sluice_operator.observe.cache import Cache, ResourceKey
from sluice_operator.observe.kept import of_pod_or_job as kept_of
from sluice_operator.observe.watch_state import LONGEST, Lines, WatchRefused, WatchState
from sluice_operator.resource.fields import MAX_BYTES
from sluice_operator.untrusted import oversize
from sluice_operator.untrusted.metadata import metadata
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
MANY = 4 * 2**20  # bytes of memory: the bytes of such an object three times; decoded it takes 27 MB


def written(value: Any) -> bytes:
    """As an API server writes what it knows by a schema only: keys sorted, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def resource(**change: Any) -> Json:
    """A KinesisConsumer with far too many arguments."""
    spec = {**SPEC, "pipeline": {**SPEC["pipeline"], "args": {"a": EMPTIES}}}
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": META, "spec": spec, "status": STATUS} | change


def peak(call: Callable[[], Any]) -> tuple[Any, int]:
    """What it returns, and how many bytes Python held at most meanwhile."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


CUT = {"metadata": META, "spec": oversize.MESSAGE, "status": STATUS}


def test_an_object_that_is_too_large_keeps_metadata_and_status() -> None:
    """Its spec is never decoded, and the place of it says why."""
    data = written(resource())
    found, memory = peak(lambda: oversize.readable(data))
    assert found == CUT
    assert memory < MANY


def test_an_event_of_one_is_an_event() -> None:
    """Of a watch."""
    line = (
        written({"type": "MODIFIED", "object": resource()})
        .replace(b'{"object":', b'{"type":"MODIFIED","object":')
        .replace(b',"type":"MODIFIED"}', b"}")
    )
    found, memory = peak(lambda: WatchState().line(line))
    assert (found.body, found.gone) == (CUT, False)
    assert memory < MANY


@pytest.mark.parametrize("custom", [True, False], ids=["custom resource", "pod"])
def test_a_list_of_one_is_a_list(custom: bool) -> None:  # noqa: FBT001 - a table
    """The list's own metadata is after the items, or before."""
    meta, item = b'{"continue":"x","resourceVersion":"9"}', written(resource())
    data = b'{"apiVersion":"v1","items":[%b],"kind":"L","metadata":%b}\n' % (item, meta)
    data = data if custom else b'{"kind":"L","apiVersion":"v1","metadata":%b,"items":[%b]}\n' % (meta, item)
    page, memory = peak(lambda: oversize.page_of_one(data))
    assert (page["items"], page["metadata"]) == ([CUT], {"continue": "x", "resourceVersion": "9"})
    assert memory < 2 * MANY


def test_a_list_of_one_that_cannot_be_told_apart_is_empty() -> None:
    """The objects after it are listed all the same."""
    data = b'{"apiVersion":"v1","items":[%b],"kind":"L","metadata":{"continue":"x"}}' % written({"metadata": 5, "spec": EMPTIES})
    assert oversize.page_of_one(data)["items"] == []


def test_what_other_programs_noted_is_left_out() -> None:
    """The names of the fields of a large spec are noted in its metadata."""
    noted = [{"manager": "kubectl", "fieldsV1": {f"f:{number}": {} for number in range(120_000)}}]
    for order in (sorted(META), list(META)):
        meta = {name: META[name] for name in order}
        data = json.dumps(resource(metadata={**meta, "managedFields": noted}), separators=(",", ":")).encode()
        assert oversize.readable(data) == CUT
    assert oversize.readable(written(resource(metadata={**META, "managedFields": noted}))) == CUT


OURS = {"sluice.dev/consumer": "orders", "app.kubernetes.io/managed-by": "sluice", "spark-role": "executor"}
LABELS = {**{f"team/l{number}": "uid" for number in range(70_000)}, "uid": "another", "resourceVersion": "1", **OURS}
LONG: dict[str, Json] = {"finalizers": {"finalizers": ["x" * 600_000]}, "owners": {"ownerReferences": [{"name": "spec", "uid": "status"}] * 40_000}}


@pytest.mark.parametrize("ordered", [True, False], ids=["custom resource", "pod"])
def test_of_too_many_labels_those_that_are_looked_for_are_kept(ordered: bool) -> None:  # noqa: FBT001 - a table
    """Whose it is, what it is, and that it is to be deleted; a label that is named like a field is none."""
    meta = {**META, "labels": LABELS, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    names = sorted(meta) if ordered else ["name", "namespace", *(name for name in meta if name not in {"name", "namespace"})]
    data = json.dumps(resource(metadata={name: meta[name] for name in names}), separators=(",", ":")).encode()
    assert oversize.readable(data) == {**CUT, "metadata": {**meta, "labels": OURS}}


def test_texts_are_no_values() -> None:
    """An annotation of nothing but commas, or a query, is small."""
    commas = "," * 60_000
    body = resource(metadata={**META, "annotations": {"a": commas + '"['}}, spec={**SPEC, "pipeline": {**SPEC["pipeline"], "args": {"sql": commas}}})
    assert oversize.readable(written(body)) == {name: body[name] for name in ("metadata", "spec", "status")}


@pytest.mark.parametrize("long", LONG.values(), ids=LONG)
def test_an_object_of_which_more_than_labels_is_too_large_is_not_read(long: Json) -> None:
    """A list of finalizers that is not known whole could only be written back shorter."""
    with pytest.raises(Unreadable, match=r"metadata\.(finalizers|ownerReferences): not read"):
        oversize.readable(written(resource(metadata={**META, **long})))


@pytest.mark.parametrize("long", LONG.values(), ids=LONG)
def test_an_object_that_is_not_read_is_shown_all_the_same(long: Json) -> None:
    """Else the watch looks stuck, the operator is restarted again and again, and the next list takes the object for deleted."""
    item = written(resource(metadata={**META, "labels": OURS, **long}))
    line = b'{"type":"ADDED","object":%b}\n' % item
    page = oversize.page_of_one(b'{"apiVersion":"v1","items":[%b],"kind":"L","metadata":{"resourceVersion":"9"}}' % item)
    watch = WatchState()
    shown = [watch.line(line), *watch.page(page), *watch.end("9")]
    (field,) = long
    known = {name: value for name, value in META.items() if name != field}
    seen = [(event.body["metadata"], event.body[oversize.UNREAD].partition(":")[0], event.gone) for event in shown if event]
    assert seen == [({**known, "labels": OURS}, f"metadata.{field}", False)] * 2
    assert watch.version == "9"


TEXTS = st.text(max_size=4) | st.sampled_from(["metadata", "spec", "uid", '"', "\\", '"}', "{", "]"])


@settings(max_examples=60)
@given(
    st.dictionaries(
        TEXTS,
        st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_metadata_is_read_member_by_member_as_a_parser_reads_it(meta: Json) -> None:
    """Whatever it holds."""
    meta.pop("managedFields", None)
    data = b'x{"a":{},"metadata":%b}' % json.dumps(meta, separators=(",", ":")).encode()
    assert metadata(data, data.index(b'"metadata":') + 11, oversize.is_large) == (meta, (), len(data) - 1)


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5), lambda inner: st.dictionaries(st.sampled_from(["status", "spec", "metadata", "a"]), inner)
    )
)
def test_whatever_is_within_metadata_and_status_are_those_of_the_object(inside: Any) -> None:
    """Fields of these names further inside are no others."""
    status = {**STATUS, "lastGoodSpec": {"a": inside}}
    data = written(resource(spec={"z": inside, "a": EMPTIES[:70_000]}, status=status))
    assert oversize.readable(data) == {"metadata": META, "spec": oversize.MESSAGE, "status": status}


def test_an_object_without_a_status_has_none() -> None:
    """It is new."""
    data = written({"metadata": META, "spec": {"a": EMPTIES}})
    assert oversize.readable(data) == {"metadata": META, "spec": oversize.MESSAGE}


def test_a_line_without_end_is_not_kept() -> None:
    """The watch lists again."""
    lines = Lines()
    lines.feed(b"x" * LONGEST)
    with pytest.raises(WatchRefused):
        lines.feed(b"x")


def test_the_spec_of_one_is_refused_and_the_last_good_one_goes_on() -> None:
    """With its own table."""
    cache = Cache()
    good = {**SPEC, "checkpoints": {"table": "orders-table"}}
    body = {**CUT, "status": {**STATUS, "lastGoodSpec": good}}
    cache.see("KinesisConsumer", body, NOW)
    view = parse.view(cache.body(KEY) or {}, cache.observed(KEY), NOW)
    assert view.problem == f"spec: {oversize.MESSAGE}"
    assert view.wanted is not None
    assert view.wanted.raw == good


def test_many_resources_as_large_as_may_be_take_as_much_memory_as_bytes() -> None:
    """A tenant may have many. One whose spec is too large to be carried out is kept without it."""
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
    assert problems == {f"spec: larger than {MAX_BYTES} bytes; move code and data into the image"}


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
    assert cache.see("Pod", pod("stray", "orders"), NOW) == (KEY, False)

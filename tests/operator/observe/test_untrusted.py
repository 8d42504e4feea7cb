"""Whatever a stranger writes: a value within bounds, or a refusal that names the field. Never an exception, and never work without end."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_values import KINDS, NUMBERS, ODD, TEMPLATE, anything, deep, places, put, specs
from simulated_cluster import BEGIN, SPEC

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.apply import jobs, manifests
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.election.candidate import Candidate, ElectionTimings, LeaseRef
from sluice_operator.observe import parse
from sluice_operator.observe.cache import Cache, ResourceSnapshot
from sluice_operator.observe.watch_state import WatchRefused, WatchState
from sluice_operator.plan.rules import plan
from sluice_operator.settings import Settings
from sluice_operator.state.actions import RemoveFinalizer
from sluice_operator.state.objects import Observed
from sluice_operator.state.serialization import dump_status, load_report, load_status
from sluice_operator.state.status import DriverStatus, MigrationStatus
from sluice_operator.telemetry.gauges import Gauges, Sources
from sluice_operator.untrusted.decoding import DEEPEST, decoded
from sluice_operator.untrusted.values import Unreadable

Json = dict[str, Any]
META: Json = {"namespace": "default", "name": "orders", "uid": "u", "resourceVersion": "7", "finalizers": ["sluice.dev/operator"]}
STATUS: Json = dump_status(
    plan(parse.view({"metadata": META | {"generation": 3}, "spec": {**SPEC, "migrateFrom": {"table": "old-table"}}}, Observed(), BEGIN)).status
)
POD: Json = {
    "metadata": META
    | {
        "labels": {parse.CONSUMER: "orders", parse.ROLE: "driver", parse.ATTEMPT: "2"},
        "annotations": {parse.REPORT: '{"number": 1, "phase": "Running"}', parse.SPEC_HASH: "h", parse.TARGET: "2"},
        "ownerReferences": [{"apiVersion": "sluice.dev/v1alpha1", "kind": CONSUMER_KIND, "name": "orders", "uid": "o", "controller": True}],
        "creationTimestamp": "2026-11-21T10:00:00Z",
        "deletionTimestamp": "2026-11-21T10:00:00Z",
        "deletionGracePeriodSeconds": 30,
    },
    "status": {
        "phase": "Failed",
        "reason": "Evicted",
        "message": "m",
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Unschedulable", "lastTransitionTime": "2026-11-21T10:00:00Z"}],
        "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}}}],
        "containerStatuses": [
            {"name": "driver", "state": {"terminated": {"exitCode": 65, "message": '{"reason": "Refused"}', "finishedAt": "2026-11-21T10:00:00Z"}}}
        ],
    },
}
REPORT: Json = {
    "number": 7, "phase": "WaitingOutLease", "deadline": "2026-11-21T10:00:00Z", "generation": 3, "batch": 1, "openBatch": 2, "openShards": 4,
    "endedShards": 0, "heldShards": 4, "executors": 2, "millisBehindLatest": 5, "recordsPerSecond": 1.5, "records": 9, "deadLetters": 0,
    "busy": 0.5, "activeShards": 3, "farthestShard": "shardId-000000000001", "millisBehindOthers": 2,
    "draining": [{"pod": "p", "since": "2026-11-21T10:00:00Z", "deadline": "2026-11-21T10:01:00Z"}], "warnings": ["SourceMoved: x"],
    "versions": [{"firstBatch": 1, "since": "2026-11-21T10:00:00Z", "hash": "h", "image": "i", "reset": "r"}],
}  # fmt: skip
EACH = settings(max_examples=60)


def carried_out(spec: Any, status: Any = None, **meta: Any) -> None:
    body = {"metadata": {**META, "generation": 4, **meta}, "spec": spec, "status": status}
    view = parse.view(body, Observed(), BEGIN)
    document = dump_status(plan(view).status)
    assert len(orjson.dumps({key: value for key, value in document.items() if key != "lastGoodSpec"})) < 100_000
    if view.wanted is None or view.problem:
        assert view.problem
        assert view.problem.startswith("spec")
        return
    settings_, driver = Settings(), DriverStatus(attempt=1, pod="orders-driver-1", spec_hash=view.wanted.driver_hash)
    made = [manifests.driver_pod(view.resource, view.wanted, driver, settings_), manifests.executor_sample(view.resource, view.wanted, settings_)]
    if view.wanted.spec.migrate_from is not None:
        migration = MigrationStatus(job="j", hash="h", spec_hash=view.wanted.job_hash, tries=1)
        made.append(jobs.migration_job(view.resource, view.wanted, migration, settings_))
    for body in made:
        orjson.dumps(body)


@EACH
@given(st.lists(st.one_of(st.sampled_from(("\x1b[2J", "\n", "\u202e", "\x9b", "\u200b", "2026")), st.text(max_size=5)), max_size=5).map("".join))
def test_what_an_annotation_asks_for_is_one_printable_line(said: str) -> None:
    """A request is written into the status as it was read: `status.driver.restart`, `status.migration.retry`."""
    notes = {f"sluice.dev/{word}": said for word in ("restart", "retry", "force", "accept-loss")}
    found = parse.view({"metadata": {**META, "annotations": notes}, "spec": SPEC}, Observed(), BEGIN).resource
    for asked in (found.restart, found.retry, found.force, found.accept_loss):
        assert asked is None or asked.isprintable()


@pytest.mark.parametrize("field", ["driver", "executor"])
def test_a_pod_template_with_an_odd_value_anywhere_is_made_or_refused_by_its_field(field: str) -> None:
    container = {**TEMPLATE["spec"]["containers"][0], "name": field}
    full = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "containers": [container]}}
    pipeline = {**SPEC["pipeline"], "env": [{"name": "X", "value": "y"}], "volumes": [{"name": "v", "emptyDir": {}}]}
    for path in places(full):
        for odd in KINDS:
            carried_out({**SPEC, "pipeline": pipeline, field: {"podTemplate": put(full, path, odd)}})


@pytest.mark.parametrize("where", ["pipeline.args", "pipeline.env", "driver.resources.requests", "start", "sparkConf", "migrateFrom", "stream"])
def test_a_field_with_an_odd_value_is_carried_out_or_refused_by_name(where: str) -> None:
    """Also where the CRD would refuse it: another version's may not."""
    first, _, rest = where.partition(".")
    for odd in ODD:
        for value in (odd, {"x": odd}, [odd], {"cpu": odd}, {"memory": odd}, {"position": "AT_TIMESTAMP", "timestamp": odd}):
            part: Any = value
            for name in reversed(rest.split(".") if rest else []):
                part = {name: part}
            carried_out({**SPEC, first: {**SPEC.get(first, {}), **part} if rest else part})


@EACH
@given(specs())
def test_a_spec_that_the_schema_lets_through_is_carried_out_or_refused_by_name(spec: Json) -> None:
    carried_out(spec)


@EACH
@given(anything())
def test_a_spec_of_any_form_is_refused_by_name(spec: Any) -> None:
    """An operator does not know which CRD is installed."""
    carried_out(spec)


@pytest.mark.parametrize("amount", ["1e999999999999", "1e-999999999999", "9" * 64, "1e99", "9" * 400_000, "0." + "0" * 400_000 + "1"])
def test_a_quantity_costs_no_more_than_its_length(amount: str) -> None:
    """An integer of a billion digits would hold the interpreter, and with it probes, election and every other resource."""
    for resources in ({"requests": {"cpu": amount}}, {"limits": {"memory": amount}}):
        carried_out({**SPEC, "driver": {"resources": resources}, "executor": {"resources": resources}})


def test_objects_that_are_nested_are_refused_by_the_field_they_are_in() -> None:
    view = parse.view({"metadata": META, "spec": {**SPEC, "pipeline": {**SPEC["pipeline"], "args": deep(5000)}}}, Observed(), BEGIN)
    assert view.problem == "spec.pipeline.args.a.a: is nested more than 64 levels deep; flatten it, or pass it as text"


@pytest.mark.parametrize("path", list(places(STATUS)), ids=str)
def test_a_status_with_an_odd_value_is_read_or_refused_by_its_field_and_a_deletion_goes_through(path: tuple[Any, ...]) -> None:
    for odd in ODD:
        status = put(STATUS, path, odd)
        body = {"metadata": META, "spec": SPEC, "status": status}
        try:
            plan(parse.view(body, Observed(), BEGIN + timedelta(days=3)))
        except Unreadable as refusal:
            assert str(refusal).startswith("status")  # noqa: PT017 - either way is right
        gone = parse.view({**body, "metadata": META | {"deletionTimestamp": "2026-11-21T10:00:00Z"}}, Observed(), BEGIN)
        assert RemoveFinalizer() in (plan(gone).actions or plan(gone.with_status(plan(gone).status)).actions)
        shown = [ResourceSnapshot(body, replace(parse.pod(POD), report=load_report(parse.report(POD)), reported_at=BEGIN))]
        list(Gauges(Sources(lambda shown=shown: shown, lambda: True, dict, lambda shown=shown: shown)).collect())  # type: ignore[misc]  # a default that binds it


def taken_in(kind: str, body: Any) -> None:
    cache = Cache()
    try:
        change = cache.see(kind, body, BEGIN)
    except Unreadable as refusal:
        assert str(refusal).startswith("metadata.")  # noqa: PT017 - either way is right
        return
    if change is not None:
        cache.observed(change.key)
        cache.snapshots()
        cache.see(kind, body, BEGIN, gone=True)


@pytest.mark.parametrize("kind", ["Pod", "Job", CONSUMER_KIND])
def test_an_object_with_an_odd_value_anywhere_is_taken_in_or_refused_by_its_field(kind: str) -> None:
    for path in places(POD):
        for odd in ODD:
            taken_in(kind, put(POD, path, odd))


@EACH
@given(st.sampled_from(["Pod", "Job", CONSUMER_KIND]), anything())
def test_an_object_of_any_form_is_taken_in_or_refused_by_its_field(kind: str, body: Any) -> None:
    taken_in(kind, body)


@EACH
@given(st.one_of(st.text(), anything().map(json.dumps), st.binary().map(lambda data: data.decode("latin-1"))))
def test_words_of_any_form_become_an_exit_and_a_report_or_none(text: str) -> None:
    pod = put(POD, ("status", "containerStatuses", 0, "state", "terminated", "message"), text)
    pod = put(pod, ("metadata", "annotations", parse.REPORT), text)
    end = parse.pod(pod).exit
    assert end is not None
    assert len(end.message) <= 1024
    assert len(end.reason) <= 64


@pytest.mark.parametrize("path", list(places(REPORT)), ids=str)
def test_a_report_with_an_odd_value_ends_no_pass(path: tuple[Any, ...]) -> None:
    for odd in [*ODD, 10**400]:
        text = json.dumps(put(REPORT, path, odd))
        for phase in ("WaitingOutLease", "Running"):
            running(text if path == ("phase",) else text.replace("WaitingOutLease", phase))


def running(report: str) -> None:
    body = begun()
    pod = parse.pod(
        {
            "metadata": {**META, "name": "orders-driver-2", "uid": "p", "annotations": {parse.REPORT: report, parse.TARGET: "2"}}
            | {"labels": {parse.ROLE: "driver", parse.ATTEMPT: "2"}, "ownerReferences": [{"uid": "u", "controller": True}]},
            "status": {"phase": "Running"},
        }
    )
    made = plan(parse.view(body, Observed(drivers=(pod,)), BEGIN))
    assert load_status(dump_status(made.status)) == made.status


@cache
def begun() -> Json:
    body: Json = {"metadata": META | {"generation": 3}, "spec": SPEC}
    view = parse.view(body, Observed(), BEGIN)
    status = {**dump_status(plan(view).status), "driver": {"attempt": 2}}
    status = dump_status(plan(parse.view({**body, "status": status}, Observed(), BEGIN)).status)
    hash_ = view.wanted.driver_hash if view.wanted else None
    return {**body, "status": status | {"driver": {"attempt": 2, "pod": "orders-driver-2", "specHash": hash_}}}


@pytest.mark.parametrize("odd", [*KINDS[:-1], *NUMBERS, 10**30], ids=lambda odd: repr(odd)[:20])
def test_a_lease_with_odd_values_ends_no_election(odd: Any) -> None:
    for field in ("leaseDurationSeconds", "leaseTransitions", "holderIdentity", "renewTime"):
        now, cluster = [0.0], MemoryCluster(lambda: BEGIN)
        spec = {"holderIdentity": "theirs", "leaseDurationSeconds": 15, "leaseTransitions": 1, field: odd}
        cluster.create({"kind": "Lease", "metadata": {"namespace": "a", "name": "l"}, "spec": spec})
        candidate = Candidate(cluster, LeaseRef("a", "l", "me"), ElectionTimings(), lambda now=now: now[0])
        for _ in range(70):
            now[0] += candidate.acquire_or_renew()
        assert candidate.leads() or now[0] < 61
        lease = cluster.get("Lease", "a", "l")
        assert lease is not None
        assert 0 <= lease["spec"]["leaseTransitions"] < 2**31 or not candidate.leads()


def line(body: str) -> bytes:
    return f'{{"type":"ADDED","object":{{"metadata":{{"uid":"u","namespace":"a","name":"x","resourceVersion":"7"}},"spec":{body}}}}}'.encode()


@pytest.mark.parametrize("levels", [900, 1_200, 5_000])
@pytest.mark.parametrize("brackets", [('{"a":', "}"), ("[", "]"), ('{"}]": ["\\"]{", ', "]}")])
def test_a_value_that_is_nested_too_deeply_is_cut_and_what_is_beside_it_stays(levels: int, brackets: tuple[str, str]) -> None:
    """A parser would give up, with the list or the watch that the value is in."""
    begin, end = brackets
    event = WatchState().line(line('{"before": "x\\\\", "args": ' + begin * levels + "1" + end * levels + ', "after": [7, "]"]}'))
    assert event is not None
    spec = event.body["spec"]
    assert (spec["before"], spec["after"], event.body["metadata"]["name"]) == ("x\\", [7, "]"], "x")
    if levels > 1_024:
        assert "nested too deeply" in orjson.dumps(event.body).decode()
        assert parse.view(event.body | {"spec": {**SPEC, "pipeline": {**SPEC["pipeline"], "args": spec}}}, Observed(), BEGIN).problem


@EACH
@given(anything())
def test_what_is_not_nested_too_deeply_is_decoded_as_it_is(value: Any) -> None:
    try:
        data = orjson.dumps(value)
    except TypeError:
        return
    assert decoded(data) == orjson.loads(data)
    assert DEEPEST > 64


@EACH
@given(st.one_of(st.binary(), anything().map(lambda value: json.dumps(value).encode())))
def test_a_line_of_a_watch_of_any_form_is_an_event_or_refused(data: bytes) -> None:
    try:
        WatchState().line(data)
    except (ValueError, WatchRefused):
        return


@EACH
@given(st.one_of(st.text(), anything().map(json.dumps)))
def test_a_report_of_any_form_is_one_or_none(text: str) -> None:
    load_report(text)


@pytest.mark.parametrize("busy", ["1e999", "-1", "1.01", "1e308", "-0.01"])
def test_a_share_that_is_none_counts_as_not_reported(busy: str) -> None:
    report = load_report(f'{{"number": 1, "phase": "Running", "busy": {busy}, "records": 5}}')
    assert report is None or (report.busy, report.records) == (None, 5)


@pytest.mark.parametrize("field", ["activeShards", "millisBehindOthers", "millisBehindLatest", "records"])
@pytest.mark.parametrize("figure", ["1e999", "NaN", "9" * 400, '"many"', "[]"])
def test_a_figure_that_no_driver_means_makes_the_report_unread(field: str, figure: str) -> None:
    assert load_report(f'{{"number": 1, "phase": "Running", "{field}": {figure}}}') is None


def test_the_name_of_a_shard_is_one_short_printable_line() -> None:
    report = load_report(json.dumps({"number": 1, "phase": "Running", "farthestShard": "\x1b[2J\n" + "x" * 9999}))
    assert report is not None
    assert report.farthest_shard is not None
    assert report.farthest_shard.isprintable()
    assert len(report.farthest_shard) <= 1024


@pytest.mark.parametrize("versions", ['[{"firstBatch": 1e999}]', '[{"firstBatch": null}]', "[{}]", '[{"firstBatch": %s}]' % ("9" * 18), '["a"]', "7"])
def test_versions_that_no_driver_means_make_the_report_unread(versions: str) -> None:
    assert load_report(f'{{"number": 1, "phase": "Running", "versions": {versions}}}') is None


def test_of_a_long_list_in_a_report_the_rest_is_not_looked_at() -> None:
    """43,000 entries fit into an annotation, and to judge one takes a microsecond."""
    report = load_report(json.dumps({"number": 1, "phase": "Running", "warnings": ["w"] * 50 + [{}] * 9}))
    assert report is not None
    assert len(report.warnings) == 16


def test_versions_of_a_report_are_bounded() -> None:
    forged = {"firstBatch": 1, "since": "9999-12-31T23:59:59Z", "hash": "\x1b[2J" + "h" * 999, "image": "i" * 999, "reset": "r\n" * 99}
    report = load_report(json.dumps({"number": 1, "phase": "Running", "versions": [forged] * 40}))
    assert report is not None
    assert len(report.versions) == 10
    version = report.versions[0]
    assert version.since is None
    for text, most in ((version.hash, 64), (version.image, 300), (version.reset, 64)):
        assert text is not None
        assert text.isprintable()
        assert len(text) <= most

"""What a driver reports is what the operator reads, in any two versions (docs/interfaces.md, "Report (JSON, driver → operator)")."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sluice_consumer import config as configs
from sluice_consumer.driver_report import DriverReport, DriverWarning, ExecutorDrain, ReportPhase, SpecVersion, WarningReason
from sluice_consumer.process import pod
from sluice_kubectl.screens import words
from sluice_operator.names import camel
from sluice_operator.observe import parse
from sluice_operator.plan import running
from sluice_operator.plan.conditions import PASSING, WARNINGS
from sluice_operator.state.objects import Report
from sluice_operator.state.serialization import load_report
from sluice_operator.state.status import VersionStatus

CONSUMER = Path(configs.__file__).parent
UNTIL = datetime(2026, 11, 21, 10, 2, tzinfo=UTC)
READY = DriverReport(phase=ReportPhase.RUNNING, open_shards=3, ended_shards=1, held_shards=4, executors=2)
WHOLE = DriverReport(
    phase=ReportPhase.WAITING_OUT_LEASE,
    deadline=UNTIL.isoformat(timespec="seconds"),
    generation=3,
    batch=41,
    open_batch=42,
    open_shards=4,
    ended_shards=5,
    held_shards=6,
    executors=2,
    draining=(ExecutorDrain("orders-3-exec-2", UNTIL - timedelta(minutes=2), UNTIL),),
    millis_behind_latest=1200,
    records_per_second=52.1,
    records=4711,
    dead_letters=7,
    busy=0.42,
    active_shards=3,
    farthest_shard="shardId-000000000002",
    millis_behind_others=300,
    warnings=(DriverWarning(WarningReason.SOURCE_MOVED, "table t"),),
    versions=(SpecVersion(first_batch=30, since=UNTIL, hash="51e7", image="orders:1.5.0", reset="undo"), SpecVersion(first_batch=1)),
)


def heard(report: DriverReport, number: int = 17) -> Report:
    found = load_report(parse.report({"metadata": {"annotations": {pod.REPORT: report.text(number)}}}))
    assert found is not None
    return found


def test_the_operator_reads_every_field_of_a_report() -> None:
    found = heard(WHOLE)
    assert {field.name for field in fields(Report)} == {"number", *(field.name for field in fields(DriverReport))}
    same = {field.name for field in fields(DriverReport)} - {"deadline", "draining", "warnings", "versions"}
    assert {name: getattr(found, name) for name in same} == {name: getattr(WHOLE, name) for name in same}
    assert None not in [getattr(WHOLE, field.name) for field in fields(WHOLE)]
    assert found.number == 17
    assert datetime.fromisoformat(str(found.deadline)) == UNTIL
    assert [(drain.pod, drain.since, drain.deadline) for drain in found.draining] == [(d.pod, d.since, d.deadline) for d in WHOLE.draining or ()]
    assert found.warnings == ("SourceMoved: table t",)
    assert found.versions == (
        VersionStatus(first_batch=30, since=UNTIL, hash="51e7", image="orders:1.5.0", reset="undo"),
        VersionStatus(first_batch=1),
    )


def test_a_driver_that_knows_nothing_yet_is_read() -> None:
    assert (heard(DriverReport()).phase, heard(DriverReport()).holds_all) == ("Starting", False)


def test_the_fields_of_a_report_are_those_of_the_page() -> None:
    """docs/interfaces.md shows all of them."""
    page = (CONSUMER.parents[1] / "docs" / "interfaces.md").read_text()
    (shown,) = re.findall(r"### Report \(JSON.*?```json\n(.*?)```", page, re.DOTALL)
    assert set(json.loads(shown)) == set(json.loads(WHOLE.text(1))) == {camel(field.name) for field in fields(Report)}


def test_the_operator_knows_every_phase_that_a_driver_reports() -> None:
    assert {str(phase) for phase in ReportPhase} == {*running.PHASES, "Starting", "StandingBy", "WaitingOutLease"}


@pytest.mark.parametrize("phase", ReportPhase)
def test_a_driver_that_holds_every_shard_is_ready_while_it_runs_or_has_nothing_to_read(phase: ReportPhase) -> None:
    report = DriverReport(phase=phase, open_shards=3, ended_shards=1, held_shards=4, executors=2)
    assert heard(report).holds_all is (phase in {ReportPhase.RUNNING, ReportPhase.IDLE})


def test_a_shard_that_is_not_held_yet_keeps_a_driver_from_being_ready() -> None:
    assert heard(READY).holds_all
    assert not heard(DriverReport(phase=ReportPhase.IDLE, open_shards=3, ended_shards=1, held_shards=3, executors=2)).holds_all


def test_every_warning_of_a_driver_is_a_condition() -> None:
    """But that of a slow batch, which is only said and counted. Those that end by themselves are the operator's, too."""
    assert [str(reason) for reason in WarningReason if reason is not WarningReason.BATCH_SLOW] == [*WARNINGS, *PASSING]


def test_a_driver_that_works_is_never_silent_for_long() -> None:
    """Two reports in a row may be lost."""
    assert timedelta(seconds=2 * pod.ALIVE_SECONDS + pod.SECONDS) < running.STALE
    assert timedelta(milliseconds=words.STALE) == running.STALE


def test_the_phases_of_a_report_have_one_home() -> None:
    """Nobody writes a phase or the reason of a warning beside its enum: a literal of its own would be read by nobody."""
    own = {str(word) for enum in (ReportPhase, WarningReason) for word in enum} - {"Starting", "Running", "Idle", "Draining"}
    tops = {CONSUMER / "driver_report.py", CONSUMER / "watchdog" / "query_watch.py"}
    for path in sorted(set(CONSUMER.rglob("*.py")) - tops):
        found = {
            node.value.partition(":")[0]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        } & own
        assert not found, f"{path.name} says {found} by itself"
    for path in (CONSUMER / "process").glob("*.py"):
        assert not re.search(r'phase="', path.read_text()), path.name

"""One claim a rule: shards without a row, and the table as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from observations import (
    AT_TIME,
    CREATED,
    FINISHED,
    INFO,
    LATEST,
    LOST,
    NONE,
    SPLIT,
    SUSPECTED,
    SYSTEMS,
    WARNING,
    WILL_BE_LOST,
    A,
    B,
    C,
    at,
    listed,
    only,
    said,
    seen,
    table,
)

from sluice_checkpoints.diagnose.model import Observation, Severity
from sluice_checkpoints.diagnose.rules import diagnose
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.kcl import KEY, Kcl, read_leases
from sluice_checkpoints.formats.nifi import InterruptedMigration
from sluice_checkpoints.formats.reader import OtherStream, Problem, SourceShard, StoredPosition
from sluice_checkpoints.formats.snapshot import Snapshot
from sluice_checkpoints.stream.model import ShardList, StreamIdentity

# -- shards without a row ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "initial", "severity"),
    [
        ("kcl", None, WILL_BE_LOST),
        ("kcl", "trim-horizon", INFO),
        ("nifi", "latest", WILL_BE_LOST),
        ("vmware-go-kcl", None, WILL_BE_LOST),
        ("kinsumer", None, WILL_BE_LOST),
        ("sluice", None, INFO),
    ],
)
def test_hash_keys_that_no_row_answers_for_are_a_hole(system: str, initial: str | None, severity: Severity) -> None:
    finding = only(seen((listed(A), listed(B)), {A: at(150)}, system, initial=initial))
    assert (finding.kind, finding.severity, finding.shard) == ("hole", severity, B)
    assert f"{2**126} to {2**127 - 1} (25 %" in finding.text


@pytest.mark.parametrize("stored", [at(150), FINISHED, CREATED, NONE])
def test_what_descends_from_a_row_is_no_hole(stored: StoredPosition) -> None:
    stream = (listed(A, closed=True), listed(B, A, closed=True), listed(C, B))
    assert "hole" not in {kind for kind, _, _ in said(seen(stream, {A: stored}))}


@pytest.mark.parametrize(
    ("system", "follower", "kinds"),
    [
        ("kcl", CREATED, {("hole", WILL_BE_LOST)}),
        ("nifi", CREATED, {("hole", WILL_BE_LOST)}),
        ("kcl", LATEST, {("never-acknowledged", WILL_BE_LOST)}),
        ("kcl", AT_TIME, {("at-timestamp", WARNING), ("hole", SUSPECTED)}),
        ("kcl", at(150), set()),
        ("sluice", CREATED, {("hole", INFO)}),
    ],
)
def test_a_closed_shard_before_the_first_row_was_meant_or_not(system: str, follower: StoredPosition, kinds: set[tuple[str, Severity]]) -> None:
    """KCL does not come back for it, unless it had been finished; one that started late never wanted it."""
    found = said(seen((listed(A, closed=True), listed(B, A)), {B: follower}, system, initial="latest"))
    assert {(kind, severity) for kind, severity, _ in found} == kinds


def test_kcl_s_hole_is_one_whatever_it_is_configured_to_do() -> None:
    """A parent without a row does not block its children, and gets none."""
    finding = only(seen((listed(A, closed=True), listed(B, A)), {B: CREATED}, initial="trim-horizon"))
    assert (finding.severity, finding.shard) == (WILL_BE_LOST, A)
    assert "no consumer reads its records" in finding.text


def test_a_lineage_without_any_row_starts_as_configured() -> None:
    """KCL makes rows from its oldest shard on, where nothing of it has one."""
    stream = (listed(A, closed=True), listed(B, A), listed(C))
    found = said(seen(stream, {C: at(150)}, initial="trim-horizon"))
    assert found == [("hole", INFO, A), ("hole", INFO, B)]


@pytest.mark.parametrize(("system", "kinds"), [("kcl", []), *((s, [("row-missing", WARNING, A)]) for s in SYSTEMS[1:])])
def test_only_kcl_deletes_rows_of_finished_shards(system: str, kinds: list[Any]) -> None:
    assert said(seen((listed(A, closed=True), listed(B, A)), {B: at(150)}, system)) == kinds


@pytest.mark.parametrize(
    ("system", "parent", "found"),
    [
        ("kcl", FINISHED, WARNING),
        ("kcl", at(150), None),
        ("sluice", FINISHED, WARNING),
        ("nifi", at(150), WILL_BE_LOST),
        ("vmware-go-kcl", FINISHED, WILL_BE_LOST),
        ("kinsumer", at(150), WILL_BE_LOST),
    ],
)
def test_a_child_without_a_row_starts_at_its_beginning_or_as_configured(system: str, parent: StoredPosition, found: Severity | None) -> None:
    """KCL makes it in time as long as the parent's row is there; the others apply LATEST to it."""
    rows = seen((listed(A, closed=True), listed(B, A)), {A: parent}, system)
    assert said(rows) == ([("child-without-row", found, B)] if found else [])


# -- the table ---------------------------------------------------------------------------------------------------------------------


def test_rows_that_are_not_understood_are_all_told_and_hide_nothing() -> None:
    problems = tuple(Problem("app", f"shardId-{i:012d}", Refused("unknown attribute mark")) for i in range(1, 31))
    reading = replace(table(problems=problems), shards=(SourceShard(A, LATEST),))
    found = said(Observation(reading, ShardList((listed(A), listed(B), listed(C)), 0)))
    assert found == [("never-acknowledged", WILL_BE_LOST, A), *([("unreadable", SUSPECTED, None)] * 30)]


def test_what_descends_from_a_row_that_was_refused_is_no_hole() -> None:
    """KCL knows the row, whatever it says."""
    reading = table(problems=(Problem("app", A, Refused("unknown attribute mark")),))
    assert said(Observation(reading, ShardList(SPLIT, 0))) == [("unreadable", SUSPECTED, None)]


def test_a_kcl_table_beside_nifi_s_half_made_one_keeps_kcl_s_ways() -> None:
    """Its rows of finished shards vanish, and children start at their beginning."""
    reading = replace(table("nifi"), finished_rows_vanish=True, shards=(SourceShard(A, at(150)),))
    assert diagnose(Observation(reading, ShardList(SPLIT, 0))) == ()


def test_rows_of_another_stream_are_a_loss_to_come() -> None:
    rows = Problem("app", f"1:orders:7:{A}", OtherStream("created at 7")), Problem("app", None, OtherStream("table app is of stream x"))
    found = diagnose(Observation(table(problems=rows), ShardList((listed(A),), 0)))
    assert [(f.kind, f.severity) for f in found] == [("other-stream", WILL_BE_LOST)] * 2
    assert {f.text for f in found} == {f"table app, row 1:orders:7:{A}: created at 7", "table app is of stream x"}


def test_what_is_wrong_with_the_table_alone_is_a_warning() -> None:
    reading = table("sluice", problems=(Problem("app", None, Refused("table app has no consumer row")),), notes=("no _clients",))
    assert said(Observation(reading, ShardList((), 0))) == [("table", WARNING, None)] * 2


@pytest.mark.parametrize(
    ("main", "only_there", "not_there", "severity", "words"),
    [
        ("kcl", (), (A, B), WILL_BE_LOST, (A, "deletes the KCL table", "in the KCL table alone")),
        ("kcl", (A,), (), WARNING, ("deletes the KCL table",)),
        ("gone", (A, B), (), WILL_BE_LOST, (B, "the only copy", "is gone")),
        ("nifi", (A,), (), WILL_BE_LOST, (A, "the only copy", "before NiFi 2.10.0")),
        ("nifi", (), (A,), WARNING, ("copies the half-made one over it",)),
    ],
)
def test_nifi_s_next_start_is_foretold(
    main: str, only_there: tuple[str, ...], not_there: tuple[str, ...], severity: Severity, words: tuple[str, ...]
) -> None:
    """NIFI-16003, one step earlier (the KCL table deleted for an empty copy), and a rest that does no harm."""
    stopped = InterruptedMigration(main, "app_migration", 2, complete=True, only_there=only_there, not_there=not_there)
    finding = only(Observation(table("nifi", notes=("interrupted",)), ShardList((), 0), interrupted=stopped))
    assert (finding.kind, finding.severity) == ("interrupted-migration", severity)
    assert all(word in finding.text for word in words)


@pytest.mark.parametrize(("main", "complete", "loss"), [("gone", False, True), ("nifi", False, True), ("kcl", False, False), ("gone", True, False)])
def test_a_kcl_table_deleted_before_its_copy_was_complete_is_a_loss(main: str, *, complete: bool, loss: bool) -> None:
    stopped = InterruptedMigration(main, "app_migration", 0, complete, (), ())
    found = diagnose(Observation(table("nifi"), ShardList((), 0), interrupted=stopped))
    assert (LOST in {f.severity for f in found}) is loss


def test_a_reading_tells_of_every_row_where_a_migration_refuses() -> None:
    strange = [{"leaseKey": {"S": f"who-{i:02}"}} for i in range(25)]
    good = [{"leaseKey": {"S": i}, "checkpoint": {"S": "LATEST"}, "leaseCounter": {"N": "1"}} for i in (A, B)]
    snapshot = Snapshot("app", {"app": KEY}, {"app": [*strange, *good]})
    stream = StreamIdentity("orders", "arn:aws:kinesis:us-east-1:0:stream/orders", 1, 86_400_000, "ACTIVE")
    reading = Kcl().read(snapshot, stream)
    assert ([shard.id for shard in reading.shards], len(reading.problems)) == ([A, B], 25)
    for strict in (lambda: Kcl().parse(snapshot, stream), lambda: read_leases(snapshot, stream).understood()):
        with pytest.raises(Refused, match=r"table app has rows that are not understood: row who-00: .*; and 15 more"):
            strict()

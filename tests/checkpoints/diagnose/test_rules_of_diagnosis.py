"""One claim a rule, over readings made by hand."""

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
    D,
    at,
    listed,
    only,
    said,
    seen,
    table,
)

from sluice_checkpoints.diagnose.model import Observation, Severity
from sluice_checkpoints.diagnose.rules import SHARD_RULES, TABLE_RULES, diagnose
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.nifi import InterruptedMigration
from sluice_checkpoints.formats.reader import OtherStream, Problem, SourceShard, StoredPosition
from sluice_checkpoints.stream.model import ShardList


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_table_in_order_has_nothing_wrong(system: str) -> None:
    oldest = {B: "110", C: "120"}
    assert diagnose(seen(SPLIT, {A: FINISHED, B: at(150), C: at(120)}, system, oldest=oldest)) == ()


# -- rows with a shard -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "closed"),
    [(at(99), False), (at(99), True), (at(201), True), (FINISHED, False)],
)
def test_a_place_that_cannot_be_in_its_shard_is_of_another_stream(stored: StoredPosition, *, closed: bool) -> None:
    finding = only(seen((listed(A, closed=closed),), {A: stored}))
    assert (finding.kind, finding.severity, finding.shard) == ("other-stream", WILL_BE_LOST, A)
    assert "created again" in finding.advice


@pytest.mark.parametrize(
    ("system", "stored", "severity"),
    [("kcl", at(150), LOST), ("kcl", CREATED, LOST), ("kinsumer", NONE, LOST), ("nifi", at(150), WARNING), ("kcl", FINISHED, None)],
)
def test_a_row_that_outlived_its_shard_is_a_loss_unless_finished(system: str, stored: StoredPosition, severity: Severity | None) -> None:
    """NiFi stores no ends, so there it may have been finished."""
    assert said(seen((), {A: stored}, system)) == ([("expired", severity, A)] if severity else [])


@pytest.mark.parametrize(("oldest", "loss"), [("151", True), ("150", False), ("140", False), (None, False)])
def test_a_checkpoint_before_the_oldest_record_is_a_suspected_loss(oldest: str | None, *, loss: bool) -> None:
    """Nobody can say whether there was a record between the two, and the finding says so."""
    found = diagnose(seen((listed(A),), {A: at(150)}, oldest={A: oldest} if oldest else {}))
    assert [(f.kind, f.severity) for f in found] == ([("behind-retention", SUSPECTED)] if loss else [])
    assert all(f.text.startswith("suspected") for f in found)


def test_numbers_are_compared_as_numbers() -> None:
    assert diagnose(seen((listed(A),), {A: at(1000)}, oldest={A: "999"})) == ()


@pytest.mark.parametrize("initial", [None, "trim-horizon", "latest"])
@pytest.mark.parametrize("system", ["kcl", "kinsumer"])
def test_a_latest_that_was_never_pinned_is_a_loss_to_come(system: str, initial: str | None) -> None:
    finding = only(seen((listed(A),), {A: LATEST}, system, initial=initial))
    assert (finding.kind, finding.severity, finding.shard) == ("never-acknowledged", WILL_BE_LOST, A)
    assert "--unstarted trim-horizon" in finding.advice


@pytest.mark.parametrize(("initial", "severity"), [(None, WILL_BE_LOST), ("latest", WILL_BE_LOST), ("trim-horizon", INFO)])
def test_a_row_without_a_place_starts_as_its_system_is_configured(initial: str | None, severity: Severity) -> None:
    """The worse is assumed, and the way to say better is named."""
    finding = only(seen((listed(A),), {A: NONE}, "vmware-go-kcl", initial=initial))
    assert (finding.kind, finding.severity) == ("never-acknowledged", severity)
    assert ("--initial-position" in finding.advice) is (initial is None)


def test_a_time_that_is_not_stored_is_a_warning() -> None:
    """KCL starts there again as long as its configuration says so."""
    assert said(seen((listed(A),), {A: AT_TIME})) == [("at-timestamp", WARNING, A)]


@pytest.mark.parametrize(("system", "severity"), [("kcl", WARNING), ("vmware-go-kcl", WARNING), ("nifi", INFO)])
def test_a_parent_behind_a_started_child_breaks_the_order(system: str, severity: Severity) -> None:
    """A merge: one parent at its end, the other in its middle. NiFi's never end."""
    merge = (listed(A, closed=True), listed(B, closed=True), listed(C, A, B))
    (finding,) = (f for f in diagnose(seen(merge, {A: at(150), B: FINISHED, C: at(160)}, system)) if f.kind == "order")
    assert (finding.severity, finding.shard) == (severity, A)
    assert C in finding.text


def test_a_lost_parent_is_told_once() -> None:
    """There is no rest to be read any more, so the order is nobody's concern."""
    reading = replace(table(), shards=(SourceShard(A, at(150)), SourceShard(B, at(160), frozenset({A}))))
    assert said(Observation(reading, ShardList((listed(B, A),), 0))) == [("expired", LOST, A)]


def test_a_child_that_waits_for_its_parent_is_in_order() -> None:
    assert diagnose(seen(SPLIT, {A: at(150), B: CREATED, C: CREATED})) == ()


def test_a_child_that_only_the_row_of_its_parent_knows_is_lost() -> None:
    reading = replace(table(), shards=(SourceShard(A, FINISHED, children=frozenset({B, C})), SourceShard(B, at(150))))
    assert said(Observation(reading, ShardList((listed(B, A),), 0))) == [("expired", LOST, C)]


def test_a_child_whose_row_was_refused_is_not_gone() -> None:
    problem = Problem("app", C, Refused("unknown attribute mark"))
    reading = replace(table(problems=(problem,)), shards=(SourceShard(A, FINISHED, children=frozenset({C})),))
    assert said(Observation(reading, ShardList((listed(A, closed=True),), 0))) == [("unreadable", SUSPECTED, None)]


def test_what_was_left_behind_is_a_warning() -> None:
    reading = replace(table(), shards=(SourceShard(A, at(150), notes=("a prepared checkpoint", "was being handed over")),))
    assert [f.text for f in diagnose(Observation(reading, ShardList((listed(A),), 0)))] == ["a prepared checkpoint", "was being handed over"]
    assert {f.severity for f in diagnose(Observation(reading, ShardList((listed(A),), 0)))} == {WARNING}


def test_an_open_batch_is_told() -> None:
    assert said(seen((listed(A),), {A: replace(at(150), again="batch 8 was open")}, "sluice")) == [("read-again", INFO, A)]


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


# -- all of it ---------------------------------------------------------------------------------------------------------------------


def test_the_worst_comes_first() -> None:
    rows = {A: at(150), B: LATEST, C: AT_TIME}
    found = diagnose(seen((listed(B), listed(C)), rows))
    assert [(f.severity, f.shard) for f in found] == [(LOST, A), (WILL_BE_LOST, B), (WARNING, C)]


def test_every_finding_says_what_to_do_next() -> None:
    stores = (None, at(99), at(150), FINISHED, CREATED, LATEST, NONE, AT_TIME)
    stream = (listed(A, closed=True), listed(B, A), listed(C))
    combinations = ({i: s for i, s in zip((A, B, C, D), (a, b, c, a), strict=True) if s} for a in stores for b in stores for c in stores)
    found = [f for rows in combinations for system in SYSTEMS for f in diagnose(seen(stream, rows, system, oldest={C: "180"}))]
    assert len(found) > 1000
    assert all(f.text and f.advice for f in found)


def test_every_rule_has_a_reason_and_a_turn() -> None:
    rules = [*TABLE_RULES, *SHARD_RULES]
    assert len(set(rules)) == len(rules)
    assert all(rule.__doc__ for rule in rules)

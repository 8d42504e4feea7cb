"""What a try of a migration came to, by what is seen of its Job, and whether another one follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from plan.views import MIGRATING, NOW, job, migration, seconds, view, wanted

from sluice_operator.plan.rules import plan
from sluice_operator.state.actions import CreateJob, DeleteJob, Plan
from sluice_operator.state.objects import Observed, Pod
from sluice_operator.state.status import Exit, MigrationState, MigrationStatus, Status

State = MigrationState
MIGRATOR = Pod(name="orders-migrate", uid="pod-1", role="migration", owner="job-1", owner_kind="Job", phase="Running")
RUNS, NOTHING = Observed(jobs=(job(),), migrators=(MIGRATOR,)), Observed()


def over(code: int | None, reason: str = "Failed", **fields: Any) -> Observed:
    """The Job has ended, and its pod so."""
    pod = replace(MIGRATOR, phase="Failed", exit=Exit(code=code, reason=reason, message="7 shards", at=NOW), **fields)
    return Observed(jobs=(job(state="Failed" if code else "Complete"),), migrators=(pod,))


def planned(one: MigrationStatus, observed: Observed = NOTHING, **fields: Any) -> Plan:
    given: dict[str, Any] = {"spec": MIGRATING, "status": Status(observed_generation=1, migration=one), "observed": observed}
    return plan(view(**given | fields))


ENDS: dict[str, tuple[Observed, MigrationState, str, float | None]] = {
    "done": (over(0, "Completed"), State.COMPLETE, "MigrationComplete", None),
    "refused": (over(65, "Refused"), State.FAILED, "MigrationFailed", None),
    "wrong usage": (over(2), State.FAILED, "MigrationFailed", None),
    "the source is active": (over(75, "SourceActive"), State.SOURCE_ACTIVE, "SourceActive", 20),
    "no answer in time": (over(1), State.LOST, "MigrationLost", 20),
    "killed by the kernel": (over(137, "OOMKilled"), State.LOST, "MigrationLost", 20),
    "its node is drained": (over(143, "Evicted"), State.LOST, "MigrationLost", 20),
    "its pod was deleted": (Observed(jobs=(job(state="Failed"),)), State.LOST, "MigrationLost", 20),
    "its Job was deleted": (NOTHING, State.LOST, "MigrationLost", 20),
}


@pytest.mark.parametrize(("seen", "state", "event", "pause"), ENDS.values(), ids=ENDS)
def test_a_try_came_to_this(seen: Observed, state: MigrationState, event: str, pause: float | None) -> None:
    """Whatever was written of one that is lost is safe. Pauses grow with the tries: this is the second."""
    made = planned(migration(tries=2), seen)
    assert made.status.migration is not None
    assert (made.status.migration.state, made.status.migration.next_at) == (state, None if pause is None else seconds(pause))
    assert event in [each.reason for each in made.events]


def test_of_a_pod_without_last_words_the_words_of_its_job_are_told_as_one_printable_line() -> None:
    killed = replace(MIGRATOR, phase="Failed", exit=Exit(code=137, reason="OOMKilled", message="", at=NOW))
    made = planned(migration(), Observed(jobs=(job(state="Failed", message="too many\n\x1b[2Jtries"),), migrators=(killed,)))
    assert made.status.migration is not None
    assert made.status.migration.message == "too many \ufffd[2Jtries"


@pytest.mark.parametrize(
    ("since", "others", "state"),
    [(10, (), State.COMPLETE), (9, (), State.RUNNING), (60, (replace(MIGRATOR, name="another"),), State.RUNNING)],
    ids=["its pod lives on", "for a moment", "another pod of it works"],
)
def test_a_try_ends_with_its_own_container_though_an_injected_one_keeps_its_pod(since: int, others: tuple[Pod, ...], state: State) -> None:
    pod = replace(MIGRATOR, exit=Exit(code=0, reason="Completed", message="7 shards", at=seconds(-since)))
    made = planned(migration(), Observed(jobs=(job(active=True),), migrators=(pod, *others))).status.migration
    assert made is not None
    assert made.state is state


@pytest.mark.parametrize(("warnings", "told"), [(0, "7 shards"), (1, "7 shards; 1 warning"), (2, "7 shards; 2 warnings")])
def test_what_a_migration_came_to_is_said(warnings: int, told: str) -> None:
    made = planned(migration(), over(0, "Completed", rows=7, warnings=warnings)).status
    condition = made.condition("Migrated")
    assert condition is not None
    assert made.migration is not None
    assert (condition.status, condition.reason, condition.message, made.migration.rows) == ("True", "Complete", told, 7)


def test_an_edited_source_has_no_effect_after_the_migration_and_is_told_once() -> None:
    edited, done = wanted(migrateFrom={"table": "another"}), migration(state=State.COMPLETE)
    first = planned(done, spec=edited, status=Status(migration=done))
    again = planned(done, spec=edited, status=first.status)
    assert [[each.reason for each in made.events if "Migration" in each.reason] for made in (first, again)] == [["MigrationIgnored"], []]
    assert first.status.migration == again.status.migration == done


IMAGE = wanted(migrateFrom={"table": "orders-kcl"}, pipeline={"entrypoint": "orders.pipeline:process", "image": "fixed"})
OF_DRIVERS = wanted(migrateFrom={"table": "orders-kcl"}, batch={"intervalSeconds": 9})


@pytest.mark.parametrize(("spec", "again"), [(MIGRATING, False), (OF_DRIVERS, False), (IMAGE, True)], ids=["none", "of the driver", "of the Job"])
def test_a_failed_migration_is_tried_again_after_an_edit_of_what_it_would_run(spec: Any, *, again: bool) -> None:
    made = planned(migration(state=State.FAILED, message="row 'x' is unknown"), spec=spec)
    assert (CreateJob() in made.actions) is again


@pytest.mark.parametrize(("table", "tries"), [("orders-kcl", 8), ("another", 1)])
def test_the_tries_of_another_source_count_from_one(table: str, tries: int) -> None:
    spec = wanted(migrateFrom={"table": table}, pipeline={"entrypoint": "orders.pipeline:process", "image": "fixed"})
    made = planned(migration(state=State.FAILED, tries=7), spec=spec).status.migration
    assert made is not None
    assert made.tries == tries


def test_an_edit_of_what_a_migration_runs_ends_its_job_before_another_try() -> None:
    assert planned(migration(), RUNS, spec=IMAGE).actions == (DeleteJob(job().name, "job-1"),)


def test_a_stopped_migration_is_tried_again_when_the_consumer_resumes() -> None:
    suspended = wanted(migrateFrom={"table": "orders-kcl"}, suspend=True)
    stopped = planned(migration(), RUNS, spec=suspended)
    assert stopped.actions == (DeleteJob(job().name, "job-1"),)
    assert stopped.status.migration is not None
    assert stopped.status.migration.state is State.STOPPED
    resumed = planned(stopped.status.migration)
    assert resumed.actions == (CreateJob(),)
    assert resumed.status.migration is not None
    assert resumed.status.migration.tries == 2
    told = [[event.reason for event in made.events if "Migration" in event.reason] for made in (stopped, resumed)]
    assert told == [["MigrationStopped"], ["MigrationStarted"]]

from __future__ import annotations

import dataclasses
import logging
import os
from datetime import datetime
from typing import Any

import pytest
from drawn import TIMES
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from kstatus import CURRENT, kstatus
from steering.ledger import INVARIANTS, Broken
from steering.machine import Operating, told
from steering.mutant import MUTANTS, Chapter, OperatorMutant, do
from steering.mutant_cache import never_lost
from steering.mutant_ending import restarted
from steering.mutant_failover import always_followed
from steering.mutant_health import no_deadline
from steering.mutant_moving import no_move
from steering.mutant_rolling import not_awaited
from steering.mutant_scaling import no_cap
from steering.mutant_stranger import labels_are_believed
from steering.mutant_trials import by_its_start

from sluice_consumer.driver_report import DriverReport, ReportPhase
from sluice_operator.names import camel

assert no_deadline  # entered into the list by its import
assert always_followed
assert by_its_start
assert labels_are_believed
assert never_lost
assert restarted
assert no_move
assert not_awaited
assert no_cap

EXAMPLES = 15 * TIMES
DEEP = os.environ.get("SLUICE_SIM") == "deep"
QUICK = settings(
    max_examples=EXAMPLES,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,  # the same schedules every time: a check that fails by chance is no check
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
LONG = settings(QUICK, max_examples=max(EXAMPLES, 10_000), stateful_step_count=40, derandomize=False, print_blob=True)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Injected failures are logged by the code under test; thousands of them say nothing."""
    caplog.set_level(logging.CRITICAL)


def test_the_operator_keeps_its_invariants_through_anything() -> None:
    run_state_machine_as_test(Operating, settings=LONG if DEEP else QUICK)  # type: ignore[no-untyped-call]  # hypothesis


def test_a_driver_that_was_intended_and_never_made_is_forgotten_at_once() -> None:
    """Found by another machine's examples: the news waited to be written, and a pass asked for the next one without a pause."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=5)
    operating.leader_ends(down=8, seconds=2, who=0)
    operating.delete(again=False, foreground=True, seconds=1)
    for _ in range(3):
        operating.delete_job(seconds=1)
    operating.lose_node(how="cut", node="a", seconds=1)
    operating.call_fails(at=1, seconds=1, times=1, what="crash", who=0)
    operating.teardown()


def test_a_driver_that_ends_on_a_node_nobody_hears_of_is_believed_until_its_reports_are_old() -> None:
    """Found by 2,500 examples: the observer knew at once what no operator could."""
    operating = Operating()
    operating.begin(migrating=False, leaders=2, source="ok", run=120)
    for node in "ab":
        operating.lose_node(how="cut", node=node, seconds=1)
    operating.pod_ends(how="kill", role="driver", seconds=10)
    assert operating.world.condition("Ready")["status"] == "True"
    operating.wait(seconds=120)
    assert operating.world.condition("Ready")["status"] == "False"
    operating.teardown()


def test_a_driver_whose_account_comes_late_has_a_deadline_of_its_own() -> None:
    """Found by 1,200 random examples: the observer counted the time in which no pod could be made."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=20)
    for seconds in (9, 1):
        operating.delete_pod(grace=None, role="driver", seconds=seconds)
    operating.account(missing=True, seconds=3)
    operating.linger(seconds=427)
    assert operating.world.condition("Stalled")["status"] == "True"
    operating.account(missing=False, seconds=21)
    operating.teardown()


def test_a_driver_without_its_label_goes_on_with_its_executors() -> None:
    """Found by 100 examples: Spark names them by the driver's configuration, not by the label of its pod."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=30)
    operating.unlabel(kind="Pod", seconds=1)
    operating.pod_ends(how="evict", role="executor", seconds=20)
    operating.teardown()


@pytest.mark.parametrize("label", ["sluice.dev/consumer", "sluice.dev/role", "sluice.dev/attempt", "app.kubernetes.io/managed-by"])
@pytest.mark.parametrize("value", [None, "payments", "executor"])
@pytest.mark.parametrize("then", ["goes on", "is suspended", "is deleted", "is orphaned"])
def test_a_driver_is_the_resources_whatever_its_labels_say(label: str, value: str | None, then: str) -> None:
    """An attack: without its role it counted as lost, and the next one was made beside it."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=60)
    operating.unlabel(kind="Pod", label=label, value=value, seconds=30)
    if then == "is suspended":
        operating.suspend(seconds=60)
        assert operating.world.status["phase"] == "Suspended"
    elif then != "goes on":
        operating.world.delete(cascade="background" if then == "is deleted" else "orphan")
        operating.world.run(60)
        assert not list(operating.world.memory.all("Pod"))
    else:
        operating.wait(seconds=120)
        assert operating.world.status["driver"]["attempt"] == 1
        assert operating.world.condition("Ready")["status"] == "True"
    operating.teardown()


CONSUMER, MANAGED = "sluice.dev/consumer", "app.kubernetes.io/managed-by"


@pytest.mark.parametrize(("label", "value"), [(CONSUMER, None), (CONSUMER, "payments"), (MANAGED, None), ("spark-app-selector", None)])
@pytest.mark.parametrize("then", ["go on", *(pytest.param(each, marks=pytest.mark.slow) for each in ("are lost", "are one fewer", "are one more"))])
def test_executors_are_the_drivers_whatever_their_labels_say(label: str, value: str | None, then: str) -> None:
    """Found by fresh seeds: they worked, were counted as none, and "2 executors ready, 2 wanted" was Stalled for ever."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=60)
    operating.unlabel(kind="executor", label=label, value=value, seconds=200)
    world, number = operating.world, {"are one fewer": 1, "are one more": 3}.get(then, 2)
    if then == "are lost":
        operating.pod_ends(how="evict", role="executor", seconds=1)
    operating.scale(replicas=number, seconds=200)
    assert (len(world.executors()), world.status["replicas"]) == (number, number)
    assert kstatus(world.must()) == CURRENT
    operating.teardown()


def test_executors_that_no_label_names_work_and_are_not_counted() -> None:
    """Without Spark's label nothing finds them. Their driver says that they work, and is believed; the count says what is found."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=60)
    for label in ("sluice.dev/consumer", "spark-app-selector"):
        operating.unlabel(kind="executor", label=label, seconds=1)
    operating.wait(400)
    assert operating.world.status["replicas"] == 0
    assert kstatus(operating.world.must()) == CURRENT
    operating.teardown()


@pytest.mark.parametrize("label", ["sluice.dev/consumer", "sluice.dev/role", "app.kubernetes.io/managed-by"])
@pytest.mark.parametrize("value", [None, "driver"])
def test_the_pod_of_a_job_is_the_jobs_whatever_its_labels_say(label: str, value: str | None) -> None:
    """An attack: its Job counted as one that had no pod for 60 s, and was lost while the pod ran."""
    operating = Operating()
    operating.begin(migrating=True, leaders=1, source="ok", run=2)
    for node in "ab":
        operating.lose_node(node=node, how="cut", seconds=0)
    assert operating.world.pods("migration")
    operating.unlabel(kind="migration", label=label, value=value, seconds=120)
    assert operating.world.status["migration"]["state"] == "Running"
    operating.end_of_outage(how="restore", seconds=60)
    assert operating.world.status["migration"]["tries"] == 1
    operating.teardown()


def test_drivers_that_are_asked_to_end_before_they_are_seen_were_made() -> None:
    """Found by 60 examples: the observer counted an attempt as passed over whose pod was the next one's predecessor."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=13)
    operating.slow_answer(calls=6, edit="no such image", lasts=30, seconds=1, who=1)
    operating.leader_ends(down=47, seconds=35, who=1)
    operating.impatient(seconds=12)
    operating.wait(seconds=3)
    operating.delete_pod(grace=None, role="executor", seconds=4)
    operating.delete_pod(grace=None, role="driver", seconds=6)
    operating.slow_answer(calls=11, edit="policy", lasts=30, seconds=16, who=0)
    operating.impatient(seconds=9)
    operating.teardown()


@pytest.mark.parametrize("how", ["cut", "dead"])
@pytest.mark.parametrize("nodes", ["a", "b", "ab"])
def test_a_driver_that_is_silent_for_as_long_as_a_report_lasts_is_no_false_alarm(nodes: str, how: str) -> None:
    """Found by fresh seeds: both nodes were cut off for 91 to 99 s. The operator says so after 90 s, and the observer heard the driver for 100 s."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=20)
    operating.wait(seconds=200)
    for node in nodes:
        operating.lose_node(how=how, node=node, seconds=0)
    operating.wait(seconds=99)
    assert nodes != "ab" or operating.world.condition("Ready")["reason"] == "ReportStale"
    operating.end_of_outage(how="restore", seconds=1)
    operating.teardown()


def test_a_driver_without_its_label_is_read_before_anything_is_said_of_it() -> None:
    """Found by 60 examples: no watch shows it any more, and the cache would call it Ready while it drains."""
    operating = Operating()
    operating.begin(migrating=False, leaders=2, source="ok", run=60)
    operating.delete_pod(grace=None, role="executor", seconds=34)
    operating.unlabel(kind="Pod", seconds=21)
    operating.delete_pod(grace=None, role="driver", seconds=7)
    operating.teardown()


@pytest.mark.parametrize(
    "chapters",
    [
        pytest.param(
            (
                *(do("impatient", seconds=10), do("edit", edit="a source", seconds=1), do("edit", edit="a source", seconds=1)),
                *(do("lose_node", how="cut", node="a", seconds=1), do("unlabel", kind="Pod", seconds=1), do("orphan", seconds=1)),
            ),
            id="while the status still names the one before it",
        ),
        pytest.param(
            (
                *(do("wait", seconds=20), do("hold", held=True, seconds=1), do("edit", edit="batch 9", seconds=6)),
                *(do("unlabel", kind="Pod", seconds=1), do("orphan", seconds=5)),
            ),
            id="while a finalizer holds the one before it",
        ),
    ],
)
def test_a_driver_without_label_and_owner_ends_before_its_resource(chapters: tuple[Chapter, ...]) -> None:
    """Found by 100 examples. Two drivers are named in a restart; only the first of them was read by name, and the other one consumed on."""
    told((do("begin", migrating=False, leaders=1, source="ok", run=0), *chapters)).teardown()


def test_a_driver_without_label_and_owner_is_overdue_as_any_other() -> None:
    """Found by 100 examples: the observer knew no pod that was late, and the status named it by name and uid."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=30)
    operating.unlabel(kind="Pod", seconds=5)
    for node in "ab":
        operating.lose_node(how="cut", node=node, seconds=1)
    operating.orphan(seconds=300)
    assert operating.world.condition("Stalled")["reason"] == "DriverOverdue"
    operating.teardown()


@pytest.mark.parametrize(
    ("edit", "unseen", "left"),
    [
        pytest.param("no such image", 4, [], id="its executors name it"),
        pytest.param("batch 9", 3, ["orders-driver-1"], id="nothing names it"),
    ],
)
def test_a_late_driver_without_label_and_owner_is_found_by_its_executors(edit: str, unseen: int, left: list[str]) -> None:
    """It was made after the next attempt. The resource waited for its executors for ever, and deleted no driver; without executors it is nobody's."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=0)
    operating.call_fails(who=0, what="late", at=3, times=1, seconds=1)
    operating.edit(edit=edit, seconds=2)
    operating.lag(who=0, lag=11, seconds=unseen)
    operating.unlabel(kind="Pod", seconds=1)
    operating.orphan(seconds=60)
    assert [pod["metadata"]["name"] for pod in operating.world.memory.all("Pod")] == left
    operating.teardown()


@pytest.mark.parametrize("node", ["here", "lost"])
def test_a_driver_without_label_whose_resource_is_gone_is_nobodys(node: str) -> None:
    """Found by 600 random examples: the finalizer was taken off. The observer held it for the next resource's, which has no way to find it."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=0)
    operating.executors_come(executors="refused", seconds=10)
    operating.edit(edit="batch 9", seconds=20)
    operating.unlabel(kind="Pod", seconds=1)
    for name in "ab" if node == "lost" else "":
        operating.lose_node(how="cut", node=name, seconds=1)
    operating.orphan_by_hand(seconds=14)
    operating.teardown()


@pytest.mark.parametrize("kind", ["migration", "move"])
@pytest.mark.parametrize("source", ["ok", "bad", "active"])
def test_the_first_job_of_a_resource_waits_for_the_pod_of_an_earlier_one(kind: str, source: str) -> None:
    """Found by random schedules: that pod had lost its label, and its Job was gone with its resource. Two migrated at once."""
    operating = Operating()
    operating.begin(migrating=kind == "migration", leaders=1, source=source, run=0)
    if kind == "move":
        operating.wait(seconds=30)
        operating.moves("one", "latest", 1)
    assert operating.world.run(60, until=lambda: bool(operating.world.pods("migration")))
    operating.unlabel(kind="migration", value="executor", seconds=1)
    operating.orphan_by_hand(seconds=3)
    operating.teardown()


def test_an_executor_of_a_driver_that_is_nobodys_is_overdue_as_any_other() -> None:
    """Found by random schedules: it has our label and an owner, so it is waited for. The observer had held it for nobody's, as its driver is."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=30)
    operating.lose_node(how="cut", node="a", seconds=1)
    operating.orphan(seconds=1)
    operating.orphan_by_hand(seconds=150)
    assert operating.world.condition("Stalled")["reason"] == "DriverOverdue"
    assert operating.world.condition("Stalled")["message"].startswith("orders-1-exec-1 should have stopped")
    operating.teardown()


def test_a_driver_that_a_finalizer_holds_is_let_go_in_the_end_whoever_it_is() -> None:
    """Found by 300 random examples: nobody's, without label and owner, it kept its name from the next resource's driver."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=20)
    operating.hold(held=True, seconds=1)
    operating.orphan(seconds=20)
    operating.unlabel(kind="Pod", seconds=1)
    operating.edit(edit="back", seconds=5)
    operating.teardown()


@pytest.mark.parametrize("run", [3, 30])
def test_a_job_without_label_and_owner_goes_with_its_resource(run: int) -> None:
    """Found by 100 examples: of a migration that had ended, the Job that the status names was not read by name. It stayed, with its pod."""
    operating = Operating()
    operating.begin(migrating=True, leaders=1, source="ok", run=run)
    operating.unlabel(kind="Job", seconds=1)
    operating.orphan(seconds=1)
    operating.teardown()


@pytest.mark.parametrize("source", ["bad", "active"])
def test_the_next_try_of_a_migration_deletes_a_job_without_label(source: str) -> None:
    """It waited for the pod of the last try for ever, and did not see whose pod that is."""
    operating = Operating()
    operating.begin(migrating=True, leaders=1, source=source, run=10)
    operating.unlabel(kind="Job", seconds=1)
    operating.source("ok")
    operating.ask(what="retry", number=1)
    operating.wait(seconds=60)
    assert operating.world.status["migration"]["state"] == "Complete"
    operating.teardown()


def test_a_driver_is_made_again_after_a_leader_whose_clock_was_a_year_ahead() -> None:
    """Its `nextAt` was obeyed: no driver for a year, and nobody was told, for `progressingSince` was ahead too."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=30)
    operating.clock(ahead=365 * 86_400, seconds=5)
    operating.driver_ends(code=1, times=1, seconds=1)
    assert operating.world.run(60, until=lambda: operating.world.status["restarts"].get("nextAt", "") > "2027")
    operating.clock(ahead=0, seconds=360)
    assert operating.world.condition("Ready")["status"] == "True"
    operating.teardown()


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_the_story_ends_well(mutant: OperatorMutant) -> None:
    """So that it is the mutant, and not the story, that breaks something."""
    told(mutant.story).teardown()


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_the_story_catches_that(mutant: OperatorMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a rule taken out, the invariant breaks that was named beforehand."""
    mutant.apply(monkeypatch)
    with pytest.raises(Broken, match=f"^{mutant.breaks}: "):
        told(mutant.story).teardown()


def test_the_simulated_driver_reports_as_a_driver_does() -> None:
    """Phases and fields are those of `sluice_consumer`: what the simulation shows of a report holds for a real one."""
    operating, seen = Operating(), list[dict[str, Any]]()
    operating.begin(migrating=False, leaders=1, source="ok", run=0)
    heard = operating.world.ledger.hears

    def hears(uid: str, report: dict[str, Any], now: datetime) -> None:
        seen.append(report)
        heard(uid, report, now)

    operating.world.ledger.hears = hears  # type: ignore[method-assign]
    operating.driver_ends(code=137, times=1, seconds=40)  # the next one waits out its lease
    operating.wait(seconds=40)
    operating.rolls({"strategy": "Standby"}, "ok")
    operating.edit(edit="batch 9", seconds=60)
    for replicas in (2, 1, 0):
        operating.scale(replicas=replicas, seconds=60)
    fields = {camel(field.name) for field in dataclasses.fields(DriverReport)}
    assert {key for report in seen for key in report} <= {"number", *fields}
    assert {report["phase"] for report in seen} == {str(phase) for phase in ReportPhase} - {ReportPhase.IDLE}


@pytest.mark.parametrize("label", ["sluice.dev/consumer", "sluice.dev/role"])
def test_two_drivers_that_run_are_seen_whatever_their_labels_say(label: str) -> None:
    """The observer was blind to those without a label. It knows by uid what was made as a driver."""
    operating = Operating()
    operating.begin(migrating=False, leaders=1, source="ok", run=60)
    (driver,) = operating.world.drivers()
    operating.world.leaders[0].stop(60)
    operating.world.memory.create({**driver, "metadata": {**driver["metadata"], "name": "orders-driver-2", "uid": None}})
    operating.world.ledger.register.meet()
    operating.unlabel(kind="Pod", label=label, seconds=0)
    with pytest.raises(Broken, match=r"^two_drivers_at_most: two of one consumer run"):
        operating.wait(seconds=10)


def test_every_invariant_is_seen_to_break() -> None:
    """One that no mutant breaks may be one that cannot fail."""
    assert {mutant.breaks for mutant in MUTANTS} == set(INVARIANTS)

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import cast

import pytest
from supervising import CONFIG, DRAINS, GONE, HANGS, LEASE, LIMIT, YES, Beating, Drain, Time, leased

from sluice_checkpoints.errors import LeaseHeld, Refused
from sluice_checkpoints.protocol.lease import LeaseRequest, take_over
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer import __main__ as main_module
from sluice_consumer.exits.ending import QUIET, UNCLEAN, Stopped
from sluice_consumer.process import child_process as children
from sluice_consumer.process import supervisor
from sluice_consumer.process.child_process import die_with_parent
from sluice_consumer.process.lease_handoff import LeaseHandoff, permission
from sluice_consumer.process.supervisor import Supervisor
from sluice_lab.fakes.table import MemoryTable
from sluice_operator.apply import spark_settings


@pytest.mark.parametrize(
    ("code", "at", "released", "reason"),
    [
        (0, 50.0, True, "Drained"),
        (UNCLEAN, 50.0, False, "Drained"),
        (0, 10.0, False, "Drained"),
        (1, 50.0, False, ""),
        (65 | QUIET, 50.0, True, ""),
        (65 | QUIET, 10.0, False, ""),
        (-9, 50.0, False, "DriverKilled"),
    ],
    ids=[
        "a clean drain",
        "a drain after trouble",
        "a drain before a forced promise is over",
        "an error",
        "a refusal",
        "a refusal before a forced promise is over",
        "a killed driver",
    ],
)
def test_the_lease_is_released_only_after(code: int, at: float, released: bool, reason: str) -> None:  # noqa: FBT001
    """Somebody may still be working otherwise, and the next driver has to wait."""
    store, taken = leased()
    heart = Beating(YES, keep=25.0)
    heart.time[0] = at
    ending = Supervisor(CONFIG, store, store)._ended(code, heart, taken.epoch)
    row = store.consumer()
    assert row is not None
    assert (row.released, ending.reason) == (released, reason)


def test_a_clean_drain_stays_one_although_its_lease_could_not_be_released() -> None:
    """An exit with 1 would count as a failure, and say nothing of why the next driver waits."""
    store, taken = leased()
    beating = CheckpointStore(MemoryTable())
    cast("MemoryTable", beating.table).hook = lambda *_: (_ for _ in ()).throw(GONE)
    ending = Supervisor(CONFIG, store, beating)._ended(0, Beating(YES), taken.epoch)
    assert (ending.code, ending.reason) == (0, "Drained")
    assert "was not released: no answer" in ending.message


def test_everything_of_an_epoch_is_silent_before_the_next_one_takes_its_lease() -> None:
    """Two thirds until the watchdog looks, one third until executors have noticed; clocks run at the same rate within one percent."""
    heart, seen = Beating(GONE), list[float]()
    while heart.alive:
        heart.time[0] += LEASE / 40
    silent = (heart.time[0] + LEASE / 3) * 1.01
    store, _ = leased(round(LEASE * 1000))
    virtual = Time()
    take_over(store, LeaseRequest(1000, "me", ""), replace(virtual.watcher(), notify=seen.append))
    assert silent <= seen[0] * 0.99 + 1e-9
    assert virtual.now == pytest.approx(seen[0])


def test_a_drain_that_does_not_end_is_ended_and_its_lease_runs_out() -> None:
    """Outside of a cluster nobody else would, and the supervisor would beat for ever. Somebody may still be working: nothing is released."""
    assert Drain(HANGS).told().watched(at=LIMIT) == (1, "DrainTimeout", False)


def test_being_told_again_gives_a_drain_no_more_time() -> None:
    """Whoever presses Ctrl-C again wants it sooner."""
    drain = Drain(HANGS).told()
    drain.now = LIMIT - 1
    assert drain.told().watched(at=LIMIT) == (1, "DrainTimeout", False)


def test_a_drain_has_all_of_its_time() -> None:
    assert Drain(DRAINS).told().watched(at=LIMIT - 0.001) == (0, "Drained", True)


@pytest.mark.parametrize("status", [0, UNCLEAN, 65 | QUIET, 1])
def test_an_exit_status_counts_only_with_the_drivers_own_word(status: int) -> None:
    """`os._exit(0)` in `process`, or `exit(0)` in native code, looks like a clean drain: the lease would be released, and a backfill be done."""
    assert Drain(f"lambda *_: os._exit({status})").told().watched(at=0.0) == (1, "DriverExited", False)
    assert Drain(f"lambda *_: leave({status})").told().watched(at=0.0)[1:] == ("" if status & 1 else "Drained", status == 0 or bool(status & QUIET))


def test_a_pod_is_not_killed_before_its_supervisor_has_ended_the_drain() -> None:
    """So the pod's last words say what happened, and the kubelet's limit is only for a supervisor that hangs."""
    assert 0 < supervisor.STOP_SECONDS < spark_settings.MARGIN


# -- a driver starts before its lease is taken -------------------------------------------------------------------------------------


def test_a_driver_may_start_spark_once_it_is_told_so(tmp_path: Path) -> None:
    with children.starting(["sh", "-c", f"head -n 1 >{tmp_path}/said"]) as child:
        children.permit(child, {"SLUICE_KINESIS_ENCODING": "json"})
        assert child.wait(60) == 0
    with FileIO(tmp_path / "said") as said:
        assert permission(said) == {"SLUICE_KINESIS_ENCODING": "json"}


def test_what_speaks_against_a_start_ends_the_driver_before_it_may_start_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started before the checks are made, for its imports take a second; it has read nothing by then."""
    started = list[children.DriverProcess]()

    class Driver(children.DriverProcess):
        def __init__(self, command: Sequence[str], _more: object = None) -> None:
            super().__init__(["sh", "-c", f"head -n 1 >{tmp_path}/said; exec sleep 60"])
            started.append(self)
            assert command[1:3] == ["-m", "sluice_consumer.process.driver_program"]

    monkeypatch.setattr(children, "DriverProcess", Driver)
    with pytest.raises(Refused, match="No such file"):
        main_module.supervise(tmp_path / "none.json", [])
    assert [driver.poll() for driver in started] == [-signal.SIGKILL]
    assert not (tmp_path / "said").exists() or not (tmp_path / "said").read_text()


def test_a_line_for_a_driver_is_written_to_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heart's thread writes while the driver's pipe is closed: the number that it has may be another file's by then."""
    write, seen = os.write, list[bool]()
    with children.starting(["sleep", "60"]) as child:
        closing = threading.Thread(target=child.close)

        def late(number: int, line: bytes) -> int:
            closing.start()
            closing.join(0.3)
            seen.append(child.stdin is None or child.stdin.closed)
            return write(number, line)

        with monkeypatch.context() as patch:
            patch.setattr(children.os, "write", late)
            children.pass_on(child, 1.0)
        closing.join()
        assert not child.hand_down("later")
        monkeypatch.setattr(child, "close", lambda: None)
        children.end_group(child)
    assert seen == [False]


def test_a_driver_dies_when_its_lease_is_not_taken() -> None:
    with pytest.raises(LeaseHeld), children.starting(["sleep", "60"]) as child:
        raise LeaseHeld("it beats")
    assert child.poll() == -signal.SIGKILL


def test_a_driver_gets_its_epoch_once_the_lease_is_taken(tmp_path: Path) -> None:
    _, taken = leased()
    with children.starting(["sh", "-c", f"head -n 1 >{tmp_path}/said"]) as child:
        children.order(child, replace(taken, wait_out_millis=7, how="forced"), number=5)
        assert child.wait(60) == 0
    with FileIO(tmp_path / "said") as said:
        assert LeaseHandoff.read(said) == LeaseHandoff(taken.epoch.generation, taken.epoch.token, "forced", 7, 5, taken.sent)


def test_a_driver_that_died_while_the_lease_was_waited_for_is_judged_by_its_exit_code() -> None:
    store, taken = leased()
    with children.starting(["sh", "-c", "printf 3 >/proc/self/fd/$SLUICE_OWN_WORD; exit 3"]) as child:
        child.wait(60)
        children.order(child, taken, number=0)
        assert Supervisor(CONFIG, store, store).watch(child, taken).code == 3
    row = store.consumer()
    assert row is not None
    assert not row.released


def test_a_driver_without_its_supervisor_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have died before the driver's death signal was set."""
    monkeypatch.setenv(children.PARENT, "1" if os.getppid() != 1 else "2")
    with pytest.raises(SystemExit):
        die_with_parent()


def test_a_new_table_and_a_released_lease_are_taken_at_once() -> None:
    store, taken = leased()
    store.release(taken.epoch)
    virtual = Time()
    again = take_over(store, LeaseRequest(1000, "me", ""), virtual.watcher())
    assert (taken.how, again.how, again.row.generation, virtual.slept) == ("new", "released", 2, 0)
    assert not store.consumer().released  # type: ignore[union-attr]  # it is there


def test_a_lease_that_was_not_released_is_watched_for_all_of_what_its_holder_promised() -> None:
    store, _ = leased()
    virtual = Time()
    taken = take_over(store, LeaseRequest(1000, "me", ""), virtual.watcher())
    assert virtual.slept >= LEASE
    assert (taken.row.lease_millis, taken.wait_out_millis, taken.how) == (1000, 0, "expired")


def test_a_lease_that_beats_is_held() -> None:
    store, taken = leased()
    virtual = Time(at={LEASE - 0.1: lambda: store.beat(taken.epoch)})
    with pytest.raises(LeaseHeld):
        take_over(store, LeaseRequest(1000, "me", ""), virtual.watcher())


def test_a_forced_take_keeps_the_larger_promise_and_waits_it_out() -> None:
    """Whoever watches next must watch long enough for both before it."""
    for mine, larger in ((1000, 30_000), (60_000, 60_000)):
        store, _ = leased()
        virtual = Time()
        taken = take_over(store, LeaseRequest(mine, "me", "", force=True), virtual.watcher())
        assert (taken.row.lease_millis, taken.wait_out_millis, taken.how, virtual.slept) == (larger, larger, "forced", 0)


def test_a_forced_take_of_a_released_lease_waits_for_nobody() -> None:
    store, taken = leased()
    store.release(taken.epoch)
    assert take_over(store, LeaseRequest(1000, "me", "", force=True), Time().watcher()).wait_out_millis == 0


@pytest.mark.parametrize("force", [True, False])
def test_an_exported_table_is_refused(force: bool) -> None:  # noqa: FBT001
    store = CheckpointStore(MemoryTable())
    store.create_consumer(ConsumerRow("id", "arn", 1, state="EXPORTED"))
    with pytest.raises(Refused, match="EXPORTED"):
        take_over(store, LeaseRequest(1000, "me", "", force=force), Time().watcher())


def test_a_driver_asks_for_the_lease_as_the_owner_that_its_pod_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the table refuses it where it is another's; docs/protocol.md, "The owner"."""
    monkeypatch.setenv("SLUICE_POD_NAME", "orders-driver-1")
    monkeypatch.setenv("SLUICE_POD_NAMESPACE", "shop")
    monkeypatch.setenv("SLUICE_OWNER", "shop/orders")
    monkeypatch.setenv("SLUICE_CLUSTER", "prod uid-1")
    assert supervisor.claim(CONFIG).owner == Owner("shop/orders", ("prod", "uid-1"))
    monkeypatch.delenv("SLUICE_POD_NAME")
    assert supervisor.claim(CONFIG).owner == Owner("shop/orders", ("prod", "uid-1"), writes=False)


def test_sigterm_before_there_is_a_driver_stops_cleanly() -> None:
    with pytest.raises(Stopped) as stopped:
        Supervisor(CONFIG, CheckpointStore(MemoryTable()), CheckpointStore(MemoryTable())).on_term()
    assert stopped.value.exit_code == 0


def test_sigterm_while_the_lease_is_waited_for_ends_the_wait() -> None:
    store, _ = leased()
    keeper, virtual = Supervisor(CONFIG, store, store), Time()
    virtual.at[10.0] = keeper.on_term
    with pytest.raises(Stopped):
        keeper.take(virtual.watcher())
    assert virtual.now < LEASE
    assert store.consumer().generation == 1  # type: ignore[union-attr]  # it is there


@pytest.mark.parametrize("force", [False, True])
def test_sigterm_in_the_middle_of_a_take_releases_what_was_taken(force: bool) -> None:  # noqa: FBT001
    """Nobody else would. After a forced take a former epoch may still be working, and nothing is released."""
    store, taken = leased()
    if not force:
        store.release(taken.epoch)
    keeper = Supervisor(replace(CONFIG, force=force), store, store)
    table = cast("MemoryTable", store.table)
    table.hook = lambda when, operation, _: keeper.on_term() if (when, operation) == ("after", "write") and not keeper._stopping else None
    with pytest.raises(Stopped):
        keeper.take(Time().watcher())
    row = store.consumer()
    assert row is not None
    assert (row.generation, row.released) == (2, not force)


def test_sigterm_between_take_and_watch_reaches_the_driver() -> None:
    drain = Drain(DRAINS)
    keeper = drain.keeper = Supervisor(CONFIG, drain.store, drain.store, lambda: drain.now)
    keeper._waits = False
    keeper.on_term()
    assert drain.watched(at=0.0) == (0, "Drained", True)

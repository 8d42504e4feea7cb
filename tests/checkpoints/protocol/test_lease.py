from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from sluice_checkpoints.aws.retry import Again, Patience
from sluice_checkpoints.errors import LeaseHeld, ProtocolViolation, Refused, ServiceUnavailable, SluiceError
from sluice_checkpoints.protocol.lease import Heartbeat, LeaseRequest, TakenLease, Watcher, stand_by, take_over
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.rows import CONSUMER, ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Put
from sluice_lab.fakes.table import MemoryTable

HELD = ConsumerRow("id-1", "arn:orders", 5, generation=4, token="t4", counter=9, lease_millis=20_000, committed=7, holder="pod-1/7")
CLAIM = LeaseRequest(5000, "pod-2", "now")


@dataclass
class Time:
    """Virtual seconds; `visit` is what others do while one sleeps."""

    now: float = 0.0
    told: list[float] = field(default_factory=list)
    visit: Callable[[], None] = lambda: None

    def watcher(self) -> Watcher:
        return Watcher(lambda: self.now, self.sleep, self.told.append)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.visit()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store() -> CheckpointStore:
    return stored(HELD)


def stored(row: ConsumerRow) -> CheckpointStore:
    table = MemoryTable()
    table.write(Put(row.to_item(), ()))
    return CheckpointStore(table)


def test_a_released_lease_is_taken_at_once(time: Time) -> None:
    taken = take_over(stored(replace(HELD, released=True)), CLAIM, time.watcher())
    assert (taken.epoch.generation, taken.row.lease_millis, taken.wait_out_millis) == (5, 5000, 0)
    assert (time.now, time.told) == (0, [])


def test_a_lease_that_never_promised_anything_is_taken_at_once(time: Time) -> None:
    take_over(stored(replace(HELD, lease_millis=0)), CLAIM, time.watcher())
    assert time.now == 0


@pytest.mark.parametrize("row", [replace(HELD, released=True), HELD], ids=["released", "expired"])
@pytest.mark.parametrize("moved", [True, False])
def test_a_lease_that_moved_until_it_could_be_worked_with_is_not_taken(time: Time, row: ConsumerRow, moved: bool) -> None:  # noqa: FBT001 - a table
    """It was free when it was looked at, and another one took it meanwhile, or its holder beats again. The first heartbeat counts from the take."""
    store, waited = stored(row), list[float]()

    def ready() -> None:
        time.now += 30
        waited.append(time.now)
        if moved:
            store.table.write(Put(replace(row, counter=10).to_item(), ()))

    watcher = replace(time.watcher(), ready=ready)
    if moved:
        with pytest.raises(LeaseHeld, match="at the same moment"):
            take_over(store, CLAIM, watcher)
        return
    assert take_over(store, CLAIM, watcher).sent == time.now == waited[0]


def test_a_silent_lease_is_waited_out_for_all_its_holder_promised(store: CheckpointStore, time: Time) -> None:
    """Not for what the taker would promise, and 5 % longer, for two clocks may differ; the wait is announced."""
    take_over(store, CLAIM, time.watcher())
    assert time.now == pytest.approx(21)
    assert time.told == [21]


@pytest.mark.parametrize("at", [0.5, 10, 19.5])
def test_one_beat_at_any_moment_keeps_the_lease(store: CheckpointStore, time: Time, at: float) -> None:
    beat = Epoch(4, "t4")

    def visit() -> None:
        if time.now >= at:
            time.visit = lambda: None
            store.beat(beat)

    time.visit = visit
    with pytest.raises(LeaseHeld) as held:
        take_over(store, CLAIM, time.watcher())
    assert held.value.exit_code == 75
    assert str(held.value) == f"{HELD.holder} holds the lease and is alive: its heartbeats continue (generation 4, counter 10)"
    assert store.consumer() == replace(HELD, counter=10)


def test_a_release_during_the_wait_ends_it(store: CheckpointStore, time: Time) -> None:
    """A rolling restart costs no lease duration."""

    def visit() -> None:
        if time.now >= 3:
            store.release(Epoch(4, "t4"))

    time.visit = visit
    take_over(store, CLAIM, time.watcher())
    assert time.now < 5


def test_of_two_takers_one_wins(time: Time) -> None:
    table = MemoryTable()
    table.write(Put(replace(HELD, released=True).to_item(), ()))
    store = CheckpointStore(table)

    def hook(when: str, operation: str, _argument: object) -> None:
        if (when, operation) == ("before", "write"):
            table.hook = lambda *_: None
            take_over(store, replace(CLAIM, holder="rival"), time.watcher())

    table.hook = hook
    with pytest.raises(LeaseHeld):
        take_over(store, CLAIM, time.watcher())
    row = store.consumer()
    assert row
    assert (row.holder, row.generation) == ("rival", 5)


@pytest.mark.parametrize(("mine", "theirs", "wait"), [(5000, 20_000, 20_000), (30_000, 20_000, 30_000)])
def test_a_forced_take_waits_the_larger_promise_out_afterwards(time: Time, mine: int, theirs: int, wait: int) -> None:
    taken = take_over(stored(replace(HELD, lease_millis=theirs)), replace(CLAIM, lease_millis=mine, force=True), time.watcher())
    assert (time.now, taken.wait_out_millis, taken.row.lease_millis) == (0, wait, wait)


def test_force_costs_nothing_where_the_lease_was_released(time: Time) -> None:
    taken = take_over(stored(replace(HELD, released=True)), replace(CLAIM, force=True), time.watcher())
    assert (taken.wait_out_millis, taken.row.lease_millis) == (0, 5000)


def test_an_exported_table_is_never_taken_again(time: Time) -> None:
    """Its positions are another system's now."""
    with pytest.raises(Refused, match="EXPORTED"):
        take_over(stored(replace(HELD, state="EXPORTED")), CLAIM, time.watcher())


def test_a_table_without_a_consumer_cannot_be_taken(time: Time) -> None:
    with pytest.raises(ProtocolViolation):
        take_over(CheckpointStore(MemoryTable()), CLAIM, time.watcher())


def test_every_take_has_a_token_of_its_own(time: Time) -> None:
    """By which a lost reply is recognised."""
    tokens = {take_over(stored(replace(HELD, released=True)), CLAIM, time.watcher()).row.token for _ in range(3)}
    assert len(tokens) == 3
    assert CONSUMER not in tokens


@pytest.mark.parametrize("seen", [Heartbeat(1, 1, 0, released=False), Heartbeat(1, 1, 9000, released=True)])
def test_nothing_is_waited_for_where_nothing_was_promised(time: Time, seen: Heartbeat) -> None:
    assert time.watcher().wait_out(lambda: seen) == seen
    assert time.now == 0


# -- patience ----------------------------------------------------------------------------------------------------------------------


def patience(time: Time, **more: Any) -> Patience:
    return Patience(clock=lambda: time.now, sleep=time.sleep, dice=lambda: 1.0, **more)


def test_patience_doubles_its_pauses_up_to_a_cap(time: Time) -> None:
    tries: list[float] = []

    def call() -> str:
        tries.append(time.now)
        if len(tries) < 6:
            raise Again("busy")
        return "done"

    assert patience(time, first=1.0, cap=4.0).call("it", call) == "done"
    assert tries == [0, 1, 3, 7, 11, 15]


def test_patience_waits_at_least_as_long_as_the_service_asks(time: Time) -> None:
    def call() -> None:
        if not time.now:
            raise Again("slow down", wait=7.0)

    patience(time, first=0.001).call("it", call)
    assert time.now == 7


def test_a_listener_hears_of_every_try_and_of_every_cause(time: Time) -> None:
    heard: list[tuple[str, ...]] = []
    listener = SimpleNamespace(called=lambda operation: heard.append((operation,)), again=lambda *told: heard.append(told))
    answers: list[Exception] = [Again("slow down", cause="Throttling"), Again("the line is dead")]

    def call() -> None:
        if answers:
            raise answers.pop(0)

    patience(time, listener=listener).call("GetItem on table orders", call)
    assert heard == [("GetItem",), ("GetItem", "Throttling"), ("GetItem",), ("GetItem", "NoAnswer"), ("GetItem",)]


# -- standing by -------------------------------------------------------------------------------------------------------------------


def standing(store: CheckpointStore, time: Time, force: bool = False, seen: list[SluiceError] | None = None) -> TakenLease:  # noqa: FBT001, FBT002
    told: Callable[[SluiceError], None] = (seen if seen is not None else []).append
    return stand_by(store, lambda: replace(CLAIM, force=force), replace(time.watcher(), look_seconds=0.5), told)


def test_a_standby_waits_for_as_long_as_the_holder_beats_and_then_for_the_whole_promise(store: CheckpointStore, time: Time) -> None:
    def beats() -> None:
        if time.now < 100 and time.now - visited[0] >= 7:
            visited[0] = time.now
            store.beat(Epoch(4, "t4"))

    visited, time.visit = [0.0], beats
    taken = standing(store, time)
    assert (taken.how, taken.row.generation) == ("expired", 5)
    assert visited[0] + 20 * 1.05 <= time.now < visited[0] + 20 * 1.05 + 1.1


def test_a_standby_takes_a_released_lease_at_its_next_look(store: CheckpointStore, time: Time) -> None:
    """Half a second, however long the lease is."""

    def ends() -> None:
        if time.now == 3:
            store.release(Epoch(4, "t4"))

    time.visit = ends
    assert (standing(store, time).how, time.now) == ("released", 3)


def test_a_standby_never_forces(store: CheckpointStore, time: Time) -> None:
    assert standing(store, time, force=True).how == "expired"
    assert time.now >= 20


def test_a_standby_that_gets_no_answer_watches_from_the_beginning(store: CheckpointStore, time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the holder did in that time is not known."""
    seen = list[SluiceError]()
    read = store.consumer
    monkeypatch.setattr(store, "consumer", lambda: read() if not 10 < time.now < 19 else (_ for _ in ()).throw(ServiceUnavailable("no answer")))
    assert standing(store, time, seen=seen).how == "expired"
    assert time.now >= 19 + 20 * 1.05
    assert {str(error) for error in seen} == {"no answer"}


@pytest.mark.parametrize("change", [{"state": "EXPORTED"}, {"owner": "shop/other", "cluster": "c1"}], ids=["exported", "another owner's"])
def test_a_standby_ends_at_its_next_look_when_the_table_is(change: dict[str, str], store: CheckpointStore, time: Time) -> None:
    """It would stand by for ever, for a lease that it may not take."""
    row = store.consumer()
    assert row is not None

    def changes() -> None:
        store.table.write(Put(replace(row, **change).to_item(), ()))  # type: ignore[arg-type]  # of text

    time.visit = changes
    with pytest.raises(Refused):
        stand_by(store, lambda: replace(CLAIM, owner=Owner("shop/orders", ("c1",))), time.watcher())
    assert time.now < 2

"""A consumer of a group, as its supervisor sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from supervising import CONFIG, leased

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.exits.ending import Ending
from sluice_consumer.group.consumer_lease import ConsumerLease, LeasePorts
from sluice_consumer.group.ends import LONGEST, STEADY, Pauses, ends_for_good, exit_code
from sluice_consumer.group.messages import Beat, Begin, Doing, Drain, DriverReads, Executors, Leave, Lose, Message, Over, line, parsed
from sluice_consumer.group.shared_spark import Member
from sluice_lab.fakes.table import MemoryTable

MEMBER = Member(Path("orders.json"), replace(CONFIG, name="orders"))


def over(begin: Begin, code: int = 0, *, quiet: bool = True) -> Over:
    return Over(begin.name, begin.generation, code, "Drained" if code == 0 else "ValueError", "no", quiet)


@dataclass
class Driver:
    """A driver that answers at once. Implements `DriverLink`.

    Attributes:
        answers: to each `Begin`, in order; None: nothing, for now. drained: to a `Drain`. full: so many messages find no room.
    """

    answers: list[Callable[[Begin], Over | None]]
    lost: Callable[[Lose], Over | None] = lambda _lose: None
    sent: list[Message] = field(default_factory=list)
    killed: Ending | None = None
    full: int = 0
    reads: bool = True
    drained: Callable[[Begin], Over | None] = lambda _begin: None
    lease: ConsumerLease = field(init=False)

    def send(self, message: Message) -> bool:
        if self.full:
            self.full -= 1
            return False
        self.sent.append(message)
        answer = self.answers.pop(0)(message) if isinstance(message, Begin) else self.lost(message) if isinstance(message, Lose) else None
        answer = self.drained(next(one for one in self.sent if isinstance(one, Begin))) if isinstance(message, Drain) else answer
        if answer is not None:
            self.lease.hear(answer)
        return True

    def kill(self, why: Ending) -> None:
        self.killed = why

    @property
    def gone(self) -> bool:
        return self.killed is not None

    @property
    def begun(self) -> list[int]:
        return [message.generation for message in self.sent if isinstance(message, Begin)]


class Group:
    def __init__(self, *answers: Callable[[Begin], Over | None], beating: CheckpointStore | None = None) -> None:
        self.store = CheckpointStore(MemoryTable())
        self.store.create_consumer(ConsumerRow("id", "arn", 1))
        self.driver, self.later, self.stop = Driver(list(answers)), 0.0, threading.Event()
        real = LeasePorts().clock
        ports = LeasePorts(lambda _one: self.store, lambda _one: beating or self.store, lambda: real() + self.later)
        self.lease = self.driver.lease = ConsumerLease(MEMBER, self.driver, self.stop, ports, Pauses(0.0))

    def run(self) -> Ending:
        self.lease.run()
        assert self.lease.ending is not None
        return self.lease.ending

    @property
    def released(self) -> bool:
        row = self.store.consumer()
        assert row is not None
        return row.released


def test_a_run_that_fails_is_started_again_in_a_new_epoch_and_one_that_ends_well_is_not() -> None:
    group = Group(lambda begin: over(begin, 1), over)
    assert group.run().code == 0
    assert (group.driver.begun, group.released) == ([1, 2], True)


def test_no_lease_is_taken_before_spark_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is lost meanwhile would end the driver, with all consumers."""
    group = Group(over)
    group.driver.reads, looks = False, list[int]()

    def sleep(_lease: ConsumerLease, _seconds: float) -> None:
        row = group.store.consumer()
        assert row is not None
        looks.append(row.generation)
        group.driver.reads = len(looks) == 3

    monkeypatch.setattr(ConsumerLease, "_sleep", sleep)
    assert group.run().code == 0
    assert (looks, group.driver.begun) == ([0, 0, 0], [1])


@pytest.mark.parametrize("how", ["the driver ends", "it is to drain"])
def test_a_consumer_that_ends_before_spark_has_started_takes_no_lease(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to wait for it."""
    group = Group()
    group.driver.reads = False
    if how == "it is to drain":
        group.stop.set()
    else:
        monkeypatch.setattr(ConsumerLease, "_sleep", lambda *_: group.driver.kill(Ending(1, "SparkGone", "")))
    group.lease.run()
    row = group.store.consumer()
    assert row is not None
    assert (row.generation, group.driver.sent) == (0, [])


def test_a_refusal_ends_the_consumer() -> None:
    group = Group(lambda begin: over(begin, 65))
    assert (group.run().code, group.driver.begun) == (65, [1])


def test_a_lease_is_not_released_while_a_task_may_work() -> None:
    group = Group(lambda begin: over(begin, quiet=False))
    group.run()
    assert not group.released


def test_a_heartbeat_that_is_refused_ends_the_work_of_this_consumer_only() -> None:
    group = Group(lambda _begin: None, beating=leased()[0])  # whose holder has another token

    def lost(lose: Lose) -> Over:
        group.stop.set()
        return Over(lose.name, lose.generation, 1, "Interrupted", "", quiet=True)

    group.driver.lost = lost
    ending = group.run()
    assert (ending.code, ending.reason, group.driver.killed) == (76, "Fenced", None)
    assert [message for message in group.driver.sent if isinstance(message, Lose)] == [Lose("orders", 1)]
    assert not group.released


class Silent(CheckpointStore):
    def beat(self, *_: object) -> bool:
        raise ServiceUnavailable("no answer")


def test_work_that_does_not_end_in_time_after_its_lease_was_lost_ends_the_driver() -> None:
    def begun(_begin: Begin) -> None:
        group.later = MEMBER.config.lease_duration_seconds * 0.7

    group = Group(begun, beating=Silent(MemoryTable()))
    assert group.run().reason == "DriverGone"
    assert group.driver.killed is not None
    assert (group.driver.killed.reason, group.released) == ("LeaseLost", False)
    assert group.driver.killed.message.startswith("orders: no heartbeat was accepted for two thirds of the lease, and its work did not end")


def test_a_run_that_the_driver_ended_because_it_saw_the_loss_first_has_not_ended_for_good() -> None:
    """It looks more often. What it ended between two batches says that it was drained, which nobody had asked for."""

    def begun(begin: Begin) -> Over:
        group.later = MEMBER.config.lease_duration_seconds * 0.51
        group.stop.set()  # so that one run is enough to see
        return over(begin)

    group = Group(begun, beating=Silent(MemoryTable()))
    ending = group.run()
    assert (ending.code, ending.reason, ends_for_good(ending), group.released) == (1, "LeaseLost", False, False)


def test_a_run_of_which_a_driver_did_not_hear_is_begun_again() -> None:
    """Its pipe is full. Without that the consumer would keep its lease for ever, and nobody would work under it."""
    group = Group(over)
    group.driver.full = 1
    assert group.run().code == 0
    assert (group.driver.begun, group.released) == ([2], True)


def test_a_drain_is_handed_to_the_driver_until_it_has_room() -> None:
    def begun(_begin: Begin) -> None:
        group.driver.full = 1
        group.stop.set()

    group = Group(begun)
    group.driver.drained = over
    assert (group.run().code, group.released) == (0, True)
    assert [message for message in group.driver.sent if isinstance(message, Drain)] == [Drain("orders", 1)]


def test_in_a_pool_a_run_that_fails_is_not_started_again() -> None:
    """The operator counts, and names the next attempt."""
    group = Group(lambda begin: over(begin, 1))
    group.lease.pauses = None
    assert (group.run().code, group.driver.begun, group.released) == (1, [1], True)


def test_words_about_an_earlier_epoch_do_not_end_the_next_one() -> None:
    def begun(begin: Begin) -> Over:
        group.lease.hear(replace(over(begin), generation=begin.generation - 1))
        assert group.lease._over is not None
        return over(begin, 65)

    group = Group(begun)
    assert group.run().code == 65


def test_a_drain_without_an_end_ends_the_driver() -> None:
    """The driver has its own limit; this one is for a driver that does not keep it."""

    def begun(_begin: Begin) -> None:
        group.stop.set()
        group.lease._stopped_at = group.lease.ports.clock() - 1000

    group = Group(begun)
    group.run()
    assert group.driver.killed is not None
    assert group.driver.killed.reason == "DrainTimeout"


# -- values ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        Begin("a", 3, "t", "released", 0, 1.5),
        Beat("a", 3, 2.5),
        Lose("a", 3),
        Drain("a", 3),
        Executors(2),
        Leave(),
        DriverReads(),
        Doing("a", 3, 7, "process"),
        Over("a", 3, 1, "r", "m\nn", quiet=True),
    ],
)
def test_a_message_arrives_as_it_was_sent_in_one_line(message: Message) -> None:
    assert line(message).count(b"\n") == 1
    assert parsed(line(message)) == message


def test_pauses_double_up_to_a_minute_and_begin_again_after_a_run_that_lasted() -> None:
    """A consumer that fails at once is not started all the time, and one that fails once a day is started at once."""
    pauses = Pauses()
    assert [pauses.after(1.0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, LONGEST, LONGEST]
    assert [pauses.after(STEADY), pauses.after(1.0)] == [1, 2]


def test_only_a_drain_the_end_of_a_run_and_a_refusal_are_for_good() -> None:
    assert [ends_for_good(Ending(code, "", "")) for code in (0, 65, 1, 75, 76)] == [True, True, False, False, False]
    assert exit_code([Ending(0, "", ""), Ending(75, "", ""), Ending(65, "", "")]) == 75

"""N leases under one supervisor: what may go on, and what must not, whoever is paused and whichever table is silent."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from sluice_consumer.group.ends import BEATS, ENDING, Act, EpochWork
from sluice_consumer.process.lease_handoff import WORKING

TICK = 0.1  # seconds
LEASES = {"a": 9.0, "b": 12.0, "c": 24.0}
TICKS = 900
LATE = 2  # ticks that a process needs to act


# -- one epoch ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "lost", "over", "act"),
    [
        (0.4, False, False, Act.NONE),
        (0.51, False, False, Act.END_WORK),
        (0.1, True, False, Act.END_WORK),  # refused
        (0.67, False, False, Act.END_DRIVER),
        (0.67, True, True, Act.NONE),  # proven to be over
        (5.0, True, True, Act.NONE),
    ],
)
def test_what_is_done_about_the_work_of_an_epoch(age: float, act: Act, *, lost: bool, over: bool) -> None:
    """By the age of its last accepted heartbeat, as a part of the lease."""
    assert EpochWork(3, 30.0, 100.0, lost, over).looked(100 + 30 * age).act(100 + 30 * age) is act


def test_a_heartbeat_that_comes_late_gives_time_to_end_and_does_not_take_the_end_back() -> None:
    """The lease is ours still, but the thread was interrupted."""
    work = EpochWork(3, 30.0, 0.0).looked(16.0).beaten(3, 14.0)
    assert (work.act(22.0), work.act(35.0)) == (Act.END_WORK, Act.END_DRIVER)


def test_words_about_another_generation_do_not_count() -> None:
    """They were under way while the next epoch of the consumer began in the same driver."""
    work = EpochWork(3, 30.0, 0.0)
    assert work.beaten(2, 9.0) == work.losing(2) == work.ended(2) == work


# -- simulated ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Schedule:
    """What happens: by name, when a table does not answer; when each process is paused; how long work takes to end, in seconds."""

    silent: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    refused: Mapping[str, float] = field(default_factory=dict)
    supervisor: tuple[float, float] = (0.0, 0.0)
    driver: tuple[float, float] = (0.0, 0.0)
    ends: Mapping[str, float] = field(default_factory=dict)


Step = Callable[[EpochWork, float], Act]


def properly(work: EpochWork, now: float) -> Act:
    return work.act(now)


@dataclass
class Group:
    """A supervisor and a driver over three consumers, in virtual time. `supervises`, `drives`: what each process asks."""

    schedule: Schedule
    supervises: Step = properly
    drives: Step = properly
    receives: Callable[[str, str], bool] = lambda of, to: of == to
    now: float = 0.0
    dead: bool = False
    accepted: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LEASES, 0.0))
    beaten: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LEASES, 0.0))
    pipe: list[tuple[str, str, float]] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    asked: dict[str, float] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    excess: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LEASES, 0))
    above: dict[str, EpochWork] = field(default_factory=lambda: {name: EpochWork(1, lease, 0.0) for name, lease in LEASES.items()})
    below: dict[str, EpochWork] = field(default_factory=lambda: {name: EpochWork(1, lease, 0.0) for name, lease in LEASES.items()})

    def run(self) -> Group:
        for tick in range(TICKS):
            self.now = tick * TICK
            paused = [begin <= self.now < end for begin, end in (self.schedule.supervisor, self.schedule.driver)]
            if not paused[0]:
                self._supervise()
            if not (paused[1] or self.dead):
                self._drive()
            if not all(paused):
                self._judge()
        return self

    def _supervise(self) -> None:
        for name in self.reports:
            self.above[name] = self.above[name].ended(1)
        self.reports.clear()
        for name, lease in LEASES.items():
            if self.now - self.beaten[name] >= lease / BEATS and not self.above[name].over:
                self._beat(name)
            self.above[name] = self.above[name].looked(self.now)
            act = self.supervises(self.above[name], self.now)
            self.dead |= act is Act.END_DRIVER
            if act is Act.END_WORK:
                self.pipe.append(("lose", name, 0.0))

    def _beat(self, name: str) -> None:
        self.beaten[name] = self.now
        begin, end = self.schedule.silent.get(name, (0.0, 0.0))
        if self.now >= self.schedule.refused.get(name, float("inf")):
            self.above[name] = self.above[name].losing(1)
        elif not begin <= self.now < end:
            self.accepted[name] = self.now
            self.above[name] = self.above[name].beaten(1, self.now)
            self.pipe.append(("beat", name, self.now))

    def _drive(self) -> None:
        for word, of, sent in self.pipe:
            for name in LEASES:
                if self.receives(of, name):
                    self.below[name] = self.below[name].beaten(1, sent) if word == "beat" else self.below[name].losing(1)
        self.pipe.clear()
        for name in LEASES:
            self.below[name] = self.below[name].looked(self.now)
            act = self.drives(self.below[name], self.now)
            self.dead |= act is Act.END_DRIVER
            if act is Act.END_WORK:
                self.asked.setdefault(name, self.now)
            if name in self.asked and name not in self.over and self.now - self.asked[name] >= self.schedule.ends.get(name, 0.3):
                self.over.add(name)
                self.below[name] = self.below[name].ended(1)
                self.reports.append(name)

    def _judge(self) -> None:
        for name, lease in LEASES.items():
            if not self.dead and name not in self.over and self.now - self.accepted[name] > lease * WORKING:
                self.excess[name] += 1

    @property
    def works_too_long(self) -> list[str]:
        """Whose work went on after the protocol's time, longer than a process needs to act."""
        return [name for name, ticks in self.excess.items() if ticks > LATE]


def schedules(number: int) -> Schedule:
    """One of many, by its number: outages of some tables, pauses, and work that does not end."""
    dice = random.Random(number)  # noqa: S311 - a schedule

    def span(chance: float) -> tuple[float, float]:
        begin = dice.uniform(1, 60)
        return (begin, begin + dice.uniform(1, 40)) if dice.random() < chance else (0.0, 0.0)

    return Schedule(
        silent={name: span(0.5) for name in LEASES},
        refused={name: dice.uniform(5, 80) for name in LEASES if dice.random() < 0.2},
        supervisor=span(0.3),
        driver=span(0.3),
        ends={name: dice.choice([0.1, 0.5, 1.0, 1000.0]) for name in LEASES},
    )


RANDOM = range(60)


def test_no_work_outlives_its_lease_whatever_is_paused_or_silent_or_does_not_end() -> None:
    """The one invariant that the protocol needs of a driver."""
    for number in RANDOM:
        assert Group(schedules(number)).run().works_too_long == [], f"schedule {number}"


def test_a_lost_lease_ends_the_work_of_one_consumer_and_no_other() -> None:
    group = Group(Schedule(silent={"b": (20.0, 1000.0)})).run()
    assert (group.dead, group.over, set(group.asked)) == (False, {"b"}, {"b"})


def test_a_refused_heartbeat_ends_the_work_at_once() -> None:
    group = Group(Schedule(refused={"b": 20.0})).run()
    assert (group.dead, group.over) == (False, {"b"})
    assert group.asked["b"] - 20.0 < LEASES["b"] / BEATS + 2 * TICK


def test_an_outage_shorter_than_two_heartbeats_ends_nothing() -> None:
    longest = LEASES["b"] * (ENDING - 1 / BEATS) - 2 * TICK
    group = Group(Schedule(silent={"b": (20.0, 20.0 + longest)})).run()
    assert (group.dead, group.asked) == (False, {})


def test_work_that_does_not_end_ends_the_driver() -> None:
    assert Group(Schedule(silent={"b": (20.0, 1000.0)}, ends={"b": 1000.0})).run().dead


def test_a_machine_that_stood_still_ends_whatever_was_lost_meanwhile() -> None:
    group = Group(Schedule(supervisor=(20.0, 50.0), driver=(20.0, 50.0))).run()
    assert group.works_too_long == []
    assert group.dead


# -- mutants: the rule with one part left out is caught by a schedule -------------------------------------------------------------------


def _never_the_driver(work: EpochWork, now: float) -> Act:
    return Act.NONE if work.act(now) is Act.END_DRIVER else work.act(now)


def _work_first(work: EpochWork, now: float) -> Act:
    return Act.END_WORK if work.act(now) is Act.END_DRIVER else work.act(now)


def _all_at_once(work: EpochWork, now: float) -> Act:
    return Act.END_DRIVER if work.act(now) is Act.END_WORK else work.act(now)


@pytest.mark.parametrize(
    ("mutant", "where"),
    [
        (_never_the_driver, ("supervises",)),  # caught where the driver is paused
        (_never_the_driver, ("drives",)),  # caught where the supervisor is paused
        (_work_first, ("supervises", "drives")),  # caught where work does not end
    ],
)
def test_a_rule_without_the_end_of_the_driver_lets_work_outlive_its_lease(mutant: Step, where: tuple[str, ...]) -> None:
    assert any(Group(schedules(number), **dict.fromkeys(where, mutant)).run().works_too_long for number in RANDOM)  # type: ignore[arg-type]  # both are steps


def test_a_heartbeat_that_counts_for_all_consumers_lets_work_outlive_its_lease() -> None:
    groups = (Group(schedules(number), supervises=_never_the_driver, receives=lambda _of, _to: True).run() for number in RANDOM)
    assert any(group.works_too_long for group in groups)


def test_a_driver_that_ends_with_each_lost_lease_takes_all_consumers_with_it() -> None:
    """What `test_a_lost_lease_ends_the_work_of_one_consumer_and_no_other` forbids."""
    assert Group(Schedule(silent={"b": (20.0, 1000.0)}), drives=_all_at_once).run().dead

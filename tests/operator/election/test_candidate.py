"""At most one operator acts, whatever happens to calls, processes and clocks; and after a death another does, soon."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import pytest
from election_mutants import MUTANTS, Json
from election_world import TERMS, WHERE, Process, Town, rough_hours
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import PATIENCE

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.port import Unavailable
from sluice_operator.election import thread as election_module
from sluice_operator.election.candidate import Candidate, ElectionTimings, LeaseRef, LostLeadership
from sluice_operator.election.thread import Election, LeaderOnly, NotLeader


def dice(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - a simulation


@pytest.fixture
def town() -> Town:
    found = Town(dice(1))
    found.ship()
    return found


def pair(town: Town) -> tuple[Process, Process]:
    for _ in range(2):
        town.join()
    town.wait(5)
    leader = town.leaders()[0]
    return leader, next(process for process in town.processes if process is not leader)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_never_two_lead_and_in_calm_weather_one_does(seed: int) -> None:
    town = rough_hours(dice(seed))
    assert len(town.leaders()) == 1


@pytest.mark.parametrize(("make", "terms"), MUTANTS)
def test_the_simulation_notices_each_rule_taken_out(make: type[Candidate], terms: ElectionTimings) -> None:
    with pytest.raises(AssertionError, match="lead at"):
        [rough_hours(dice(seed), make, terms) for seed in range(300)]


def test_a_dead_leader_is_replaced_within_twenty_seconds(town: Town) -> None:
    """Killed right after a renewal, which is the longest case: 15 s of silence and a look, by clocks that are off by 10 %."""
    leader, follower = pair(town)
    leader.alive = False
    town.wait(20)
    assert town.leaders() == [follower]


def test_nobody_takes_over_while_the_leader_renews(town: Town) -> None:
    leader, _ = pair(town)
    town.wait(600)
    assert town.leaders() == [leader]
    assert town.lease()["leaseTransitions"] == 1


def test_a_released_lease_is_taken_at_the_next_look(town: Town) -> None:
    leader, follower = pair(town)
    leader.candidate.release()
    leader.alive = False
    assert not leader.candidate.leads()
    town.wait(TERMS.retry)
    assert town.leaders() == [follower]


def test_only_a_leader_releases(town: Town) -> None:
    leader, follower = pair(town)
    before = town.memory.get(*WHERE)
    follower.candidate.release()
    assert town.memory.get(*WHERE) == before
    assert town.leaders() == [leader]


def test_a_release_that_comes_too_late_changes_nothing(town: Town) -> None:
    leader, _ = pair(town)
    town.memory.patch(*WHERE, {"spec": {"holderIdentity": "another"}})
    leader.candidate.release()
    assert town.lease()["holderIdentity"] == "another"


def test_a_leader_that_reaches_nobody_gives_up_before_another_may_begin(town: Town) -> None:
    leader, _ = pair(town)
    leader.busy = True  # its call hangs
    town.wait(TERMS.deadline / 0.9 + 0.5)
    assert not leader.candidate.leads()
    assert leader.candidate.over()
    assert town.leaders() == []
    town.wait(10)
    assert len(town.leaders()) == 1


def test_a_leader_that_finds_another_name_is_deposed_for_good(town: Town) -> None:
    leader, _ = pair(town)
    town.memory.patch(*WHERE, {"spec": {"holderIdentity": "another"}})
    with pytest.raises(LostLeadership, match="another"):
        leader.candidate.acquire_or_renew()
    assert leader.candidate.over()
    assert town.lease()["holderIdentity"] == "another"


def test_a_renewal_that_lost_a_race_renews_nothing(town: Town) -> None:
    leader, _ = pair(town)
    get = town.memory.get

    def raced(*name: str) -> Json | None:
        found = get(*name)
        town.memory.patch(*WHERE, {"metadata": {"labels": {"touched": str(town.now)}}})
        return found

    until = leader.candidate._until
    town.memory.get = raced  # type: ignore[method-assign, assignment]  # somebody writes between its two calls
    leader.candidate.acquire_or_renew()
    assert leader.candidate._until == until


def test_a_longer_term_of_another_version_is_respected(town: Town) -> None:
    _, follower = pair(town)
    leader = town.leaders()[0]
    town.memory.patch(*WHERE, {"spec": {"leaseDurationSeconds": 60}})
    leader.alive = False
    town.wait(50)
    assert town.leaders() == []
    town.wait(25)
    assert town.leaders() == [follower]


@pytest.mark.parametrize("seconds", [2**31 - 1, 10**12, -1, 0, "15", 15.5, None])
@pytest.mark.parametrize("deleted", [True, False], ids=["which is deleted then", "which stays"])
def test_an_absurd_term_keeps_nobody_from_leading_for_long(town: Town, seconds: object, deleted: bool) -> None:  # noqa: FBT001
    """A restore, a slip or a thief may write any duration into the Lease: it counts for a minute at most, also after the Lease was deleted."""
    leader, follower = pair(town)
    leader.alive = False
    town.memory.patch(*WHERE, {"spec": {"holderIdentity": "theirs", "leaseDurationSeconds": seconds}})
    town.wait(5)
    if deleted:
        town.unship()
    town.wait(75)
    assert town.leaders() == [follower]


def test_without_a_lease_the_first_one_waits_as_long_as_a_leader_may_last(town: Town) -> None:
    town.unship()
    process = town.join()
    town.wait(12)
    assert town.leaders() == []
    town.wait(8)
    assert town.leaders() == [process]


def test_who_does_not_lead_writes_nothing_and_reads_all() -> None:
    memory = MemoryCluster(lambda: None)  # type: ignore[arg-type, return-value]  # no clock is needed: nothing is written
    port = LeaderOnly(memory, lambda: False)
    assert port.get("Pod", "a", "b") is None
    assert port.list("Pod", "a", {}) == []
    writes = [
        lambda: port.create({}),
        lambda: port.replace_status({}),
        lambda: port.patch("Pod", "a", "b", {}),
        lambda: port.delete("Pod", "a", "b", "uid"),
    ]
    for write in writes:
        with pytest.raises(NotLeader):
            write()
    assert issubclass(NotLeader, Unavailable)


class Silent:
    def __init__(self, memory: MemoryCluster) -> None:
        self.memory, self.answers, self.asked = memory, threading.Event(), threading.Event()
        self.answers.set()
        self.create, self.patch = memory.create, memory.patch

    def get(self, *name: str) -> Json | None:
        if not self.answers.is_set():
            self.asked.set()
        self.answers.wait(3 * PATIENCE)
        return self.memory.get(*name)


def elect(town: Town, server: Any, terms: ElectionTimings, left: list[str]) -> tuple[Election, threading.Event]:
    elected, gone = threading.Event(), threading.Event()

    def leave(reason: str) -> None:
        left.append(reason)
        gone.set()

    election = Election(Candidate(server, LeaseRef(*WHERE[1:], identity="real"), terms), elected.set, leave)
    election.start()
    assert elected.wait(PATIENCE)
    assert town.lease()["holderIdentity"] == "real"
    return election, gone


def test_a_process_whose_calls_hang_ends_all_the_same(town: Town) -> None:
    server, left = Silent(town.memory), list[str]()
    _, gone = elect(town, server, ElectionTimings(duration=3, deadline=0.6, retry=0.05), left)
    server.answers.clear()
    assert gone.wait(PATIENCE)
    assert "not renewed" in left[0]
    server.answers.set()


class Faulty:
    def __init__(self, memory: MemoryCluster) -> None:
        self.memory, self.calls = memory, 0
        self.create, self.patch = memory.create, memory.patch

    def get(self, *name: str) -> Json | None:
        self.calls += 1
        if self.calls == 1:
            raise TypeError("a reply that nobody foresaw")
        return self.memory.get(*name)


def test_a_candidate_stands_again_after_a_fault_of_its_own(town: Town, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Else a replica that looks well would never take over."""
    monkeypatch.setattr(election_module, "AFTER_A_FAULT", 0.01)
    server = Faulty(town.memory)
    election, _ = elect(town, server, ElectionTimings(retry=0.05), [])
    election.stop()
    assert server.calls > 1
    assert "a reply that nobody foresaw" in caplog.text


def test_an_election_that_is_stopped_releases_and_leaves_nothing_behind(town: Town) -> None:
    left = list[str]()
    election, _ = elect(town, town.memory, ElectionTimings(retry=0.05), left)
    election.stop()
    assert town.lease()["holderIdentity"] == ""
    assert left == []
    assert not any(thread.is_alive() for thread in election._threads)

"""Schedules: the same for a seed, whole in five minutes, and nothing begun near the end."""

from itertools import pairwise

import pytest

from sluice_lab.nemesis.schedule import (
    GONE,
    HEAVY,
    KILLS,
    MEANWHILE,
    MEANWHILE_FAULTS,
    POOL_APART,
    POOL_MEMBERS,
    POOL_PODS,
    QUIET_END,
    STANDBY_APART,
    STANDBY_FAULTS,
    FaultKind,
    NemesisRun,
    SinkKind,
    pooling,
    resetting,
    schedule,
    standing_by,
)

OF_A_CATALOG = {FaultKind.MAINTAIN}
OF_POISON = {FaultKind.POISON, FaultKind.DOWN}
OF_RESETS = {FaultKind.DEPLOY, FaultKind.RESET, FaultKind.KILL_JOB}
OF_STANDBYS = set(STANDBY_FAULTS) - {FaultKind.KILL_DRIVER}
OF_POOLS = {*POOL_MEMBERS, *POOL_PODS}
ASKED_FOR = (
    set(FaultKind) - OF_A_CATALOG - OF_POISON - OF_RESETS - OF_STANDBYS - OF_POOLS - {FaultKind.EVICT_DRIVER, FaultKind.CUT, FaultKind.LOSE}
)  # the other three come in longer ones
SEEDS = range(200)
FIRST_OF_SEVEN = [
    "5.6 split",
    "11.7 slow work",
    "13.7 zombie",
    "33.5 delay DynamoDB 0.3 s",
    "37.8 slow work",
    "39.8 cut driver off",
    "58.8 scale to 4",
    "64.9 slow work",
    "66.9 kill executor",
    "70.8 scale to 2",
]


def test_a_seed_is_a_schedule() -> None:
    assert schedule(7, 300) == schedule(7, 300)
    assert len({schedule(seed, 300) for seed in SEEDS}) == len(SEEDS)


def test_five_minutes_hold_every_kind_that_was_asked_for() -> None:
    assert [seed for seed in SEEDS if ASKED_FOR - {fault.kind for fault in schedule(seed, 300)}] == []


def test_a_longer_one_holds_every_kind() -> None:
    whole = set(FaultKind) - OF_A_CATALOG - OF_POISON - OF_RESETS - OF_STANDBYS - OF_POOLS
    assert [seed for seed in SEEDS if whole - {fault.kind for fault in schedule(seed, 600)}] == []


def test_a_sink_brings_its_services_and_a_catalog_its_maintenance() -> None:
    for kind in SinkKind:
        faults = [fault for seed in SEEDS for fault in NemesisRun(seed, 600, kind).faults()]
        assert {fault.service for fault in faults if fault.service} == set(kind.services)
        assert (FaultKind.MAINTAIN in {fault.kind for fault in faults}) == (kind is SinkKind.ICEBERG)


def test_poison_comes_beside_the_other_faults_and_the_sink_is_down_at_times() -> None:
    for seed in SEEDS:
        both, others = NemesisRun(seed, 600, poison=True).faults(), NemesisRun(seed, 600).faults()
        more = [fault for fault in both if fault.kind in OF_POISON]
        assert [fault for fault in both if fault not in more] == list(others)
        assert [fault.at for fault in both] == sorted(fault.at for fault in both)
        assert {fault.kind for fault in more} == OF_POISON
        assert 4 <= sum(fault.kind is FaultKind.POISON for fault in more) <= 10
        assert all(fault.at + fault.seconds < 450 for fault in more)


def test_resets_come_beside_the_other_faults_each_with_one_while_it_is_carried_out() -> None:
    for seed in SEEDS:
        both, others = NemesisRun(seed, 600, resets=True).faults(), NemesisRun(seed, 600).faults()
        assert sorted((*others, *resetting(seed, 600)), key=lambda fault: fault.at) == list(both)
        more = list(resetting(seed, 600))
        assert [fault.kind for fault in more[::3]] == [FaultKind.DEPLOY] * (len(more) // 3)
        assert [fault.kind for fault in more[1::3]] == [FaultKind.RESET] * (len(more) // 3)
        assert {fault.kind for fault in more[2::3]} == set(MEANWHILE_FAULTS)
        assert all(0 < fault.at - reset.at <= MEANWHILE[1] + 0.1 for reset, fault in zip(more[1::3], more[2::3], strict=True))
        assert more[-1].at <= 600 - QUIET_END


def test_driver_and_standby_are_killed_frozen_and_lost_in_six_minutes() -> None:
    for seed in SEEDS:
        more = list(standing_by(seed, 360))
        both, others = NemesisRun(seed, 360, standby=True).faults(), NemesisRun(seed, 360).faults()
        kept = [fault for fault in others if fault.kind is not FaultKind.SCALE]
        assert sorted((*kept, *more), key=lambda fault: fault.at) == list(both)
        assert {fault.kind for fault in more} == set(STANDBY_FAULTS)
        assert all(fault.seconds == (0 if fault.kind in KILLS else GONE) for fault in more)
        assert all(later.at - earlier.at > STANDBY_APART[0] - 0.2 for earlier, later in pairwise(more))
        assert more[-1].at + GONE <= 360 - QUIET_END


def test_what_happens_to_members_and_pods_of_a_pool_comes_beside_the_other_faults() -> None:
    every = {**POOL_MEMBERS, **POOL_PODS}
    for seed in SEEDS:
        more = list(pooling(seed, 450))
        assert list(NemesisRun(seed, 450, pool=True).faults()) == sorted((*NemesisRun(seed, 450).faults(), *more), key=lambda fault: fault.at)
        assert {fault.kind for fault in more} == set(every)
        assert all(fault.seconds == every[fault.kind] and fault.at + fault.seconds < 450 - QUIET_END for fault in more)
        assert all(later.at - earlier.at > POOL_APART[0] - 0.2 for earlier, later in pairwise(more))
        assert all((one.kind in POOL_PODS) != (other.kind in POOL_PODS) for one, other in pairwise(more[:6]))


def test_a_seed_keeps_its_schedule_without_a_pool() -> None:
    """A timeline that somebody kept can be replayed: of seed 7, the times and titles as they were before there were pools."""
    titles = [f"{fault.at:.1f} {fault.title}" for fault in NemesisRun(7, 90).faults()]
    assert titles == FIRST_OF_SEVEN
    assert not {fault.kind for fault in NemesisRun(7, 3600).faults()} & (OF_POOLS - {FaultKind.FREEZE_DRIVER, FaultKind.LOSE_DRIVER})


@pytest.mark.parametrize("seconds", [90.0, 300.0])
def test_faults_come_in_order_and_leave_time_at_the_end(seconds: float) -> None:
    for seed in SEEDS:
        times = [fault.at for fault in schedule(seed, seconds)]
        assert times == sorted(times)
        assert times[0] > 0
        assert times[-1] <= seconds - QUIET_END + 12


def test_what_is_interrupted_is_at_work() -> None:
    for seed in SEEDS:
        faults = schedule(seed, 300)
        slow = {fault.at for fault in faults if fault.kind is FaultKind.SLOW}
        hard = [fault for fault in faults if fault.kind in {FaultKind.KILL_EXECUTOR, FaultKind.ZOMBIE, FaultKind.CUT_DRIVER}]
        assert all(any(0 < fault.at - at <= 2.0001 for at in slow) for fault in hard)


def test_outages_begin_one_after_the_other() -> None:
    for seed in SEEDS:
        began = [fault.at for fault in schedule(seed, 600) if fault.kind in {FaultKind.THROTTLE, FaultKind.FAIL, FaultKind.CUT, FaultKind.LOSE}]
        assert all(later - earlier > HEAVY[0] - 0.2 for earlier, later in pairwise(began))


def test_titles_say_what_is_done() -> None:
    """To whom follows at run time, so that stands beside it."""
    titles = {fault.title for seed in SEEDS for fault in schedule(seed, 300)}
    assert {"scale to 4", "scale to 2", "fail Kinesis 100%", "delay DynamoDB 0.3 s", "zombie"} <= titles

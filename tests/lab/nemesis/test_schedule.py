"""Schedules: the same for a seed, whole in five minutes, and nothing begun near the end."""

from itertools import pairwise

import pytest

from sluice_lab.nemesis.schedule import HEAVY, QUIET_END, FaultKind, NemesisRun, SinkKind, schedule

OF_A_CATALOG = {FaultKind.MAINTAIN}
OF_POISON = {FaultKind.POISON, FaultKind.DOWN}
ASKED_FOR = set(FaultKind) - OF_A_CATALOG - OF_POISON - {FaultKind.EVICT_DRIVER, FaultKind.CUT, FaultKind.LOSE}  # the other three come in longer ones
SEEDS = range(200)


def test_a_seed_is_a_schedule() -> None:
    """The same one every time; another seed, another one."""
    assert schedule(7, 300) == schedule(7, 300)
    assert len({schedule(seed, 300) for seed in SEEDS}) == len(SEEDS)


def test_five_minutes_hold_every_kind_that_was_asked_for() -> None:
    """Whatever the seed."""
    assert [seed for seed in SEEDS if ASKED_FOR - {fault.kind for fault in schedule(seed, 300)}] == []


def test_a_longer_one_holds_every_kind() -> None:
    """Lost replies, cut connections and an evicted driver too."""
    assert [seed for seed in SEEDS if set(FaultKind) - OF_A_CATALOG - OF_POISON - {fault.kind for fault in schedule(seed, 600)}] == []


def test_a_sink_brings_its_services_and_a_catalog_its_maintenance() -> None:
    """S3 and the catalog get outages of their own. Nobody maintains files."""
    for kind in SinkKind:
        faults = [fault for seed in SEEDS for fault in NemesisRun(seed, 600, kind).faults()]
        assert {fault.service for fault in faults if fault.service} == set(kind.services)
        assert (FaultKind.MAINTAIN in {fault.kind for fault in faults}) == (kind is SinkKind.ICEBERG)


def test_poison_comes_beside_the_other_faults_and_the_sink_is_down_at_times() -> None:
    """The others stay as they are; nothing of it comes in the last third."""
    for seed in SEEDS:
        both, others = NemesisRun(seed, 600, poison=True).faults(), NemesisRun(seed, 600).faults()
        more = [fault for fault in both if fault.kind in OF_POISON]
        assert [fault for fault in both if fault not in more] == list(others)
        assert [fault.at for fault in both] == sorted(fault.at for fault in both)
        assert {fault.kind for fault in more} == OF_POISON
        assert 4 <= sum(fault.kind is FaultKind.POISON for fault in more) <= 10
        assert all(fault.at + fault.seconds < 450 for fault in more)


@pytest.mark.parametrize("seconds", [90.0, 300.0])
def test_faults_come_in_order_and_leave_time_at_the_end(seconds: float) -> None:
    """A fault of several parts may end its last one a little later."""
    for seed in SEEDS:
        times = [fault.at for fault in schedule(seed, seconds)]
        assert times == sorted(times)
        assert times[0] > 0
        assert times[-1] <= seconds - QUIET_END + 12


def test_what_is_interrupted_is_at_work() -> None:
    """Before an executor is killed or made a zombie, or its driver cut off, tasks are made to take seconds."""
    for seed in SEEDS:
        faults = schedule(seed, 300)
        slow = {fault.at for fault in faults if fault.kind is FaultKind.SLOW}
        hard = [fault for fault in faults if fault.kind in {FaultKind.KILL_EXECUTOR, FaultKind.ZOMBIE, FaultKind.CUT_DRIVER}]
        assert all(any(0 < fault.at - at <= 2.0001 for at in slow) for fault in hard)


def test_outages_begin_one_after_the_other() -> None:
    """With some time between; one that reaches into the next of the same service gives way to it."""
    for seed in SEEDS:
        began = [fault.at for fault in schedule(seed, 600) if fault.kind in {FaultKind.THROTTLE, FaultKind.FAIL, FaultKind.CUT, FaultKind.LOSE}]
        assert all(later - earlier > HEAVY[0] - 0.2 for earlier, later in pairwise(began))


def test_titles_say_what_is_done() -> None:
    """To whom follows at run time, so that stands beside it."""
    titles = {fault.title for seed in SEEDS for fault in schedule(seed, 300)}
    assert {"scale to 4", "scale to 2", "fail Kinesis 100%", "delay DynamoDB 0.3 s", "zombie"} <= titles

"""Schedules: the same for a seed, and none leaves out what was asked for. What never comes is never tried, and no run would say so."""

from itertools import pairwise
from typing import Any

import pytest

from sluice_lab.nemesis.schedule import (
    MEANWHILE,
    MEANWHILE_FAULTS,
    POOL_MEMBERS,
    POOL_PODS,
    QUIET_END,
    STANDBY_APART,
    STANDBY_FAULTS,
    FaultKind,
    NemesisRun,
    SinkKind,
    resetting,
    schedule,
)

OF_POISON = {FaultKind.POISON, FaultKind.DOWN}
OF_RESETS = {FaultKind.DEPLOY, FaultKind.RESET, *MEANWHILE_FAULTS}
OF_OPTIONS = {FaultKind.MAINTAIN, FaultKind.KILL_JOB, *OF_POISON, *OF_RESETS, *STANDBY_FAULTS, *POOL_MEMBERS, *POOL_PODS}
ORDINARY = set(FaultKind) - OF_OPTIONS | {FaultKind.KILL_DRIVER, FaultKind.KILL_OPERATOR, FaultKind.SPLIT, FaultKind.MERGE}
LONGER = {FaultKind.EVICT_DRIVER, FaultKind.CUT, FaultKind.LOSE}
SEEDS = range(200)


def test_a_seed_is_a_schedule() -> None:
    assert schedule(7, 300) == schedule(7, 300)
    assert len({schedule(seed, 300) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize(
    ("seconds", "options", "kinds"),
    [
        (300, {}, ORDINARY - LONGER),
        (600, {}, ORDINARY),
        (600, {"poison": True}, ORDINARY | OF_POISON),
        (600, {"resets": True}, ORDINARY | OF_RESETS),
        (600, {"standby": True}, ORDINARY - {FaultKind.SCALE} | {*STANDBY_FAULTS}),  # a standby has as many executors as the driver
        (600, {"pool": True}, ORDINARY | {*POOL_MEMBERS, *POOL_PODS}),
    ],
)
def test_a_run_holds_every_kind_in_order_and_leaves_time_at_the_end(seconds: float, options: dict[str, Any], kinds: set[FaultKind]) -> None:
    for seed in SEEDS:
        faults = NemesisRun(seed, seconds, **options).faults()
        assert kinds <= {fault.kind for fault in faults} <= kinds | LONGER, seed
        assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
        assert faults[0].at > 0
        assert faults[-1].at <= seconds - QUIET_END + 12


def test_a_sink_brings_its_services_and_a_catalog_its_maintenance() -> None:
    for kind in SinkKind:
        faults = [fault for seed in SEEDS for fault in NemesisRun(seed, 600, kind).faults()]
        assert {fault.service for fault in faults if fault.service} == set(kind.services)
        assert (FaultKind.MAINTAIN in {fault.kind for fault in faults}) == (kind is SinkKind.ICEBERG)


def test_a_fault_follows_each_reset_while_it_is_carried_out() -> None:
    for seed in SEEDS:
        more = list(resetting(seed, 600))
        assert {fault.kind for fault in more[1::3]} == {FaultKind.RESET}
        assert {fault.kind for fault in more[2::3]} == set(MEANWHILE_FAULTS)
        assert all(0 < fault.at - reset.at <= MEANWHILE[1] + 0.1 for reset, fault in zip(more[1::3], more[2::3], strict=True))


def test_another_standby_is_ready_before_the_next_one_is_hit() -> None:
    for seed in SEEDS:
        more = [fault.at for fault in NemesisRun(seed, 360, standby=True).faults() if fault.kind in {*STANDBY_FAULTS} - {FaultKind.KILL_DRIVER}]
        assert all(later - earlier > STANDBY_APART[0] - 0.2 for earlier, later in pairwise(more))


def test_what_is_interrupted_is_at_work() -> None:
    for seed in SEEDS:
        faults = schedule(seed, 300)
        slow = {fault.at for fault in faults if fault.kind is FaultKind.SLOW}
        hard = [fault for fault in faults if fault.kind in {FaultKind.KILL_EXECUTOR, FaultKind.ZOMBIE, FaultKind.CUT_DRIVER}]
        assert all(any(0 < fault.at - at <= 2.0001 for at in slow) for fault in hard)

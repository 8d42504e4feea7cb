"""How many executors: decisions from literals, and against consumers of any kind in virtual time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan.views import NOW, seconds

from sluice_operator.plan import scaling
from sluice_operator.plan.advice import FAILURES
from sluice_operator.plan.scaling import AIM, HOLD, ScaleBounds, ScaleFigures, cap, decide
from sluice_operator.state.status import AutoscaleStatus, ScaleSample, ScaleTrial

BOUNDS = ScaleBounds(min=1, max=8, target_lag_seconds=60, cool_down_seconds=600)
FIGURES = ScaleFigures(now=NOW, busy=1.0, behind=120_000, records=6_000, shards=8, active_shards=8, farthest="s", others_behind=100_000, cores=1)
BEFORE = AutoscaleStatus(replicas=2)


def sample(behind: int = 60_000, records: int | None = 0) -> ScaleSample:
    return ScaleSample(at=seconds(-60), attempt=1, executors=2, records=records, millis_behind_latest=behind)


UNTIL = NOW + timedelta(minutes=1)
LOW, CALM = 0.3, 5_000
VAIN = ScaleTrial(executors=2, seconds_per_record=0.01, steps=2)  # a record takes 0.01 s in FIGURES, too


@pytest.mark.parametrize(
    ("before", "found", "number", "reason"),
    [
        (BEFORE, FIGURES, 4, "ScaledUp"),
        (BEFORE, replace(FIGURES, busy=0.75), 3, "ScaledUp"),
        (BEFORE, replace(FIGURES, active_shards=3), 3, "ScaledUp"),
        (BEFORE, replace(FIGURES, cores=4), 2, "AtActiveShards"),
        (BEFORE, replace(FIGURES, active_shards=2), 2, "AtActiveShards"),
        (replace(BEFORE, replicas=8), FIGURES, 8, "AtMaximum"),
        (BEFORE, replace(FIGURES, busy=0.5), 2, "NotBusy"),
        (BEFORE, replace(FIGURES, others_behind=900), 2, "HotShard"),
        (BEFORE, replace(FIGURES, others_behind=900, batch=61_000), 2, "HotShard"),
        (BEFORE, replace(FIGURES, behind=60_000, others_behind=0, batch=1_000), 4, "ScaledUp"),
        (BEFORE, replace(FIGURES, behind=0, others_behind=0, batch=60_000), 2, "Steady"),
        (replace(BEFORE, replicas=1), replace(FIGURES, others_behind=900), 2, "ScaledUp"),
        (BEFORE, replace(FIGURES, behind=59_000), 2, "Steady"),
        (replace(BEFORE, ceiling=2, ceiling_until=UNTIL), FIGURES, 2, "NoGain"),
        (replace(BEFORE, ceiling=2, ceiling_until=NOW), FIGURES, 4, "ScaledUp"),
        (replace(BEFORE, replicas=4, trial=VAIN, changed_at=seconds(-120)), FIGURES, 4, "NoGain"),
        (replace(BEFORE, replicas=4, trial=VAIN, changed_at=seconds(-600)), FIGURES, 2, "NoGain"),
        (replace(BEFORE, replicas=4, trial=replace(VAIN, steps=1)), FIGURES, 7, "ScaledUp"),
        (replace(BEFORE, replicas=4, trial=replace(VAIN, seconds_per_record=0.02)), FIGURES, 7, "ScaledUp"),
        (BEFORE, replace(FIGURES, behind=CALM, busy=LOW), 2, "Steady"),
        (BEFORE, replace(FIGURES, behind=CALM, busy=0.29), 2, "CoolingDown"),
        (replace(BEFORE, quiet_since=seconds(-599)), replace(FIGURES, behind=CALM, busy=0.29), 2, "CoolingDown"),
        (replace(BEFORE, quiet_since=seconds(-600)), replace(FIGURES, behind=CALM, busy=0.29), 1, "ScaledDown"),
        (replace(BEFORE, quiet_since=seconds(-600), changed_at=seconds(-599)), replace(FIGURES, behind=CALM, busy=0.0), 2, "CoolingDown"),
        (replace(BEFORE, quiet_since=seconds(-600)), replace(FIGURES, behind=16_000, busy=0.0), 2, "Steady"),
        (replace(BEFORE, replicas=1, quiet_since=seconds(-600)), replace(FIGURES, behind=0, busy=0.0), 1, "Steady"),
        (replace(BEFORE, quiet_since=seconds(-600)), replace(FIGURES, behind=CALM, active_shards=1), 1, "ScaledDown"),
    ],
)
def test_a_decision(before: AutoscaleStatus, found: ScaleFigures, number: int, reason: str) -> None:
    after = decide(before, sample(), found, BOUNDS)
    assert (after.replicas, after.reason) == (number, reason)
    assert (after.changed_at == NOW) == (number != before.replicas)


def test_a_consumer_that_will_be_back_soon_gets_no_more() -> None:
    """It gained a minute in a minute, and five are left; from six on it is too slow."""
    assert decide(BEFORE, sample(behind=420_000), replace(FIGURES, behind=360_000), BOUNDS).reason == "CatchingUp"
    assert decide(BEFORE, sample(behind=421_000), replace(FIGURES, behind=361_001), BOUNDS).replicas == 4


def test_a_pipeline_that_repartitions_is_held_by_its_maximum_only() -> None:
    """The user says so by `cap: None`."""
    free = replace(BOUNDS, by_shards=False)
    assert decide(BEFORE, sample(), replace(FIGURES, active_shards=1, others_behind=0), free).replicas == 4


def test_steps_that_help_are_no_trial_any_more() -> None:
    tried = replace(BEFORE, replicas=4, trial=VAIN)
    faster = decide(tried, sample(), replace(FIGURES, records=12_000), BOUNDS)
    assert (faster.replicas, faster.trial) == (7, ScaleTrial(executors=4, seconds_per_record=0.005))
    assert decide(tried, sample(), replace(FIGURES, behind=CALM), BOUNDS).trial is None


def test_every_limit_says_what_to_do() -> None:
    assert set(scaling.LIMITS) <= set(FAILURES)
    assert all(FAILURES[reason].do for reason in scaling.LIMITS)


# -- against a consumer ------------------------------------------------------------------------------------------------------------


@dataclass
class Plant:
    """A consumer in virtual time: `load` records a second come, and n executors read `capacity[n - 1]`; capacity grows ever less.

    `shards` give records, and one core reads one shard. Lag is the time that the backlog would take to arrive.
    """

    load: float
    capacity: tuple[float, ...]
    shards: int
    bounds: ScaleBounds
    number: int
    behind: float = 0.0
    records: float = 0.0

    def __post_init__(self) -> None:
        self.memory = AutoscaleStatus(replicas=self.number)
        self.now = NOW
        self.sample: ScaleSample | None = None

    def minute(self) -> AutoscaleStatus:
        power = self.capacity[min(self.memory.replicas, self.shards, len(self.capacity)) - 1]
        due = self.load * 60 + self.behind * self.load
        done = min(due, power * 60)
        self.behind = (due - done) / self.load if self.load else 0.0
        self.records += done
        self.now += timedelta(minutes=1)
        busy, behind = round(done / (power * 60), 2), round(self.behind * 1000)
        found = ScaleFigures(
            now=self.now,
            busy=busy,
            behind=behind,
            records=round(self.records),
            shards=self.shards,
            active_shards=self.shards if self.load else 0,
            farthest="s",
            others_behind=behind,
            cores=1,
        )
        here = ScaleSample(at=self.now, attempt=1, executors=self.memory.replicas, records=round(self.records), millis_behind_latest=behind)
        before = self.memory
        if self.sample is None:
            self.sample = here
            return before
        self.memory = decide(before, self.sample, found, self.bounds)
        self.sample = here if self.memory.replicas == before.replicas else None  # executors come, then a new minute begins
        limit = max(self.bounds.min, min(self.bounds.max, self.shards)) if self.bounds.by_shards else self.bounds.max
        assert self.bounds.min <= self.memory.replicas <= self.bounds.max
        assert self.memory.replicas <= max(limit, before.replicas), "above the active shards"
        assert self.memory.replicas <= 2 * before.replicas
        return before

    def changes(self, minutes: int) -> list[tuple[int, int]]:
        """(minute, up or down) of each change."""
        found = []
        for minute in range(minutes):
            before = self.minute().replicas
            if self.memory.replicas != before:
                found.append((minute, 1 if self.memory.replicas > before else -1))
        return found


@st.composite
def plants(draw: st.DrawFn) -> Plant:
    """Any concave capacity: each executor adds at most what the one before added, a sink that takes no more adds nothing."""
    gains, gain = [], draw(st.floats(10, 1000))
    for _ in range(10):
        gains.append(gain)
        gain *= draw(st.sampled_from([1.0, 1.0, 0.9, 0.5, 0.0]))
    capacity = tuple(sum(gains[: n + 1]) for n in range(10))
    least = draw(st.integers(1, 4))
    bounds = ScaleBounds(
        min=least,
        max=draw(st.integers(least, 10)),
        target_lag_seconds=draw(st.sampled_from([10, 60, 600])),
        cool_down_seconds=draw(st.sampled_from([60, 300, 600, 7200])),
        by_shards=draw(st.booleans()),
    )
    load = draw(st.floats(0.01, 1.5)) * capacity[-1]
    return Plant(load, capacity, draw(st.integers(1, 12)), bounds, draw(st.integers(least, bounds.max)), draw(st.sampled_from([0.0, 30.0, 5000.0])))


@settings(max_examples=60, deadline=None)
@given(plants(), st.integers(0, 3))
def test_a_constant_load_never_sees_two_changes_in_opposite_directions_within_the_cool_down(plant: Plant, minutes: int) -> None:
    changes = plant.changes(250 + minutes)
    for (earlier, one), (later, other) in pairwise(changes):
        if one != other:
            assert (later - earlier) * 60 >= plant.bounds.cool_down_seconds


@settings(max_examples=30, deadline=None)
@given(plants())
def test_a_load_that_some_number_of_executors_can_carry_is_carried(plant: Plant) -> None:
    each = plant.capacity[0]
    plant.capacity = tuple(each * n for n in range(1, 11))
    most = min(plant.bounds.max, plant.shards) if plant.bounds.by_shards else plant.bounds.max
    plant.load = min(plant.load, 0.6 * plant.capacity[min(most, plant.shards) - 1])
    plant.changes(300)
    assert plant.behind <= plant.bounds.target_lag_seconds
    plant.changes(50)
    assert plant.behind <= plant.bounds.target_lag_seconds


def test_one_to_four_to_one() -> None:
    """Load 1, 4, 1: up in two steps without a step back, down one by one, and the lag is under the target in between."""
    plant = Plant(100.0, tuple(250.0 * n for n in range(1, 9)), 8, BOUNDS, 1)
    assert plant.changes(60) == []
    plant.load = 400.0
    assert [way for _, way in plant.changes(60)] == [1]
    assert (plant.memory.replicas, plant.behind < 60) == (2, True)
    plant.load = 100.0
    assert [way for _, way in plant.changes(60)] == [-1]
    assert plant.memory.replicas == 1


def test_a_sink_that_takes_no_more_gets_its_former_number_back_and_is_tried_again_later() -> None:
    plant = Plant(500.0, (100.0,) * 10, 8, BOUNDS, 1)
    changes = plant.changes(110)
    assert [way for _, way in changes] == [1, 1, -1, 1, 1, -1]
    (_, (up, _), (down, _), (again, _), *_) = changes
    assert (down - up, (again - down) * timedelta(minutes=1) >= HOLD) == (10, True)
    assert plant.memory.replicas == 1


def test_a_stream_that_falls_silent_comes_down_to_its_minimum() -> None:
    plant = Plant(0.0, tuple(100.0 * n for n in range(1, 9)), 8, replace(BOUNDS, min=2), 5)
    assert [way for _, way in plant.changes(60)] == [-1, -1, -1]
    assert plant.memory.replicas == 2


# -- hostile figures ---------------------------------------------------------------------------------------------------------------

WHOLE = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=150, deadline=None)
@given(
    st.builds(
        ScaleFigures,
        now=st.just(NOW),
        busy=st.floats(0, 1),
        behind=st.integers(0, 2**63 - 1),
        records=st.none() | WHOLE,
        shards=WHOLE,
        active_shards=st.none() | st.integers(0, 2**63 - 1),
        farthest=st.none() | st.text(max_size=9),
        others_behind=st.none() | WHOLE,
        cores=st.integers(1, 1000),
        batch=st.integers(0, 2**63 - 1),
    ),
    st.none() | WHOLE,
    st.none() | WHOLE,
    st.none() | st.builds(ScaleTrial, executors=WHOLE, seconds_per_record=st.floats(allow_nan=False), steps=WHOLE),
    st.integers(1, 8),
)
def test_no_figure_takes_the_number_out_of_its_bounds(
    found: ScaleFigures, records: int | None, behind: int | None, trial: ScaleTrial | None, number: int
) -> None:
    last = ScaleSample(at=seconds(-60), attempt=1, executors=number, records=records, millis_behind_latest=behind)
    after = decide(AutoscaleStatus(replicas=number, trial=trial), last, found, BOUNDS)
    assert 1 <= after.replicas <= 8
    assert 1 <= cap(found, BOUNDS) <= 8
    assert after.trial is None or (-(2**63) <= after.trial.steps < 2**63 and not math.isnan(after.trial.seconds_per_record))
    assert len(after.message) < 300


def test_the_aim_leaves_room() -> None:
    """A busy share at the aim is not behind for want of executors, and one step up or down does not cross it."""
    assert 0.5 <= AIM < 1

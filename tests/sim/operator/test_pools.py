"""Consumers in pools, planned by the rules of a driver's pod over their seats (docs/pools.md)."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from pools.mutant import MUTANTS, PoolMutant, on, pooled
from pools.programs import OwnDriver, PoolDriver
from pools.world import Broken, World
from test_ending import EXAMPLES, QUICK

FEW = settings(QUICK, max_examples=min(8, EXAMPLES), stateful_step_count=20, phases=(Phase.generate,))
names = st.sampled_from(("orders", "clicks", "carts"))
pools = st.sampled_from(("small", "large"))


class Pooling(RuleBasedStateMachine):
    """Anybody does anything at any moment; then it is calm."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(steps=st.integers(1, 8))
    def passes(self, steps: int) -> None:
        """Time passes, and the leader works."""
        for _ in range(steps):
            self.world.pass_all()
            self.world.tick()

    @rule(name=names, pool=st.one_of(st.none(), pools))
    def moves(self, name: str, pool: str | None) -> None:
        """Into a pool, out of it, or from one to the other."""
        self.world.consumers[name].pool = pool

    @rule(name=names)
    def edited(self, name: str) -> None:
        """Another spec."""
        self.world.consumers[name].edits += 1

    @rule(name=names)
    def suspended(self, name: str) -> None:
        """And back."""
        self.world.consumers[name].suspend ^= True

    @rule(name=names)
    def deleted(self, name: str) -> None:
        """The table stays."""
        self.world.consumers[name].deleting = True

    @rule(name=names)
    def fails(self, name: str) -> None:
        """Its run raises."""
        for program in self.world.running.values():
            if isinstance(program, PoolDriver):
                program.fails.add(self.world.consumers[name].uid)

    @rule(pool=pools)
    def rolled(self, pool: str) -> None:
        """The pool gets another image."""
        self.world.pools[pool].edits += 1

    @rule(pool=pools)
    def pool_suspended(self, pool: str) -> None:
        """And back."""
        self.world.pools[pool].suspend ^= True

    @rule()
    def killed(self) -> None:
        """The processes of all pools end."""
        self.world.kill()

    @rule(name=names)
    def put_out(self, name: str) -> None:
        """With an end that named it."""
        self.world.put_out(self.world.consumers[name])

    @rule(name=names)
    def returns(self, name: str) -> None:
        """To its pool."""
        self.world.returns(self.world.consumers[name])

    @rule(name=names)
    def forgotten(self, name: str) -> None:
        """By its pool."""
        self.world.forgotten(self.world.consumers[name])

    @rule(name=st.one_of(names, pools))
    def paused(self, name: str) -> None:
        """An operator writes down what it will do, and stops there."""
        self.world.pause(self.world.consumers.get(name) or self.world.pools[name])

    @rule()
    def strikes(self) -> None:
        """And wakes up."""
        self.world.strike()

    @rule(what=st.sampled_from(("copied", "copied_whole", "forged", "unlabelled")))
    def touched(self, what: str) -> None:
        """Strangers."""
        getattr(self.world, what)()

    def teardown(self) -> None:
        """What the specs say."""
        self.world.calm()


@pytest.mark.slow
def test_a_consumer_in_pools_has_one_driver_through_anything() -> None:
    run_state_machine_as_test(Pooling, settings=FEW)  # type: ignore[no-untyped-call]  # hypothesis


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_rule_that_is_taken_out_is_missed(mutant: PoolMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.story(World())
    mutant.apply(monkeypatch)
    with pytest.raises(Broken, match=mutant.broken):
        mutant.story(World())


def test_an_edit_of_one_member_stops_no_other() -> None:
    world = pooled()
    orders, (other,) = world.consumers["orders"], world.working(world.consumers["carts"].uid)
    for change in ({"edits": 1}, {"pool": None}, {"pool": "small"}, {"suspend": True}, {"suspend": False}, {"deleting": True}):
        for name, value in change.items():
            setattr(orders, name, value)
        on(world, 12)
        assert world.working(world.consumers["carts"].uid) == [other]
    assert orders.gone


def test_a_member_that_is_put_out_has_one_driver_and_so_it_has_when_it_returns() -> None:
    world = pooled()
    orders = world.consumers["orders"]
    world.kill()
    on(world, 3)
    world.pause(orders)
    world.put_out(orders)
    on(world, 8)
    world.strike()
    world.calm(80)
    assert isinstance(world.running[world.working(orders.uid)[0][0]], OwnDriver)
    world.returns(orders)
    world.calm(80)
    assert isinstance(world.running[world.working(orders.uid)[0][0]], PoolDriver)

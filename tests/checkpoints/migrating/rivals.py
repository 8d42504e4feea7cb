"""Several migrators on one target: one that sleeps while another takes over, and two that live (see `schedules`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random

from migrating.bench import Bench, Calls
from migrating.schedules import LEASE, QUIET, attempt, bench, finish, is_over, moves_in, run_length, undisturbed
from migrating.stage import Case
from simulation.turnstile import Process, Waiting

from sluice_checkpoints.protocol.rows import Item
from sluice_lab.fakes.table import copied

PAUSE = 5 * LEASE


def pauses(case: Case) -> int:
    """A migrator sleeps for five leases at any call; meanwhile the source moves on and another migrator runs to its end.

    When the first wakes up, not one of its writes takes effect.
    """
    made = run_length(case)
    for at in range(made):
        world = bench(case)
        after: dict[str, Item] = {}

        def meanwhile(number: int, world: Bench = world, at: int = at, after: dict[str, Item] = after) -> None:
            if number == at:
                world.seconds += PAUSE
                if not is_over(world):
                    world.move()
                assert attempt(world, Calls()) is None
                after.update(copied(world.table.rows))

        attempt(world, Calls(visit=meanwhile))
        assert after, f"nothing was tried at call {at}"
        assert world.table.rows == after, "only_the_claimant_writes: a migrator wrote after it had slept"
        assert world.places() == world.due(), "same_end"
    return 2 * made


def usurpers(case: Case, share: float = 1.0, seed: int = 0) -> int:
    """A migrator sleeps at any call while the source moves; another starts and dies at any call of its own; the first goes on; a third ends it.

    Of all pairs of calls a `share` is tried, in an order given by `seed`.
    """
    made = run_length(case)
    pairs = [(at, death) for at in range(made) for death in range(made + 20)]  # the second waits for the first's claim: more calls than alone
    chosen = Random(seed).sample(pairs, round(len(pairs) * share))  # noqa: S311 - a schedule is no secret
    for at, death in chosen:
        _usurped(case, at, death)
    return 3 * len(chosen)


def _usurped(case: Case, at: int, death: int) -> None:
    world, calls = bench(case), Calls()

    def meanwhile(number: int) -> None:
        if number == at:
            world.seconds += PAUSE
            if not is_over(world):
                world.move()
            attempt(world, Calls(crash_at=death))

    calls.visit = meanwhile
    completed = attempt(world, calls) is None
    assert attempt(world, Calls()) is None, "progress"
    looked_before = completed and 0 <= calls.last("scan source", moves_in(case)) < at  # then only the driver's own look sees that the source moved
    assert world.places() == world.due() or (looked_before and world.places() == bench(case).due()), "same_end"


class Pair:
    """Two migrators that both live, each in a thread of which exactly one runs; which one is decided at every call.

    Time goes on only while both wait, and no faster than either of them waits: nobody sleeps longer than he meant to.
    """

    def __init__(self, world: Bench, delay: float = 0.0, calls: int = 0) -> None:
        """The second starts after so many seconds and so many calls of the first."""
        self.world, self.ends, self.first = world, dict[str, type[BaseException] | None](), Calls()
        late = Waiting(wake=world.seconds + delay, ready=lambda: self.first.made >= calls or self.processes[0].done)
        self.processes: list[Process] = [self._process("a", self.first, Waiting()), self._process("b", Calls(), late)]

    def _process(self, name: str, calls: Calls, start: Waiting) -> Process:
        def body(me: Process) -> None:
            def sleep(seconds: float) -> None:
                me.pause("asleep", Waiting(wake=self.world.seconds + seconds))

            calls.visit = lambda _number: me.pause("call")
            self.ends[name] = attempt(self.world, calls, lambda ports: replace(ports, sleep=sleep))

        process = Process(name, body)
        process.waiting = start
        return process

    def _ready(self, waiting: Waiting | None) -> bool:
        return waiting is None or ((waiting.wake or 0.0) <= self.world.seconds and (waiting.ready is None or waiting.ready()))

    def run(self, choose: Callable[[list[Process]], Process]) -> None:
        while alive := [process for process in self.processes if not process.done]:
            ready = [process for process in alive if self._ready(process.waiting)]
            if ready:
                choose(ready).resume()
            else:
                wakes = (process.waiting.wake for process in alive if process.waiting)
                self.world.seconds = min(wake for wake in wakes if wake is not None and wake > self.world.seconds)
        for error in (process.error for process in self.processes):
            if error is not None:
                raise error


def taking_turns(case: Case, schedules: int, seed: int = 0) -> int:
    """Two migrators, their calls in an order that a seeded die decides: one comes to the end, and nobody loses a claim that he keeps alive.

    In some worlds they find the claim of a third, who died at some call of his; in some they wait longer for the source than a claim lasts.
    """
    expected = undisturbed(case).end_state()
    for number in range(schedules):
        dice = Random(f"{seed}/{number}")  # noqa: S311 - a schedule is no secret
        world = bench(case, quiet_seconds=dice.choice([QUIET, 100.0]))
        if dice.random() < 0.5:
            attempt(world, Calls(crash_at=dice.randrange(run_length(case) - 2)))
            world.holders.clear()
        bias, delay = dice.random(), dice.choice([0.0, 0.0, dice.uniform(0, 2 * QUIET)])
        pair = Pair(world, delay)
        pair.run(lambda ready, dice=dice, bias=bias: ready[0] if dice.random() < bias else ready[-1])  # type: ignore[misc]
        _one_has_won(pair, expected)
        finish(pair.world, expected)
    return 3 * schedules


def one_starts_at_any_call_of_the_other(case: Case) -> int:
    expected, made = undisturbed(case).end_state(), run_length(case)
    for at in range(made):
        pair, steps = Pair(bench(case), calls=at), count()
        pair.run(lambda ready, steps=steps: ready[next(steps) % len(ready)])  # type: ignore[misc]
        _one_has_won(pair, expected)
    return 2 * made


def _one_has_won(pair: Pair, expected: dict[str, Item]) -> None:
    assert None in pair.ends.values(), f"progress: two migrators that both live ended with {pair.ends}"
    assert pair.world.end_state() == expected, "same_end"
    assert len(pair.world.holders) <= 1, f"no_live_holder_is_robbed: the claim was held by {pair.world.holders}"

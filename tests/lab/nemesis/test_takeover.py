"""Take-over times: pauses between commits, against what is known to be needed."""

import pytest

from sluice_lab.nemesis import takeover
from sluice_lab.nemesis.history import Invocation
from sluice_lab.nemesis.takeover import NEVER, Pause, Sample, Start, Window

LEASE = 10.0


def samples(*times: float, epoch: str = "A", batch: int = 0) -> list[Sample]:
    return [Sample(at, 1, epoch, number, released=False, produced=0) for number, at in enumerate(times, batch)]


def window(began: float, ended: float) -> Window:
    return Window("it", began, ended)


@pytest.mark.parametrize(
    ("began", "ended", "longest"),
    [
        (2.5, 2.6, 1),
        (2.5, 4, 5),  # the pause began within it
        (3.5, 8.5, 5),
        (8.5, 8.7, 1),
        (0.5, 2, NEVER),  # nothing had been committed before
        (8.5, 20, NEVER),  # nor ever was afterwards
    ],
)
def test_the_longest_pause_that_touches_it(began: float, ended: float, longest: float) -> None:
    """Commits at 1, 2, 3, 8 and 9; the first sample sees no commit, but where things stand."""
    assert takeover.longest(samples(0, 1, 2, 3, 8, 9), window(began, ended)) == longest


def test_what_lies_before_a_kill_does_not_count() -> None:
    assert takeover.longest(samples(0, 1, 2, 3, 8, 9), window(5, 8.5), after=True) == 3


# The very first batch takes 3 s: issued at 30, committed at 33.
INVOCATIONS = [Invocation("A", 1, 30.0, 5.0), Invocation("B", 3, 62.0, 35.0), Invocation("B", 4, 63.0, 35.0)]


def test_the_very_first_batch_may_be_that_of_a_later_epoch() -> None:
    """One that is overdue ends its epoch without a commit, as a member's in a pool that starts."""
    found = [*samples(0), *samples(47, 63, epoch="B", batch=0)]
    assert takeover.start(found, INVOCATIONS, "B") == Start(to_lease=12.0, to_batch=15.0, batch=1.0)
    assert takeover.cold(found, INVOCATIONS) == 1.0
    with pytest.raises(ValueError, match="empty"):
        takeover.cold(samples(0), INVOCATIONS)


def restarted(committed: float, *, killed: bool) -> Pause:
    found = [*samples(0, 33, 37), *samples(47, epoch="B", batch=2), *samples(committed, committed + 1, epoch="B", batch=3)]
    within = window(34, committed + 0.5)
    if killed:
        return takeover.killed_driver(found, INVOCATIONS, within, Start(2.0, 15.0, 99.0), LEASE)
    return takeover.clean_restart(found, INVOCATIONS, within)


@pytest.mark.parametrize(
    ("within", "longer"),
    [
        # 27 s of start, 3 s for a cold batch and 5 s more after the last batch, at 37
        (restarted(72.0, killed=False), restarted(72.1, killed=False)),
        # 10 s of lease, 17 s of a start that found its lease released, 3 s and 5 s as above
        (restarted(72.0, killed=True), restarted(72.1, killed=True)),
        # the lease, five per cent more for the standby's clock, and 5 s; no start
        (takeover.followed(samples(0, 1, 17.0, 18), window(1.5, 17.5), LEASE), takeover.followed(samples(0, 1, 17.1, 18), window(1.5, 17.5), LEASE)),
        # the lease and 5 s: others stand in for it
        (
            takeover.killed_executor(samples(0, 1, 16.5, 17), window(1.5, 16.9), LEASE),
            takeover.killed_executor(samples(0, 1, 16.6, 17), window(1.5, 16.9), LEASE),
        ),
        (
            takeover.scaled(samples(0, 1, 5, 6), window(1.5, 5.5), ordinary=1.0),
            takeover.scaled(samples(0, 1, 5.1, 6), window(1.5, 5.5), ordinary=1.0),
        ),
    ],
    ids=["restart", "driver", "driver with a standby", "executor", "scaled"],
)
def test_a_pause_is_right_up_to_its_bound(within: Pause, longer: Pause) -> None:
    assert (within.right, longer.right) == (True, False)

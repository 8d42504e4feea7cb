"""Take-over times: pauses between commits, against what is known to be needed."""

import pytest

from sluice_lab.nemesis import takeover
from sluice_lab.nemesis.history import Invocation
from sluice_lab.nemesis.takeover import NEVER, Sample, Start, Window

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


def test_a_look_without_a_new_batch_is_no_commit() -> None:
    """It was kept for the lag, or for a new epoch."""
    found = [*samples(0, 1), Sample(1.5, 2, "B", 1, released=False, produced=9), *samples(2, batch=2)]
    assert [sample.at for sample in takeover.commits(found)] == [1, 2]


# The very first batch takes 3 s: issued at 30, committed at 33.
INVOCATIONS = [Invocation("A", 1, 30.0, 5.0), Invocation("B", 3, 62.0, 35.0), Invocation("B", 4, 63.0, 35.0)]


def test_a_start_is_read_from_the_epoch_itself() -> None:
    found = [*samples(0, 1), *samples(47, 63, epoch="B", batch=2)]
    assert takeover.next_epoch(INVOCATIONS, 30.0) == "B"
    assert takeover.start(found, INVOCATIONS, "B") == Start(to_lease=12.0, to_batch=15.0, batch=1.0)


def test_the_very_first_batch_may_be_that_of_a_later_epoch() -> None:
    """One that is overdue ends its epoch without a commit, as a member's in a pool that starts."""
    found = [*samples(0), *samples(47, 63, epoch="B", batch=0)]
    assert takeover.cold(found, INVOCATIONS) == 1.0
    with pytest.raises(ValueError, match="empty"):
        takeover.cold(samples(0), INVOCATIONS)


@pytest.mark.parametrize(("committed", "right"), [(72.0, True), (72.1, False)])
def test_a_clean_restart_takes_the_drivers_start_and_five_seconds(committed: float, *, right: bool) -> None:
    """27 s of start, 3 s for a cold batch and 5 s more after the last batch, at 37."""
    found = [*samples(0, 33, 37), *samples(47, epoch="B", batch=2), *samples(committed, committed + 1, epoch="B", batch=3)]
    pause = takeover.clean_restart(found, INVOCATIONS, window(34, committed + 0.5))
    assert (pause.most, pause.right) == (35.0, right)


@pytest.mark.parametrize(("committed", "right"), [(72.0, True), (72.1, False)])
def test_a_killed_driver_takes_the_lease_too(committed: float, *, right: bool) -> None:
    """10 s of lease, 17 s of a start that found its lease released, 3 s for a cold batch, 5 s more after the last batch, at 37."""
    found = [*samples(0, 33, 37), *samples(47, epoch="B", batch=2), *samples(committed, committed + 1, epoch="B", batch=3)]
    pause = takeover.killed_driver(found, INVOCATIONS, window(34, committed + 0.5), Start(2.0, 15.0, 99.0), LEASE)
    assert (pause.most, pause.right) == (35.0, right)


def test_a_killed_driver_with_a_standby_takes_the_lease_and_five_seconds() -> None:
    """No start, and five per cent more of the lease for the standby's clock."""
    assert takeover.followed(samples(0, 1, 17.0, 18), window(1.5, 17.5), LEASE).right
    assert not takeover.followed(samples(0, 1, 17.1, 18), window(1.5, 17.5), LEASE).right


def test_a_killed_executor_takes_the_lease_and_five_seconds() -> None:
    """It needs no start: others stand in for it."""
    assert takeover.killed_executor(samples(0, 1, 16.5, 17), window(1.5, 16.9), LEASE).right
    assert not takeover.killed_executor(samples(0, 1, 16.6, 17), window(1.5, 16.9), LEASE).right


def test_scaling_is_no_pause() -> None:
    assert takeover.scaled(samples(0, 1, 5, 6), window(1.5, 5.5), ordinary=1.0).right
    assert not takeover.scaled(samples(0, 1, 5.1, 6), window(1.5, 5.5), ordinary=1.0).right

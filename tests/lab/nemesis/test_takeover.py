"""Take-over times: pauses between commits, against what is known to be needed."""

import pytest

from sluice_lab.nemesis import takeover
from sluice_lab.nemesis.takeover import NEVER, Happening, Look, Start
from sluice_lab.nemesis.witness import Issue

LEASE = 10.0


def looks(*times: float, epoch: str = "A", batch: int = 0) -> list[Look]:
    """A batch committed at each of these times."""
    return [Look(at, 1, epoch, number, released=False, produced=0) for number, at in enumerate(times, batch)]


def happening(began: float, ended: float) -> Happening:
    """Between these times."""
    return Happening("it", began, ended)


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
    """Commits at 1, 2, 3, 8 and 9; the first look sees no commit, but where things stand."""
    assert takeover.longest(looks(0, 1, 2, 3, 8, 9), happening(began, ended)) == longest


def test_what_lies_before_a_kill_does_not_count() -> None:
    """The batch that was under way had begun before."""
    assert takeover.longest(looks(0, 1, 2, 3, 8, 9), happening(5, 8.5), after=True) == 3


def test_a_look_without_a_new_batch_is_no_commit() -> None:
    """It was kept for the lag, or for a new epoch."""
    found = [*looks(0, 1), Look(1.5, 2, "B", 1, released=False, produced=9), *looks(2, batch=2)]
    assert [look.at for look in takeover.commits(found)] == [1, 2]


# The very first batch takes 3 s: issued at 30, committed at 33.
ISSUES = [Issue("A", 1, 30.0, 5.0), Issue("B", 3, 62.0, 35.0), Issue("B", 4, 63.0, 35.0)]


def test_a_start_is_read_from_the_epoch_itself() -> None:
    """From its container to the lease, and on to its first batch."""
    found = [*looks(0, 1), *looks(47, 63, epoch="B", batch=2)]
    assert takeover.next_epoch(ISSUES, 30.0) == "B"
    assert takeover.start(found, ISSUES, "B") == Start(to_lease=12.0, to_batch=15.0, batch=1.0)


@pytest.mark.parametrize(("committed", "right"), [(72.0, True), (72.1, False)])
def test_a_clean_restart_takes_the_drivers_start_and_five_seconds(committed: float, *, right: bool) -> None:
    """27 s of start, 3 s for a cold batch and 5 s more after the last batch, at 37."""
    found = [*looks(0, 33, 37), *looks(47, epoch="B", batch=2), *looks(committed, committed + 1, epoch="B", batch=3)]
    pause = takeover.clean_restart(found, ISSUES, happening(34, committed + 0.5))
    assert (pause.most, pause.right) == (35.0, right)


@pytest.mark.parametrize(("committed", "right"), [(72.0, True), (72.1, False)])
def test_a_killed_driver_takes_the_lease_too(committed: float, *, right: bool) -> None:
    """10 s of lease, 17 s of a start that found its lease released, 3 s for a cold batch, 5 s more after the last batch, at 37."""
    found = [*looks(0, 33, 37), *looks(47, epoch="B", batch=2), *looks(committed, committed + 1, epoch="B", batch=3)]
    pause = takeover.killed_driver(found, ISSUES, happening(34, committed + 0.5), Start(2.0, 15.0, 99.0), LEASE)
    assert (pause.most, pause.right) == (35.0, right)


def test_a_killed_executor_takes_the_lease_and_five_seconds() -> None:
    """It needs no start: others stand in for it."""
    assert takeover.killed_executor(looks(0, 1, 16.5, 17), happening(1.5, 16.9), LEASE).right
    assert not takeover.killed_executor(looks(0, 1, 16.6, 17), happening(1.5, 16.9), LEASE).right


def test_scaling_is_no_pause() -> None:
    """A batch may take a little longer, not a lease."""
    assert takeover.scaled(looks(0, 1, 5, 6), happening(1.5, 5.5), ordinary=1.0).right
    assert not takeover.scaled(looks(0, 1, 5.1, 6), happening(1.5, 5.5), ordinary=1.0).right

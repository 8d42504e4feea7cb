"""A heart beats every third of the lease, and ends an epoch whose beats are not accepted."""

from __future__ import annotations

from supervising import GONE, NO, YES, Beating


def test_a_heart_beats_every_third_of_the_lease() -> None:
    heart = Beating(YES, limit=4)
    heart.run()
    assert heart.waits == [10.0] * 4
    assert heart.alive


def test_after_a_failure_a_heart_tries_sooner() -> None:
    """It has until two thirds of the lease are over."""
    heart = Beating(YES, GONE, GONE, YES, limit=4)
    heart.run()
    assert heart.waits == [10.0, 1.25, 1.25, 10.0]


def test_an_epoch_ends_when_no_beat_sent_in_the_last_two_thirds_was_accepted() -> None:
    heart = Beating(GONE)
    heart.time[0] = 20.0
    assert heart.alive
    heart.time[0] = 20.1
    assert not heart.alive


def test_what_counts_is_when_a_beat_was_sent_not_when_it_was_answered() -> None:
    """The next epoch counts from the moment it saw the counter move."""
    heart = Beating(YES, seconds=15.0)
    heart.once()
    assert (heart.accepted, heart.alive) == (0.0, True)
    heart.time[0] = 20.1
    assert not heart.alive


def test_a_refused_beat_ends_the_epoch_at_once_and_no_other_is_sent() -> None:
    heart = Beating(NO)
    heart.run()
    assert heart.refused
    assert not heart.alive
    assert len(heart.promises) == 1


def test_a_heart_that_stood_still_for_too_long_does_not_revive_its_epoch() -> None:
    """Its driver has ended itself by then, even if the table still accepts the beat."""
    heart = Beating(YES)
    heart.time[0] = 20.1
    heart.once()
    assert heart.accepted == 20.1
    assert not heart.alive


def test_the_send_time_of_each_accepted_beat_is_told() -> None:
    heart, told = Beating(YES, GONE, YES, NO), list[float]()
    heart.on_beat = told.append
    heart.run()
    assert told == [0.0, 11.25]


def test_a_longer_promise_is_kept_until_it_was_waited_out() -> None:
    heart = Beating(YES, keep=25.0, limit=4)
    heart.run()
    assert heart.promises == [None, None, None, 30_000]

"""The log of redrives: a letter goes through `process` again once (docs/dead-letters.md, "Redrive")."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.redrives import BEGUN, ENDED, GIVEN_UP, PROCESSED, Redrive, RedriveLog, log_of

ONE = Redrive(1, ("a/1-0.json", "a/2-0.json"), "me")
DONE, GIVEN = replace(ONE, ended=PROCESSED), replace(ONE, ended=GIVEN_UP)
REJECTED = replace(DONE, rejected=("a/2-0.json",))


def files(*redrives: Redrive) -> dict[str, str]:
    begun = {one.name + BEGUN: one.begun_json() for one in redrives}
    return begun | {one.name + ENDED: one.ended_json() for one in redrives if one.ended}


@pytest.mark.parametrize("redrives", [(), (ONE,), (DONE, replace(ONE, number=2)), (GIVEN, replace(REJECTED, number=2))])
def test_a_log_is_read_as_it_was_written(redrives: tuple[Redrive, ...]) -> None:
    assert log_of(reversed(files(*redrives).items())) == RedriveLog(redrives)


def test_the_next_redrive_has_the_next_number() -> None:
    assert RedriveLog((DONE,)).next(["a/3-0.json"], "you") == Redrive(2, ("a/3-0.json",), "you")


def test_a_letter_is_not_redriven_twice() -> None:
    with pytest.raises(Refused, match=r"^a/2-0\.json: was redriven as batch 1, begun by me"):
        RedriveLog((DONE,)).next(["a/3-0.json", "a/2-0.json"], "you")


@pytest.mark.parametrize("former", [GIVEN, REJECTED], ids=["given up", "rejected again"])
def test_a_letter_that_was_not_dealt_with_may_be_redriven(former: Redrive) -> None:
    assert RedriveLog((former,)).of("a/2-0.json") is None
    assert RedriveLog((former,)).next(["a/2-0.json"], "you").number == 2


def test_nothing_is_begun_while_a_redrive_is_open() -> None:
    """A sink sees numbers in order: some forget all but the last."""
    with pytest.raises(Refused, match=r"redrive 1 was begun by me and has not ended.*--resume.*--give-up"):
        RedriveLog((ONE,)).next(["a/3-0.json"], "you")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"redrives/000002.begun": replace(ONE, number=2).begun_json()}, "there is no redrives/000001.begun before it"),
        ({"redrives/000001.begun": "{}"}, "redrives/000001.begun: is not a file of a redrive"),
        ({"redrives/000001.begun": ONE.begun_json().replace("/1", "/9")}, "format 'sluice-redrive/9' is not known to this version, which knows"),
    ],
    ids=["a gap", "no redrive", "a later version"],
)
def test_a_log_that_is_not_understood_is_refused(broken: dict[str, str], said: str) -> None:
    """Guessing would redrive a letter twice."""
    with pytest.raises(Refused, match=said):
        log_of(broken.items())

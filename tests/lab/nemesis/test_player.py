"""The player of a schedule, in virtual time."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sluice_lab.nemesis.player import Player
from sluice_lab.nemesis.schedule import Deed, FaultKind


@dataclass
class Stage:
    """A clock that jumps, and a list of what was done when; a deed takes a second."""

    time: float = 1000.0
    log: list[tuple[float, str]] = field(default_factory=list)
    fails: FaultKind | None = None

    def wait(self, moment: float) -> None:
        """Until then, or not at all if that is past."""
        self.time = max(self.time, moment)

    def do(self, deed: Deed) -> tuple[str, Callable[[], None] | None]:
        """Notes it; those that last can be ended."""
        if deed.kind is self.fails:
            raise RuntimeError(deed.title)
        self.log.append((self.time - 1000, deed.title))
        self.time += 1
        undo = (lambda: self.log.append((self.time - 1000, f"end of {deed.title}"))) if deed.seconds else None
        return "victim", undo

    def player(self) -> Player:
        """One that plays here."""
        return Player(self.do, lambda: self.time, self.wait)


DEEDS = (Deed(5, FaultKind.SLOW, 10), Deed(7, FaultKind.ZOMBIE, 20), Deed(16, FaultKind.SPLIT), Deed(16.5, FaultKind.MERGE))


def test_deeds_are_done_and_undone_at_their_times() -> None:
    """What lasts does so from when it was done; a deed that comes late is done at once."""
    stage = Stage()
    stage.player().play(DEEDS)
    assert stage.log == [(5, "slow work"), (7, "zombie"), (16, "end of slow work"), (16, "split"), (17, "merge"), (28, "end of zombie")]


def test_what_was_done_is_kept_with_its_victim() -> None:
    """For the picture."""
    stage = Stage()
    player = stage.player()
    player.play(DEEDS)
    assert [(done.began - 1000, done.ended - 1000, done.title, done.note) for done in player.done][:2] == [
        (5, 15, "slow work", "victim"),
        (7, 27, "zombie", "victim"),
    ]


def test_nothing_lasts_when_a_deed_fails() -> None:
    """Rules on the node and the weather of the emulators would outlive the run."""
    stage = Stage(fails=FaultKind.MERGE)
    with pytest.raises(RuntimeError, match="merge"):
        stage.player().play(DEEDS)
    assert [what for _, what in stage.log] == ["slow work", "zombie", "end of slow work", "split", "end of zombie"]

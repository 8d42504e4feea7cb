"""The runner of a schedule, in virtual time."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sluice_lab.nemesis.runner import Runner
from sluice_lab.nemesis.schedule import Fault, FaultKind


@dataclass
class Target:
    """A clock that jumps, and a list of what was injected when; an injection takes a second."""

    time: float = 1000.0
    log: list[tuple[float, str]] = field(default_factory=list)
    fails: FaultKind | None = None

    def wait(self, moment: float) -> None:
        self.time = max(self.time, moment)

    def inject(self, fault: Fault) -> tuple[str, Callable[[], None] | None]:
        if fault.kind is self.fails:
            raise RuntimeError(fault.title)
        self.log.append((self.time - 1000, fault.title))
        self.time += 1
        undo = (lambda: self.log.append((self.time - 1000, f"end of {fault.title}"))) if fault.seconds else None
        return "victim", undo

    def runner(self) -> Runner:
        return Runner(self.inject, lambda: self.time, self.wait)


FAULTS = (Fault(5, FaultKind.SLOW, 10), Fault(7, FaultKind.ZOMBIE, 20), Fault(16, FaultKind.SPLIT), Fault(16.5, FaultKind.MERGE))


def test_faults_are_injected_and_undone_at_their_times() -> None:
    target = Target()
    target.runner().run(FAULTS)
    assert target.log == [(5, "slow work"), (7, "zombie"), (16, "end of slow work"), (16, "split"), (17, "merge"), (28, "end of zombie")]


def test_nothing_lasts_when_a_deed_fails() -> None:
    """Rules on the node and the behaviour of the proxies would outlive the run."""
    target = Target(fails=FaultKind.MERGE)
    with pytest.raises(RuntimeError, match="merge"):
        target.runner().run(FAULTS)
    assert [what for _, what in target.log] == ["slow work", "zombie", "end of slow work", "split", "end of zombie"]

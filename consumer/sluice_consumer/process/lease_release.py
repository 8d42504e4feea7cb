"""The lease of a run in somebody else's session, once the run has ended (docs/protocol.md, "An epoch", Release). Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class LeaseRelease:
    """Releases the lease of a run that has ended, as soon as it may be released.

    Attributes:
        quiet: whether no task of the run can still be working. Before there is an engine, none has begun.
        observe: notes what became of the run's jobs. Those that were cancelled at its end count, too.
        due: whether the promise of a forced take has run out.
        give: releases the lease, if it still is the run's. None: nothing is left to release.
    """

    quiet: Callable[[], bool] = lambda: True
    observe: Callable[[], object] = lambda: None
    due: Callable[[], bool] = lambda: True
    give: Callable[[], object] | None = None

    def release(self) -> bool:
        """Releases the lease if it may be, and returns whether nothing is left to release.

        Call it again until it returns true: a run that failed may be released a lease duration after its last task failed.

        Raises:
            SluiceError: the table does not answer. The lease runs out.
        """
        if self.give is not None and self.quiet() and self.due():
            give, self.give = self.give, None
            give()
        return self.give is None

    def keep(self) -> None:
        """The lease is not released: it is another run's, or this one has given it up."""
        self.give = None

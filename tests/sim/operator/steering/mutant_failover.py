"""Mutants of a standby for failover, `spec.rollout.standby: Always`: what it does behind a driver that works, and when the next one is made."""

from __future__ import annotations

from mutants import Patch
from steering.mutant import do, mutant

from sluice_operator.plan import driver_succession, failover, standby

ALWAYS = do("rolls", rollout={"strategy": "Standby", "standby": "Always", "readySeconds": 30}, standby="ok")
STANDS, LOST = do("wait", seconds=20), do("lose_node", node="b", how="dead", seconds=60)  # the driver is on b, and its standby on a


@mutant("a driver that works ends for its standby without a rollout", "spec_reached", ALWAYS, STANDS, run=20)
def always_followed(patch: Patch) -> None:
    """One driver after the other, for ever."""
    patch.setattr(failover, "follow_or_stay", driver_succession.hand_over)


@mutant("the next standby is made beside a driver that hangs on a lost node", "two_drivers_at_most", ALWAYS, STANDS, LOST, run=20)
def a_third(patch: Patch) -> None:
    """It was followed, and nobody knows whether it still runs."""
    patch.setattr(failover, "awaited", lambda _view: None)
    patch.setattr(standby, "others", lambda _view: ())

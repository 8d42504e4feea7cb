"""Which warnings are said, and which are reported for how long."""

from __future__ import annotations

from sluice_consumer.driver_report import DriverWarning, WarningReason
from sluice_consumer.metrics.warnings import KEPT, Warnings

LOST, NEAR, ISOLATING = WarningReason.DATA_LOSS_SUSPECTED, WarningReason.RETENTION_NEAR, WarningReason.ISOLATING


class Bench:
    def __init__(self) -> None:
        self.said = list[DriverWarning]()
        self.warnings = Warnings(self.said.append)

    @property
    def reported(self) -> list[str]:
        return list(map(str, self.warnings.reported))


def test_the_last_few_that_are_kept_are_reported() -> None:
    bench = Bench()
    for n in range(KEPT + 2):
        bench.warnings.keep(LOST, f"lost {n}")
    assert bench.reported == [f"DataLossSuspected: lost {n}" for n in range(2, KEPT + 2)]
    assert len(bench.said) == KEPT + 2


def test_one_that_lasts_is_said_when_it_begins_and_reported_until_it_ends() -> None:
    bench = Bench()
    bench.warnings.keep(LOST, "t")
    for text in ("s", "still s"):
        bench.warnings.lasts(NEAR, text)
    assert bench.reported == ["DataLossSuspected: t", "RetentionNear: still s"]
    assert bench.said == [DriverWarning(LOST, "t"), DriverWarning(NEAR, "s")]
    bench.warnings.lasts(NEAR, None)
    assert bench.reported == ["DataLossSuspected: t"]
    bench.warnings.lasts(NEAR, "s again")
    assert bench.said[2:] == [DriverWarning(NEAR, "s again")]


def test_one_that_changes_is_said_each_time() -> None:
    bench = Bench()
    for text in ("8 records", "4 records"):
        bench.warnings.lasts(ISOLATING, text, again=True)
    assert bench.said == [DriverWarning(ISOLATING, "8 records"), DriverWarning(ISOLATING, "4 records")]
    assert bench.reported == ["Isolating: 4 records"]


def test_losses_are_remembered_behind_other_warnings() -> None:
    """They are in the exit message."""
    bench = Bench()
    for n in range(3):
        bench.warnings.keep(LOST, f"lost {n}")
    for _ in range(KEPT):
        bench.warnings.keep(WarningReason.POISON_EXCLUDED, "left out")
    assert list(bench.warnings.losses) == ["lost 1", "lost 2"]

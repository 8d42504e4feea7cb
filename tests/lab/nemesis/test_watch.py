"""The watch of the checkpoint table: what is read from a row, and which looks are kept."""

from typing import Any

from sluice_lab.nemesis import watch
from sluice_lab.nemesis.takeover import Look
from sluice_lab.nemesis.watch import TableSampler

ROW: dict[str, Any] = {"generation": {"N": "3"}, "committed": {"N": "41"}, "holder": {"S": "nemesis-driver-2/7"}}


def test_an_epoch_is_the_pod_that_holds_the_lease() -> None:
    """Until another takes it; a release is told apart."""
    assert watch.read(ROW, 5.0, 9) == Look(5.0, 3, "nemesis-driver-2", 41, released=False, produced=9)
    assert watch.read(ROW | {"released": {"BOOL": True}}, 5.0, 9).released
    assert watch.read({"generation": {"N": "0"}, "committed": {"N": "0"}}, 5.0, 9).epoch == ""


def test_looks_are_kept_when_something_moved_or_a_second_went_by() -> None:
    """A batch, an epoch, a release at once; what was put, now and then."""
    found = TableSampler(None, "table", lambda: 0)
    same = {"released": False}
    looks = [
        Look(0.0, 1, "A", 1, **same, produced=0),
        Look(0.2, 1, "A", 1, **same, produced=5),
        Look(0.4, 1, "A", 2, **same, produced=6),
        Look(0.6, 1, "A", 2, released=True, produced=7),
        Look(0.8, 2, "B", 2, **same, produced=8),
        Look(1.9, 2, "B", 2, **same, produced=9),
    ]
    for look in looks:
        found.add(look)
    assert found.looks == [looks[0], *looks[2:]]
    assert (found.batch, found.epoch) == (2, "B")

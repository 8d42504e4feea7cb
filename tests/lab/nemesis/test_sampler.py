"""The sampler of the checkpoint table: what is read from a row, and which samples are kept."""

from typing import Any

from sluice_lab.nemesis import sampler
from sluice_lab.nemesis.sampler import TableSampler
from sluice_lab.nemesis.takeover import Sample

ROW: dict[str, Any] = {"generation": {"N": "3"}, "committed": {"N": "41"}, "holder": {"S": "nemesis-driver-2/7"}}


def test_an_epoch_is_the_pod_that_holds_the_lease() -> None:
    assert sampler.of_row(ROW, 5.0, 9) == Sample(5.0, 3, "nemesis-driver-2", 41, released=False, produced=9)
    assert sampler.of_row(ROW | {"released": {"BOOL": True}}, 5.0, 9).released
    assert sampler.of_row({"generation": {"N": "0"}, "committed": {"N": "0"}}, 5.0, 9).epoch == ""


def test_looks_are_kept_when_something_moved_or_a_second_went_by() -> None:
    found = TableSampler(None, "table", lambda: 0)
    same = {"released": False}
    samples = [
        Sample(0.0, 1, "A", 1, **same, produced=0),
        Sample(0.2, 1, "A", 1, **same, produced=5),
        Sample(0.4, 1, "A", 2, **same, produced=6),
        Sample(0.6, 1, "A", 2, released=True, produced=7),
        Sample(0.8, 2, "B", 2, **same, produced=8),
        Sample(1.9, 2, "B", 2, **same, produced=9),
    ]
    for sample in samples:
        found.add(sample)
    assert found.samples == [samples[0], *samples[2:]]
    assert (found.batch, found.epoch) == (2, "B")

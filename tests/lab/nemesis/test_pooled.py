"""The nemesis of a pool: what happens to a member, and what is an epoch of one."""

import pytest

from sluice_lab.nemesis import history, manifest, members, pooled, sink
from sluice_lab.nemesis.history import History, ShardRead
from sluice_lab.nemesis.pool_hands import FILES, PoolHands
from sluice_lab.nemesis.schedule import POOL_MEMBERS, Fault, FaultKind
from sluice_lab.nemesis.takeover import Sample
from sluice_operator.resource import fields

ADDRESSES = manifest.Addresses("http://k:1", "http://d:2", "/sink")


def test_a_neighbour_hangs_longer_than_its_batch_may_take() -> None:
    """Otherwise nothing would end it but the end of the fault."""
    spec = fields.parse(pooled.member(ADDRESSES, pooled.TROUBLED)["spec"])
    assert spec.batch.max_seconds == pooled.MAX_SECONDS < POOL_MEMBERS[FaultKind.HANG] - 20


def test_every_fault_of_members_has_hands_and_others_have_none() -> None:
    hands = PoolHands(lambda *_: "", lambda _: "", "/sink", {"pool": None})
    assert {kind for kind in FaultKind if hands.inject(Fault(0, kind))} == set(POOL_MEMBERS)
    assert FILES == {FaultKind.HANG: sink.HANG, FaultKind.FAIL_NEIGHBOUR: sink.DOWN}


def sample(at: float, pod: str, generation: int, *, released: bool = False) -> Sample:
    return Sample(at, generation, pod, 1, released, 0)


def read(batch: int, first: float) -> ShardRead:
    return ShardRead("P", batch, "P-exec-1", "0.0", 0, "shard", first, first + 1, ())


@pytest.mark.parametrize(("released", "violations"), [(True, 0), (False, 1)])
def test_a_run_that_did_not_release_its_lease_is_silent_before_the_next_one_in_the_same_pod(released: bool, violations: int) -> None:  # noqa: FBT001 - a parameter
    """Though the batch is another one: by the pod alone it would be one epoch, and need no gap."""
    reads = History((), (read(1, 12), read(2, 20)))
    named, sampled = members.by_generation(reads, [sample(10, "P", 3), sample(14, "P", 3, released=released), sample(20, "P", 4)])
    epochs = {one.epoch for one in sampled if one.released}
    assert len(history.violations(named.reads, epochs, 20)) == violations
    assert history.violations(reads.reads, set(), 20) == []

"""The nemesis of a pool: its manifests, the hands on it, and the epochs of its members."""

from typing import Any

import pytest
from click.testing import CliRunner

from sluice_lab.nemesis import __main__ as program
from sluice_lab.nemesis import history, injector, manifest, members, pooled, sink
from sluice_lab.nemesis.history import History, Invocation, ShardRead
from sluice_lab.nemesis.injector import Injector
from sluice_lab.nemesis.pool_hands import FILES, PoolHands
from sluice_lab.nemesis.schedule import POOL_MEMBERS, Fault, FaultKind
from sluice_lab.nemesis.takeover import Sample
from sluice_lab.scenario import observed
from sluice_operator.resource import fields, pools

ADDRESSES = manifest.Addresses("http://k:1", "http://d:2", "/sink")
Json = dict[str, Any]


def merged(spec: Json, patch: Json) -> Json:
    """As the API server merges: None takes a field away."""
    return {key: value for key, value in (spec | patch).items() if value is not None}


def test_the_operator_takes_the_pool_and_its_members() -> None:
    first, *rest = pooled.documents(ADDRESSES)
    pools.parse(first["spec"])
    specs = [fields.parse(one["spec"]) for one in rest]
    assert [one["metadata"]["name"] for one in rest] == [manifest.NAME, *pooled.NEIGHBOURS]
    assert len(rest) >= 3
    assert {spec.pool for spec in specs} == {first["metadata"]["name"]}
    assert {spec.stream.name for spec in specs} == {manifest.STREAM}
    assert len({spec.pipeline.args["home"] for spec in specs}) == len(specs)
    assert {spec.lease_duration_seconds for spec in specs} == {pooled.LEASE_SECONDS}


def test_a_member_that_leaves_is_a_consumer_alone_and_the_same_member_when_it_returns() -> None:
    member = pooled.member(ADDRESSES, manifest.NAME)["spec"]
    alone = merged(member, pooled.leave(ADDRESSES))
    assert fields.parse(alone).pool is None
    assert alone["driver"] == manifest.consumer(ADDRESSES)["spec"]["driver"]
    assert merged(alone, pooled.enter()) == member


def test_a_neighbour_hangs_longer_than_its_batch_may_take() -> None:
    """Otherwise nothing would end it but the end of the fault."""
    spec = fields.parse(pooled.member(ADDRESSES, pooled.TROUBLED)["spec"])
    assert spec.batch.max_seconds == pooled.MAX_SECONDS < POOL_MEMBERS[FaultKind.HANG] - 20


class Told:
    def __init__(self) -> None:
        self.said: list[str] = []

    def kubectl(self, *arguments: str) -> str:
        self.said.append(" ".join(arguments))
        return ""

    def on_node(self, line: str) -> str:
        self.said.append(line)
        return ""

    def hands(self) -> PoolHands:
        return PoolHands(self.kubectl, self.on_node, "/sink", {"pool": None})


@pytest.mark.parametrize(
    ("kind", "victim", "done", "undone"),
    [
        (FaultKind.LEAVE, manifest.NAME, '{"pool": null}', '"pool": "nemesis"'),
        (FaultKind.SUSPEND, pooled.TROUBLED, '{"suspend": true}', '{"suspend": false}'),
        (FaultKind.HANG, pooled.TROUBLED, "touch /sink/nemesis-troubled/hang", "rm -f /sink/nemesis-troubled/hang"),
        (FaultKind.FAIL_NEIGHBOUR, pooled.TROUBLED, "touch /sink/nemesis-troubled/down", "rm -f /sink/nemesis-troubled/down"),
    ],
)
def test_what_happens_to_a_member_is_undone(kind: FaultKind, victim: str, done: str, undone: str) -> None:
    told = Told()
    hit = told.hands().inject(Fault(0, kind, 1))
    assert hit is not None
    assert hit[0] == victim
    hit[1]()
    assert [words in said for words, said in zip((done, undone), told.said, strict=True)] == [True, True]


def test_every_fault_of_members_has_hands_and_others_have_none() -> None:
    assert {kind for kind in FaultKind if Told().hands().inject(Fault(0, kind))} == set(POOL_MEMBERS)
    assert FILES == {FaultKind.HANG: sink.HANG, FaultKind.FAIL_NEIGHBOUR: sink.DOWN}


def test_a_pool_is_scaled_and_restarted_in_place_of_its_members() -> None:
    """Each restart has another value, so none is taken for an earlier one."""
    told = Told()
    hands = told.hands()
    hands.restart()
    hands.restart()
    hands.scale(4)
    assert len(set(told.said)) == 3
    assert told.said[-1] == "scale kcp/nemesis --replicas=4"
    assert all("kcp/nemesis" in said for said in told.said)


class Keeping(Injector):
    sent: list[str]

    def _signal(self, line: str, signal: str) -> str:
        self.sent.append(f"{signal} {line}")
        return line.partition("=")[2]


@pytest.mark.parametrize(
    ("kind", "line"), [(FaultKind.FREEZE_DRIVER, "SLUICE_POD_NAME=small-pool-1"), (FaultKind.FREEZE_EXECUTOR, "SPARK_EXECUTOR_POD_NAME=small-exec-1")]
)
def test_a_pod_of_a_pool_is_frozen_and_continues(kind: FaultKind, line: str) -> None:
    seen = observed.ConsumerSnapshot(driver_pod="small-pool-1", running=("small-exec-1",))
    hands: Any = None
    found = Keeping(hands, "n", hands, {}, lambda: seen, "/sink")
    found.sent = []
    _, undo = found.inject(Fault(0, kind, 45))
    assert undo is not None
    undo()
    assert found.sent == [f"STOP {line}", f"CONT {line}"]
    assert {FaultKind.FREEZE_EXECUTOR, FaultKind.DELETE_EXECUTOR} <= injector.OF_EXECUTORS


def sample(at: float, pod: str, generation: int, *, released: bool = False) -> Sample:
    return Sample(at, generation, pod, 1, released, 0)


def read(batch: int, first: float, task: str = "0.0") -> ShardRead:
    return ShardRead("P", batch, "P-exec-1", task, 0, "shard", first, first + 1, ())


def test_two_runs_of_a_member_in_one_pod_are_two_epochs() -> None:
    """By the generation of the lease at the time of the read; what comes before the first sample counts to that."""
    samples = [sample(10, "P", 3), sample(20, "P", 4), sample(21, "P", 4), sample(40, "Q", 5)]
    found = History((Invocation("P", 1, 9.0, 0.0), Invocation("P", 2, 22.0, 0.0), Invocation("Q", 3, 44.0, 41.0)), (read(1, 12), read(2, 20)))
    named, sampled = members.by_generation(found, samples)
    assert [one.epoch for one in named.invocations] == ["P#3", "P#4", "Q#5"]
    assert [one.epoch for one in named.reads] == ["P#3", "P#4"]
    assert [one.epoch for one in sampled] == ["P#3", "P#4", "P#4", "Q#5"]
    assert members.unchanged(found, samples) == (found, samples)


@pytest.mark.parametrize(("released", "violations"), [(True, 0), (False, 1)])
def test_a_run_that_did_not_release_its_lease_is_silent_before_the_next_one_in_the_same_pod(released: bool, violations: int) -> None:  # noqa: FBT001 - a parameter
    """Though the batch is another one: by the pod alone it would be one epoch, and need no gap."""
    reads = History((), (read(1, 12), read(2, 21)))
    named, sampled = members.by_generation(reads, [sample(10, "P", 3), sample(14, "P", 3, released=released), sample(20, "P", 4)])
    epochs = {one.epoch for one in sampled if one.released}
    assert len(history.violations(named.reads, epochs, 20)) == violations
    assert history.violations(reads.reads, set(), 20) == []


@pytest.mark.parametrize(
    ("other", "why"),
    [("--standby", "a pool has no standby"), ("--poison", "one stream"), ("--resets", "account by passes"), ("--sink=delta", "store files")],
)
def test_a_pool_goes_with_none_of_these(other: str, why: str) -> None:
    refused = CliRunner().invoke(program.main, ["--plan", "--pool", other])
    assert refused.exit_code == 2
    assert why in refused.output
    assert "Leave one of them out." in refused.output
    planned = CliRunner().invoke(program.main, ["--plan", "--pool", "--seed=7", "--seconds=420"])
    assert planned.exit_code == 0
    assert "hang neighbour, for 60 s" in planned.output


def test_the_driver_of_a_member_is_the_pools_pod() -> None:
    for driver, pod in (({"pod": "n-driver-3", "host": "small-pool-1"}, "small-pool-1"), ({"pod": "n-driver-4"}, "n-driver-4"), ({}, "")):
        assert observed.of_resource({"status": {"driver": driver}}, [], []).driver_pod == pod

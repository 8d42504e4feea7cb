"""A driver begins a version of its spec before its first batch (docs/protocol.md, "Versions")."""

from __future__ import annotations

import logging

import pytest
from consuming import S0, Bench, Engine

from sluice_checkpoints.errors import Fenced, ServiceUnavailable
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol import versions as writes
from sluice_checkpoints.protocol.table import Put
from sluice_checkpoints.protocol.versions import SpecName, Version
from sluice_consumer.batches import versions
from sluice_consumer.batches.consumer import Consumer

END = Position.after("9")


def places(bench: Bench, version: Version) -> dict[str, Position]:
    return {shard: kept.position for shard, kept in (writes.kept(bench.store, version) or {}).items()}


def committed(bench: Bench, consumer: Consumer) -> None:
    bench.stream.put_in(S0, b"x")
    plan = consumer.plan()
    assert plan is not None
    consumer.run(plan, Engine(bench.bind(consumer, S0, END)))


def test_a_version_goes_on_in_the_next_epoch() -> None:
    """A restart is no version; another spec is one, and so is the former one that comes back."""
    bench = Bench()
    first = bench.begin()
    (begun,) = versions.begin(first, SpecName("a"), 5)
    assert (begun.first, begun.at) == (1, 5)
    committed(bench, first)
    again = bench.begin()
    assert versions.begin(again, SpecName("a"), 6) == (begun,)
    for spec in ("b", "a"):
        later = versions.begin(bench.begin(), SpecName(spec), 7)[-1]
        assert later.first == 2
        assert places(bench, later) == {S0: END}
    assert [version.spec.hash for version in writes.known(bench.store)] == ["a", "b", "a"]


@pytest.mark.parametrize("spec", ["a", "b"])
def test_a_start_reads_the_list_of_versions_once_and_has_it_as_it_is_written(spec: str) -> None:
    bench = Bench()
    versions.begin(bench.begin(), SpecName("a"), 5)
    consumer, read = bench.begin(), list[object]()
    bench.table.hook = lambda when, _operation, argument: read.append(argument) if when == "before" and argument == writes.VERSIONS else None
    named = versions.begin(consumer, SpecName(spec), 6)
    assert read == [writes.VERSIONS]
    assert named == writes.known(bench.store)


def test_after_a_reset_the_same_spec_begins_another_version() -> None:
    bench = Bench()
    first = bench.begin()
    versions.begin(first, SpecName("a"), 5)
    committed(bench, first)
    bench.table.rows["consumer"] |= {"lastReset": "one", "resetAfter": 1}
    named = versions.begin(bench.begin(), SpecName("a"), 6)
    assert [(one.first, one.reset, one.spec.hash) for one in named] == [(1, None, "a"), (2, "one", "a")]
    assert versions.begin(bench.begin(), SpecName("a"), 7) == named


def test_positions_of_an_open_batch_are_those_in_front_of_it() -> None:
    bench = Bench()
    former = bench.begin()
    committed(bench, former)
    plan = former.plan()
    if plan is None:
        bench.stream.put_in(S0, b"x")
        plan = former.plan()
    assert plan is not None
    bench.bind(former, S0, Position.after("12"))(plan)
    version = versions.begin(bench.begin(), SpecName("b"), 5)[-1]
    assert places(bench, version) == {S0: END}


def test_a_table_that_is_too_busy_names_the_version_without_positions(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    consumer = bench.begin()

    def busy(when: str, _operation: str, argument: object) -> None:
        if when == "before" and isinstance(argument, Put) and argument.key.startswith("version/"):
            raise ServiceUnavailable("throttled")

    bench.table.hook = busy
    with caplog.at_level(logging.WARNING):
        (version,) = versions.begin(consumer, SpecName("a"), 5)
    assert writes.known(bench.store) == (version,)
    assert writes.kept(bench.store, version) is None
    assert "no reset goes back to it: throttled" in caplog.text


def test_an_epoch_that_lost_its_lease_begins_no_version() -> None:
    bench = Bench()
    former = bench.begin()
    versions.begin(bench.begin(), SpecName("b"), 5)
    with pytest.raises(Fenced):
        versions.begin(former, SpecName("a"), 6)
    assert [version.spec.hash for version in writes.known(bench.store)] == ["b"]

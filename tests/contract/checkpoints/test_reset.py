"""A reset on a table in memory and on one in DynamoDB (Local): the same rows, and the same conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from resetting.bench import FOUR, HOUR, START, Bench

from sluice_checkpoints.errors import Fenced, ProtocolViolation
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.positions.model import Situation
from sluice_checkpoints.positions.plan import plan
from sluice_checkpoints.positions.resetter import Resetter
from sluice_checkpoints.positions.target import ResetRequest, ResetTarget
from sluice_checkpoints.protocol import reset_writes
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, take_over
from sluice_checkpoints.protocol.reset_writes import Move, StoredReset
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.protocol.table import NEW_ROW, Put, Table

FREE = {"token", "generation", "counter", "updatedAt", "released", "holder", "leaseMillis"}


def filled(table: Table, bench: Bench) -> CheckpointStore:
    for item in bench.table.rows.values():
        assert table.write(Put(item, (NEW_ROW,))).applied
    return CheckpointStore(table)


@pytest.mark.parametrize("to", ["trimHorizon", "latest", str(ResetTarget(millis=START + 6 * HOUR))])
def test_a_reset_leaves_the_same_rows_everywhere(table: Table, to: str) -> None:
    bench = Bench()
    bench.row(replace(bench.of(FOUR), start=bench.of(FOUR).end, end=bench.after(FOUR), batch=8, letter="l", note="a loss"))
    bench.stream.split(FOUR)
    store = filled(table, bench)
    request = ResetRequest("one", ResetTarget.parse(to), give_up=8)
    bench.resetter(to, give_up=8).run()
    ports = replace(bench.ports(), store=store)
    assert Resetter(request, ports).run().document["changed"]
    found = {item["id"]: {name: value for name, value in item.items() if name not in FREE} for item in table.scan()}
    assert found == {key: row | {"id": key} for key, row in bench.end_state().items()}
    assert not Resetter(request, ports).run().document["changed"]
    assert {item["id"]: {name: value for name, value in item.items() if name not in FREE} for item in table.scan()} == found


def test_the_writes_of_a_reset_have_their_conditions(table: Table) -> None:
    bench = Bench()
    store = filled(table, bench)
    epoch = take_over(store, LeaseRequest(20_000, "reset", "now"), Watcher()).epoch
    seen = store.consumer()
    assert seen is not None
    moves = plan(
        ResetRequest("one", ResetTarget("trimHorizon")), Situation(seen, store.contents(), bench.stream.describe(), bench.stream.list_shards())
    ).moves
    reset = StoredReset("one", 7, moves, "asked", {"to": "trimHorizon"})
    with pytest.raises(Fenced):
        reset_writes.name(store, replace(epoch, token="other"), seen, reset)
    assert reset_writes.stored(store, "one") is None
    named = reset_writes.name(store, epoch, seen, reset)
    assert store.consumer() == named
    with pytest.raises(Fenced):
        reset_writes.name(store, epoch, seen, replace(reset, id="two"))
    assert reset_writes.stored(store, "one") == reset
    move = next(move for move in moves if move.shard == FOUR)
    reset_writes.move(store, epoch, 7, move)
    reset_writes.move(store, epoch, 7, move)
    assert store.existing([FOUR])[FOUR].end == TRIM_HORIZON
    with pytest.raises(ProtocolViolation):
        reset_writes.move(store, epoch, 7, replace(move, to=END))
    with pytest.raises(Fenced):
        reset_writes.move(store, replace(epoch, generation=epoch.generation - 1), 7, move)
    with pytest.raises(Fenced):
        reset_writes.complete(store, named, replace(epoch, token="other"), reset)
    after = reset_writes.finish(store, named, epoch)
    assert store.consumer() == after
    assert (after.reset, after.last_reset) == (None, "one")


def test_a_plan_of_many_shards_fits_into_one_transaction(table: Table) -> None:
    """As many as a plan may have, of the longest ids and numbers that Kinesis gives."""
    identity = Bench().stream.describe()
    row = ConsumerRow("c", identity.arn, identity.created_millis, bootstrapped=True, plan="p")
    assert table.write(Put(row.to_item(), (NEW_ROW,))).applied
    store = CheckpointStore(table)
    epoch = take_over(store, LeaseRequest(20_000, "reset", "now"), Watcher()).epoch
    seen = store.consumer()
    assert seen is not None
    end, to = Position.after("4" * 56), Position.timestamp(START)
    moves = tuple(Move(f"shardId-{n:012d}", 999_999, end, to, START) for n in range(reset_writes.MOST))
    reset_writes.name(store, epoch, seen, StoredReset("many", 0, moves))
    found = reset_writes.stored(store, "many")
    assert found is not None
    assert found.moves == moves

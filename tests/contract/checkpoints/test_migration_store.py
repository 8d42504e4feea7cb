from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sluice_checkpoints.errors import LeaseHeld, ProtocolViolation
from sluice_checkpoints.migrate.store import CLAIMED, COMPLETE, COPYING, Copy, MigrationClaim, MigrationStore
from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION, ConsumerRow, MigrationRow, ShardRow
from sluice_checkpoints.protocol.table import Put, Table

ROW = MigrationRow("app", "kcl", 1000, state=CLAIMED, generation=1, token="mine", counter=1, lease_millis=30_000)
MINE = MigrationClaim(ROW, "arn:orders", 5)
OTHERS = MigrationClaim(replace(ROW, generation=2, counter=2, token="others"), "arn:orders", 5)
CONSUMER_ROW = ConsumerRow("id-1", "arn:orders", 5, released=True, bootstrapped=True)
COPY = Copy("plan", 2, {"possiblyLost": 1, "readAgain": 0})
A, B = "shardId-000000000000", "shardId-000000000001"
NEW = ShardRow(A, Position.after("1", 0), Position.after("1", 0), parents=frozenset({B}))
OLD = ShardRow(A, TRIM_HORIZON, TRIM_HORIZON)


@pytest.fixture
def store(table: Table) -> MigrationStore:
    return MigrationStore(table)


@pytest.fixture
def claimed(store: MigrationStore) -> MigrationStore:
    assert store.put_claim(MINE)
    return store


@pytest.fixture
def copying(claimed: MigrationStore) -> MigrationStore:
    claimed.start_copy(MINE, COPY)
    return claimed


@pytest.fixture
def lost(claimed: MigrationStore) -> MigrationStore:
    assert claimed.take_claim(MINE, OTHERS)
    claimed.start_copy(OTHERS, COPY)
    return claimed


def everything(store: MigrationStore) -> dict[str, Any]:
    return {row["id"]: row for row in store.table.scan()}


# -- the claim ---------------------------------------------------------------------------------------------------------------------


def test_a_claim_comes_back_as_it_was_put(claimed: MigrationStore) -> None:
    assert claimed.claim() == MINE


def test_the_first_claim_wins(claimed: MigrationStore) -> None:
    assert not claimed.put_claim(OTHERS)
    assert claimed.claim() == MINE


def test_no_claim_on_a_table_with_a_consumer(store: MigrationStore) -> None:
    store.table.write(Put(CONSUMER_ROW.to_item(), ()))
    assert not store.put_claim(MINE)
    store.table.write(Put(MINE.to_item(), ()))
    assert not store.take_claim(MINE, OTHERS)
    assert store.claim() == MINE


@pytest.mark.parametrize("moved", [{"counter": 2}, {"generation": 2}])
def test_a_claim_that_moved_is_not_taken(claimed: MigrationStore, moved: dict[str, Any]) -> None:
    stands = replace(MINE, row=replace(ROW, **moved))
    claimed.table.write(Put(stands.to_item(), ()))
    assert not claimed.take_claim(MINE, OTHERS)
    assert claimed.claim() == stands


def test_a_taken_claim_begins_anew(copying: MigrationStore) -> None:
    assert copying.release(MINE)
    assert copying.take_claim(MINE, OTHERS)
    assert copying.claim() == OTHERS


def test_claims_whose_replies_were_lost_are_known_by_their_token(table: Table, repeats: Callable[[Table], Any]) -> None:
    store = MigrationStore(repeats(table))
    assert store.put_claim(MINE)
    assert store.take_claim(MINE, OTHERS)
    assert store.claim() == OTHERS


def test_a_beat_moves_the_counter(claimed: MigrationStore) -> None:
    claimed.beat(MINE)
    assert claimed.claim() == replace(MINE, row=replace(ROW, counter=2))


def test_the_copy_is_announced(copying: MigrationStore) -> None:
    expected = replace(ROW, state=COPYING, plan_digest="plan", rows=2, risks=COPY.risks)
    assert copying.claim() == replace(MINE, row=expected)


def test_a_released_claim_says_so(copying: MigrationStore) -> None:
    assert copying.release(MINE)
    found = copying.claim()
    assert found
    assert (found.row.released, found.row.state) == (True, COPYING)


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.beat(MINE),
        lambda store: store.start_copy(MINE, COPY),
        lambda store: store.write_rows(MINE, [NEW], {}),
        lambda store: store.complete(MINE, CONSUMER_ROW),
    ],
    ids=["beat", "start_copy", "write_rows", "complete"],
)
def test_whoever_lost_the_claim_writes_nothing_more(lost: MigrationStore, write: Callable[[MigrationStore], None]) -> None:
    before = everything(lost)
    with pytest.raises(LeaseHeld):
        write(lost)
    assert everything(lost) == before


def test_whoever_lost_the_claim_cannot_release_it(lost: MigrationStore) -> None:
    before = everything(lost)
    assert not lost.release(MINE)
    assert everything(lost) == before


@pytest.mark.parametrize("other", [{"generation": 2}, {"token": "others"}])
def test_half_a_claim_is_none(claimed: MigrationStore, other: dict[str, Any]) -> None:
    with pytest.raises(LeaseHeld):
        claimed.beat(replace(MINE, row=replace(ROW, **other)))
    assert claimed.claim() == MINE


# -- rows --------------------------------------------------------------------------------------------------------------------------


def test_rows_are_put_where_there_are_none(copying: MigrationStore) -> None:
    copying.write_rows(MINE, [NEW, replace(OLD, id=B)], {})
    assert copying.shards() == {A: NEW, B: replace(OLD, id=B)}


def test_rows_of_an_earlier_try_are_replaced(copying: MigrationStore) -> None:
    copying.write_rows(MINE, [OLD], {})
    copying.write_rows(MINE, [NEW], {A: OLD})
    copying.write_rows(MINE, [OLD], {A: NEW})
    assert copying.shards() == {A: OLD}


@pytest.mark.parametrize(
    "stands",
    [
        replace(OLD, generation=1),
        replace(OLD, batch=1),
        replace(OLD, start=Position.after("7")),
        replace(OLD, end=Position.after("7")),
    ],
)
def test_a_row_that_is_not_as_it_was_read_is_not_replaced(copying: MigrationStore, stands: ShardRow) -> None:
    """Whoever changed it was no migrator, or a driver that must not lose its place; nothing of the transaction is written."""
    copying.table.write(Put(stands.to_item(), ()))
    with pytest.raises(ProtocolViolation, match=A):
        copying.write_rows(MINE, [NEW, replace(OLD, id=B)], {A: OLD})
    assert copying.shards() == {A: stands}


def test_a_row_that_should_not_be_there_is_not_replaced(copying: MigrationStore) -> None:
    copying.table.write(Put(OLD.to_item(), ()))
    with pytest.raises(ProtocolViolation, match=A):
        copying.write_rows(MINE, [NEW], {})
    assert copying.shards() == {A: OLD}


def test_rows_whose_reply_was_lost_are_recognised(copying: MigrationStore, repeats: Callable[[Table], Any]) -> None:
    store = MigrationStore(repeats(copying.table))
    store.write_rows(MINE, [OLD], {})
    store.write_rows(MINE, [NEW], {A: OLD})
    assert copying.shards() == {A: NEW}


@pytest.mark.parametrize("state", [CLAIMED, COMPLETE])
def test_rows_are_written_only_while_copying(claimed: MigrationStore, state: str) -> None:
    claimed.table.write(Put(replace(MINE, row=replace(ROW, state=state)).to_item(), ()))
    with pytest.raises(LeaseHeld):
        claimed.write_rows(MINE, [NEW], {})
    assert not claimed.shards()


def test_a_transaction_holds_99_rows(copying: MigrationStore) -> None:
    rows = [replace(OLD, id=f"s{i}") for i in range(100)]
    copying.write_rows(MINE, rows[:99], {})
    with pytest.raises(ValueError, match="99"):
        copying.write_rows(MINE, rows, {})
    assert len(copying.shards()) == 99


# -- the end -----------------------------------------------------------------------------------------------------------------------


def test_the_end_makes_the_consumer_and_closes_the_claim_in_one(copying: MigrationStore) -> None:
    copying.complete(MINE, CONSUMER_ROW)
    found = copying.claim()
    assert found
    assert (found.row.state, found.row.released, copying.consumer()) == (COMPLETE, True, CONSUMER_ROW)


def test_an_end_whose_reply_was_lost_is_recognised(copying: MigrationStore, repeats: Callable[[Table], Any]) -> None:
    MigrationStore(repeats(copying.table)).complete(MINE, CONSUMER_ROW)
    assert copying.consumer() == CONSUMER_ROW


def test_there_is_no_end_before_a_copy(claimed: MigrationStore) -> None:
    with pytest.raises(LeaseHeld):
        claimed.complete(MINE, CONSUMER_ROW)
    assert claimed.consumer() is None


def test_an_existing_consumer_is_never_replaced(copying: MigrationStore) -> None:
    other = replace(CONSUMER_ROW, consumer_id="other")
    copying.table.write(Put(other.to_item(), ()))
    with pytest.raises(ProtocolViolation):
        copying.complete(MINE, CONSUMER_ROW)
    found = copying.claim()
    assert found
    assert (copying.consumer(), found.row.state) == (other, COPYING)


def test_a_complete_migration_is_not_written_again(copying: MigrationStore) -> None:
    copying.complete(MINE, CONSUMER_ROW)
    before = everything(copying)
    assert not copying.release(MINE)
    assert not copying.put_claim(OTHERS)
    assert not copying.take_claim(MINE, OTHERS)
    assert everything(copying) == before


def test_rows_of_other_programs_are_told_from_ours(store: MigrationStore) -> None:
    for row in ("customer-1", "bootstrap/x/0", "shard/a", CONSUMER, MIGRATION):
        store.table.write(Put({"id": row}, ()))
    assert store.strangers() == ["customer-1", "shard/a"]

"""The last lines of a driver that failed, and its termination message."""

from __future__ import annotations

from dataclasses import replace

from sluice_checkpoints.position import TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import ShardRow
from sluice_consumer.exits.last_words import CAUSE, FRAMES, LastWords, OpenBatch
from sluice_consumer.exits.user_failure import LONGEST, Frame, UserFailure

CONDITION = 1024  # characters that the operator shows
CALL = Frame("/opt/sluice/app/orders.py", 2, "amount", 'int(data["amount"])')
FAILURE = UserFailure("KeyError", "'amount'", (CALL, Frame("/opt/sluice/app/orders.py", 31, "process", "amount(row)")))


def row(shard: int, records: int, end: Position | None = None) -> ShardRow:
    after = end or Position.after("49590338271490256608559692538361571095921575989136588898")
    return ShardRow(f"shardId-{shard:012}", TRIM_HORIZON, after, batch=7, first="4959", records=records)


BATCH = OpenBatch(7, "orders", "orders-v2", (row(2, 20), row(0, 40), row(1, 0)))


def test_a_screen_says_what_where_in_which_batch_and_what_happens_next() -> None:
    assert LastWords(FAILURE, BATCH, in_pod=True).lines == [
        "KeyError: 'amount'",
        '  at /opt/sluice/app/orders.py:2 in amount: int(data["amount"])',
        "  at /opt/sluice/app/orders.py:31 in process: amount(row)",
        "batch 7 of orders, stream orders-v2: 60 records of 2 shards (shardId-000000000000, shardId-000000000002) were read; it is not committed",
        "next: the operator starts a driver after a pause; batch 7 comes again, with the same records",
    ]


def test_a_condition_says_the_same_in_one_line() -> None:
    assert LastWords(FAILURE, replace(BATCH, stream="orders"), in_pod=True).line == (
        "KeyError: 'amount' at /opt/sluice/app/orders.py:2 in amount; batch 7 of orders: 60 records of 2 shards (shardId-000000000000, "
        "shardId-000000000002) were read; it is not committed; next: the operator starts a driver after a pause; batch 7 comes again, with the same "
        "records"
    )


def test_the_record_of_a_batch_that_holds_one_is_named() -> None:
    one = replace(BATCH, rows=(row(2, 1), row(0, 0)))
    assert "record 4959 of shardId-000000000002" in LastWords(FAILURE, one, in_pod=False).lines
    part = replace(BATCH, rows=(row(2, 1, Position.after("4959", 3)),))
    assert "record 4959 of shardId-000000000002, user record 3 of its aggregate" in LastWords(FAILURE, part, in_pod=False).lines
    assert not any(line.startswith("record") for line in LastWords(FAILURE, BATCH, in_pod=False).lines)


def test_a_batch_whose_content_is_not_known_is_named_all_the_same() -> None:
    assert "batch 7 of orders, stream orders-v2; it is not committed" in LastWords(FAILURE, replace(BATCH, rows=None), in_pod=False).lines
    empty = LastWords(FAILURE, replace(BATCH, rows=(row(1, 0),)), in_pod=False).lines
    assert empty[-2:] == [
        "batch 7 of orders, stream orders-v2: no record of it was read; it is not committed",
        "next: run it again; batch 7 comes again",
    ]


def test_what_happens_next_depends_on_who_starts_the_next_driver() -> None:
    """On a laptop a person does."""
    assert LastWords(FAILURE, None, in_pod=True).lines[-1] == "next: the operator starts a driver after a pause"
    assert LastWords(FAILURE, None, in_pod=False).lines[-1] == "next: run it again"


def test_the_longest_words_fit_a_screen_and_a_condition() -> None:
    words = "\n".join(["x" * (LONGEST // 5 - 1)] * 5)
    calls = tuple(replace(CALL, line=n, source="y" * 999) for n in range(99))
    said = LastWords(UserFailure("E" * 40, words, calls, "z" * 999), replace(BATCH, rows=(row(0, 1, Position.after("1" * 56, 1)),)), in_pod=True)
    assert len(said.lines) + 4 <= 18
    assert f"  and {99 - FRAMES} calls above" in said.lines
    assert max(map(len, said.lines[2:8])) <= CAUSE + 60
    assert len(said.line) < CONDITION
    assert "\n" not in said.line

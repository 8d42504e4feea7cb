"""Answers of a stream that a test gives to a reader."""

from __future__ import annotations

from collections.abc import Callable

from reading.kpl import aggregate, field_bytes, seal

from sluice_consumer.kinesis.client import IteratorExpired, Page, Records, ShardNotFound

AGGREGATE = aggregate([(f"user-{i}", b"%d" % i) for i in range(5)])

EMPTY = seal(field_bytes(1, b"key"))  # keys, and no user record


def refuse(*_call: object) -> Page:
    raise ShardNotFound("no such shard")


def in_turn(*answers: Callable[..., Page]) -> Callable[..., Page]:
    left = iter(answers)

    def answer(*call: object) -> Page:
        return next(left)(*call)

    return answer


def at_the_tip(_shard: str, iterator: str, _limit: int) -> Page:
    return Page(Records(), iterator, 0, None, 0)


def expire(*_call: object) -> Page:
    raise IteratorExpired("expired")

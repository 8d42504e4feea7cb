"""Upserts accounts into PostgreSQL. Where it is, libpq finds in its environment: PGHOST, PGUSER, PGPASSWORD, PGDATABASE."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg

from sluice_consumer.sinks import Part

LOCK = """
    INSERT INTO positions AS p (consumer, shard, position) VALUES (%s, %s, '')
    ON CONFLICT (consumer, shard) DO UPDATE SET position = p.position RETURNING position
"""
MOVE = "UPDATE positions SET position = %s WHERE consumer = %s AND shard = %s"
UPSERT = """
    INSERT INTO accounts AS a (id, balance) VALUES (%s, %s)
    ON CONFLICT (id) DO UPDATE SET balance = excluded.balance, changes = a.changes + 1
"""


def upsert(rows: Iterator[dict[str, Any]], part: Part) -> None:
    """One transaction for the new rows of a shard and their position: stored together, or not at all."""
    with psycopg.connect() as database:
        (stored,) = database.execute(LOCK, (part.consumer, part.shard)).fetchone() or ("",)
        changes = (json.loads(row["data"].decode()) for row in part.after(rows, stored))
        database.cursor().executemany(UPSERT, ((change["account"], change["balance"]) for change in changes))
        database.execute(MOVE, (part.position, part.consumer, part.shard))

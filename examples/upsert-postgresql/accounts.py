"""Upserts accounts into PostgreSQL. Where it is, libpq finds in its environment: PGHOST, PGUSER, PGPASSWORD, PGDATABASE."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg

from sluice_consumer.sinks import Part

KEY = "INSERT INTO parts (consumer, batch, shard) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
UPSERT = """
    INSERT INTO accounts AS a (id, balance) VALUES (%s, %s)
    ON CONFLICT (id) DO UPDATE SET balance = excluded.balance, changes = a.changes + 1
"""


def upsert(rows: Iterator[dict[str, Any]], part: Part) -> None:
    """One transaction for the rows of a shard and their key: stored together, or not at all."""
    with psycopg.connect() as database:
        if database.execute(KEY, (part.consumer, part.batch, part.shard)).rowcount == 0:
            return  # another attempt stored them
        changes = (json.loads(row["data"].decode()) for row in rows)
        database.cursor().executemany(UPSERT, ((change["account"], change["balance"]) for change in changes))

"""A PostgreSQL database with the tables of docs/sinks.md, "Databases"."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

TABLES = """
CREATE TABLE orders (id text PRIMARY KEY, document json NOT NULL, changes integer NOT NULL DEFAULT 1);
CREATE TABLE positions (consumer text, shard text, position text, PRIMARY KEY (consumer, shard));
"""


@pytest.fixture
def database(postgres_url: str) -> Iterator[str]:
    name = f"t{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        own = make_conninfo(postgres_url, dbname=name)
        with psycopg.connect(own) as empty:
            empty.execute(TABLES)
        yield own
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")

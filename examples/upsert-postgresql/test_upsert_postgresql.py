"""This example, run against emulated AWS and a real PostgreSQL."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from sluice_lab import places
from sluice_lab.examples.example import Example
from sluice_lab.machine.postgres import postgres

CHANGES = [{"account": f"a{n % 7}", "balance": n} for n in range(600)]


def test_every_change_of_an_account_is_counted_once(example: Example) -> None:
    """Also after a driver that was killed in the middle of a batch. An account has the balance of its last change."""
    with postgres(places.work()) as url, psycopg.connect(url, autocommit=True) as database:
        database.execute(Path(example.folder, "tables.sql").read_text())
        secret = {f"PG{name.upper()}".replace("DBNAME", "DATABASE"): str(value) for name, value in conninfo_to_dict(url).items()}
        for put in replace(example, environment=secret).story(CHANGES, key="account"):
            found = {id_: (int(balance), changes) for id_, balance, changes in database.execute("SELECT id, balance, changes FROM accounts")}
            counts, last = Counter(change["account"] for change in put), {change["account"]: change["balance"] for change in put}
            assert found == {account: (last[account], count) for account, count in counts.items()}

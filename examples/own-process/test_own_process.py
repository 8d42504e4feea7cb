"""This example, run against emulated AWS; its table is counted by deltalake."""

from __future__ import annotations

from hashlib import sha256

from deltalake import DeltaTable

from sluice_lab.examples.example import Example

CLICKS = [{"id": n, "address": f"a{n % 7}@example.org", "page": f"/{n % 3}", "robot": n % 5 == 0} for n in range(600)]


def stored(example: Example) -> list[tuple[int, str]]:
    """What readers of the table see."""
    rows = DeltaTable("s3://lake/clicks", storage_options=example.around.storage.delta()).to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["person"]) for row in rows)


def test_every_click_of_a_person_is_in_the_table_once(example: Example) -> None:
    """Also after a driver that was killed in the middle of a batch."""
    for put in example.story(CLICKS, key="id"):
        assert stored(example) == [(click["id"], sha256(click["address"].encode()).hexdigest()) for click in put if not click["robot"]]

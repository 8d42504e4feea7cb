"""`diagnose` of tables that are not KCL's, or not one: NiFi's two, and Sluice's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from click.testing import Result
from diagnosing import TABLE, Scene, kinds

from sluice_checkpoints.formats import nifi, sluice
from sluice_checkpoints.position import Position
from sluice_checkpoints.protocol.encoding import item_to_wire
from sluice_checkpoints.protocol.rows import ConsumerRow, MigrationRow, ShardRow
from sluice_lab.fakes.stream import MemoryStream


@pytest.mark.parametrize(("copied", "only"), [(0, 2), (1, 1), (2, 0)])
def test_nifi_before_it_deletes_the_kcl_table(call: Callable[..., Result], scene: Scene, copied: int, only: int) -> None:
    """What was not copied goes with it; when everything was, it is a warning."""
    place = list(zip((scene.a, scene.b), scene.places, strict=True))[:copied]
    rows = [{"streamName": {"S": "orders"}, "shardId": {"S": shard}, "sequenceNumber": {"S": sequence}} for shard, sequence in place]
    scene.holds(nifi.KEY, *rows, table=TABLE + "_migration")
    result = call("--json")
    assert (result.exit_code, kinds(result)) == (int(only > 0), {"interrupted-migration": "WILL_BE_LOST" if only else "WARNING"})
    (finding,) = json.loads(result.stdout)["findings"]
    assert [i in finding["text"] for i in (scene.a, scene.b)] == [copied < 1, copied < 2]


def own(stream: MemoryStream, **changes: Any) -> dict[str, Any]:
    told = stream.describe()
    return item_to_wire(replace(ConsumerRow("c", told.arn, told.created_millis, committed=7, bootstrapped=True), **changes).to_item())


@pytest.mark.parametrize(
    ("change", "code", "kind", "word"),
    [
        ({"stream_created": 5}, 1, "other-stream", "created 5"),
        ({"state": "EXPORTED"}, 0, "table", "EXPORTED"),
        ({"bootstrapped": False}, 0, "table", "never bootstrapped"),
        (None, 0, "table", "its bootstrap or migration is not complete"),
    ],
)
def test_a_table_of_sluice_that_no_consumer_may_use_is_told(  # a claim left behind is the last one
    call: Callable[..., Result], scene: Scene, change: dict[str, Any] | None, code: int, kind: str, word: str
) -> None:
    places = [Position.after(place) for place in scene.places]
    rows = [item_to_wire(ShardRow(i, place, place).to_item()) for i, place in zip((scene.a, scene.b), places, strict=True)]
    first = own(scene.stream, **change) if change else item_to_wire(MigrationRow("old", "kcl", 0).to_item())
    scene.holds(sluice.KEY, first, *rows)
    result = call("--json")
    assert result.exit_code == code
    assert [(f["kind"], word in f["text"]) for f in json.loads(result.stdout)["findings"]] == [(kind, True)]

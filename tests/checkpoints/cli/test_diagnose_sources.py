"""`diagnose` of tables that are not KCL's, or not one: NiFi's two, Sluice's own, an empty one."""

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


def test_nifi_between_two_tables(call: Callable[..., Result], scene: Scene) -> None:
    """The main table is gone, and the copy complete."""
    place = zip((scene.a, scene.b), scene.places, strict=True)
    rows = [{"streamName": {"S": "orders"}, "shardId": {"S": shard}, "sequenceNumber": {"S": sequence}} for shard, sequence in place]
    marker = {"streamName": {"S": "orders"}, "shardId": {"S": "__migration__"}, "migrationStatus": {"S": "COMPLETE"}}
    del scene.sources.tables[TABLE]
    scene.holds(nifi.KEY, *rows, marker, table=TABLE + "_migration")
    result = call("--json")
    assert (result.exit_code, kinds(result)) == (1, {"interrupted-migration": "WILL_BE_LOST"})
    assert "the main table is gone" in result.stdout
    marker["migrationStatus"] = {"S": "IN_PROGRESS"}
    assert json.loads(call("--json").stdout)["counts"]["LOST"] == 1


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


def test_an_empty_table_is_told_shard_by_shard(call: Callable[..., Result], scene: Scene) -> None:
    """NiFi after its only copy was deleted: the table is there, and nothing in it."""
    scene.holds(nifi.KEY)
    result = call("--json")
    assert (result.exit_code, kinds(result)) == (1, {"table": "WARNING", "hole": "WILL_BE_LOST"})
    assert json.loads(result.stdout)["counts"]["WILL_BE_LOST"] == 2


def own(stream: MemoryStream, **changes: Any) -> dict[str, Any]:
    told = stream.describe()
    return item_to_wire(replace(ConsumerRow("c", told.arn, told.created_millis, committed=7, bootstrapped=True), **changes).to_item())


def test_a_table_of_sluice_is_read_too(call: Callable[..., Result], scene: Scene) -> None:
    place = Position.after(scene.places[0])
    row = item_to_wire(ShardRow(scene.a, place, place, batch=8).to_item())
    scene.holds(sluice.KEY, own(scene.stream), row)
    result = call("--json")
    assert (result.exit_code, kinds(result)) == (0, {"read-again": "INFO", "hole": "INFO"})


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


def test_a_row_of_sluice_that_sluice_did_not_write_is_a_finding(call: Callable[..., Result], scene: Scene) -> None:
    rows = [
        {"id": {"S": f"shard/{shard}"}, "start": item_to_wire({"x": {"at": at}})["x"]} for shard, at in ((scene.a, "END"), (scene.b, "ELSEWHERE"))
    ]
    scene.holds(sluice.KEY, own(scene.stream), *rows)
    result = call("--json")
    assert (result.exit_code, kinds(result)) == (0, {"unreadable": "SUSPECTED"})

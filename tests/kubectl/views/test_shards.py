"""Shards out of two places, of which either may be missing."""

from __future__ import annotations

from sluice_kubectl.views.shards import LAG, USED, ShardFigures, figures, shards

TABLE = {
    "released": False,
    "holder": "orders-driver-3",
    "shards": {
        "a": {"at": "AFTER", "sequence": "17", "lineage": {"parents": [], "children": []}},
        "b": {"at": "END", "lineage": {"parents": ["a"], "children": []}},
    },
}


def test_samples_of_other_metrics_are_passed_over() -> None:
    scraped = figures([(LAG, {"shard": "a"}, 12.4), (USED, {"shard": "a"}, 0.5), ("sluice_shards", {"state": "open"}, 2.0)])
    assert scraped == {"a": ShardFigures(12, 0.5)}


def test_a_shard_that_either_place_knows_is_shown() -> None:
    found = shards({"a": ShardFigures(5), "c": ShardFigures(90)}, TABLE, "orders-driver-2")
    assert [(one.id, one.lag_millis, one.position, one.parents) for one in found] == [
        ("c", 90, None, ()),
        ("a", 5, {"at": "AFTER", "sequence": "17"}, ()),
        ("b", None, {"at": "END"}, ("a",)),
    ]


def test_the_tables_holder_is_believed() -> None:
    """A status may be older than a take-over; a released lease has no holder."""
    assert {one.holder for one in shards({}, TABLE, "orders-driver-2")} == {"orders-driver-3"}
    assert {one.holder for one in shards({}, TABLE | {"released": True}, "orders-driver-2")} == {None}
    assert {one.holder for one in shards({"a": ShardFigures(5)}, None, "orders-driver-2")} == {"orders-driver-2"}

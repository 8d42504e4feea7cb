"""What a sink is told: wrong options are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.sinks import options
from sluice_consumer.sinks.options import RowOptions

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"decode": "avro"}, "pipeline.args.decode: 'avro'"),
    ({"decode": "jsonl"}, "'jsonl' is not known; leave it out, or say json or json-lines"),
    ({"decode": "json-lines"}, "pipeline.args.schema: missing"),
    ({"decode": "json", "schema": "id INT", "keep": ["documentIndex"]}, "only decode: json-lines has a column documentIndex"),
    ({"decode": "json"}, "pipeline.args.schema: missing"),
    ({"decode": "json", "schema": 7}, "pipeline.args.schema: 7"),
    ({"schema": "id INT"}, "pipeline.args.schema: has no effect"),
    ({"keep": "shardId"}, "pipeline.args.keep"),
    ({"keep": [1]}, "pipeline.args.keep"),
    ({"transform": "no function"}, "pipeline.args.transform"),
    ({"partition": "week"}, "pipeline.args.partition: must be one of day, hour, not 'week'"),
    ({"fileBytes": 0}, "pipeline.args.fileBytes: 0"),
    ({"fileBytes": True}, "pipeline.args.fileBytes: True"),
    ({"fileBytes": "128MB"}, "pipeline.args.fileBytes"),
]


@pytest.mark.parametrize(("args", "message"), WRONG)
def test_a_wrong_option_is_refused_by_name(args: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        options.rows(args)


def test_an_option_that_a_sink_does_not_know_is_refused() -> None:
    with pytest.raises(Refused, match=r"pipeline\.args\.tabel: this sink has no such option; it knows table, create, decode"):
        options.known({"tabel": "lake.db.orders"}, options.TableArguments)


def test_all_options() -> None:
    args = {"decode": "json", "schema": "id INT", "keep": ["shardId"], "transform": "a.b:c", "partition": "day", "fileBytes": 1 << 27}
    assert options.rows(args) == RowOptions("id INT", ("shardId",), "a.b:c", "day", 1 << 27)
    assert options.rows({"decode": "json-lines", "schema": "id INT", "keep": ["documentIndex"]}) == RowOptions(
        "id INT", ("documentIndex",), lines=True
    )
    assert options.rows({}) == RowOptions()


@pytest.mark.parametrize(
    ("name", "message"),
    [("no.such.module:f", "cannot be imported"), ("os:no_such_function", "has no function no_such_function"), ("os:name", "has no function name")],
)
def test_a_function_that_is_not_there_is_refused(name: str, message: str) -> None:
    with pytest.raises(Refused, match=rf"pipeline\.args\.transform: .*{message}"):
        options.function(name, "pipeline.args.transform")

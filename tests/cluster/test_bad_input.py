"""Bad input: a clear message that names the field or row, in the condition and as an event; nothing is started, nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cluster_bench import Bench, consumer

from sluice_lab.errors import CommandFailedError
from sluice_lab.scenario import environment, kcl_table
from sluice_lab.scenario.topology import Stream

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def _world(bench: Bench) -> Iterator[None]:
    """A stream with shards; a KCL table over it; one with a row nobody understands; one that is no checkpoint table; one of another stream."""
    with Stream(bench.aws.kinesis, environment.STREAM).existing(4), Stream(bench.aws.kinesis, "another").existing(1):
        _write_tables(bench)
        yield
        bench.kubectl("delete", "kinesisconsumers", "--all", "--timeout=300s")


def _write_tables(bench: Bench) -> None:
    dump = kcl_table.dump()
    rows = dump["rows"]
    bad = [row | {"checkpoint": {"S": "YESTERDAY"}} if row["leaseKey"]["S"] == "shardId-000000000003" else row for row in rows]
    kcl_table.write(bench.aws.dynamodb, "bad-row", dump["description"], bad)
    bench.aws.dynamodb.create_table(
        TableName="no-checkpoints",
        AttributeDefinitions=[{"AttributeName": "customer", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "customer", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )


def tables(bench: Bench) -> set[str]:
    return set(bench.aws.dynamodb.list_tables()["TableNames"])


def says(bench: Bench, name: str, kind: str, *words: str) -> None:
    def told() -> bool:
        message = bench.condition(name, kind).get("message", "")
        return all(word in message for word in words)

    bench.until(f"{kind} of {name} names {words}; it says {bench.condition(name, kind)}", told)
    bench.until(f"an event of {name} names {words}", lambda: any(all(w in e for w in words) for e in bench.events(name)))


def idle(bench: Bench, name: str) -> bool:
    pods: list[dict[str, Any]] = bench.get("pods", f"--selector=sluice.dev/consumer={name}")
    return not [p for p in pods if p["status"].get("phase") in {"Pending", "Running"}]


@pytest.mark.parametrize(("field", "spec"), [("replicaz", {"replicaz": 3}), ("interval", {"batch": {"interval": 5}})])
def test_a_field_that_does_not_exist_is_refused_by_the_api_server(bench: Bench, field: str, spec: dict[str, Any]) -> None:
    with pytest.raises(CommandFailedError, match=rf'unknown field "([a-z.]*\.)?{field}"'):  # with its path, or after it: by kubectl's version
        bench.apply(consumer(bench, "unknown-field", **spec))
    assert "unknown-field" not in {found["metadata"]["name"] for found in bench.get("kinesisconsumers")}


def test_a_bad_duration_is_refused_by_the_api_server(bench: Bench) -> None:
    with pytest.raises(CommandFailedError, match="leaseDurationSeconds"):
        bench.apply(consumer(bench, "bad-duration", leaseDurationSeconds="soon"))


def test_a_duration_that_only_the_operator_can_judge_is_named(bench: Bench) -> None:
    """A backoff whose cap is below its start passes the schema, and is refused in the condition."""
    bench.apply(consumer(bench, "bad-backoff", restart={"backoffSeconds": 100, "maxBackoffSeconds": 10}))
    says(bench, "bad-backoff", "SpecValid", "maxBackoffSeconds")
    assert idle(bench, "bad-backoff")


def test_a_stream_that_does_not_exist_is_named_and_no_table_is_made(bench: Bench) -> None:
    manifest = consumer(bench, "no-stream")
    manifest["spec"]["stream"] |= {"name": "nowhere"}
    bench.apply(manifest)
    says(bench, "no-stream", "Stalled", "nowhere")
    assert "sluice_sluice-demo_no-stream" not in tables(bench)


def test_a_source_of_unknown_schema_is_named_and_no_target_is_made(bench: Bench) -> None:
    bench.apply(consumer(bench, "no-schema", migrateFrom={"table": "no-checkpoints", "quietSeconds": 1}))
    says(bench, "no-schema", "Stalled", "no-checkpoints", "customer")
    assert idle(bench, "no-schema")
    assert "sluice_sluice-demo_no-schema" not in tables(bench)


def test_a_row_with_an_unknown_value_is_named_and_no_target_is_made(bench: Bench) -> None:
    bench.apply(consumer(bench, "odd-row", migrateFrom={"table": "bad-row", "quietSeconds": 1}))
    says(bench, "odd-row", "Stalled", "shardId-000000000003", "YESTERDAY")
    assert idle(bench, "odd-row")
    assert "sluice_sluice-demo_odd-row" not in tables(bench)


def test_a_table_that_belongs_to_another_stream_is_named_and_left_alone(bench: Bench) -> None:
    """A checkpoint of another stream would be a lie in this one, also for a resource of the same name."""
    before = left_behind(bench, "first", {"name": "another"})
    bench.apply(consumer(bench, "first", checkpoints={"table": "of-first"}))
    says(bench, "first", "Stalled", "stream/another", f"stream/{environment.STREAM}")
    assert row(bench, "of-first")["Item"] == before


def test_a_table_that_belongs_to_another_consumer_is_named_and_left_alone(bench: Bench) -> None:
    """That it is gone makes no difference: it may be in another cluster."""
    before = left_behind(bench, "second", {})
    bench.apply(consumer(bench, "third", checkpoints={"table": "of-second"}))
    says(bench, "third", "Stalled", "/second", "/third", "adopt --table of-second")
    assert row(bench, "of-second")["Item"] == before


def left_behind(bench: Bench, name: str, stream: dict[str, str]) -> dict[str, Any]:
    manifest = consumer(bench, name, checkpoints={"table": f"of-{name}"})
    manifest["spec"]["stream"] |= stream
    bench.apply(manifest)
    bench.until("the consumer's table", lambda: f"of-{name}" in tables(bench))
    bench.until("its owner", lambda: "owner" in row(bench, f"of-{name}").get("Item", {}))
    bench.kubectl("delete", "kinesisconsumer", name, "--timeout=300s")
    found: dict[str, Any] = row(bench, f"of-{name}")["Item"]
    return found


def row(bench: Bench, table: str) -> dict[str, Any]:
    found: dict[str, Any] = bench.aws.dynamodb.get_item(TableName=table, Key={"id": {"S": "consumer"}}, ConsistentRead=True)
    return found

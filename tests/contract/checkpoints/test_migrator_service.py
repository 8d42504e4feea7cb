"""Whole migrations while DynamoDB misbehaves: each comes to its end, or stops with everything intact, and which of the two is said here.

Time is virtual: a minute of throttling costs none.
"""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from migrating.bench import Bench
from migrating.cases import CASES, KCL1
from migrating.service import QUIET, Answer, Asked, Between, ServiceBench, error
from migrating.stage import Case

from sluice_checkpoints.errors import ProtocolViolation, ServiceUnavailable, SluiceError
from sluice_checkpoints.protocol.rows import CONSUMER, Item

MISSING_KEY = error("ValidationException", "One or more parameter values were invalid: Missing the key leaseKey in the item")
UNKNOWN = error("ResourceNotFoundException", "Requested resource not found")
THROTTLED = error("ThrottlingException", "Rate exceeded")
CANCELLED = error("TransactionCanceledException", CancellationReasons=[{"Code": "None"}, {"Code": "ThrottlingError", "Message": "throttled"}])
ON_ROWS = frozenset({"get_item", "put_item", "update_item", "transact_write_items", "batch_get_item", "scan"})
# All that an ordinary migration asks (BatchGetItem comes after a lost reply). No BatchWriteItem, for that has no conditions; nothing is deleted.
READS = frozenset({"describe_table", "scan"})
ASKED = READS | {"create_table", "update_table", "update_continuous_backups", "get_item", "update_item", "transact_write_items"}


@pytest.fixture
def world(dynamodb_api: Any) -> ServiceBench:
    return ServiceBench(dynamodb_api, KCL1)


def due(world: ServiceBench) -> dict[str, Item]:
    undisturbed = Bench(world.case, target=world.request.target, quiet_seconds=QUIET)
    undisturbed.migrator().run()
    return undisturbed.end_state()


def check_complete(world: ServiceBench, before: object) -> None:
    assert world.end_state() == due(world)
    assert world.sources() == before


def check_intact(world: ServiceBench, before: object) -> None:
    names = world.api.list_tables()["TableNames"]
    assert world.request.target not in names or CONSUMER not in world.target()
    assert world.run().state == "COMPLETE"
    check_complete(world, before)


def on_target(world: ServiceBench, asked: Asked) -> bool:
    return world.request.target in repr(asked)


# -- a table that is new -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["get_item", "transact_write_items", "update_item", "scan"])
@pytest.mark.parametrize("said", [MISSING_KEY, UNKNOWN], ids=["ValidationException", "ResourceNotFound"])
def test_refusals_of_a_target_that_do_not_end_stop_it(world: ServiceBench, operation: str, said: Exception) -> None:
    before = world.sources()

    def answer(_number: int, asked_for: str, asked: Asked, make: Answer) -> Any:
        if asked_for == operation and on_target(world, asked):
            raise said
        return make(asked_for, asked)

    with pytest.raises(SluiceError, match=world.request.target):
        world.run(Between(world.api, answer))
    check_intact(world, before)


def test_a_new_target_that_some_machines_do_not_know_is_waited_for(world: ServiceBench) -> None:
    """DescribeTable is eventually consistent: for ten seconds it says that there is no table, though it was made."""
    before, made, denied = world.sources(), list[Any](), 0

    def answer(_number: int, operation: str, asked: Asked, make: Answer) -> Any:
        nonlocal denied
        if operation == "describe_table" and on_target(world, asked) and made and world.seconds < made[0] + 10:
            denied += 1
            raise UNKNOWN
        reply = make(operation, asked)
        made.extend([world.seconds] if operation == "create_table" else [])
        return reply

    assert world.run(Between(world.api, answer)).state == "COMPLETE"
    assert denied
    check_complete(world, before)


# -- throttling --------------------------------------------------------------------------------------------------------------------

ON_TABLES = ["describe_table", "scan", "create_table"]  # of the source, and until the target is there: a minute's patience
ON_TARGET = ["get_item", "transact_write_items", "update_item"]  # two minutes'
TROUBLE = pytest.mark.parametrize("said", [THROTTLED, CANCELLED, ReadTimeoutError(endpoint_url="there")], ids=["throttled", "cancelled", "no answer"])


def throttling(world: ServiceBench, operation: str, seconds: float, said: Exception) -> Between:
    since: list[float] = []

    def answer(_number: int, asked_for: str, asked: Asked, make: Answer) -> Any:
        if asked_for == operation and not since:
            since.append(world.seconds)
        if since and world.seconds < since[0] + seconds:
            raise said
        return make(asked_for, asked)

    return Between(world.api, answer)


@TROUBLE
@pytest.mark.parametrize(("operation", "seconds"), [*((o, 50) for o in ON_TABLES), *((o, 70) for o in ON_TARGET)])
def test_a_minute_of_throttling_is_outlived(world: ServiceBench, operation: str, seconds: float, said: Exception) -> None:
    """Whichever call it begins with: a little less before the target is there, a little more afterwards.

    That is longer than the claim's lease, but nobody else wanted it.
    """
    before = world.sources()
    assert world.run(throttling(world, operation, seconds, said)).state == "COMPLETE"
    check_complete(world, before)


@pytest.mark.parametrize("operation", [*ON_TABLES, *ON_TARGET])
def test_minutes_of_throttling_stop_it(world: ServiceBench, operation: str) -> None:
    before = world.sources()
    with pytest.raises(ServiceUnavailable, match=r"(source|target) table|on table") as stopped:
        world.run(throttling(world, operation, 600, THROTTLED))
    assert world.request.target in str(stopped.value) or world.request.source in str(stopped.value)
    check_intact(world, before)


# -- reads -------------------------------------------------------------------------------------------------------------------------


def test_reads_that_were_stale_though_all_of_them_ask_for_consistency_stop_it(world: ServiceBench) -> None:
    before = world.sources()
    nothing: dict[str, Any] = {"get_item": {}, "scan": {"Items": []}, "batch_get_item": {"Responses": {}}}

    def answer(_number: int, operation: str, asked: Asked, make: Answer) -> Any:
        return nothing[operation] if operation in nothing and on_target(world, asked) else make(operation, asked)

    with pytest.raises(ProtocolViolation, match=world.request.target):
        world.run(Between(world.api, answer))
    check_intact(world, before)


def test_a_batch_that_is_read_in_part_is_asked_for_again(world: ServiceBench) -> None:
    before, lost, parts = world.sources(), list[Any](), 0

    def answer(_number: int, operation: str, asked: Asked, make: Answer) -> Any:
        nonlocal parts
        if operation == "batch_get_item":
            parts += 1
            return _first_of(asked, make)
        asked.pop("ClientRequestToken", None)  # it lives ten minutes, a process may sleep longer
        reply = make(operation, asked)
        if operation == "transact_write_items" and "shard/" in repr(asked) and not lost:
            lost.append(asked)
            raise ReadTimeoutError(endpoint_url="there")
        return reply

    assert world.run(Between(world.api, answer)).state == "COMPLETE"
    assert parts == 4, "four rows, one a reply"
    check_complete(world, before)


def _first_of(asked: Asked, make: Answer) -> Any:
    ((table, wanted),) = asked["RequestItems"].items()
    first, *others = wanted["Keys"]
    reply = make("batch_get_item", {"RequestItems": {table: wanted | {"Keys": [first]}}})
    return reply | {"UnprocessedKeys": {table: wanted | {"Keys": others}} if others else {}}


# -- what is asked for -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=str)
def test_only_these_operations_are_asked_for_and_only_reads_of_the_source(dynamodb_api: Any, case: Case) -> None:
    """Nothing is deleted and nothing is written without a condition; BatchWriteItem, which knows none, is not used."""
    world = ServiceBench(dynamodb_api, case)
    between = Between(dynamodb_api)
    world.run(between)
    assert {operation for operation, _ in between.log} == ASKED - {"update_table"}
    assert {operation for operation, asked in between.log if not on_target(world, asked)} == READS
    assert all("ConditionExpression" in asked for operation, asked in between.log if operation == "update_item")
    members = [m for operation, asked in between.log if operation == "transact_write_items" for item in asked["TransactItems"] for m in item.values()]
    assert all("ConditionExpression" in member for member in members)


def test_every_scan_and_get_is_strongly_consistent(world: ServiceBench) -> None:
    between = Between(world.api)
    world.run(between)
    reads = [asked.get("ConsistentRead") for operation, asked in between.log if operation in {"scan", "get_item"}]
    assert reads
    assert all(reads)

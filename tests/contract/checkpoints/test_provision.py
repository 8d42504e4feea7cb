from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from sluice_checkpoints.aws.retry import Again, Patience
from sluice_checkpoints.dynamodb.create import FRESH_SECONDS, DynamoTargets, FreshApi, TableSettings
from sluice_checkpoints.dynamodb.source_tables import DynamoSources
from sluice_checkpoints.errors import Refused, ServiceUnavailable, SourceActive
from sluice_checkpoints.formats.snapshot import TableKey
from sluice_checkpoints.protocol.table import NEW_ROW, Put


@dataclass
class Time:
    now: float = 0.0

    def patience(self) -> Patience:
        return Patience(limit=30, clock=lambda: self.now, sleep=self.sleep, dice=lambda: 1.0)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Answers:
    def __init__(self, api: Any, errors: dict[str, ClientError], times: int = 10**9) -> None:
        self._api, self._errors, self._left = api, errors, dict.fromkeys(errors, times)

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        call = getattr(self._api, operation)

        def answer(**request: Any) -> Any:
            if self._left.get(operation, 0):
                self._left[operation] -= 1
                raise self._errors[operation]
            return call(**request)

        return answer


def error(code: str, message: str = "said the service", **more: Any) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}} | more, "Operation")


@pytest.fixture
def name() -> str:
    return f"target-{uuid4()}"


def test_a_target_is_made_with_our_key_on_demand_and_protected(dynamodb_api: Any, name: str) -> None:
    targets = DynamoTargets(dynamodb_api, Time().patience())
    assert targets.find(name) is None
    prepared = targets.ensure(name)
    assert prepared.table.write(Put({"id": "x"}, (NEW_ROW,))).applied
    said = dynamodb_api.describe_table(TableName=name)["Table"]
    assert said["DeletionProtectionEnabled"]
    assert said["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert targets.find(name)


def test_a_target_that_exists_keeps_its_rows(dynamodb_api: Any, name: str) -> None:
    targets = DynamoTargets(dynamodb_api, Time().patience())
    targets.ensure(name).table.write(Put({"id": "x"}, ()))
    assert targets.ensure(name).table.get("x") == {"id": "x"}


def test_a_target_of_another_key_is_refused_naming_it(dynamodb_api: Any, name: str) -> None:
    make(dynamodb_api, name, "leaseKey")
    targets = DynamoTargets(dynamodb_api, Time().patience())
    for look in (targets.find, targets.ensure):
        with pytest.raises(Refused, match="leaseKey HASH S"):
            look(name)


def make(api: Any, name: str, *keys: str) -> None:
    api.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)],
        BillingMode="PAY_PER_REQUEST",
    )


def test_a_table_is_made_with_its_tags_and_its_key(dynamodb_api: Any, name: str) -> None:
    """In the request that makes it: a policy may refuse a table without them. One that is there is left as it is."""
    asked: list[dict[str, Any]] = []
    settings = TableSettings({"team": "orders", "cost": ""}, "arn:aws:kms:eu-west-1:111122223333:key/0a1b")

    class Recorded(Answers):
        def __getattr__(self, operation: str) -> Callable[..., Any]:
            call = super().__getattr__(operation)

            def recorded(**request: Any) -> Any:
                asked.extend([request] if operation == "create_table" else [])
                return call(**{key: value for key, value in request.items() if key != "SSESpecification"})  # DynamoDB Local has no KMS

            return recorded

    for _ in range(2):
        DynamoTargets(Recorded(dynamodb_api, {}), Time().patience(), settings=settings).ensure(name)
    (request,) = asked
    assert request["Tags"] == [{"Key": "cost", "Value": ""}, {"Key": "team", "Value": "orders"}]
    assert request["SSESpecification"] == {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": settings.kms_key}
    assert {"Tags", "SSESpecification"}.isdisjoint(TableSettings().request)


@pytest.mark.parametrize("code", ["AccessDeniedException", "UnknownOperationException", "ContinuousBackupsUnavailableException"])
def test_protection_that_is_denied_or_unknown_is_a_warning(dynamodb_api: Any, name: str, code: str) -> None:
    """Never a failure: emulators have no backups, and roles may lack the right."""
    api = Answers(dynamodb_api, {"update_continuous_backups": error(code), "update_table": error(code)})
    make(dynamodb_api, name, "id")
    warnings = DynamoTargets(api, Time().patience()).ensure(name).warnings
    assert [word in said for word, said in zip(("deletion protection", "point-in-time recovery"), warnings, strict=True)] == [True, True]
    assert all(code in said and "said the service" in said for said in warnings)


def test_a_table_somebody_else_makes_at_the_same_moment_is_taken(dynamodb_api: Any, name: str) -> None:
    make(dynamodb_api, name, "id")
    api = Answers(dynamodb_api, {"describe_table": error("ResourceNotFoundException")}, times=1)
    assert DynamoTargets(api, Time().patience()).ensure(name).table.get("x") is None


def test_a_table_that_never_becomes_ready_is_given_up(dynamodb_api: Any, name: str) -> None:
    api = Answers(dynamodb_api, {"describe_table": error("ResourceNotFoundException"), "create_table": error("ResourceInUseException")})
    with pytest.raises(ServiceUnavailable, match=name):
        DynamoTargets(api, Time().patience()).ensure(name)


@pytest.mark.parametrize(
    "said",
    [
        error("ValidationException", "One or more parameter values were invalid: Missing the key leaseKey in the item"),
        error("ResourceNotFoundException"),
    ],
)
def test_a_fresh_tables_refusals_are_outlived(dynamodb_api: Any, name: str, said: ClientError) -> None:
    """For a minute some machines know nothing of the table, or only of an earlier one with another key (NIFI-16003)."""
    failing = dict.fromkeys(("get_item", "put_item", "update_item", "transact_write_items", "scan", "batch_get_item"), said)
    table = DynamoTargets(Answers(dynamodb_api, failing, times=2), Time().patience()).ensure(name).table
    assert table.write(Put({"id": "x"}, (NEW_ROW,))).applied
    assert table.transact([Put({"id": "y"}, (NEW_ROW,))]).applied
    assert len(list(table.scan())) == len(table.batch_get(["x", "y"])) == 2


def test_the_same_refusal_is_the_truth_after_a_minute(dynamodb_api: Any) -> None:
    time = Time()
    api = FreshApi(
        Answers(dynamodb_api, {"get_item": error("ValidationException", "The provided key element does not match the schema")}), lambda: time.now
    )
    with pytest.raises(Again):
        api.get_item(TableName="x", Key={})
    time.now = FRESH_SECONDS
    with pytest.raises(ClientError):
        api.get_item(TableName="x", Key={})


def test_other_answers_of_a_fresh_table_are_answers(dynamodb_api: Any) -> None:
    api = FreshApi(Answers(dynamodb_api, {"put_item": error("ConditionalCheckFailedException")}), lambda: 0.0)
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        api.put_item(TableName="x", Item={})


@pytest.mark.parametrize(
    "said",
    [
        "Transaction payload size cannot exceed 4MB",
        "Item size has exceeded the maximum allowed size",
        "Invalid ConditionExpression: An expression attribute value used in expression is not defined",
        "The KMS key of the table is disabled",
    ],
)
def test_a_request_that_no_table_would_take_is_not_repeated(dynamodb_api: Any, said: str) -> None:
    """A ValidationException that is not about a key or a table says nothing of how new the table is."""
    refused = FreshApi(Answers(dynamodb_api, {"put_item": error("ValidationException", said)}), lambda: 0.0)
    with pytest.raises(ClientError, match="Validation"):
        refused.put_item(TableName="x", Item={})
    cancelled = error("TransactionCanceledException")
    cancelled.response["CancellationReasons"] = [{"Code": "None"}, {"Code": "ValidationError", "Message": said}]
    with pytest.raises(ClientError, match="Canceled"):
        FreshApi(Answers(dynamodb_api, {"transact_write_items": cancelled}), lambda: 0.0).transact_write_items(TransactItems=[])
    cancelled.response["CancellationReasons"][1]["Message"] = "One or more parameter values were invalid: Missing the key id in the item"
    with pytest.raises(Again):
        FreshApi(Answers(dynamodb_api, {"transact_write_items": cancelled}), lambda: 0.0).transact_write_items(TransactItems=[])


# -- sources -----------------------------------------------------------------------------------------------------------------------


def test_a_source_is_read_with_its_types_over_pages(dynamodb_api: Any, name: str) -> None:
    make(dynamodb_api, name, "streamName", "shardId")
    rows = [{"streamName": {"S": "s"}, "shardId": {"S": str(i)}, "n": {"N": "1"}, "b": {"B": b"x" * 150_000}} for i in range(12)]
    for row in rows:
        dynamodb_api.put_item(TableName=name, Item=row)
    sources = DynamoSources(dynamodb_api, Time().patience())
    assert sources.key_schema(name) == (TableKey("streamName", "HASH", "S"), TableKey("shardId", "RANGE", "S"))
    assert sorted(sources.scan(name), key=lambda row: int(row["shardId"]["S"])) == rows


def test_a_source_that_is_not_there_has_no_key(dynamodb_api: Any, name: str) -> None:
    assert DynamoSources(dynamodb_api, Time().patience()).key_schema(name) is None


def test_a_source_that_is_deleted_while_it_is_read_is_active(dynamodb_api: Any, name: str) -> None:
    """It was there when it was described; its own system is at work (75), and a later run sees what came of it."""
    with pytest.raises(SourceActive, match=name):
        DynamoSources(dynamodb_api, Time().patience()).scan(name)


def test_a_source_that_may_not_be_read_is_refused(dynamodb_api: Any, name: str) -> None:
    make(dynamodb_api, name, "leaseKey")
    api = Answers(dynamodb_api, {"scan": error("AccessDeniedException", "not authorized to perform: dynamodb:Scan")})
    with pytest.raises(Refused, match="dynamodb:Scan"):
        DynamoSources(api, Time().patience()).scan(name)

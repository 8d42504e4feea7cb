"""What DynamoDB Local never shows: tables that come and go (dynalite), and point-in-time recovery that is granted (a canned answer on the wire)."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
from botocore.awsrequest import AWSRequest, AWSResponse
from migrating.service import Answer, Asked, Between

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.dynamodb.create import DynamoTargets
from sluice_checkpoints.dynamodb.table import Endpoint, client
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol.table import NEW_ROW, Put

GRANTED = {"ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}}


@pytest.fixture
def name() -> str:
    return f"target-{uuid4()}"


# -- CREATING ----------------------------------------------------------------------------------------------------------------------


class Making:
    """A client of dynalite that notes what a table was said to be, and virtual time in which every second lasts as long as fifty answers of it."""

    def __init__(self, api: Any) -> None:
        self.api, self.now = Between(api, self._answer), 0.0
        self.said: list[str] = []

    def _answer(self, _number: int, operation: str, asked: Asked, make: Answer) -> Any:
        reply = make(operation, asked)
        self.said.append(reply["Table"]["TableStatus"] if operation == "describe_table" else operation)
        return reply

    def targets(self) -> DynamoTargets:
        return DynamoTargets(self.api, Patience(clock=lambda: self.now, sleep=self._sleep, dice=lambda: 1.0))

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        for _ in range(50):
            self.api.make("list_tables", {})


def test_a_new_target_is_neither_read_nor_written_before_it_is_active(dynalite_api: Any, name: str) -> None:
    making = Making(dynalite_api)
    table = making.targets().ensure(name).table
    assert table.write(Put({"id": "x"}, (NEW_ROW,))).applied
    assert "CREATING" in making.said
    active = making.said.index("ACTIVE")
    assert set(making.said[:active]) == {"create_table", "CREATING"}
    assert {"get_item", "put_item"} <= set(making.said[active:])


def test_a_target_that_is_being_made_is_not_there_yet(dynalite_api: Any, name: str) -> None:
    making = Making(dynalite_api)
    made = {"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
    dynalite_api.create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **made)
    assert making.targets().find(name) is None
    assert making.targets().ensure(name).table.get("x") is None
    assert making.said[0] == "CREATING"
    assert "create_table" not in making.said
    assert making.targets().find(name)


def test_a_target_that_is_being_deleted_is_refused(dynalite_api: Any, name: str) -> None:
    """Its rows, and its name for a while, belong to what was."""
    making = Making(dynalite_api)
    making.targets().ensure(name)
    dynalite_api.delete_table(TableName=name)
    for look in (making.targets().find, making.targets().ensure):
        with pytest.raises(Refused, match="is being deleted"):
            look(name)


# -- point-in-time recovery --------------------------------------------------------------------------------------------------------


class Canned:
    """UpdateContinuousBackups answered on the wire, the n-th call with the n-th answer (status and document); all else goes to DynamoDB Local."""

    def __init__(self, endpoint: str, *answers: tuple[int, dict[str, Any]]) -> None:
        self.api, self._answers, self.asked = client(Endpoint("us-east-1", endpoint)), list(answers), list[Any]()
        self.api.meta.events.register("before-send.dynamodb.UpdateContinuousBackups", self._answer)

    def _answer(self, request: AWSRequest, **_: Any) -> AWSResponse:
        self.asked.append(json.loads(request.body))
        status, document = self._answers.pop(0)
        raw = BytesIO(json.dumps(document).encode())
        raw.stream = lambda **_: iter([raw.getvalue()])  # type: ignore[attr-defined]  # as urllib3's
        return AWSResponse(request.url, status, {"Content-Type": "application/x-amz-json-1.0"}, raw)


def patience() -> Patience:
    now = [0.0]
    return Patience(clock=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds), dice=lambda: 1.0)


def test_point_in_time_recovery_that_is_granted_leaves_no_warning(dynamodb_endpoint: str, name: str) -> None:
    canned = Canned(dynamodb_endpoint, (200, {"ContinuousBackupsDescription": GRANTED}))
    assert DynamoTargets(canned.api, patience()).ensure(name).warnings == ()
    assert canned.asked == [{"TableName": name, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}]


def test_point_in_time_recovery_of_a_table_too_new_for_it_is_asked_for_again(dynamodb_endpoint: str, name: str) -> None:
    """The service enables backups some seconds after a table is made."""
    later = {"__type": "com.amazonaws.dynamodb.v20120810#ContinuousBackupsUnavailableException", "message": "Backups are being enabled"}
    canned = Canned(dynamodb_endpoint, (400, later), (400, later), (200, {"ContinuousBackupsDescription": GRANTED}))
    assert DynamoTargets(canned.api, patience()).ensure(name).warnings == ()
    assert len(canned.asked) == 3


def test_deletion_protection_is_asked_for_where_a_table_has_none(dynamodb_api: Any, name: str) -> None:
    made = {"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
    dynamodb_api.create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **made)
    granted = DynamoTargets(dynamodb_api, patience()).ensure(name).warnings
    assert not any("deletion protection" in warning for warning in granted)
    assert dynamodb_api.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]

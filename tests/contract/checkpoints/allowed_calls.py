"""The calls that a program makes, beside those that a policy of docs/start allows: action by action, resource by resource."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient

START = Path(__file__).parents[3] / "docs" / "start"
MEMBERS = {"Put": "dynamodb:PutItem", "Update": "dynamodb:UpdateItem", "ConditionCheck": "dynamodb:ConditionCheckItem"}
Call = tuple[str, str]
"""An action, as IAM names it, and the table; "stream" for Kinesis."""


def denied(made: set[Call], policy: str, own: str, other: str) -> set[Call]:
    """The calls that `iam-<policy>.json` does not allow, where its statements are about these two tables; a `*` at a name's end stays there."""
    document = json.loads((START / f"iam-{policy}.json").read_text())
    where = {"CheckpointTable": own, "SourceTable": other, "TargetTable": other, "Stream": "stream"}
    granted = [(action, where[each["Sid"]] + "*" * each["Resource"].endswith("*")) for each in document["Statement"] for action in each["Action"]]
    return {call for call in made if not any(call[0] == action and fnmatchcase(call[1], name) for action, name in granted)}


@contextlib.contextmanager
def recorded() -> Iterator[set[Call]]:
    made, call = set[Call](), BaseClient._make_api_call

    def noted(self: Any, operation: str, request: dict[str, Any]) -> Any:
        made.update(_calls(self.meta.service_model.service_name, operation, request))
        return call(self, operation, request)

    with patch.object(BaseClient, "_make_api_call", noted):
        yield made


def _calls(service: str, operation: str, request: dict[str, Any]) -> set[Call]:
    if service == "kinesis":
        return {(f"kinesis:{operation}", "stream")}
    if operation == "TransactWriteItems":
        return {(MEMBERS[kind], member["TableName"]) for each in request["TransactItems"] for kind, member in each.items()}
    if operation == "BatchGetItem":
        return {("dynamodb:BatchGetItem", table) for table in request["RequestItems"]}
    return {(f"dynamodb:{operation}", request["TableName"])}

"""Another system's tables in DynamoDB, read and never written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import ClientError

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.dynamodb.table import Api, attempt
from sluice_checkpoints.errors import Refused, SourceActive
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem, TableKey
from sluice_checkpoints.protocol.encoding import Wire

NOT_FOUND = "ResourceNotFoundException"


def key_schema(description: Wire) -> KeySchema:
    """The key of a table from DescribeTable's answer, HASH first."""
    types = {a["AttributeName"]: a["AttributeType"] for a in description["AttributeDefinitions"]}
    keys = (TableKey(k["AttributeName"], k["KeyType"], types[k["AttributeName"]]) for k in description["KeySchema"])
    return tuple(sorted(keys, key=lambda key: key.kind))


class DynamoSources:
    """`SourceTables` over a DynamoDB client."""

    def __init__(self, api: Api, patience: Patience | None = None) -> None:
        self._api, self._patience = api, patience or Patience()

    def key_schema(self, table: str) -> KeySchema | None:
        try:
            reply = self._call("DescribeTable", table, lambda: self._api.describe_table(TableName=table))
        except ClientError as error:
            if error.response["Error"]["Code"] == NOT_FOUND:
                return None
            raise
        return key_schema(reply["Table"])

    def scan(self, table: str) -> Sequence[RawItem]:
        rows: list[RawItem] = []
        ask: Wire = {"TableName": table, "ConsistentRead": True}
        while True:
            try:
                reply = self._call("Scan", table, lambda: self._api.scan(**ask))
            except ClientError as error:
                if error.response["Error"]["Code"] == NOT_FOUND:  # it was there when it was described
                    raise SourceActive(f"source table {table} was deleted while it was read; stop its consumer and run this again") from error
                raise Refused(f"Scan of source table {table} was refused: {error}") from error
            rows += reply["Items"]
            if "LastEvaluatedKey" not in reply:
                return rows
            ask["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    def _call(self, what: str, table: str, call: Callable[[], Any]) -> Any:
        return self._patience.call(f"{what} of source table {table}", lambda: attempt(call))

"""Sluice's checkpoint table, read from outside as any client can."""

from collections.abc import Mapping
from typing import Any

from sluice_checkpoints.cli.table_document import document
from sluice_checkpoints.dynamodb.table import DynamoTable


class Checkpoints:
    """The checkpoint table of one consumer. It may not exist yet."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self.dynamodb, self.table = dynamodb, table

    def committed(self) -> tuple[int, int] | None:
        """(generation, last committed batch), or None while there is no consumer."""
        found = self.dynamodb.get_item(TableName=self.table, Key={"id": {"S": "consumer"}}, ConsistentRead=True)
        row = found.get("Item")
        return (int(row["generation"]["N"]), int(row["committed"]["N"])) if row else None

    def shown(self) -> Mapping[str, Any]:
        """The document that `python -m sluice_checkpoints show` prints."""
        return document(DynamoTable(self.table, self.dynamodb))

    def shards(self) -> Mapping[str, Any]:
        """The position of each shard."""
        found: Mapping[str, Any] = self.shown()["shards"]
        return found

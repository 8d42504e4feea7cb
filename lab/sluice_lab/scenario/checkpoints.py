"""Sluice's checkpoint table, read from outside, as anybody may."""

from collections.abc import Mapping
from typing import Any

from sluice_checkpoints.cli.table_document import document
from sluice_checkpoints.dynamodb.table import DynamoTable


class Checkpoints:
    """The table of the demo's consumer. It may not exist yet."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self.dynamodb, self.table = dynamodb, table

    def committed(self) -> tuple[int, int] | None:
        """(generation, last committed batch), or None as long as there is no consumer."""
        found = self.dynamodb.get_item(TableName=self.table, Key={"id": {"S": "consumer"}}, ConsistentRead=True)
        row = found.get("Item")
        return (int(row["generation"]["N"]), int(row["committed"]["N"])) if row else None

    def shown(self) -> Mapping[str, Any]:
        """What `python -m sluice_checkpoints show` says of it."""
        return document(DynamoTable(self.table, self.dynamodb))

    def shards(self) -> Mapping[str, Any]:
        """The position of each shard."""
        found: Mapping[str, Any] = self.shown()["shards"]
        return found

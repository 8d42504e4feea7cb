"""Other systems' tables in DynamoDB, written by transactions of conditional writes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from botocore.exceptions import ClientError

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.dynamodb.create import FRESH_SECONDS, DynamoTargets, FreshApi
from sluice_checkpoints.dynamodb.source_tables import DynamoSources
from sluice_checkpoints.dynamodb.table import Api, attempt
from sluice_checkpoints.formats.snapshot import KeySchema, RawItem, Tagged
from sluice_checkpoints.formats.writer import RowChange, same
from sluice_checkpoints.protocol.encoding import Wire


class DynamoTargetTables:
    """`TargetTables` over a DynamoDB client. A table may be new, made by this program a moment ago or in its last epoch: see `FreshApi`."""

    def __init__(self, api: Api, patience: Patience | None = None) -> None:
        self._api, self._patience = api, patience or Patience()
        self._long = replace(self._patience, limit=max(self._patience.limit, 2 * FRESH_SECONDS))

    def key_schema(self, table: str) -> KeySchema | None:
        return DynamoSources(self._api, self._patience).key_schema(table)

    def scan(self, table: str) -> Sequence[RawItem]:
        return DynamoSources(FreshApi(self._api, self._patience.clock), self._long).scan(table)

    def create(self, table: str, keys: KeySchema) -> tuple[str, ...]:
        return DynamoTargets(self._api, self._patience, keys).make(table)

    def write(self, table: str, changes: Sequence[RowChange]) -> Mapping[int, RawItem | None]:
        """See `TargetTables.write`. One token for all tries: a try whose reply was lost is not applied twice."""
        api = FreshApi(self._api, self._patience.clock)
        request = {"TransactItems": [_member(table, change) for change in changes], "ClientRequestToken": str(uuid.uuid4())}
        try:
            self._long.call(f"TransactWriteItems on table {table}", lambda: attempt(lambda: api.transact_write_items(**request)))
        except ClientError as error:
            reasons = enumerate(error.response.get("CancellationReasons", []))
            refused = {i: reason.get("Item") or None for i, reason in reasons if reason.get("Code") == "ConditionalCheckFailed"}
            if not refused:
                raise
            return refused
        return {}


class _Names:
    """Placeholders for names and values; every name has one, for some are reserved words."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Tagged] = {}
        self._numbers = count()

    def name(self, name: str) -> str:
        placeholder = f"#{next(self._numbers)}"
        self.names[placeholder] = name
        return placeholder

    def equals(self, name: str, tagged: Tagged) -> str:
        placeholder = f":{next(self._numbers)}"
        self.values[placeholder] = tagged
        return f"{self.name(name)} = {placeholder}"

    def as_read(self, name: str, tagged: Tagged | None) -> str:
        return f"attribute_not_exists({self.name(name)})" if tagged is None else self.equals(name, tagged)

    def request(self) -> Wire:
        return {"ExpressionAttributeNames": self.names} | ({"ExpressionAttributeValues": self.values} if self.values else {})


def _member(table: str, change: RowChange) -> Wire:
    """The condition is that of `RowChange.holds`."""
    names = _Names()
    common: Wire = {"TableName": table, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if change.before is None:
        condition = f"attribute_not_exists({names.name(change.keys[0].name)})"
        return {"Put": common | {"Item": change.after, "ConditionExpression": condition} | names.request()}
    before = change.before
    update: Wire = {
        "Key": change.key,
        "ConditionExpression": " AND ".join(names.as_read(name, before.get(name)) for name in sorted(change.known)),
        "UpdateExpression": _update(names, before, change.after),
    }
    return {"Update": common | update | names.request()}


def _update(names: _Names, before: RawItem, after: RawItem) -> str:
    sets = [names.equals(name, tagged) for name, tagged in after.items() if not same(before.get(name), tagged)]
    removes = [names.name(name) for name in before if name not in after]
    return " ".join(f"{verb} {', '.join(parts)}" for verb, parts in (("SET", sets), ("REMOVE", removes)) if parts)

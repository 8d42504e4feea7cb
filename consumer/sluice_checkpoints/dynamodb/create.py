"""Finds or creates target tables in DynamoDB, with deletion protection and point-in-time recovery. Never deletes one.

In the first minute after CreateTable some of the service's machines do not know the table yet. Others still know an earlier table of its name with
another key. They answer ResourceNotFound, or a ValidationException about the key. NiFi believed such an answer and lost its checkpoints (NIFI-16003).
Here a call repeats for a minute; after that its answer counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import ClientError

from sluice_checkpoints.aws.retry import Again, Patience
from sluice_checkpoints.dynamodb.source_tables import NOT_FOUND, key_schema
from sluice_checkpoints.dynamodb.table import Api, DynamoTable, attempt
from sluice_checkpoints.errors import Refused, ServiceUnavailable
from sluice_checkpoints.formats.snapshot import KeySchema, TableKey
from sluice_checkpoints.migrate.ports import PreparedTarget
from sluice_checkpoints.protocol.encoding import Wire

KEY = (TableKey("id", "HASH", "S"),)
FRESH_SECONDS = 60.0
READY_SECONDS = 180.0  # CreateTable takes seconds; PITR of a new table up to a few minutes, which is not waited for
PITR_SECONDS = 20.0
UNKNOWN = frozenset({NOT_FOUND, "ResourceNotFound"})
INVALID = frozenset({"ValidationException", "ValidationError"})
# What a machine says that still knows an earlier table of the name, with another key. Of other requests it says nothing of the kind.
OF_THE_TABLE = re.compile(r"\b(key|keys|schema|table)\b", re.IGNORECASE)
PITR_LATER = "ContinuousBackupsUnavailableException"


@dataclass(frozen=True)
class TableSettings:
    """What a table is made with; nothing of it changes a table that is there.

    Attributes:
        tags: by name.
        kms_key: ARN of the customer's key that encrypts it; None: DynamoDB's own key.
    """

    tags: Mapping[str, str] = field(default_factory=dict)
    kms_key: str | None = None

    @property
    def request(self) -> Wire:
        """Their part of a CreateTable."""
        tags = [{"Key": name, "Value": value} for name, value in sorted(self.tags.items())]
        encrypted = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": self.kms_key}
        return ({"Tags": tags} if tags else {}) | ({"SSESpecification": encrypted} if self.kms_key else {})


class FreshApi:
    """A DynamoDB client of a table that may be new: what may only mean "not known here yet" becomes `Again` for the first minute of this object."""

    def __init__(self, api: Api, clock: Callable[[], float]) -> None:
        self._api, self._clock = api, clock
        self._until = clock() + FRESH_SECONDS

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        call = getattr(self._api, operation)

        def patient(**request: Any) -> Any:
            try:
                return call(**request)
            except ClientError as error:
                if self._clock() < self._until and _of_a_fresh_table(error):
                    raise Again(f"the table may be new: {error}") from error
                raise

        return patient


def _of_a_fresh_table(error: ClientError) -> bool:
    return any(map(_unknown_here, (error.response["Error"], *error.response.get("CancellationReasons", []))))


def _unknown_here(error: Mapping[str, Any]) -> bool:
    """Whether an answer, or a reason of one, is about the table or its key."""
    code, message = error.get("Code"), error.get("Message") or ""
    about_the_table = not message or ("KMS" not in message and OF_THE_TABLE.search(message))
    return code in UNKNOWN or (code in INVALID and bool(about_the_table))


class DynamoTargets:
    """`Targets` over a DynamoDB client. `patience` gives clock and sleep; its limit is for single calls; `key` is another than ours for an export."""

    def __init__(self, api: Api, patience: Patience | None = None, key: KeySchema = KEY, settings: TableSettings | None = None) -> None:
        self._api, self._patience, self._key, self._settings = api, patience or Patience(), key, settings or TableSettings()

    def find(self, name: str) -> DynamoTable | None:
        """See `Targets.find`. One that is still being made holds nothing, so it does not exist yet."""
        description = self._describe(name)
        return None if description is None or description["TableStatus"] == "CREATING" else self._table(name)

    def identity(self, name: str) -> str | None:
        """Which table this name means now: another one after a restore, a replication to another region, or a deletion. None: there is none."""
        description = self._describe(name)
        return None if description is None else identity_of(description, description["CreationDateTime"].timestamp())

    def ensure(self, name: str) -> PreparedTarget:
        warnings = self.make(name)
        table = self._table(name)
        table.get("migration")
        return PreparedTarget(table, warnings)

    def make(self, name: str) -> tuple[str, ...]:
        """Makes the table if it does not exist, and waits until it is ready; returns what could not be had.

        Raises:
            Refused, ServiceUnavailable: see `Targets.ensure`.
        """
        if self._describe(name) is None:
            self._create(name)
        self._wait_until_active(name)
        return tuple(filter(None, (self._protect(name), self._recover(name))))

    def _table(self, name: str) -> DynamoTable:
        """The table may be new, made by this program or another: NotFound and Validation errors are retried during its first minute."""
        patience = replace(self._patience, limit=max(self._patience.limit, 2 * FRESH_SECONDS))
        return DynamoTable(name, FreshApi(self._api, self._patience.clock), patience)

    def _describe(self, name: str) -> Wire | None:
        try:
            reply = self._call("DescribeTable", name, lambda: self._api.describe_table(TableName=name))
        except ClientError as error:
            if error.response["Error"]["Code"] == NOT_FOUND:
                return None
            raise
        return usable(reply["Table"], self._key)

    def _create(self, name: str) -> None:
        request = {
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": key.name, "AttributeType": key.type} for key in self._key],
            "KeySchema": [{"AttributeName": key.name, "KeyType": key.kind} for key in self._key],
            "BillingMode": "PAY_PER_REQUEST",
            "DeletionProtectionEnabled": True,
            **self._settings.request,
        }
        try:
            self._call("CreateTable", name, lambda: self._api.create_table(**request))
        except ClientError as error:  # another program made it at this moment: it is as new
            if error.response["Error"]["Code"] != "ResourceInUseException":
                raise

    def _wait_until_active(self, name: str) -> None:
        def check() -> None:
            description = self._describe(name)
            status = description["TableStatus"] if description else "not visible yet"
            if status not in {"ACTIVE", "UPDATING"}:
                raise Again(f"it is {status}", wait=1.0)

        replace(self._patience, limit=READY_SECONDS).call(f"waiting for target table {name}", check)

    def _protect(self, name: str) -> str | None:
        if (self._describe(name) or {}).get("DeletionProtectionEnabled"):
            return None
        return self._ask(name, "deletion protection", lambda: self._api.update_table(TableName=name, DeletionProtectionEnabled=True))

    def _recover(self, name: str) -> str | None:
        wanted = {"PointInTimeRecoveryEnabled": True}

        def enable() -> Any:
            try:
                return self._api.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=wanted)
            except ClientError as error:
                if error.response["Error"]["Code"] == PITR_LATER:
                    raise Again(str(error), wait=1.0) from error
                raise

        return self._ask(name, "point-in-time recovery", enable)

    def _ask(self, name: str, what: str, call: Callable[[], Any]) -> str | None:
        """Asks for something the migration can do without; returns a warning when it was not granted."""
        try:
            replace(self._patience, limit=PITR_SECONDS).call(what, lambda: attempt(call))
        except (ClientError, Refused, ServiceUnavailable) as error:
            reply = error.response["Error"] if isinstance(error, ClientError) else {}
            reason = f"{reply['Code']}: {reply.get('Message', '')}" if reply else str(error)
            return f"table {name} has no {what} ({reason})"
        return None

    def _call(self, what: str, name: str, call: Callable[[], Any]) -> Any:
        return self._patience.call(f"{what} of target table {name}", lambda: attempt(call))


def usable(table: Wire, key: KeySchema = KEY) -> Wire:
    """A table's description (DescribeTable), if the table may be a target.

    Raises:
        Refused: it has another key schema, or is being deleted.
    """
    name, schema = table["TableName"], key_schema(table)
    if schema != key:
        wanted = ", ".join(map(str, key))
        raise Refused(
            f"target table {name} has the key schema ({', '.join(map(str, schema))}), not ({wanted}): it is another program's table. Name another one"
        )
    if table["TableStatus"] == "DELETING":
        raise Refused(f"target table {name} is being deleted; give this migration a name that was never used")
    return dict(table)


def identity_of(table: Wire, created: float) -> str:
    """Which table a description is of; `created`: epoch seconds, for services that give tables no id."""
    return f"{table['TableArn']}@{table.get('TableId') or round(created * 1000)}"

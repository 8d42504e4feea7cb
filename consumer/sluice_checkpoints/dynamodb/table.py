"""The checkpoint table in DynamoDB.

Conflicts, throttling and lost connections are retried with jitter until the time limit; only `ConditionalCheckFailed` is an answer
(docs/protocol.md, "Retries against the service"). The SDK's own retries are off: it does not retry conflicts, and its waits know no deadline.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from botocore.config import Config
from botocore.exceptions import ClientError, CredentialRetrievalError, HTTPClientError, NoCredentialsError
from botocore.exceptions import ConnectionError as BotoConnectionError

from sluice_checkpoints.aws import side_by_side
from sluice_checkpoints.aws.boto_clients import kept_client
from sluice_checkpoints.aws.credentials import MISSING, unavailable
from sluice_checkpoints.aws.retry import EXPIRED, EXPIRED_ADVICE, Again, Patience, may_pass
from sluice_checkpoints.errors import AccessDenied, Refused, SluiceError
from sluice_checkpoints.protocol.encoding import Expressions, Wire, item_from_wire, item_to_wire, to_wire
from sluice_checkpoints.protocol.rows import Item
from sluice_checkpoints.protocol.table import MAX_BATCH_GET, Check, Delete, Member, Outcome, Put, Transaction, Update, Write, chunks

T = TypeVar("T")
Api = Any  # a boto3 client has no type of its own
CONNECTIONS = 16  # that a client keeps open, so as many calls on a table run side by side

CONDITION_FAILED = "ConditionalCheckFailedException"
CANCELLED = "TransactionCanceledException"
# What may pass, in the reasons of a cancelled transaction (API reference, TransactWriteItems). If it has several, the first one here is its cause.
TRANSIENT_REASONS = ("ThrottlingError", "ProvisionedThroughputExceeded", "TransactionConflict")


@dataclass(frozen=True)
class Endpoint:
    """Where a service is, and how long one request may take.

    Attributes:
        region: AWS region.
        url: another address than AWS's own, for emulators and private endpoints.
        timeout: seconds for connecting, and again for reading.
        whole: seconds for all of a call, even if its reply comes byte by byte. Only `dynamodb.http` knows it, and only without a proxy.
    """

    region: str
    url: str | None = None
    timeout: float = 10.0
    whole: float = math.inf


def client(endpoint: Endpoint, connections: int = CONNECTIONS) -> Api:
    """A DynamoDB client without retries of its own. It calls the region's address, as `dynamodb.http` does, not the account's."""
    config = Config(
        account_id_endpoint_mode="disabled",
        connect_timeout=endpoint.timeout,
        read_timeout=endpoint.timeout,
        max_pool_connections=connections,
        parameter_validation=False,  # `encoding` makes every request; checking them again was a fifth of a migration's CPU
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    return kept_client("dynamodb", endpoint.region, endpoint.url, config)


def transient(error: ClientError) -> bool:
    """Whether the service's answer only means "not now"."""
    code = error.response["Error"]["Code"]
    if code == CANCELLED:
        return cause(error) != CANCELLED
    return may_pass(error.response["ResponseMetadata"]["HTTPStatusCode"], code, error.response["Error"]["Message"])


def cause(error: ClientError) -> str:
    """The error code; of a cancelled transaction that may be made again, the reason in it: throttling comes before a conflict."""
    code = str(error.response["Error"]["Code"])
    if code != CANCELLED:
        return code
    codes = {reason.get("Code", "None") for reason in error.response.get("CancellationReasons", [])}
    return code if "ConditionalCheckFailed" in codes else next((each for each in TRANSIENT_REASONS if each in codes), code)


def attempt(call: Callable[[], Any]) -> Any:
    """One try of a call, with what may pass turned into `Again`.

    Raises:
        Again: throttled, in conflict, no connection, or credentials that could not be renewed.
        Refused: there is no such table, or the caller may not use it.
        ClientError: any other answer.
    """
    try:
        return call()
    except (ClientError, CredentialRetrievalError) as error:
        named = unavailable(error) or _named(error)
        if named is None:
            raise
        raise named from error
    except (BotoConnectionError, HTTPClientError) as error:
        raise Again(str(error)) from error
    except NoCredentialsError as error:
        raise Refused(MISSING) from error


def _named(error: Exception) -> Exception | None:
    """What an answer of the service means where the caller cannot do anything about it; None where it can."""
    if not isinstance(error, ClientError):
        return None
    code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
    if transient(error):
        return Again(f"{error}; {EXPIRED_ADVICE}" if code in EXPIRED else str(error), cause=cause(error))
    if code in {"AccessDeniedException", "UnrecognizedClientException"}:
        kind = AccessDenied if code == "AccessDeniedException" else Refused  # the other one: nobody knows whose credentials these are
        return kind(f"DynamoDB denies access ({code}: {message}); give the pod's service account the role it needs")
    return None


class DynamoTable:
    """One table, over a client that may be shared between threads."""

    def __init__(self, name: str, api: Api, patience: Patience | None = None) -> None:
        self._name, self._api, self._patience = name, api, patience or Patience()

    @property
    def name(self) -> str:
        """The table's name."""
        return self._name

    def _call(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            return self._patience.call(f"{what} on table {self._name}", lambda: attempt(call))
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in {CONDITION_FAILED, CANCELLED}:
                raise
            if code == "ResourceNotFoundException":
                raise Refused(f"there is no table {self._name}; check its name and the region") from error
            raise self._unknown(what, error) from error

    def _unknown(self, what: str, error: ClientError) -> SluiceError:
        return SluiceError(f"{what} on table {self._name} was refused: {error}")

    def get(self, key: str) -> Item | None:
        """The row, or None."""
        request: Wire = {"TableName": self._name, "Key": {"id": {"S": key}}, "ConsistentRead": True}
        reply = self._call("GetItem", lambda: self._api.get_item(**request))
        return item_from_wire(reply["Item"]) if "Item" in reply else None

    def batch_get(self, keys: Sequence[str]) -> dict[str, Item]:
        """The rows of these keys that exist; asks until nothing is left unprocessed."""
        chunks_read = self.side_by_side(partial(self._get_chunk, chunk) for chunk in chunks(dict.fromkeys(keys), MAX_BATCH_GET))
        return {key: item for rows in chunks_read for key, item in rows.items()}

    def _get_chunk(self, keys: list[str]) -> dict[str, Item]:
        rows: dict[str, Item] = {}
        wanted = {self._name: {"Keys": [{"id": {"S": key}} for key in keys], "ConsistentRead": True}}

        def ask() -> None:
            nonlocal wanted
            reply = attempt(lambda: self._api.batch_get_item(RequestItems=wanted))
            for item in reply["Responses"].get(self._name, []):
                rows[item["id"]["S"]] = item_from_wire(item)
            wanted = reply.get("UnprocessedKeys") or {}
            if wanted:
                raise Again("some keys were not processed", cause="UnprocessedKeys")

        self._call("BatchGetItem", ask)
        return rows

    def scan(self) -> Iterator[Item]:
        """Every row, in no order."""
        request: Wire = {"TableName": self._name, "ConsistentRead": True}
        while True:
            reply = self._call("Scan", lambda: self._api.scan(**request))
            yield from map(item_from_wire, reply["Items"])
            if "LastEvaluatedKey" not in reply:
                return
            request["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    def write(self, write: Write) -> Outcome:
        """One conditional write."""
        request = self._member(write)
        name, call = ("PutItem", self._api.put_item) if isinstance(write, Put) else ("UpdateItem", self._api.update_item)
        if isinstance(write, Update):
            request["ReturnValues"] = "UPDATED_OLD"
        try:
            reply = self._call(name, lambda: call(**request))
        except ClientError as error:
            if error.response["Error"]["Code"] != CONDITION_FAILED:
                raise
            row: Any = error.response.get("Item")
            return Outcome(applied=False, row=item_from_wire(row) if row else None)
        former = reply.get("Attributes")
        return Outcome(applied=True, row=None if isinstance(write, Put) else item_from_wire(former or {}))

    def _member(self, member: Member) -> Wire:
        expressions = Expressions()
        request: Wire = {"TableName": self._name, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        if member.when:
            request["ConditionExpression"] = expressions.conditions(member.when)
        match member:
            case Put(item, _):
                request["Item"] = item_to_wire(item)
            case Update():
                request |= {"Key": {"id": to_wire(member.key)}, "UpdateExpression": expressions.update(member)}
            case Check(key, _) | Delete(key, _):
                request["Key"] = {"id": to_wire(key)}
        return request | expressions.request()

    def transact(self, members: Sequence[Member]) -> Transaction:
        """All of it, or nothing and what was refused. One token for all tries: a try whose reply was lost is not applied twice."""
        kinds = {Put: "Put", Update: "Update", Check: "ConditionCheck", Delete: "Delete"}
        request: Wire = {
            "TransactItems": [{kinds[type(member)]: self._member(member)} for member in members],
            "ClientRequestToken": str(uuid.uuid4()),
        }
        try:
            self._call("TransactWriteItems", lambda: self._api.transact_write_items(**request))
        except ClientError as error:
            reasons: list[Any] = error.response.get("CancellationReasons", [])
            refused = {
                i: item_from_wire(reason["Item"]) if reason.get("Item") else None
                for i, reason in enumerate(reasons)
                if reason.get("Code") == "ConditionalCheckFailed"
            }
            if not refused:
                raise self._unknown("TransactWriteItems", error) from error
            return Transaction(applied=False, refused=refused)
        return Transaction(applied=True)

    def side_by_side(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        """At most `CONNECTIONS` at once."""
        return side_by_side.side_by_side(calls, CONNECTIONS)

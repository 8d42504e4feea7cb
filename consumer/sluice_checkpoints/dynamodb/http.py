"""The calls that a batch makes on its table, as boto3's client has them, at a fraction of its CPU.

Only the operations, parameters and errors that `dynamodb.table.DynamoTable` knows, and DescribeTable for the check before a start. Everything else
(tables, backups, other systems' rows) is boto3's.
The service's JSON is boto3's low-level one but for binary values, which a checkpoint table has none of.
"""

from __future__ import annotations

import zlib
from typing import Any

import orjson
from botocore.exceptions import ClientError

from sluice_checkpoints.aws.connections import TimeLimits
from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.aws.signed_http import Service, ServiceReply, SignedHttp, connect, refusal
from sluice_checkpoints.dynamodb.table import CONNECTIONS, Endpoint
from sluice_checkpoints.names import counted

DYNAMODB = Service("dynamodb", "DynamoDB_20120810.")
CONTENT_TYPE = "application/x-amz-json-1.0"
CHECKSUM = "x-amz-crc32"  # of every reply of the service; emulators may have none

Values = dict[str, Any]


class DynamoHttp:
    """Calls over one `SignedHttp`. Thread safe.

    Every call raises:
        ClientError: the service refuses it; `response` has what boto3's has.
        Again: no reply came, or not a whole one, or the credentials could not be renewed.
        Refused: there are no credentials.
    """

    def __init__(self, http: SignedHttp) -> None:
        self._http = http

    def get_item(self, **request: Any) -> Values:
        """GetItem."""
        return self._call("GetItem", request)

    def batch_get_item(self, **request: Any) -> Values:
        """BatchGetItem."""
        return self._call("BatchGetItem", request)

    def scan(self, **request: Any) -> Values:
        """Scan, one page."""
        return self._call("Scan", request)

    def describe_table(self, **request: Any) -> Values:
        """DescribeTable. Times are epoch seconds, unlike boto3's."""
        return self._call("DescribeTable", request)

    def put_item(self, **request: Any) -> Values:
        """PutItem."""
        return self._call("PutItem", request)

    def update_item(self, **request: Any) -> Values:
        """UpdateItem."""
        return self._call("UpdateItem", request)

    def transact_write_items(self, **request: Any) -> Values:
        """TransactWriteItems."""
        return self._call("TransactWriteItems", request)

    def _call(self, operation: str, request: dict[str, Any]) -> Values:
        reply = self._http.post(operation, CONTENT_TYPE, orjson.dumps(request))
        content = _content(operation, reply)
        if reply.status != 200:
            raise ClientError(_error(reply, content), operation)
        return content


def _content(operation: str, reply: ServiceReply) -> Values:
    """What a reply says; {} for a failed one that is not the service's (a proxy's page, for one)."""
    try:
        content = orjson.loads(reply.data)
    except ValueError:
        content = None
    if isinstance(content, dict) and _whole(reply):
        return content
    if reply.status != 200:
        return {}
    raise Again(f"the reply to {operation} is not whole: {counted(len(reply.data), 'byte')}", cause="BadReply")


def _whole(reply: ServiceReply) -> bool:
    stated = reply.headers.get(CHECKSUM)
    return stated is None or stated == str(zlib.crc32(reply.data))


def _error(reply: ServiceReply, content: Values) -> Any:
    """A refusal as botocore parses it: code without its namespace, and what came with it (`Item`, `CancellationReasons`)."""
    code, message = refusal(reply.headers.get("x-amzn-errortype") or str(reply.status), content)
    more = {key: content[key] for key in ("Item", "CancellationReasons") if key in content}
    return {"Error": {"Code": code, "Message": message or reply.reason or ""}, "ResponseMetadata": {"HTTPStatusCode": reply.status}, **more}


def http_client(endpoint: Endpoint, connections: int = CONNECTIONS) -> DynamoHttp:
    """The client of an endpoint; `connections` of them are kept open."""
    waits = TimeLimits(endpoint.timeout, endpoint.timeout, endpoint.whole)
    return DynamoHttp(connect(DYNAMODB, endpoint.region, endpoint.url, waits, connections))

"""Messages about values that are refused: pydantic's, or our own where that would be a regular expression. Pure."""

import re
from collections.abc import Mapping
from typing import Any

ADDRESS = "must be an address, such as https://vpce-1.kinesis.eu-west-1.vpce.amazonaws.com"
NAME = "must be a name of a-z, 0-9, '-' and '.'"
TABLE = "must be the name of a DynamoDB table: a-z, A-Z, 0-9, '_', '-' and '.'"
FORMS: Mapping[str, str] = {
    "stream.name": "must be the stream's name; its ARN goes into stream.arn",
    "stream.region": "must be an AWS region, such as eu-west-1",
    "stream.arn": "must be the ARN of a stream, such as arn:aws:kinesis:eu-west-1:111122223333:stream/orders",
    "stream.roleArn": "must be the ARN of a role, such as arn:aws:iam::111122223333:role/orders-reader",
    "stream.externalId": "must be an external id of a-z, A-Z, 0-9 and _+=,.@:/-",
    "stream.sessionName": "must be the name of a session, of a-z, A-Z, 0-9 and _+=,.@-",
    "stream.kinesisEndpoint": ADDRESS,
    "stream.dynamodbEndpoint": ADDRESS,
    "checkpoints.table": TABLE,
    "checkpoints.kmsKeyArn": "must be the ARN of a KMS key, such as arn:aws:kms:eu-west-1:111122223333:key/0a1b2c3d",
    "migrateFrom.table": TABLE,
    "migrateFrom.ignoreAttributes": "must not be empty, or begin with a space",
    "migrateFrom.ignoreRows": "must not be empty, or begin with a space",
    "migrateFrom.places": "must be SHARD=trim-horizon, SHARD=END or SHARD=NUMBER",
    "pipeline.entrypoint": "must be module:function, such as orders.pipeline:process",
    "pipeline.imagePullSecrets": NAME,
    "pipeline.source.configMap": NAME,
    "onError.deadLetter.path": "must begin with s3a://, hdfs:// or file://",
    "onError.deadLetter.sqs": "must be the URL of a queue, such as https://sqs.eu-west-1.amazonaws.com/111122223333/orders",
    "onError.deadLetter.kinesis": "must be the name or the ARN of a stream",
    "position.id": "must be 1 to 63 of a-z, A-Z, 0-9, '.', '_' and '-', and must not begin with '.', '_' or '-'",
    "position.to.timestamp": "must be a time with a zone and at most milliseconds, such as 2026-11-26T14:00:00Z",
    "position.shards": "must be the id of a shard, such as shardId-000000000000",
    "pool": "must be the name of a KinesisConsumerPool: at most 45 of a-z, 0-9 and '-'",
    "serviceAccountName": NAME,
    "executor.serviceAccountName": NAME,
}
"""By field, what a text has to be that does not match the field's pattern."""
TRUE: Mapping[str, str] = {
    "until.tip": "must be true; to have no end, remove until",
    "position.to.trimHorizon": "must be true, or left out",
    "position.to.latest": "must be true, or left out",
}
"""By field, what is wrong with any other value than true."""


def problem(error: Mapping[str, Any]) -> str:
    """What is wrong with a value, as one clause without the field's name. `error` is an entry of pydantic's list."""
    field = ".".join(each for each in error["loc"] if isinstance(each, str))
    if error["type"] == "string_pattern_mismatch" and field in FORMS:
        return FORMS[field]
    if field in TRUE:
        return TRUE[field]
    message = re.sub(r"^(Input|String|List|Dictionary) should ", "must ", error["msg"].removeprefix("Value error, "))
    return message if message[:2].isupper() else message[:1].lower() + message[1:]

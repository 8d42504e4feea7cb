"""Whether the checkpoint table is this consumer's, and can be read.

What only a write shows is not looked at: PutItem, UpdateItem, DeleteItem, CreateTable.
"""

from __future__ import annotations

from botocore.exceptions import ClientError

from sluice_checkpoints.aws.retry import Again, Once
from sluice_checkpoints.dynamodb.create import identity_of, usable
from sluice_checkpoints.dynamodb.http import DynamoHttp, http_client
from sluice_checkpoints.dynamodb.source_tables import NOT_FOUND
from sluice_checkpoints.dynamodb.table import DynamoTable, Endpoint, attempt
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol import copies, lease, owners
from sluice_checkpoints.protocol.encoding import Wire
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.batches.consumer import check_identity
from sluice_consumer.checks import services
from sluice_consumer.checks.model import CheckFinding, CheckOutcome, StartFacts
from sluice_consumer.process import pod, supervisor


def check_table(facts: StartFacts) -> CheckFinding:
    """Describes the table, and reads the consumer's row. There may be none: the driver creates it.

    Raises:
        Refused: the table is another program's, consumer's or owner's, a copy, exported, or gone; its migration is not complete; or access is denied.
        Again: no answer.
    """
    config, name = facts.given, facts.given.checkpoints.table
    stream = config.stream
    try:
        api = http_client(Endpoint(stream.region, stream.dynamodb_endpoint, facts.waits.read), connections=1)
        description = _described(api, name)
        if description is None:
            return _missing(facts)
        if description["TableStatus"] == "CREATING":
            return CheckFinding(CheckOutcome.OK, f"{name} is being created")
        return _fitting(facts, CheckpointStore(DynamoTable(name, api, Once())), usable(description))
    except ValueError as error:
        raise services.misconfigured(error) from error
    except Again as error:
        raise services.silent(error, "dynamodbEndpoint", stream.dynamodb_endpoint, stream.region) from error


def _described(api: DynamoHttp, name: str) -> Wire | None:
    try:
        description: Wire = attempt(lambda: api.describe_table(TableName=name))["Table"]
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
        if code == NOT_FOUND:
            return None
        raise Refused(f"checkpoints.table: DescribeTable of {name} was refused: {code}: {message}; check the credentials and the name") from error
    except KeyError as error:
        raise Refused(f"stream.dynamodbEndpoint: it answers, but not as DynamoDB does (no {error})") from error
    return description


def _missing(facts: StartFacts) -> CheckFinding:
    config, name = facts.given, facts.given.checkpoints.table
    if pod.table_made(facts.environment):
        raise Refused(f"checkpoints.table: {name} {supervisor.GONE}")
    if config.migrate_from is not None:
        raise Refused(f"migrateFrom.table: there is no table {name} yet; {supervisor.migrate_command(config, config.migrate_from)}")
    return CheckFinding(CheckOutcome.OK, f"{name} does not exist: the driver creates it")


def _fitting(facts: StartFacts, store: CheckpointStore, description: Wire) -> CheckFinding:
    name = store.table.name
    supervisor.check_migration(facts.given, store)
    row = store.consumer()
    if row is None:
        if store.migration() is not None:
            raise supervisor.unfinished(store)
        return CheckFinding(CheckOutcome.OK, f"{name} is empty: the driver writes where each shard begins")
    lease.check_state(name, row)
    owners.check(name, row, pod.owner(facts.given.name, facts.environment))
    if facts.identity is not None:
        check_identity(row, facts.identity)
    copies.check_copy(name, row, identity_of(description, float(description["CreationDateTime"])))
    held = "free" if row.released or not row.lease_millis else f"held by {row.holder or 'an unknown holder'}, unless that has died"
    return CheckFinding(CheckOutcome.OK, f"{name}: generation {row.generation}, {counted(row.committed, 'batch')} committed, lease {held}")

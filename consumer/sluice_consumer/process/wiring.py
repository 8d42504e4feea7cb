"""Makes the real adapters from a configuration: the checkpoint table, the stream's catalog, addresses.

All of a process share the clients of DynamoDB: boto3's for tables, its like without boto3 (`dynamodb.http`) for what every batch does with rows.
Only heartbeats have one of their own: its answers are worth nothing after a sixth of the lease, and no other call may keep it waiting for a
connection.
"""

from __future__ import annotations

import functools

from sluice_checkpoints.aws.retry import NO_LISTENER, Listener, Patience
from sluice_checkpoints.dynamodb.create import DynamoTargets, TableSettings
from sluice_checkpoints.dynamodb.http import DynamoHttp, http_client
from sluice_checkpoints.dynamodb.source_tables import DynamoSources
from sluice_checkpoints.dynamodb.table import Api, DynamoTable, Endpoint, client
from sluice_checkpoints.protocol.row_kinds import OwnTable
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_consumer.config import Config, StreamConfig

LOOKING_SECONDS = 10.0  # in which tries of a standby's look begin, at most: SIGTERM, and whoever counts on it, wait for its end
FOLDING_SECONDS = 1.0  # in which tries of a fold begin; connecting and reading have as long each, and no try has more than both


@functools.cache
def _shared(endpoint: Endpoint) -> Api:
    return client(endpoint)


@functools.cache
def _rows(endpoint: Endpoint) -> DynamoHttp:
    return http_client(endpoint)


def _endpoint(stream: StreamConfig) -> Endpoint:
    return Endpoint(stream.region, stream.dynamodb_endpoint)


def _dynamodb(stream: StreamConfig) -> Api:
    return _shared(_endpoint(stream))


def store(config: Config, listener: Listener = NO_LISTENER) -> CheckpointStore:
    """The consumer's table, with the patience of a batch. Rows that somebody changed by hand are refused by name (`row_kinds.OwnTable`)."""
    return CheckpointStore(OwnTable(DynamoTable(config.checkpoints.table, _rows(_endpoint(config.stream)), Patience(listener=listener))))


def beating_store(config: Config) -> CheckpointStore:
    """The same table for heartbeats: an answer within a sixth of the lease, or none."""
    sixth = config.lease_duration_seconds / 6
    endpoint = Endpoint(config.stream.region, config.stream.dynamodb_endpoint, timeout=sixth / 2)
    return CheckpointStore(DynamoTable(config.checkpoints.table, http_client(endpoint, connections=1), Patience(limit=sixth, cap=sixth / 4)))


def looking_store(config: Config) -> CheckpointStore:
    """The same table for the looks of a standby: an answer long before a lease can end that was watched when the table fell silent, or none."""
    limit = min(LOOKING_SECONDS, config.lease_duration_seconds / 3)
    endpoint = Endpoint(config.stream.region, config.stream.dynamodb_endpoint, timeout=limit / 2)
    table = DynamoTable(config.checkpoints.table, http_client(endpoint, connections=1), Patience(limit=limit, cap=limit / 4))
    return CheckpointStore(OwnTable(table))


def folding_store(config: Config, listener: Listener = NO_LISTENER) -> CheckpointStore:
    """The same table for folding, between two batches: an answer within three seconds, or none (docs/protocol.md, "Folded shards")."""
    endpoint = Endpoint(config.stream.region, config.stream.dynamodb_endpoint, timeout=FOLDING_SECONDS, whole=2 * FOLDING_SECONDS)
    patience = Patience(limit=FOLDING_SECONDS, cap=FOLDING_SECONDS / 4, listener=listener)
    return CheckpointStore(DynamoTable(config.checkpoints.table, http_client(endpoint, connections=1), patience))


def targets(config: Config) -> DynamoTargets:
    """Where the consumer's table is made."""
    made = config.checkpoints
    return DynamoTargets(_dynamodb(config.stream), settings=TableSettings(made.tags, made.kms_key_arn))


def sources(config: Config) -> DynamoSources:
    """Where the table that was migrated is read."""
    return DynamoSources(_dynamodb(config.stream))


def catalog(config: Config, listener: Listener = NO_LISTENER) -> BotoStreamCatalog:
    """The stream."""
    return BotoStreamCatalog(config.stream.address, Patience(listener=listener))
